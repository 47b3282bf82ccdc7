-- PostgreSQL
SELECT (COALESCE(pg_catalog.div((s.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric), '1000'::pg_catalog.numeric), 201))::pg_catalog.int4 AS c1,
       pg_catalog.count(*) AS k1
FROM (SELECT CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
     AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE((TRY_CAST((TRY_CAST(s.n3 AS DECIMAL(8,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) // CAST('100000' AS BIGINT)), 201) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END AS n3
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) AS s
GROUP BY 1
-- arguments []

