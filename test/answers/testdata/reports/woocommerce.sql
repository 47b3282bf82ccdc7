-- A web shop's orders, in MySQL's words. SET dp.dialect = mysql
CREATE TABLE wc_customer_lookup (customer_id integer PRIMARY KEY, country text, city text, date_registered timestamp);
INSERT INTO wc_customer_lookup SELECT i, (ARRAY['AT', 'DE', 'US'])[1 + i % 3], (ARRAY['Wien', 'Berlin', 'Austin'])[1 + i % 3], timestamp '2024-01-01' + i * interval '1 day' FROM generate_series(1, 300) s(i);
CREATE TABLE wc_order_stats (order_id integer PRIMARY KEY, customer_id integer REFERENCES wc_customer_lookup, date_created timestamp, num_items_sold integer, total_sales numeric(10,1), returning_customer smallint, status text);
INSERT INTO wc_order_stats SELECT i, 1 + (i * 7) % 300, timestamp '2024-01-01' + i * interval '9 hours', 1 + i % 5, (i % 61) * 0.5, i % 2, (ARRAY['wc-completed', 'wc-processing', 'wc-refunded', 'wc-cancelled'])[1 + i % 4] FROM generate_series(1, 900) s(i);
CREATE TABLE wc_order_product_lookup (order_item_id integer PRIMARY KEY, order_id integer REFERENCES wc_order_stats, product_id integer, product_qty integer, product_net_revenue numeric(10,1));
INSERT INTO wc_order_product_lookup SELECT i, 1 + i % 900, 1 + i % 10, 1 + i % 3, (i % 31) * 0.5 FROM generate_series(1, 1500) s(i);
CREATE TABLE wp_posts (id integer PRIMARY KEY, post_title text, post_type text, category text);
INSERT INTO wp_posts SELECT i, 'Product ' || i, 'product', (ARRAY['hats', 'shirts'])[1 + i % 2] FROM generate_series(1, 10) s(i);
-- policy: {name: customer, key: wc_customer_lookup.customer_id, type: integer}
      - {name: wc_customer_lookup, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: customer_id, type: integer, keys: join}, {name: country, type: text, domain: {values: [AT, DE, US]}, nulls: exclude, outside: exclude}, {name: city, type: text, domain: {values: [Wien, Berlin, Austin]}, nulls: exclude, outside: exclude}, {name: date_registered, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 day}}]}
      - {name: wc_order_stats, unit: wc_order_stats.customer_id = wc_customer_lookup.customer_id, max_rows_per_unit: 3, expected_rows: 900, columns: [{name: order_id, type: integer, keys: join}, {name: customer_id, type: integer, keys: join}, {name: date_created, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: num_items_sold, type: integer, domain: {min: 1, max: 5}}, {name: total_sales, type: "numeric(10,1)", domain: {min: 0, max: 30, step: 0.5}}, {name: returning_customer, type: smallint, domain: {min: 0, max: 1}}, {name: status, type: text, domain: {values: [wc-completed, wc-processing, wc-refunded, wc-cancelled]}, nulls: exclude, outside: exclude}]}
      - {name: wc_order_product_lookup, unit: wc_order_product_lookup.order_id = wc_order_stats.order_id, max_rows_per_unit: 6, expected_rows: 1500, columns: [{name: order_id, type: integer, keys: join}, {name: product_id, type: integer, domain: {min: 1, max: 10}}, {name: product_qty, type: integer, domain: {min: 1, max: 3}}, {name: product_net_revenue, type: "numeric(10,1)", domain: {min: 0, max: 15, step: 0.5}}]}
      - {name: wp_posts, public: true, columns: [{name: id, type: integer}, {name: post_title, type: text}, {name: post_type, type: text}, {name: category, type: text}]}
-- reports
SELECT DATE_FORMAT(date_created, '%Y-%m') AS month, COUNT(*) AS orders, SUM(total_sales) AS sales FROM wc_order_stats WHERE status NOT IN ('wc-cancelled', 'wc-refunded') GROUP BY DATE_FORMAT(date_created, '%Y-%m') HAVING COUNT(*) > 0 ORDER BY month;
SELECT YEAR(date_created) AS y, MONTH(date_created) AS m, SUM(num_items_sold) AS items FROM wc_order_stats WHERE status = 'wc-completed' GROUP BY YEAR(date_created), MONTH(date_created) HAVING COUNT(*) > 0 ORDER BY y, m;
-- refused: DP002 this comparison of texts depends on MySQL's collation, which does not tell upper from lower case
SELECT p.category, SUM(l.product_qty) AS qty, SUM(l.product_net_revenue) AS revenue FROM wc_order_product_lookup l INNER JOIN wp_posts p ON p.id = l.product_id WHERE p.post_type = 'product' GROUP BY p.category ORDER BY revenue DESC;
SELECT c.country, COUNT(DISTINCT s.customer_id) AS customers, COUNT(s.order_id) AS orders FROM wc_order_stats s LEFT JOIN wc_customer_lookup c ON c.customer_id = s.customer_id GROUP BY c.country ORDER BY c.country;
SELECT IF(returning_customer = 1, 'returning', 'new') AS kind, COUNT(*) AS n, SUM(total_sales) AS total FROM wc_order_stats GROUP BY IF(returning_customer = 1, 'returning', 'new') ORDER BY kind;
SELECT HOUR(date_created) AS h, COUNT(*) AS n FROM wc_order_stats GROUP BY HOUR(date_created) HAVING COUNT(*) > 0 ORDER BY h;
SELECT ROUND(SUM(total_sales) / COUNT(*), 2) AS average_order FROM wc_order_stats WHERE date_created >= '2024-03-01' AND date_created < DATE_ADD('2024-03-01', INTERVAL 1 MONTH);
SELECT n, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM wc_order_stats GROUP BY customer_id) t GROUP BY n HAVING COUNT(*) > 0 ORDER BY n;
-- refused: DP002 the order of these texts depends on MySQL's collation, which does not tell upper from lower case
SELECT IFNULL(c.city, '-') AS city, COUNT(*) AS n FROM wc_order_stats s JOIN wc_customer_lookup c USING (customer_id) WHERE s.status IN ('wc-completed') GROUP BY IFNULL(c.city, '-') HAVING COUNT(*) > 0 ORDER BY n DESC, city LIMIT 2;
SELECT COUNT(*) FROM wc_customer_lookup WHERE DATEDIFF('2024-12-31', date_registered) > 180
