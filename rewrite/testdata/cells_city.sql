-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n14 IS NULL OR (s.n14 OPERATOR(pg_catalog.>=) '2'::pg_catalog.int8))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n14 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n14 IS NULL OR s.n14 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text], (t."city" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."city" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n14
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$5::pg_catalog.text, $6::pg_catalog.text, $7::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n14 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8) OR ((s.n14 OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8) AND (s.n14 OPERATOR(pg_catalog.<) '2'::pg_catalog.int8)))
-- arguments ["Köln" "O'Hara" "x\"y$1" "other" "a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n14 IS NULL OR (s.n14 >= CAST('2' AS BIGINT)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n14 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n14 IS NULL OR s.n14 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT COALESCE((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR), CAST($4 AS VARCHAR)], TRY_CAST(t."city" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."city" AS VARCHAR) IS NOT NULL THEN 3 END) AS n14
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($5 AS VARCHAR), CAST($6 AS VARCHAR), CAST($7 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n14 < CAST('1' AS BIGINT)) OR ((s.n14 >= CAST('1' AS BIGINT)) AND (s.n14 < CAST('2' AS BIGINT))))
-- arguments ["Köln" "O'Hara" "x\"y$1" "other" "a" "A" "ä"]

