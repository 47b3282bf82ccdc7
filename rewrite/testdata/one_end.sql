-- PostgreSQL
SELECT pg_catalog.count(*) AS k1
FROM "clinic"."people" AS t
WHERE (t."member" AND ((t."seen" OPERATOR(pg_catalog.>=) '2024-01-13 12:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT ((SELECT count(*) FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."member" AS BOOLEAN) AND (TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-13 12:00:00.000000' AS TIMESTAMP)))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) - (SELECT count(*) FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."member" AS BOOLEAN) AND (TRY_CAST(t."seen" AS TIMESTAMP) > CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP)))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR))))) AS k1
-- arguments []

