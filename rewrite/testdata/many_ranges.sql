-- PostgreSQL
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$4::pg_catalog.text, $5::pg_catalog.text], s.x1) OPERATOR(pg_catalog.-) 1), CASE WHEN s.x1 IS NOT NULL THEN 2 END)), 3))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM (SELECT (t."sex" COLLATE pg_catalog."C") AS x1,
       pg_catalog.count(*) AS k1
FROM "clinic"."people" AS t
WHERE ((CASE WHEN (t."age" OPERATOR(pg_catalog.<) '0'::pg_catalog.int8) THEN '0'::pg_catalog.int8 WHEN (t."age" OPERATOR(pg_catalog.>) '119'::pg_catalog.int8) THEN '119'::pg_catalog.int8 ELSE t."age" END) IS NULL OR ((CASE WHEN (t."age" OPERATOR(pg_catalog.<) '0'::pg_catalog.int8) THEN '0'::pg_catalog.int8 WHEN (t."age" OPERATOR(pg_catalog.>) '119'::pg_catalog.int8) THEN '119'::pg_catalog.int8 ELSE t."age" END))::pg_catalog.int4 OPERATOR(pg_catalog.=) ANY ('{1,4,7,10,13,16,19,22,25,28,31,34,37,40,43,46,49,52,55,58,61,64,67,70,73,76,79,82,85,88,100,101,102,103,104,105,106,107,108,109,110,111,112,113,114,115,116,117,118,119}'::pg_catalog.int4[]))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["a" "A" "ä" "Female" "Male"]

-- DuckDB
SELECT CAST(COALESCE((COALESCE((list_position([CAST('Female' AS VARCHAR), CAST('Male' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 2 END)), 3) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."sex" AS VARCHAR) AS x1,
       count(*) AS k1
FROM "private"."clinic"."people" AS t
WHERE ((CASE WHEN (TRY_CAST(t."age" AS BIGINT) < CAST('0' AS BIGINT)) THEN CAST('0' AS BIGINT) WHEN (TRY_CAST(t."age" AS BIGINT) > CAST('119' AS BIGINT)) THEN CAST('119' AS BIGINT) ELSE TRY_CAST(t."age" AS BIGINT) END) IS NULL OR CAST((CASE WHEN (TRY_CAST(t."age" AS BIGINT) < CAST('0' AS BIGINT)) THEN CAST('0' AS BIGINT) WHEN (TRY_CAST(t."age" AS BIGINT) > CAST('119' AS BIGINT)) THEN CAST('119' AS BIGINT) ELSE TRY_CAST(t."age" AS BIGINT) END) AS INTEGER) IN (1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

