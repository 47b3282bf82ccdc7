-- TPC-DS's tables for policy.yaml, from the rows that DuckDB's extension makes (CALL dsdgen). Three things are changed, so that each
-- row is one customer's: a sale that names no customer is left out, goods are sent to who pays for them, and are returned by her.
DELETE FROM store_sales WHERE ss_customer_sk IS NULL;
DELETE FROM catalog_sales WHERE cs_bill_customer_sk IS NULL;
DELETE FROM web_sales WHERE ws_bill_customer_sk IS NULL;

UPDATE catalog_sales SET cs_ship_customer_sk = cs_bill_customer_sk;
UPDATE web_sales SET ws_ship_customer_sk = ws_bill_customer_sk;

UPDATE store_returns SET sr_customer_sk = (SELECT any_value(ss_customer_sk) FROM store_sales WHERE ss_ticket_number = sr_ticket_number);
UPDATE catalog_returns SET cr_returning_customer_sk = (SELECT any_value(cs_bill_customer_sk) FROM catalog_sales WHERE cs_order_number = cr_order_number);
UPDATE catalog_returns SET cr_refunded_customer_sk = cr_returning_customer_sk;
UPDATE web_returns SET wr_returning_customer_sk = (SELECT any_value(ws_bill_customer_sk) FROM web_sales WHERE ws_order_number = wr_order_number);
UPDATE web_returns SET wr_refunded_customer_sk = wr_returning_customer_sk;

DELETE FROM store_returns WHERE sr_customer_sk IS NULL;
DELETE FROM catalog_returns WHERE cr_returning_customer_sk IS NULL;
DELETE FROM web_returns WHERE wr_returning_customer_sk IS NULL;
