-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n5 IS NULL OR (s.n5 OPERATOR(pg_catalog.>=) '1.1'::pg_catalog.float8))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n5 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n5 IS NULL OR s.n5 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."score" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8) THEN NULL WHEN (t."score" OPERATOR(pg_catalog.<) '-0.3'::pg_catalog.float8) THEN '-0.3'::pg_catalog.float8 WHEN (t."score" OPERATOR(pg_catalog.>) '2.35'::pg_catalog.float8) THEN '2.35'::pg_catalog.float8 ELSE t."score" END AS n5
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n5 OPERATOR(pg_catalog.<) '-0.2'::pg_catalog.float8) OR ((s.n5 OPERATOR(pg_catalog.>=) '0.6'::pg_catalog.float8) AND (s.n5 OPERATOR(pg_catalog.<) '1.1'::pg_catalog.float8)))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n5 IS NULL OR (s.n5 >= CAST('1.1' AS DOUBLE)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n5 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n5 IS NULL OR s.n5 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT CASE WHEN isnan(TRY_CAST(t."score" AS DOUBLE)) THEN NULL WHEN (TRY_CAST(t."score" AS DOUBLE) < CAST('-0.3' AS DOUBLE)) THEN CAST('-0.3' AS DOUBLE) WHEN (TRY_CAST(t."score" AS DOUBLE) > CAST('2.35' AS DOUBLE)) THEN CAST('2.35' AS DOUBLE) ELSE TRY_CAST(t."score" AS DOUBLE) END AS n5
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n5 < CAST('-0.2' AS DOUBLE)) OR ((s.n5 >= CAST('0.6' AS DOUBLE)) AND (s.n5 < CAST('1.1' AS DOUBLE))))
-- arguments ["a" "A" "ä"]

