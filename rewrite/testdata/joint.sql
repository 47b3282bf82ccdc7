-- PostgreSQL, add-remove: SELECT (SELECT count(*) FROM visits WHERE minutes > 0), (SELECT count(*) FROM visits WHERE ward = 'A'), (SELECT sum(minutes) FROM visits WHERE room > 2)
-- 3 measures
-- whole
WITH scan AS (SELECT s.n1, s.n2, s.n5
FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY (((((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((((((((COALESCE((b.n1)::pg_catalog.int8, '5'::pg_catalog.int8) OPERATOR(pg_catalog.*) '16'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((b.n2 OPERATOR(pg_catalog.-) '-5'::pg_catalog.int8), '15'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1002'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((((b.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric))::pg_catalog.int8, '1001'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '91'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(((b.n4 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date))::pg_catalog.int8, '90'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '11'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(b.n5, '10'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE(((b.j1 OPERATOR(pg_catalog.&) '4611686018427387903'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), '2147483647'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END AS n2,
        CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3,
        CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END AS n4,
        CASE WHEN (t."room" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."room" WHEN false THEN '0'::pg_catalog.int8 END AS n5,
        t."visit" AS j1
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS s
WHERE s.r <= 4)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s
WHERE (s.n2 OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8)) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s
WHERE (s.n1 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8)) AS t
UNION ALL
SELECT (2)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum((s.n2)::pg_catalog.int8), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
WHERE ((s.n5 OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND s.n2 IS NOT NULL)) AS t
-- arguments ["A" "B" "C"]
-- shorter 1
WITH scan AS (SELECT pg_catalog.count(*) FILTER (WHERE ((t."minutes" OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) AS k1,
       pg_catalog.count(*) FILTER (WHERE ((t."ward" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) $1::pg_catalog.text)) AS k2,
       pg_catalog.sum(((CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END))::pg_catalog.int8) FILTER (WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) AS k3
FROM "clinic"."visits" AS t)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (COALESCE(pg_catalog.sum(s.k1), 0))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (COALESCE(pg_catalog.sum(s.k2), 0))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
UNION ALL
SELECT (2)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k3), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
-- arguments ["A"]

-- DuckDB, add-remove: SELECT (SELECT count(*) FROM visits WHERE minutes > 0), (SELECT count(*) FROM visits WHERE ward = 'A'), (SELECT sum(minutes) FROM visits WHERE room > 2)
-- 3 measures
-- whole
WITH scan AS MATERIALIZED (SELECT s.n1, s.n2, s.n5
FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((((((((COALESCE(CAST(b.n1 AS BIGINT), CAST('5' AS BIGINT)) * CAST('16' AS BIGINT)) + COALESCE((b.n2 - CAST('-5' AS BIGINT)), CAST('15' AS BIGINT))) * CAST('1002' AS BIGINT)) + COALESCE(CAST(TRY_CAST((TRY_CAST(b.n3 AS DECIMAL(4,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) AS BIGINT), CAST('1001' AS BIGINT))) * CAST('91' AS BIGINT)) + COALESCE(CAST((b.n4 - CAST('2025-01-01' AS DATE)) AS BIGINT), CAST('90' AS BIGINT))) * CAST('11' AS BIGINT)) + COALESCE(b.n5, CAST('10' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(((TRY_CAST(b.j1 AS BIGINT) & CAST('4611686018427387903' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('2147483647' AS BIGINT))) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."minutes" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END AS n2,
        CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END AS n3,
        CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END AS n4,
        CASE WHEN (TRY_CAST(t."room" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."room" AS BIGINT) WHEN false THEN CAST('0' AS BIGINT) END AS n5,
        t."visit" AS j1
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS s
WHERE s.r <= 4)
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s
WHERE (s.n2 >= CAST('1' AS BIGINT))) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s
WHERE (s.n1 < CAST('1' AS BIGINT))) AS t
UNION ALL
SELECT CAST(2 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(s.n2 AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM scan AS s
WHERE ((s.n5 >= CAST('3' AS BIGINT)) AND s.n2 IS NOT NULL)) AS t
-- arguments []
-- shorter 1
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT ((SELECT count(*) FROM "private"."clinic"."visits" AS t
WHERE (TRY_CAST(t."minutes" AS BIGINT) >= CAST('1' AS BIGINT))) - (SELECT count(*) FROM "private"."clinic"."visits" AS t
WHERE (TRY_CAST(t."minutes" AS BIGINT) > CAST('9' AS BIGINT)))) AS k1) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (TRY_CAST(t."ward" AS VARCHAR) = CAST('A' AS VARCHAR))) AS t
UNION ALL
SELECT CAST(2 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(TRY_CAST(t."minutes" AS BIGINT) AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (((TRY_CAST(t."room" AS BIGINT) >= CAST('3' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT))) AND ((TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT))))) AS t
-- arguments []

-- PostgreSQL, add-remove: SELECT (SELECT count(*) FROM people WHERE age > 3), (SELECT sum(age) FROM people WHERE sex = 'f'), (SELECT count(*) FROM people)
-- 3 measures
-- whole
WITH scan AS (SELECT s.n1, s.n2
FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((COALESCE(b.n1, '10'::pg_catalog.int8) OPERATOR(pg_catalog.*) '5'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((b.n2)::pg_catalog.int8, '4'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST) AS r, b.n1, b.n2
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (t."age" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."age" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."age" WHEN false THEN '0'::pg_catalog.int8 END AS n1,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text], (t."sex" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN 2 END) AS n2
   FROM "clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL) AS b) AS s
WHERE s.r <= 1)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s
WHERE (s.n1 OPERATOR(pg_catalog.>=) '4'::pg_catalog.int8)) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum((s.n1)::pg_catalog.int8), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
WHERE (s.n1 IS NOT NULL AND (s.n2 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8))) AS t
UNION ALL
SELECT (2)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s) AS t
-- arguments ["f" "m"]
-- shorter 1
WITH scan AS (SELECT pg_catalog.count(*) FILTER (WHERE ((t."age" OPERATOR(pg_catalog.>=) '4'::pg_catalog.int8) AND (t."age" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) AS k1,
       pg_catalog.sum(((CASE WHEN (t."age" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."age" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."age" WHEN false THEN '0'::pg_catalog.int8 END))::pg_catalog.int8) FILTER (WHERE ((t."sex" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) $1::pg_catalog.text)) AS k2,
       pg_catalog.count(*) AS k3
FROM "clinic"."people" AS t)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (COALESCE(pg_catalog.sum(s.k1), 0))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k2), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
UNION ALL
SELECT (2)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (COALESCE(pg_catalog.sum(s.k3), 0))::pg_catalog.int8 AS k1
FROM scan AS s) AS t
-- arguments ["f"]

-- DuckDB, add-remove: SELECT (SELECT count(*) FROM people WHERE age > 3), (SELECT sum(age) FROM people WHERE sex = 'f'), (SELECT count(*) FROM people)
-- 3 measures
-- whole
WITH scan AS MATERIALIZED (SELECT s.n1, s.n2
FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((COALESCE(b.n1, CAST('10' AS BIGINT)) * CAST('5' AS BIGINT)) + COALESCE(CAST(b.n2 AS BIGINT), CAST('4' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST) AS r, b.n1, b.n2
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (TRY_CAST(t."age" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."age" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."age" AS BIGINT) WHEN false THEN CAST('0' AS BIGINT) END AS n1,
        COALESCE((list_position([CAST('f' AS VARCHAR), CAST('m' AS VARCHAR)], TRY_CAST(t."sex" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN 2 END) AS n2
   FROM "private"."clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL) AS b) AS s
WHERE s.r <= 1)
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s
WHERE (s.n1 >= CAST('4' AS BIGINT))) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(s.n1 AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM scan AS s
WHERE (s.n1 IS NOT NULL AND (s.n2 < CAST('1' AS BIGINT)))) AS t
UNION ALL
SELECT CAST(2 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s) AS t
-- arguments []
-- shorter 1
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT ((SELECT count(*) FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."age" AS BIGINT) >= CAST('4' AS BIGINT))) - (SELECT count(*) FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."age" AS BIGINT) > CAST('9' AS BIGINT)))) AS k1) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(TRY_CAST(t."age" AS BIGINT) AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM "private"."clinic"."people" AS t
WHERE (((TRY_CAST(t."age" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."age" AS BIGINT) <= CAST('9' AS BIGINT))) AND (TRY_CAST(t."sex" AS VARCHAR) = CAST('f' AS VARCHAR)))) AS t
UNION ALL
SELECT CAST(2 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM "private"."clinic"."people" AS t) AS t
-- arguments []

-- PostgreSQL, add-remove: SELECT (SELECT count(*) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.ward = 'A'), (SELECT sum(v.minutes) FROM people p JOIN visits v ON p.person_id = v.who WHERE p.sex = 'f')
-- 2 measures
-- whole
WITH scan AS (SELECT s.n2, s.n3, s.n4
FROM (SELECT a1.u AS u, a1.n2 AS n2, b1.n1 AS n3, b1.n2 AS n4
  FROM (SELECT * FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((COALESCE(b.n1, '10'::pg_catalog.int8) OPERATOR(pg_catalog.*) '5'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((b.n2)::pg_catalog.int8, '4'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST) AS r, b.u, b.n1, b.n2
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (t."age" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."age" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."age" WHEN false THEN '0'::pg_catalog.int8 END AS n1,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text], (t."sex" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN 2 END) AS n2
   FROM "clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL) AS b) AS a1 WHERE a1.r <= 1) AS a1
  JOIN (SELECT * FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY (((((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((((((((COALESCE((b.n1)::pg_catalog.int8, '5'::pg_catalog.int8) OPERATOR(pg_catalog.*) '16'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((b.n2 OPERATOR(pg_catalog.-) '-5'::pg_catalog.int8), '15'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1002'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((((b.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric))::pg_catalog.int8, '1001'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '91'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(((b.n4 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date))::pg_catalog.int8, '90'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '11'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(b.n5, '10'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE(((b.j1 OPERATOR(pg_catalog.&) '4611686018427387903'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), '2147483647'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.u, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END AS n2,
        CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3,
        CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END AS n4,
        CASE WHEN (t."room" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."room" WHEN false THEN '0'::pg_catalog.int8 END AS n5,
        t."visit" AS j1
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS b1 WHERE b1.r <= 4) AS b1
    ON (a1.u OPERATOR(pg_catalog.=) b1.u)) AS s)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s
WHERE (s.n3 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8)) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum((s.n4)::pg_catalog.int8), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
WHERE ((s.n2 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8) AND s.n4 IS NOT NULL)) AS t
-- arguments ["f" "m" "A" "B" "C"]
-- shorter 1
WITH scan AS (SELECT s.n2, s.n3, s.n4
FROM (SELECT a1.u AS u, a1.n2 AS n2, b1.n1 AS n3, b1.n2 AS n4
  FROM (SELECT t."person_id" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text], (t."sex" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN 2 END) AS n2
   FROM "clinic"."people" AS t) AS a1
  JOIN (SELECT * FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY (((((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((((((((COALESCE((b.n1)::pg_catalog.int8, '5'::pg_catalog.int8) OPERATOR(pg_catalog.*) '16'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((b.n2 OPERATOR(pg_catalog.-) '-5'::pg_catalog.int8), '15'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1002'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((((b.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric))::pg_catalog.int8, '1001'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '91'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(((b.n4 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date))::pg_catalog.int8, '90'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '11'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(b.n5, '10'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE(((b.j1 OPERATOR(pg_catalog.&) '4611686018427387903'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), '2147483647'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.u, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END AS n2,
        CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3,
        CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END AS n4,
        CASE WHEN (t."room" OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."room" WHEN false THEN '0'::pg_catalog.int8 END AS n5,
        t."visit" AS j1
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS b1 WHERE b1.r <= 4) AS b1
    ON (a1.u OPERATOR(pg_catalog.=) b1.u)) AS s)
SELECT (0)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM scan AS s
WHERE (s.n3 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8)) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.k1
FROM (SELECT (GREATEST(LEAST(COALESCE(pg_catalog.sum((s.n4)::pg_catalog.int8), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
WHERE ((s.n2 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8) AND s.n4 IS NOT NULL)) AS t
-- arguments ["f" "m" "A" "B" "C"]

-- DuckDB, add-remove: SELECT (SELECT count(*) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.ward = 'A'), (SELECT sum(v.minutes) FROM people p JOIN visits v ON p.person_id = v.who WHERE p.sex = 'f')
-- 2 measures
-- whole
WITH scan AS MATERIALIZED (SELECT s.n2, s.n3, s.n4
FROM (SELECT a1.u AS u, a1.n2 AS n2, b1.n1 AS n3, b1.n2 AS n4
  FROM (SELECT * FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((COALESCE(b.n1, CAST('10' AS BIGINT)) * CAST('5' AS BIGINT)) + COALESCE(CAST(b.n2 AS BIGINT), CAST('4' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST) AS r, b.u, b.n1, b.n2
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (TRY_CAST(t."age" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."age" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."age" AS BIGINT) WHEN false THEN CAST('0' AS BIGINT) END AS n1,
        COALESCE((list_position([CAST('f' AS VARCHAR), CAST('m' AS VARCHAR)], TRY_CAST(t."sex" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN 2 END) AS n2
   FROM "private"."clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL) AS b) AS a1 WHERE a1.r <= 1) AS a1
  JOIN (SELECT * FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((((((((COALESCE(CAST(b.n1 AS BIGINT), CAST('5' AS BIGINT)) * CAST('16' AS BIGINT)) + COALESCE((b.n2 - CAST('-5' AS BIGINT)), CAST('15' AS BIGINT))) * CAST('1002' AS BIGINT)) + COALESCE(CAST(TRY_CAST((TRY_CAST(b.n3 AS DECIMAL(4,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) AS BIGINT), CAST('1001' AS BIGINT))) * CAST('91' AS BIGINT)) + COALESCE(CAST((b.n4 - CAST('2025-01-01' AS DATE)) AS BIGINT), CAST('90' AS BIGINT))) * CAST('11' AS BIGINT)) + COALESCE(b.n5, CAST('10' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(((TRY_CAST(b.j1 AS BIGINT) & CAST('4611686018427387903' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('2147483647' AS BIGINT))) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.u, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."minutes" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END AS n2,
        CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END AS n3,
        CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END AS n4,
        CASE WHEN (TRY_CAST(t."room" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."room" AS BIGINT) WHEN false THEN CAST('0' AS BIGINT) END AS n5,
        t."visit" AS j1
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS b1 WHERE b1.r <= 4) AS b1
    ON (CAST(a1.u AS VARCHAR) = CAST(b1.u AS VARCHAR))) AS s)
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s
WHERE (s.n3 < CAST('1' AS BIGINT))) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(s.n4 AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM scan AS s
WHERE ((s.n2 < CAST('1' AS BIGINT)) AND s.n4 IS NOT NULL)) AS t
-- arguments []
-- shorter 1
WITH scan AS MATERIALIZED (SELECT s.n2, s.n3, s.n4
FROM (SELECT a1.u AS u, a1.n2 AS n2, b1.n1 AS n3, b1.n2 AS n4
  FROM (SELECT t."person_id" AS u,
        COALESCE((list_position([CAST('f' AS VARCHAR), CAST('m' AS VARCHAR)], TRY_CAST(t."sex" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN 2 END) AS n2
   FROM "private"."clinic"."people" AS t) AS a1
  JOIN (SELECT * FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((((((((COALESCE(CAST(b.n1 AS BIGINT), CAST('5' AS BIGINT)) * CAST('16' AS BIGINT)) + COALESCE((b.n2 - CAST('-5' AS BIGINT)), CAST('15' AS BIGINT))) * CAST('1002' AS BIGINT)) + COALESCE(CAST(TRY_CAST((TRY_CAST(b.n3 AS DECIMAL(4,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) AS BIGINT), CAST('1001' AS BIGINT))) * CAST('91' AS BIGINT)) + COALESCE(CAST((b.n4 - CAST('2025-01-01' AS DATE)) AS BIGINT), CAST('90' AS BIGINT))) * CAST('11' AS BIGINT)) + COALESCE(b.n5, CAST('10' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(((TRY_CAST(b.j1 AS BIGINT) & CAST('4611686018427387903' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('2147483647' AS BIGINT))) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.j1 ASC NULLS LAST) AS r, b.u, b.n1, b.n2, b.n3, b.n4, b.n5, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."minutes" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END AS n2,
        CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END AS n3,
        CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END AS n4,
        CASE WHEN (TRY_CAST(t."room" AS BIGINT) >= CAST('0' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."room" AS BIGINT) WHEN false THEN CAST('0' AS BIGINT) END AS n5,
        t."visit" AS j1
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS b1 WHERE b1.r <= 4) AS b1
    ON (CAST(a1.u AS VARCHAR) = CAST(b1.u AS VARCHAR))) AS s)
SELECT CAST(0 AS INTEGER) AS measure, t.k1
FROM (SELECT count(*) AS k1
FROM scan AS s
WHERE (s.n3 < CAST('1' AS BIGINT))) AS t
UNION ALL
SELECT CAST(1 AS INTEGER) AS measure, t.k1
FROM (SELECT CAST(GREATEST(LEAST(COALESCE(sum(CAST(s.n4 AS BIGINT)), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM scan AS s
WHERE ((s.n2 < CAST('1' AS BIGINT)) AND s.n4 IS NOT NULL)) AS t
-- arguments []

-- PostgreSQL, add-remove, ranked: SELECT 1, ward, count(*) FROM visits GROUP BY 2 UNION ALL SELECT 2, ward, sum(cost) FROM visits WHERE minutes > -3 GROUP BY 2
-- 2 measures
-- whole
WITH scan AS (SELECT (t."ward" COLLATE pg_catalog."C") AS x1,
       pg_catalog.count(*) AS k1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) FILTER (WHERE ((t."minutes" OPERATOR(pg_catalog.>=) '-2'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k2
FROM "clinic"."visits" AS t
WHERE t."who" IS NOT NULL
  AND (t."rank" OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8)
  AND (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
GROUP BY 1)
SELECT (0)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], s.x1) OPERATOR(pg_catalog.-) 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], s.x1) OPERATOR(pg_catalog.-) 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k2), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
-- arguments ["A" "B" "C"]
-- shorter 1
WITH scan AS (SELECT t."ward" AS x1,
       pg_catalog.count(*) AS k1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) FILTER (WHERE ((t."minutes" OPERATOR(pg_catalog.>=) '-2'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k2
FROM "clinic"."visits" AS t
GROUP BY 1)
SELECT (0)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k2), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
-- arguments ["A" "B" "C"]
-- shorter 2
WITH scan AS (SELECT t."ward" AS x1,
       pg_catalog.count(*) AS k1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) FILTER (WHERE ((t."minutes" OPERATOR(pg_catalog.>=) '-2'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k2
FROM "clinic"."visits" AS t
WHERE (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
GROUP BY 1)
SELECT (0)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
UNION ALL
SELECT (1)::pg_catalog.int4 AS measure, t.c1, t.k1
FROM (SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k2), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1
FROM scan AS s
GROUP BY 1) AS t
-- arguments ["A" "B" "C"]

-- DuckDB, add-remove, ranked: SELECT 1, ward, count(*) FROM visits GROUP BY 2 UNION ALL SELECT 2, ward, sum(cost) FROM visits WHERE minutes > -3 GROUP BY 2
-- 1 measures
-- whole
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       count(*) AS k1
FROM "private"."clinic"."visits" AS t
WHERE t."who" IS NOT NULL
  AND (t."rank" >= CAST('1' AS BIGINT))
  AND (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 1
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       count(*) AS k1
FROM "private"."clinic"."visits" AS t
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 2
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       count(*) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

-- DuckDB, add-remove, ranked: SELECT 1, ward, count(*) FROM visits GROUP BY 2 UNION ALL SELECT 2, ward, sum(cost) FROM visits WHERE minutes > -3 GROUP BY 2
-- 1 measures
-- whole
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum(TRY_CAST(t."cost" AS DECIMAL(6,2))) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (((TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2)))) AND ((TRY_CAST(t."minutes" AS BIGINT) >= CAST('-2' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT))))
  AND t."who" IS NOT NULL
  AND (t."rank" >= CAST('1' AS BIGINT))
  AND (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 1
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum(TRY_CAST(t."cost" AS DECIMAL(6,2))) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (((TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2)))) AND ((TRY_CAST(t."minutes" AS BIGINT) >= CAST('-2' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT))))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 2
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum(TRY_CAST(t."cost" AS DECIMAL(6,2))) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (((TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2)))) AND ((TRY_CAST(t."minutes" AS BIGINT) >= CAST('-2' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT))))
  AND (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

-- PostgreSQL, add-remove, ranked: SELECT count(*) FROM visits
-- 1 measures
-- whole
SELECT pg_catalog.count(*) AS k1
FROM "clinic"."visits" AS t
WHERE t."who" IS NOT NULL
  AND (t."rank" OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8)
  AND (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
-- arguments []
-- shorter 1
SELECT pg_catalog.count(*) AS k1
FROM "clinic"."visits" AS t
-- arguments []
-- shorter 2
SELECT (COALESCE(pg_catalog.sum(s.k1), 0))::pg_catalog.int8 AS k1
FROM (SELECT pg_catalog.count(*) AS k1
FROM "clinic"."visits" AS t
UNION ALL
SELECT ('0'::pg_catalog.int8 OPERATOR(pg_catalog.-) pg_catalog.count(*)) AS k1
FROM "clinic"."visits" AS t
WHERE ((t."rank" OPERATOR(pg_catalog.>) '4'::pg_catalog.int8) OR t."rank" IS NULL)) AS s
-- arguments []
-- shorter 3
SELECT pg_catalog.count(*) AS k1
FROM "clinic"."visits" AS t
WHERE (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
-- arguments []

-- DuckDB, add-remove, ranked: SELECT count(*) FROM visits
-- 1 measures
-- whole
SELECT count(*) AS k1
FROM "private"."clinic"."visits" AS t
WHERE t."who" IS NOT NULL
  AND (t."rank" >= CAST('1' AS BIGINT))
  AND (t."rank" <= CAST('4' AS BIGINT))
-- arguments []
-- shorter 1
SELECT count(*) AS k1
FROM "private"."clinic"."visits" AS t
-- arguments []
-- shorter 2
SELECT count(*) AS k1
FROM "private"."clinic"."visits" AS t
WHERE (t."rank" <= CAST('4' AS BIGINT))
-- arguments []

-- PostgreSQL, add-remove, ranked: SELECT ward, count(*), sum(cost) FROM visits WHERE room > 2 GROUP BY 1
-- 1 measures
-- whole
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], s.x1) OPERATOR(pg_catalog.-) 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k1), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1,
       (pg_catalog.sum(s.k2))::pg_catalog.int8 AS k2
FROM (SELECT (t."ward" COLLATE pg_catalog."C") AS x1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k1,
       pg_catalog.count(*) AS k2
FROM "clinic"."visits" AS t
WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))
  AND t."who" IS NOT NULL
  AND (t."rank" OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8)
  AND (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["A" "B" "C"]
-- shorter 1
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k1), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1,
       (pg_catalog.sum(s.k2))::pg_catalog.int8 AS k2
FROM (SELECT t."ward" AS x1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k1,
       pg_catalog.count(*) AS k2
FROM "clinic"."visits" AS t
WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["A" "B" "C"]
-- shorter 2
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k1), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1,
       (pg_catalog.sum(s.k2))::pg_catalog.int8 AS k2
FROM (SELECT t."ward" AS x1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k1,
       pg_catalog.count(*) AS k2
FROM "clinic"."visits" AS t
WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))
GROUP BY 1
UNION ALL
SELECT t."ward" AS x1,
       ('0'::pg_catalog.int8 OPERATOR(pg_catalog.-) (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric)) AS k1,
       ('0'::pg_catalog.int8 OPERATOR(pg_catalog.-) pg_catalog.count(*)) AS k2
FROM "clinic"."visits" AS t
WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))
  AND ((t."rank" OPERATOR(pg_catalog.>) '4'::pg_catalog.int8) OR t."rank" IS NULL)
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["A" "B" "C"]
-- shorter 3
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (s.x1 COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (s.x1 COLLATE pg_catalog."C") IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(s.k1), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1,
       (pg_catalog.sum(s.k2))::pg_catalog.int8 AS k2
FROM (SELECT t."ward" AS x1,
       (pg_catalog.sum(((CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '10.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END))::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric) AS k1,
       pg_catalog.count(*) AS k2
FROM "clinic"."visits" AS t
WHERE ((t."room" OPERATOR(pg_catalog.>=) '3'::pg_catalog.int8) AND (t."room" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8))
  AND (t."rank" OPERATOR(pg_catalog.<=) '4'::pg_catalog.int8)
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["A" "B" "C"]

-- DuckDB, add-remove, ranked: SELECT ward, count(*), sum(cost) FROM visits WHERE room > 2 GROUP BY 1
-- 1 measures
-- whole
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1,
       CAST(sum(s.k2) AS BIGINT) AS k2
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum((CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END)) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1,
       count(*) AS k2
FROM "private"."clinic"."visits" AS t
WHERE ((TRY_CAST(t."room" AS BIGINT) >= CAST('3' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)))
  AND t."who" IS NOT NULL
  AND (t."rank" >= CAST('1' AS BIGINT))
  AND (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 1
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1,
       CAST(sum(s.k2) AS BIGINT) AS k2
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum((CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END)) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1,
       count(*) AS k2
FROM "private"."clinic"."visits" AS t
WHERE ((TRY_CAST(t."room" AS BIGINT) >= CAST('3' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []
-- shorter 2
SELECT CAST(COALESCE((COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(s.k1), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1,
       CAST(sum(s.k2) AS BIGINT) AS k2
FROM (SELECT TRY_CAST(t."ward" AS VARCHAR) AS x1,
       CAST((sum((CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(6,2)) >= CAST('0.00' AS DECIMAL(6,2))) AND (TRY_CAST(t."cost" AS DECIMAL(6,2)) <= CAST('10.00' AS DECIMAL(6,2))) THEN TRY_CAST(t."cost" AS DECIMAL(6,2)) WHEN false THEN CAST('0.00' AS DECIMAL(6,2)) END)) * CAST('100' AS DECIMAL(3,0))) AS HUGEINT) AS k1,
       count(*) AS k2
FROM "private"."clinic"."visits" AS t
WHERE ((TRY_CAST(t."room" AS BIGINT) >= CAST('3' AS BIGINT)) AND (TRY_CAST(t."room" AS BIGINT) <= CAST('9' AS BIGINT)))
  AND (t."rank" <= CAST('4' AS BIGINT))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

