-- Three tables in which units differ, for DuckDB, made of a hash of row numbers: a clinic of which most patients have
-- few visits and some hundreds to thousands, a shop whose customers' orders follow a Pareto law of exponent 1.2, and
-- devices of which one in five hundred sends a thousand times what the others do.
--
--   duckdb shapes.duckdb -c "SET VARIABLE scale = 1; .read generate.sql"
CREATE MACRO u(i, k) AS (1 + hash(i * 1009 + k) % 1000000006) / 1000000007.0;
CREATE MACRO normal(i, k) AS sqrt(-2 * ln(u(i, k))) * cos(2 * pi() * u(i, k + 1));
CREATE MACRO sized(n) AS greatest(1, (n * getvariable('scale'))::BIGINT);
-- Of five groups each has half of the one before it; of 500, two rows of three are of the unit's own.
CREATE MACRO fifth(i, k) AS least(4, floor(-log2(u(i, k)))::INTEGER);
CREATE MACRO place(unit, i, k) AS (500 * u(CASE WHEN u(i, k) < 0.67 THEN unit ELSE i END, k + 1))::INTEGER % 500;

CREATE TABLE visit (patient_id INTEGER NOT NULL, kind INTEGER, ward INTEGER, cost DECIMAL(15,2));
INSERT INTO visit
WITH counted AS (SELECT patient_id AS p,
  CASE WHEN u(patient_id, 1) < 0.005 THEN floor(50 * 60 ** (u(patient_id, 2) ** 2))
  ELSE floor(ln(u(patient_id, 2)) / ln(0.7)) END::INTEGER
  AS visits FROM range(1, sized(10000) + 1) AS r(patient_id))
SELECT p, fifth(p * 5000 + n, 3), place(p, p * 5000 + n, 4),
  least(5000, 80 * exp(normal(p * 5000 + n, 6)))::DECIMAL(15,2)
FROM (SELECT *, unnest(range(1, 1 + visits)) AS n FROM counted);

CREATE TABLE purchase (buyer_id INTEGER NOT NULL, channel INTEGER, product INTEGER, amount DECIMAL(15,2));
INSERT INTO purchase
WITH counted AS (SELECT buyer_id AS b, least(4000, floor(u(buyer_id, 11) ** (-1 / 1.2)))::INTEGER AS orders
  FROM range(1, sized(10000) + 1) AS r(buyer_id))
SELECT b, fifth(b * 5000 + n, 13), place(b, b * 5000 + n, 14),
  least(2000, 30 * exp(normal(b * 5000 + n, 16)))::DECIMAL(15,2)
FROM (SELECT *, unnest(range(1, 1 + orders)) AS n FROM counted);

CREATE TABLE reading (device_id INTEGER NOT NULL, status INTEGER, site INTEGER, bytes INTEGER);
INSERT INTO reading
WITH counted AS (SELECT device_id AS d,
  ceil((3 + 7 * u(device_id, 21)) * CASE WHEN u(device_id, 22) < 0.002 THEN 1000 ELSE 1 END)::INTEGER AS readings FROM range(1, sized(10000) + 1) AS r(device_id))
SELECT d, fifth(d * 20000 + n, 23), place(d, d * 20000 + n, 24),
  least(20000, 400 * exp(normal(d * 20000 + n, 26)))::INTEGER
FROM (SELECT *, unnest(range(1, 1 + readings)) AS n FROM counted);
