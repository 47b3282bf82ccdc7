-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE (t."item" IS NULL OR (t."item" OPERATOR(pg_catalog.<>) ALL (ARRAY['-9223372036854775808'::pg_catalog.int8, '-3'::pg_catalog.int8, 3, 5, 8, 13, 21, 34, 55])))) AS k1,
       pg_catalog.count(*) FILTER (WHERE (t."item" IS NULL OR (t."item" OPERATOR(pg_catalog.<>) ALL (ARRAY['-9223372036854775808'::pg_catalog.int8, '-3'::pg_catalog.int8, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 9223372036854775807])))) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE (t."item" IS NULL OR t."item" IS NOT NULL)) AS k4
FROM "clinic"."people" AS t
WHERE (t."item" OPERATOR(pg_catalog.=) ANY (ARRAY['-9223372036854775808'::pg_catalog.int8, 21, 34, 55]))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."item" AS BIGINT) IS NULL OR (TRY_CAST(t."item" AS BIGINT) NOT IN (CAST('-9223372036854775808' AS BIGINT), CAST('-3' AS BIGINT), 3, 5, 8, 13, 21, 34, 55)))) AS k1,
       count(*) FILTER (WHERE (TRY_CAST(t."item" AS BIGINT) IS NULL OR (TRY_CAST(t."item" AS BIGINT) NOT IN (CAST('-9223372036854775808' AS BIGINT), CAST('-3' AS BIGINT), 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 9223372036854775807)))) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."item" AS BIGINT) IS NULL OR TRY_CAST(t."item" AS BIGINT) IS NOT NULL)) AS k4
FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."item" AS BIGINT) IN (CAST('-9223372036854775808' AS BIGINT), 21, 34, 55))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

