-- PostgreSQL
SELECT (COALESCE(((s.n7 OPERATOR(pg_catalog.-) '2000-01-01'::pg_catalog.date) OPERATOR(pg_catalog./) '7'::pg_catalog.int8), 1409))::pg_catalog.int4 AS c1,
       (pg_catalog.count(*))::pg_catalog.int8 AS k1
FROM (SELECT CASE WHEN (t."hired" OPERATOR(pg_catalog.<) '2000-01-01'::pg_catalog.date) THEN '2000-01-01'::pg_catalog.date WHEN (t."hired" OPERATOR(pg_catalog.>) '2026-12-31'::pg_catalog.date) THEN '2026-12-31'::pg_catalog.date ELSE t."hired" END AS n7
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(((s.n7 - CAST('2000-01-01' AS DATE)) // CAST('7' AS BIGINT)), 1409) AS INTEGER) AS c1,
       CAST(count(*) AS BIGINT) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."hired" AS DATE) < CAST('2000-01-01' AS DATE)) THEN CAST('2000-01-01' AS DATE) WHEN (TRY_CAST(t."hired" AS DATE) > CAST('2026-12-31' AS DATE)) THEN CAST('2026-12-31' AS DATE) ELSE TRY_CAST(t."hired" AS DATE) END AS n7
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

