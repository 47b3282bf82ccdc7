-- PostgreSQL
SELECT (s.f1)::pg_catalog.int4 AS c1,
       (s.f2)::pg_catalog.int4 AS c2,
       (pg_catalog.sum(LEAST(s.k, 3)))::pg_catalog.int8 AS k1
FROM (SELECT g.k, g.f1, g.f2, pg_catalog.row_number() OVER (PARTITION BY g.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((g.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) (((g.f1)::pg_catalog.int8 OPERATOR(pg_catalog.*) '6'::pg_catalog.int8) OPERATOR(pg_catalog.+) (g.f2)::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), g.f1, g.f2) AS d
  FROM (SELECT g.u, g.f1, g.f2, pg_catalog.count(*) AS k
  FROM (SELECT b.u, CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '59'::pg_catalog.int4) THEN CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '31'::pg_catalog.int4) THEN '0'::pg_catalog.int4 ELSE '31'::pg_catalog.int4 END ELSE CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '90'::pg_catalog.int4) THEN '59'::pg_catalog.int4 ELSE '90'::pg_catalog.int4 END END AS f1, (COALESCE(b.n1, 5))::pg_catalog.int4 AS f2
  FROM (SELECT t."who" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 4 END) AS n1,
        CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END AS n3
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g
  WHERE g.f1 IS NOT NULL AND g.f2 IS NOT NULL
  GROUP BY g.u, g.f1, g.f2) AS g) AS s
WHERE s.d <= 2
GROUP BY s.f1, s.f2
-- arguments ["A" "B" "C" "D"]

-- DuckDB
SELECT CAST(s.f1 AS INTEGER) AS c1,
       CAST(s.f2 AS INTEGER) AS c2,
       CAST(sum(LEAST(s.k, 3)) AS BIGINT) AS k1
FROM (SELECT g.k, g.f1, g.f2, row_number() OVER (PARTITION BY g.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(g.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((CAST(g.f1 AS BIGINT) * CAST('6' AS BIGINT)) + CAST(g.f2 AS BIGINT))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), g.f1, g.f2) AS d
  FROM (SELECT g.u, g.f1, g.f2, count(*) AS k
  FROM (SELECT b.u, CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('59' AS INTEGER)) THEN CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('31' AS INTEGER)) THEN CAST('0' AS INTEGER) ELSE CAST('31' AS INTEGER) END ELSE CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('90' AS INTEGER)) THEN CAST('59' AS INTEGER) ELSE CAST('90' AS INTEGER) END END AS f1, CAST(COALESCE(b.n1, 5) AS INTEGER) AS f2
  FROM (SELECT t."who" AS u,
        COALESCE((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR), CAST('D' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 4 END) AS n1,
        CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END AS n3
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g
  WHERE g.f1 IS NOT NULL AND g.f2 IS NOT NULL
  GROUP BY g.u, g.f1, g.f2) AS g) AS s
WHERE s.d <= 2
GROUP BY s.f1, s.f2
-- arguments []

