-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((t."loose" IS NULL OR (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)) OR ((t."loose" OPERATOR(pg_catalog.>=) '3.00'::pg_catalog.numeric) AND NOT (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)))) AS k1,
       pg_catalog.count(*) FILTER (WHERE (t."loose" IS NULL OR (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric))) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE ((t."loose" IS NULL OR (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric)) OR (NOT (t."loose" IS NULL OR (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric))))) AS k4
FROM "clinic"."people" AS t
WHERE ((t."loose" OPERATOR(pg_catalog.<) '-1.25'::pg_catalog.numeric) OR ((t."loose" OPERATOR(pg_catalog.>=) '1.50'::pg_catalog.numeric) AND (t."loose" OPERATOR(pg_catalog.<) '3.00'::pg_catalog.numeric)))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."loose" AS DECIMAL(38,9)) IS NULL OR (TRY_CAST(t."loose" AS DECIMAL(38,9)) >= CAST('3.000000000' AS DECIMAL(38,9))))) AS k1,
       count(*) FILTER (WHERE TRY_CAST(t."loose" AS DECIMAL(38,9)) IS NULL) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."loose" AS DECIMAL(38,9)) IS NULL OR (NOT TRY_CAST(t."loose" AS DECIMAL(38,9)) IS NULL))) AS k4
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."loose" AS DECIMAL(38,9)) < CAST('-1.250000000' AS DECIMAL(38,9))) OR ((TRY_CAST(t."loose" AS DECIMAL(38,9)) >= CAST('1.500000000' AS DECIMAL(38,9))) AND (TRY_CAST(t."loose" AS DECIMAL(38,9)) < CAST('3.000000000' AS DECIMAL(38,9)))))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

