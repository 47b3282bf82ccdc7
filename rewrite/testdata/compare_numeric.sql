-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) OPERATOR(pg_catalog.<) '1234.567'::pg_catalog.numeric)) AS k1,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) OPERATOR(pg_catalog.>=) '1234.567'::pg_catalog.numeric)) AS k2,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) OPERATOR(pg_catalog.=) '1234.56'::pg_catalog.numeric)) AS k3,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) OPERATOR(pg_catalog.<>) '1234.567'::pg_catalog.numeric)) AS k4,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) OPERATOR(pg_catalog.=) '1234.567'::pg_catalog.numeric)) AS k5,
       pg_catalog.count(*) FILTER (WHERE (CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) IS NOT NULL) AS k6,
       pg_catalog.count(*) FILTER (WHERE false) AS k7,
       pg_catalog.count(*) FILTER (WHERE (CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END) IS NOT NULL) AS k8
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) <= CAST('1234.56' AS DECIMAL(12,2)))) AS k1,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) > CAST('1234.56' AS DECIMAL(12,2)))) AS k2,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) = CAST('1234.56' AS DECIMAL(12,2)))) AS k3,
       count(*) FILTER (WHERE (CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) IS NOT NULL) AS k4,
       count(*) FILTER (WHERE false) AS k5,
       count(*) FILTER (WHERE (CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) IS NOT NULL) AS k6,
       count(*) FILTER (WHERE false) AS k7,
       count(*) FILTER (WHERE (CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END) IS NOT NULL) AS k8
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

