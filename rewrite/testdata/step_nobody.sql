-- PostgreSQL
SELECT (COALESCE((s.n2 OPERATOR(pg_catalog.-) '2024-01-01'::pg_catalog.date), 24))::pg_catalog.int4 AS c1,
       pg_catalog.count(*) AS k1
FROM (SELECT CASE WHEN b.u IS NULL THEN 1 ELSE pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY b.n2 ASC NULLS LAST, ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE((b.n1)::pg_catalog.int8, '5'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST) END AS r, b.n1, b.n2
  FROM (SELECT t."uid" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (t."hired" OPERATOR(pg_catalog.>=) '2024-01-01'::pg_catalog.date) AND (t."hired" OPERATOR(pg_catalog.<=) '2024-01-24'::pg_catalog.date) THEN t."hired" WHEN false THEN '2024-01-01'::pg_catalog.date END AS n2
   FROM "public"."hires" AS t
   LEFT JOIN (SELECT DISTINCT t."uid" AS u FROM "public"."hires" AS t WHERE (t."hired" OPERATOR(pg_catalog.>=) '2024-01-21'::pg_catalog.date) AND (t."hired" OPERATOR(pg_catalog.<) '2024-01-22'::pg_catalog.date)) AS seen ON (seen.u OPERATOR(pg_catalog.=) t."uid")
   WHERE (t."hired" OPERATOR(pg_catalog.<) '2024-01-22'::pg_catalog.date)
     AND (t."uid" IS NULL OR seen.u IS NOT NULL)) AS b) AS s
WHERE s.r <= 3
  AND ((s.n2 OPERATOR(pg_catalog.>=) '2024-01-21'::pg_catalog.date) AND (s.n2 OPERATOR(pg_catalog.<) '2024-01-22'::pg_catalog.date))
GROUP BY s.n2
-- arguments ["a" "b" "c"]

-- DuckDB
SELECT CAST(COALESCE((s.n2 - CAST('2024-01-01' AS DATE)), 24) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT CASE WHEN b.u IS NULL THEN 1 ELSE row_number() OVER (PARTITION BY b.u ORDER BY b.n2 ASC NULLS LAST, ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(CAST(b.n1 AS BIGINT), CAST('5' AS BIGINT))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST) END AS r, b.n1, b.n2
  FROM (SELECT t."uid" AS u,
        COALESCE((list_position([CAST('a' AS VARCHAR), CAST('b' AS VARCHAR), CAST('c' AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (TRY_CAST(t."hired" AS DATE) >= CAST('2024-01-01' AS DATE)) AND (TRY_CAST(t."hired" AS DATE) <= CAST('2024-01-24' AS DATE)) THEN TRY_CAST(t."hired" AS DATE) WHEN false THEN CAST('2024-01-01' AS DATE) END AS n2
   FROM "private"."public"."hires" AS t
   WHERE (TRY_CAST(t."hired" AS DATE) < CAST('2024-01-22' AS DATE))
     AND (t."uid" IS NULL OR t."uid" IN (SELECT t."uid" FROM "private"."public"."hires" AS t WHERE (TRY_CAST(t."hired" AS DATE) >= CAST('2024-01-21' AS DATE)) AND (TRY_CAST(t."hired" AS DATE) < CAST('2024-01-22' AS DATE))))) AS b) AS s
WHERE s.r <= 3
  AND ((s.n2 >= CAST('2024-01-21' AS DATE)) AND (s.n2 < CAST('2024-01-22' AS DATE)))
GROUP BY s.n2
-- arguments []

