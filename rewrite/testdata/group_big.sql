-- PostgreSQL
SELECT (COALESCE(pg_catalog.div((s.n10 OPERATOR(pg_catalog.-) '-9223372036854775808'::pg_catalog.numeric), '1125899906842624'::pg_catalog.numeric), 16384))::pg_catalog.int4 AS c1,
       pg_catalog.count(*) AS k1
FROM (SELECT CASE WHEN (t."big" OPERATOR(pg_catalog.<) '-9223372036854775808'::pg_catalog.int8) THEN '-9223372036854775808'::pg_catalog.int8 WHEN (t."big" OPERATOR(pg_catalog.>) '9223372036854775807'::pg_catalog.int8) THEN '9223372036854775807'::pg_catalog.int8 ELSE t."big" END AS n10
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
     AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(((CAST(s.n10 AS HUGEINT) - CAST(CAST('-9223372036854775808' AS BIGINT) AS HUGEINT)) // CAST('1125899906842624' AS BIGINT)), 16384) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."big" AS BIGINT) < CAST('-9223372036854775808' AS BIGINT)) THEN CAST('-9223372036854775808' AS BIGINT) WHEN (TRY_CAST(t."big" AS BIGINT) > CAST('9223372036854775807' AS BIGINT)) THEN CAST('9223372036854775807' AS BIGINT) ELSE TRY_CAST(t."big" AS BIGINT) END AS n10
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) AS s
GROUP BY 1
-- arguments []

