-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n10 IS NULL OR (s.n10 OPERATOR(pg_catalog.>=) '0'::pg_catalog.int8))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n10 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n10 IS NULL OR s.n10 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."big" OPERATOR(pg_catalog.<) '-9223372036854775808'::pg_catalog.int8) THEN '-9223372036854775808'::pg_catalog.int8 WHEN (t."big" OPERATOR(pg_catalog.>) '9223372036854775807'::pg_catalog.int8) THEN '9223372036854775807'::pg_catalog.int8 ELSE t."big" END AS n10
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n10 OPERATOR(pg_catalog.<) '-9222246136947933184'::pg_catalog.int8) OR ((s.n10 OPERATOR(pg_catalog.>=) '-3074832645587206144'::pg_catalog.int8) AND (s.n10 OPERATOR(pg_catalog.<) '0'::pg_catalog.int8)))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n10 IS NULL OR (s.n10 >= CAST('0' AS BIGINT)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n10 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n10 IS NULL OR s.n10 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT CASE WHEN (TRY_CAST(t."big" AS BIGINT) < CAST('-9223372036854775808' AS BIGINT)) THEN CAST('-9223372036854775808' AS BIGINT) WHEN (TRY_CAST(t."big" AS BIGINT) > CAST('9223372036854775807' AS BIGINT)) THEN CAST('9223372036854775807' AS BIGINT) ELSE TRY_CAST(t."big" AS BIGINT) END AS n10
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n10 < CAST('-9222246136947933184' AS BIGINT)) OR ((s.n10 >= CAST('-3074832645587206144' AS BIGINT)) AND (s.n10 < CAST('0' AS BIGINT))))
-- arguments ["a" "A" "ä"]

