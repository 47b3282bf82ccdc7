-- A database of the shape of TPC-H's, for DuckDB: its tables, keys, domains and correlations as the public specification
-- describes them, made of a hash of row numbers instead of the benchmark's own random streams. Not comparable with
-- published TPC-H results.
--
--   duckdb tpch.duckdb -c "SET VARIABLE scale = 0.1; .read generate.sql"
CREATE MACRO u(i, k) AS (hash(i * 1009 + k) % 1000000007) / 1000000007.0;
CREATE MACRO pick(list, i, k) AS list[1 + floor(u(i, k) * len(list))::INTEGER];
CREATE MACRO between_(i, k, low, high) AS low + floor(u(i, k) * (high - low + 1))::INTEGER;
CREATE MACRO sized(n) AS greatest(1, (n * getvariable('scale'))::BIGINT);

CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL);
INSERT INTO region VALUES (0, 'AFRICA'), (1, 'AMERICA'), (2, 'ASIA'), (3, 'EUROPE'), (4, 'MIDDLE EAST');

CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL, n_regionkey INTEGER NOT NULL);
INSERT INTO nation VALUES (0, 'ALGERIA', 0), (1, 'ARGENTINA', 1), (2, 'BRAZIL', 1), (3, 'CANADA', 1), (4, 'EGYPT', 4),
  (5, 'ETHIOPIA', 0), (6, 'FRANCE', 3), (7, 'GERMANY', 3), (8, 'INDIA', 2), (9, 'INDONESIA', 2), (10, 'IRAN', 4),
  (11, 'IRAQ', 4), (12, 'JAPAN', 2), (13, 'JORDAN', 4), (14, 'KENYA', 0), (15, 'MOROCCO', 0), (16, 'MOZAMBIQUE', 0),
  (17, 'PERU', 1), (18, 'CHINA', 2), (19, 'ROMANIA', 3), (20, 'SAUDI ARABIA', 4), (21, 'VIETNAM', 2), (22, 'RUSSIA', 3),
  (23, 'UNITED KINGDOM', 3), (24, 'UNITED STATES', 1);

CREATE TABLE supplier (s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR, s_address VARCHAR, s_nationkey INTEGER, s_phone VARCHAR,
  s_acctbal DECIMAL(15,2), s_comment VARCHAR);
INSERT INTO supplier SELECT i, format('Supplier#{:09d}', i), 'street ' || between_(i, 2, 1, 999), between_(i, 1, 0, 24),
  format('{}-{:03d}', 10 + between_(i, 1, 0, 24), between_(i, 3, 100, 999)), (between_(i, 4, -99999, 999999) / 100.0)::DECIMAL(15,2),
  CASE WHEN u(i, 5) < 0.0005 OR i = 7 THEN 'said that Customer made Complaints' ELSE 'carefully final' END
FROM range(1, sized(10000) + 1) AS r(i);

CREATE TABLE part (p_partkey INTEGER PRIMARY KEY, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INTEGER,
  p_container VARCHAR, p_retailprice DECIMAL(15,2));
INSERT INTO part SELECT i,
  pick(['almond', 'azure', 'blue', 'brown', 'chocolate', 'forest', 'green', 'ivory', 'lime', 'navy', 'olive', 'pink', 'red', 'rose', 'sky', 'tan'], i, 1)
    || ' ' || pick(['antique', 'beige', 'coral', 'cream', 'dark', 'green', 'lace', 'linen', 'metallic', 'mint', 'pale', 'plum'], i, 2),
  'Manufacturer#' || between_(i, 3, 1, 5), 'Brand#' || between_(i, 3, 1, 5) || between_(i, 4, 1, 5),
  pick(['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'], i, 5) || ' ' || pick(['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'], i, 6)
    || ' ' || pick(['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'], i, 7), between_(i, 8, 1, 50),
  pick(['SM', 'LG', 'MED', 'JUMBO', 'WRAP'], i, 9) || ' ' || pick(['CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM'], i, 10),
  ((90000 + (i // 10) % 20001 + 100 * (i % 1000)) / 100.0)::DECIMAL(15,2)
FROM range(1, sized(200000) + 1) AS r(i);

-- The fourth part of the suppliers lies between two suppliers of one part.
CREATE MACRO supplies(part, j) AS (part + j * (sized(10000) // 4 + (part - 1) // sized(10000))) % sized(10000) + 1;
CREATE TABLE partsupp (ps_partkey INTEGER, ps_suppkey INTEGER, ps_availqty INTEGER, ps_supplycost DECIMAL(15,2), PRIMARY KEY (ps_partkey, ps_suppkey));
INSERT INTO partsupp SELECT p_partkey, supplies(p_partkey, j), between_(p_partkey * 4 + j, 1, 1, 9999), (between_(p_partkey * 4 + j, 2, 100, 100000) / 100.0)::DECIMAL(15,2)
FROM part, range(4) AS r(j);

CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name VARCHAR, c_address VARCHAR, c_nationkey INTEGER, c_phone VARCHAR,
  c_acctbal DECIMAL(15,2), c_mktsegment VARCHAR, c_comment VARCHAR);
INSERT INTO customer SELECT i, format('Customer#{:09d}', i), 'street ' || between_(i, 22, 1, 999), between_(i, 21, 0, 24),
  format('{}-{:03d}', 10 + between_(i, 21, 0, 24), between_(i, 23, 100, 999)), (between_(i, 24, -99999, 999999) / 100.0)::DECIMAL(15,2),
  pick(['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'], i, 25), 'quickly ironic'
FROM range(1, sized(150000) + 1) AS r(i);

-- A third of the customers never order. Order keys are sparse: 8 of 32 are used.
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), o_orderdate DATE,
  o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR);
CREATE TABLE lineitem (l_orderkey INTEGER, l_partkey INTEGER, l_suppkey INTEGER, l_linenumber INTEGER, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2),
  l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE,
  l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR, PRIMARY KEY (l_orderkey, l_linenumber));
INSERT INTO lineitem
WITH bought AS (
  SELECT (i // 8) * 32 + i % 8 + 1 AS l_orderkey, i * 8 + n AS k, n, DATE '1992-01-01' + between_(i, 31, 0, 2405) AS day
  FROM range(sized(1500000)) AS r(i), range(1, 8) AS l(n) WHERE n <= between_(i, 32, 1, 7)),
dated AS (SELECT *, day + between_(k, 33, 1, 121) AS ship, between_(k, 34, 1, sized(200000)) AS part FROM bought),
received AS (SELECT *, ship + between_(k, 35, 1, 30) AS receipt, between_(k, 36, 1, 50) AS quantity FROM dated)
SELECT l_orderkey, part, supplies(part, between_(k, 37, 0, 3)), n, quantity, quantity * p_retailprice, between_(k, 38, 0, 10) / 100.0, between_(k, 39, 0, 8) / 100.0,
  CASE WHEN receipt > DATE '1995-06-17' THEN 'N' WHEN u(k, 40) < 0.5 THEN 'R' ELSE 'A' END, CASE WHEN ship > DATE '1995-06-17' THEN 'O' ELSE 'F' END,
  ship, day + between_(k, 41, 30, 90), receipt, pick(['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'], k, 42),
  pick(['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'], k, 43), 'furiously'
FROM received JOIN part ON p_partkey = part;
INSERT INTO orders
WITH placed AS (SELECT i, (i // 8) * 32 + i % 8 + 1 AS o_orderkey, between_(i, 30, 0, sized(150000) - 1) + 1 AS customer FROM range(sized(1500000)) AS r(i))
SELECT o_orderkey, CASE WHEN customer % 3 = 0 THEN greatest(1, customer - 1) ELSE customer END,
  CASE WHEN bool_and(l_linestatus = 'F') THEN 'F' WHEN bool_and(l_linestatus = 'O') THEN 'O' ELSE 'P' END,
  sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)), DATE '1992-01-01' + between_(i, 31, 0, 2405),
  pick(['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'], i, 44), format('Clerk#{:09d}', between_(i, 45, 1, 1000)), 0,
  CASE WHEN u(i, 46) < 0.01 THEN 'asks for special handling and requests' ELSE 'slyly regular' END
FROM placed JOIN lineitem ON l_orderkey = o_orderkey GROUP BY ALL;
