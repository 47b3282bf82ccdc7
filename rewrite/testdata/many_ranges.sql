-- PostgreSQL
SELECT (COALESCE(s.n2, 3))::pg_catalog.int4 AS c1,
       (pg_catalog.count(*))::pg_catalog.int8 AS k1
FROM (SELECT CASE WHEN (t."age" OPERATOR(pg_catalog.<) '0'::pg_catalog.int8) THEN '0'::pg_catalog.int8 WHEN (t."age" OPERATOR(pg_catalog.>) '119'::pg_catalog.int8) THEN '119'::pg_catalog.int8 ELSE t."age" END AS n1,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text], (t."sex" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN 2 END) AS n2
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE (s.n1 IS NULL OR (s.n1)::pg_catalog.int4 OPERATOR(pg_catalog.=) ANY ('{1,4,7,10,13,16,19,22,25,28,31,34,37,40,43,46,49,52,55,58,61,64,67,70,73,76,79,82,85,88,100,101,102,103,104,105,106,107,108,109,110,111,112,113,114,115,116,117,118,119}'::pg_catalog.int4[]))
GROUP BY s.n2
-- arguments ["Female" "Male" "a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(s.n2, 3) AS INTEGER) AS c1,
       CAST(count(*) AS BIGINT) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."age" AS BIGINT) < CAST('0' AS BIGINT)) THEN CAST('0' AS BIGINT) WHEN (TRY_CAST(t."age" AS BIGINT) > CAST('119' AS BIGINT)) THEN CAST('119' AS BIGINT) ELSE TRY_CAST(t."age" AS BIGINT) END AS n1,
        COALESCE((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR)], TRY_CAST(t."sex" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN 2 END) AS n2
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($3 AS VARCHAR), CAST($4 AS VARCHAR), CAST($5 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE (s.n1 IS NULL OR CAST(s.n1 AS INTEGER) IN (1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 82, 85, 88, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119))
GROUP BY s.n2
-- arguments ["Female" "Male" "a" "A" "ä"]

