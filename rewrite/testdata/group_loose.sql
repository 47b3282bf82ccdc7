-- PostgreSQL
SELECT (COALESCE(pg_catalog.div((s.n4 OPERATOR(pg_catalog.-) '-1.5'::pg_catalog.numeric), '0.25'::pg_catalog.numeric), 36))::pg_catalog.int4 AS c1,
       pg_catalog.count(*) AS k1
FROM (SELECT CASE WHEN (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric) THEN NULL WHEN (t."loose" OPERATOR(pg_catalog.<) '-1.5'::pg_catalog.numeric) THEN '-1.5'::pg_catalog.numeric WHEN (t."loose" OPERATOR(pg_catalog.>) '7.25'::pg_catalog.numeric) THEN '7.25'::pg_catalog.numeric ELSE t."loose" END AS n4
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
     AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(((TRY_CAST((TRY_CAST(s.n4 AS DECIMAL(38,9)) * CAST('1000000000' AS DECIMAL(10,0))) AS BIGINT) - CAST('-1500000000' AS BIGINT)) // CAST('250000000' AS BIGINT)), 36) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) < CAST('-1.500000000' AS DECIMAL(38,9))) THEN CAST('-1.500000000' AS DECIMAL(38,9)) WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) > CAST('7.250000000' AS DECIMAL(38,9))) THEN CAST('7.250000000' AS DECIMAL(38,9)) ELSE TRY_CAST(t."loose" AS DECIMAL(38,9)) END AS n4
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) AS s
GROUP BY 1
-- arguments []

