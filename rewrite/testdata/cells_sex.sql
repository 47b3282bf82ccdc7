-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n2 IS NULL OR (s.n2 OPERATOR(pg_catalog.=) $1::pg_catalog.text))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n2 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n2 IS NULL OR s.n2 OPERATOR(pg_catalog.=) ANY (ARRAY[$2::pg_catalog.text, $3::pg_catalog.text, $1::pg_catalog.text]))))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."sex" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$2::pg_catalog.text, $3::pg_catalog.text]) THEN (t."sex" COLLATE pg_catalog."C") WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN $1::pg_catalog.text END AS n2
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND (CASE WHEN (t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text]) THEN (t."grade" COLLATE pg_catalog."C") END) IS NOT NULL) AS s
WHERE s.n2 OPERATOR(pg_catalog.=) ANY (ARRAY[$2::pg_catalog.text, $3::pg_catalog.text])
-- arguments ["other" "Female" "Male" "a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n2 IS NULL OR (s.n2 = CAST($1 AS VARCHAR)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n2 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n2 IS NULL OR s.n2 IN (CAST($2 AS VARCHAR), CAST($3 AS VARCHAR), CAST($1 AS VARCHAR)))) AS BIGINT) AS k4
FROM (SELECT CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IN (CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)) THEN TRY_CAST(t."sex" AS VARCHAR) WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN CAST($1 AS VARCHAR) END AS n2
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND (CASE WHEN TRY_CAST(t."grade" AS VARCHAR) IN (CAST($4 AS VARCHAR), CAST($5 AS VARCHAR), CAST($6 AS VARCHAR)) THEN TRY_CAST(t."grade" AS VARCHAR) END) IS NOT NULL) AS s
WHERE s.n2 IN (CAST($2 AS VARCHAR), CAST($3 AS VARCHAR))
-- arguments ["other" "Female" "Male" "a" "A" "ä"]

