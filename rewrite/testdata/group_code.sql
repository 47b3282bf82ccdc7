-- PostgreSQL
SELECT (COALESCE(((pg_catalog.array_position(ARRAY['-7'::pg_catalog.int8, 0, 8507, 2000000001], s.x1) OPERATOR(pg_catalog.-) 1)), 4))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM (SELECT t."code" AS x1,
       pg_catalog.count(*) AS k1
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(((list_position([CAST('-7' AS BIGINT), 0, 8507, 2000000001], s.x1) - 1)), 4) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."code" AS BIGINT) AS x1,
       count(*) AS k1
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

