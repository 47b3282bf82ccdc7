-- The store that drivers are held against PostgreSQL with: customers who have orders, which have lines, and public tables.
-- The owner's keys and the enumerated type are where KEYS stands; where SHOWN stands are the keys that analysts see, which the policy says.
KEYS CREATE TYPE tier AS ENUM ('bronze', 'silver', 'gold');
CREATE TABLE customers (customer_id integer, tier TIER, country char(2), born date, balance numeric(12,1), score double precision, rating real, level smallint,
	clicks bigint, newsletter boolean, segment uuid, seen timestamp, joined timestamptz, email varchar(60));
INSERT INTO customers SELECT i, (CASE WHEN i % 10 < 6 THEN 'bronze' WHEN i % 10 < 9 THEN 'silver' ELSE 'gold' END)::TIER, CASE WHEN i % 7 < 5 THEN 'de' WHEN i % 7 = 5 THEN 'at' ELSE 'ch' END,
	date '1950-01-01' + i * 30, (i * 7 % 41) * 0.5, (i % 21) * 0.5, (i % 11) * 0.5, 1 + i % 4, CASE WHEN i % 11 > 0 THEN i % 50 END, CASE WHEN i % 13 > 0 THEN i % 3 = 0 END,
	('00000000-0000-4000-8000-00000000000' || i % 3)::uuid, timestamp '2024-01-01' + i * interval '2 hours', timestamptz '2024-01-01 00:00:00Z' + i * interval '3 hours',
	'customer' || i || CASE WHEN i % 4 = 0 THEN '@example.org' ELSE '@example.com' END FROM generate_series(1, 300) s(i);
CREATE TABLE orders (order_id bigint, customer_id integer, status text, total numeric(10,1), placed timestamptz, shipped date, gift boolean);
INSERT INTO orders SELECT i * 10 + j, i, CASE WHEN (i + j) % 8 < 5 THEN 'paid' WHEN (i + j) % 8 < 7 THEN 'new' ELSE 'back' END, ((i * j) % 21) * 0.5,
	timestamptz '2024-01-01 00:00:00Z' + (i * 7 + j) * interval '3 hours', CASE WHEN (i + j) % 5 > 0 THEN date '2024-01-02' + (i + j) % 300 END, (i + j) % 6 = 0
	FROM generate_series(1, 300) s(i), generate_series(1, 4) r(j) WHERE j <= i % 5;
CREATE TABLE lines (order_id bigint, line_no smallint, product_id integer, quantity smallint, price numeric(8,1));
INSERT INTO lines SELECT order_id, k, 1 + (order_id + k) % 20, 1 + (order_id * k) % 3, ((order_id + k * 13) % 5) * 0.5 FROM orders, generate_series(1, 2) s(k) WHERE k <= 1 + order_id % 2;
CREATE TABLE products (product_id integer, name text, category varchar(20), price numeric(8,2), released date, weight real, active boolean);
INSERT INTO products SELECT i, 'product ' || i, (ARRAY['toys', 'books', 'garden'])[1 + i % 3], i * 1.25, date '2020-01-01' + i * 50, i * 0.5, i % 4 > 0 FROM generate_series(1, 20) s(i);
CREATE TABLE samples (id integer, small smallint, whole integer, big bigint, dec numeric(20,6), free numeric, single real, double double precision, txt text, short varchar(12),
	flag boolean, day date, at timestamp, zoned timestamptz, token uuid);
INSERT INTO samples VALUES
	(1, 7, 70000, 7000000000, 1234.5, 0.1000, 1.5, 2.25, 'plain', 'short', true, '2024-02-29', '2024-02-29 12:34:56', '2024-02-29 12:34:56+00', '6f1c2d3e-0000-4000-8000-000000000001'),
	(2, -32768, -2147483648, -9223372036854775808, -99999999999999.999999, -12345678901234567890.123456789, -3.4028235e38, -1.7976931348623157e308, E'qu''o"te \\ tab\t line\n end', 'é€😀', false,
		'0001-01-01', '1999-12-31 23:59:59.999999', '1900-01-01 00:00:00.000001+05:30', '00000000-0000-0000-0000-000000000000'),
	(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(4, 32767, 2147483647, 9223372036854775807, 0, 1e30, 1.17549435e-38, 5e-324, '', 'NULL', true, '9999-12-31', '2000-01-01 00:00:00', '2024-07-01 00:00:00+02', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
KEYS ALTER TABLE customers ADD PRIMARY KEY (customer_id), ALTER tier SET NOT NULL;
KEYS ALTER TABLE orders ADD PRIMARY KEY (order_id), ADD FOREIGN KEY (customer_id) REFERENCES customers, ALTER customer_id SET NOT NULL;
KEYS ALTER TABLE lines ADD PRIMARY KEY (order_id, line_no), ADD FOREIGN KEY (order_id) REFERENCES orders;
SHOWN ALTER TABLE customers ADD PRIMARY KEY (customer_id);
SHOWN ALTER TABLE orders ADD PRIMARY KEY (order_id), ALTER customer_id SET NOT NULL;
SHOWN ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers NOT VALID;
SHOWN ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders, ALTER order_id SET NOT NULL;
ANALYZE;
