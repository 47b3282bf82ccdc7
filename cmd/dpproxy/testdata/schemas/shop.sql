-- An order shop: chained keys, a composite one, addresses of customers alone, money, codes in CHECKs and comments.
CREATE TABLE regions (region_id integer PRIMARY KEY, name varchar(40) NOT NULL);
CREATE TABLE nations (nation_id integer PRIMARY KEY, region_id integer REFERENCES regions, code char(2) NOT NULL UNIQUE, name varchar(40) NOT NULL);
CREATE TABLE addresses (address_id bigint PRIMARY KEY, street text NOT NULL, town varchar(60), nation_id integer REFERENCES nations);
CREATE TABLE customers (customer_id bigint PRIMARY KEY, full_name text, email text UNIQUE, birth_date date, segment varchar(10) CHECK (segment IN ('home', 'office', 'public')),
  balance numeric(12,2), home_address bigint REFERENCES addresses, password_hash text, loyalty_points integer CHECK (loyalty_points >= 0 AND loyalty_points < 100000));
COMMENT ON COLUMN customers.balance IS 'what the customer owes, -1000 to 9000';
CREATE TABLE products (product_id integer PRIMARY KEY, title varchar(80), list_price numeric(10,2), kind varchar(20));
CREATE TABLE suppliers (supplier_id integer PRIMARY KEY, company_name varchar(60), nation_id integer REFERENCES nations, contact_name text, contact_email text);
CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint REFERENCES customers, status char(1) CHECK (status = ANY (ARRAY['F'::bpchar, 'O'::bpchar, 'P'::bpchar])), placed date NOT NULL, priority text, remarks text);
COMMENT ON COLUMN orders.priority IS 'one of: urgent, high, medium or low';
CREATE TABLE order_lines (order_id bigint REFERENCES orders, line_no smallint CHECK (line_no BETWEEN 1 AND 7), product_id integer REFERENCES products, supplier_id integer REFERENCES suppliers,
  quantity integer CHECK (quantity > 0 AND quantity <= 50), price numeric(10,2), discount numeric(3,2), shipped date, PRIMARY KEY (order_id, line_no));
CREATE TABLE returns (return_id bigint PRIMARY KEY, order_id bigint, line_no smallint, reason_code varchar(8), refund numeric(10,2), FOREIGN KEY (order_id, line_no) REFERENCES order_lines);
CREATE TABLE carts (cart_id uuid PRIMARY KEY, started timestamp, items integer);
ALTER TABLE orders ADD cart_id uuid UNIQUE REFERENCES carts;
CREATE TABLE settings (name text PRIMARY KEY, value text);
