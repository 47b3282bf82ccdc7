-- PostgreSQL
SELECT s.k, pg_catalog.count(*) AS units
FROM (SELECT g.k, pg_catalog.row_number() OVER (PARTITION BY g.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((g.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((g.k)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        ((((((COALESCE(((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)), 4))::pg_catalog.int4)::pg_catalog.text OPERATOR(pg_catalog.||) ','::pg_catalog.text) OPERATOR(pg_catalog.||) ((COALESCE(((CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '99999'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END) OPERATOR(pg_catalog.-) '-5'::pg_catalog.int8), 100005))::pg_catalog.int4)::pg_catalog.text) OPERATOR(pg_catalog.||) ','::pg_catalog.text) OPERATOR(pg_catalog.||) ((COALESCE(((CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END) OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4)::pg_catalog.text) AS k
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL
     AND ((t."ward" COLLATE pg_catalog."C") IS NULL OR ((t."ward" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text])))) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments ["A" "B" "C" "D"]

-- DuckDB
SELECT s.k, count(*) AS units
FROM (SELECT g.k, row_number() OVER (PARTITION BY g.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(g.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(g.k AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        ((((CAST(CAST(COALESCE(((list_position([CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR), CAST('D' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1)), 4) AS INTEGER) AS VARCHAR) || ',') || CAST(CAST(COALESCE(((CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('99999' AS BIGINT)) THEN TRY_CAST(t."minutes" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END) - CAST('-5' AS BIGINT)), 100005) AS INTEGER) AS VARCHAR)) || ',') || CAST(CAST(COALESCE(((CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END) - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) AS VARCHAR)) AS k
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL
     AND (TRY_CAST(t."ward" AS VARCHAR) IS NULL OR (TRY_CAST(t."ward" AS VARCHAR) IN (CAST('A' AS VARCHAR), CAST('B' AS VARCHAR), CAST('C' AS VARCHAR), CAST('D' AS VARCHAR))))) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments []

