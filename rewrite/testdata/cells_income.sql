-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((t."income" IS NULL OR (t."income" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.<) '0.00'::pg_catalog.numeric) OR (t."income" OPERATOR(pg_catalog.>) '200000.00'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.>=) '101000.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric)))) AS k1,
       pg_catalog.count(*) FILTER (WHERE ((t."income" IS NULL OR (t."income" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.<) '0.00'::pg_catalog.numeric) OR (t."income" OPERATOR(pg_catalog.>) '200000.00'::pg_catalog.numeric)))) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE ((t."income" IS NULL OR (t."income" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.<) '0.00'::pg_catalog.numeric) OR (t."income" OPERATOR(pg_catalog.>) '200000.00'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric)))) AS k4
FROM "clinic"."people" AS t
WHERE (((t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<) '1000.00'::pg_catalog.numeric)) OR ((t."income" OPERATOR(pg_catalog.>=) '67000.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<) '101000.00'::pg_catalog.numeric)))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."income" AS DECIMAL(12,2)) IS NULL OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) < CAST('0.00' AS DECIMAL(12,2))) OR (TRY_CAST(t."income" AS DECIMAL(12,2)) > CAST('200000.00' AS DECIMAL(12,2)))) OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('101000.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2)))))) AS k1,
       count(*) FILTER (WHERE (TRY_CAST(t."income" AS DECIMAL(12,2)) IS NULL OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) < CAST('0.00' AS DECIMAL(12,2))) OR (TRY_CAST(t."income" AS DECIMAL(12,2)) > CAST('200000.00' AS DECIMAL(12,2)))))) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."income" AS DECIMAL(12,2)) IS NULL OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) < CAST('0.00' AS DECIMAL(12,2))) OR (TRY_CAST(t."income" AS DECIMAL(12,2)) > CAST('200000.00' AS DECIMAL(12,2)))) OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2)))))) AS k4
FROM "private"."clinic"."people" AS t
WHERE (((TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) < CAST('1000.00' AS DECIMAL(12,2)))) OR ((TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('67000.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) < CAST('101000.00' AS DECIMAL(12,2)))))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

