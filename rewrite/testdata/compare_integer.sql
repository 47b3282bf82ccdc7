-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."big" OPERATOR(pg_catalog.<) '-9223372036854775808'::pg_catalog.int8) THEN '-9223372036854775808'::pg_catalog.int8 WHEN (t."big" OPERATOR(pg_catalog.>) '9223372036854775807'::pg_catalog.int8) THEN '9223372036854775807'::pg_catalog.int8 ELSE t."big" END) OPERATOR(pg_catalog.>) '-9223372036854775807'::pg_catalog.int8)) AS k1,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."big" OPERATOR(pg_catalog.<) '-9223372036854775808'::pg_catalog.int8) THEN '-9223372036854775808'::pg_catalog.int8 WHEN (t."big" OPERATOR(pg_catalog.>) '9223372036854775807'::pg_catalog.int8) THEN '9223372036854775807'::pg_catalog.int8 ELSE t."big" END) OPERATOR(pg_catalog.=) '9223372036854775807'::pg_catalog.int8)) AS k2,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."small" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."small" OPERATOR(pg_catalog.<=) '5'::pg_catalog.int8) THEN t."small" WHEN false THEN '-5'::pg_catalog.int8 END) OPERATOR(pg_catalog.<>) '2'::pg_catalog.int8)) AS k3
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."big" AS BIGINT) < CAST('-9223372036854775808' AS BIGINT)) THEN CAST('-9223372036854775808' AS BIGINT) WHEN (TRY_CAST(t."big" AS BIGINT) > CAST('9223372036854775807' AS BIGINT)) THEN CAST('9223372036854775807' AS BIGINT) ELSE TRY_CAST(t."big" AS BIGINT) END) > CAST('-9223372036854775807' AS BIGINT))) AS k1,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."big" AS BIGINT) < CAST('-9223372036854775808' AS BIGINT)) THEN CAST('-9223372036854775808' AS BIGINT) WHEN (TRY_CAST(t."big" AS BIGINT) > CAST('9223372036854775807' AS BIGINT)) THEN CAST('9223372036854775807' AS BIGINT) ELSE TRY_CAST(t."big" AS BIGINT) END) = CAST('9223372036854775807' AS BIGINT))) AS k2,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."small" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."small" AS BIGINT) <= CAST('5' AS BIGINT)) THEN TRY_CAST(t."small" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END) <> CAST('2' AS BIGINT))) AS k3
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

