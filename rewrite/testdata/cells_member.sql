-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE (t."member" IS NULL OR t."member")) AS k1,
       pg_catalog.count(*) FILTER (WHERE t."member" IS NULL) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE (t."member" IS NULL OR (NOT t."member") OR t."member")) AS k4
FROM "clinic"."people" AS t
WHERE ((NOT t."member") OR t."member")
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."member" AS BOOLEAN) IS NULL OR TRY_CAST(t."member" AS BOOLEAN))) AS k1,
       count(*) FILTER (WHERE TRY_CAST(t."member" AS BOOLEAN) IS NULL) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."member" AS BOOLEAN) IS NULL OR (NOT TRY_CAST(t."member" AS BOOLEAN)) OR TRY_CAST(t."member" AS BOOLEAN))) AS k4
FROM "private"."clinic"."people" AS t
WHERE ((NOT TRY_CAST(t."member" AS BOOLEAN)) OR TRY_CAST(t."member" AS BOOLEAN))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

