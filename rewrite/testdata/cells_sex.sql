-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((t."sex" COLLATE pg_catalog."C") IS NULL OR ((t."sex" COLLATE pg_catalog."C") OPERATOR(pg_catalog.<>) ALL (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text])))) AS k1,
       pg_catalog.count(*) FILTER (WHERE (t."sex" COLLATE pg_catalog."C") IS NULL) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE ((t."sex" COLLATE pg_catalog."C") IS NULL OR (t."sex" COLLATE pg_catalog."C") IS NOT NULL)) AS k4
FROM "clinic"."people" AS t
WHERE ((t."sex" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text]))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text]))
-- arguments ["Female" "Male" "a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."sex" AS VARCHAR) IS NULL OR (TRY_CAST(t."sex" AS VARCHAR) NOT IN (CAST('Female' AS VARCHAR), CAST('Male' AS VARCHAR))))) AS k1,
       count(*) FILTER (WHERE TRY_CAST(t."sex" AS VARCHAR) IS NULL) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."sex" AS VARCHAR) IS NULL OR TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL)) AS k4
FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."sex" AS VARCHAR) IN (CAST('Female' AS VARCHAR), CAST('Male' AS VARCHAR)))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

