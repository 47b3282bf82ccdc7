-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n8 IS NULL OR (s.n8 OPERATOR(pg_catalog.>=) '2024-01-16 07:00:00.000000'::pg_catalog.timestamp))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n8 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n8 IS NULL OR s.n8 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp) THEN t."seen" WHEN false THEN '2024-01-01 00:00:00.000000'::pg_catalog.timestamp END AS n8
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n8 OPERATOR(pg_catalog.<) '2024-01-01 01:00:00.000000'::pg_catalog.timestamp) OR ((s.n8 OPERATOR(pg_catalog.>=) '2024-01-11 04:00:00.000000'::pg_catalog.timestamp) AND (s.n8 OPERATOR(pg_catalog.<) '2024-01-16 07:00:00.000000'::pg_catalog.timestamp)))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n8 IS NULL OR (s.n8 >= CAST('2024-01-16 07:00:00.000000' AS TIMESTAMP)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n8 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n8 IS NULL OR s.n8 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT CASE WHEN (TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP)) THEN TRY_CAST(t."seen" AS TIMESTAMP) WHEN false THEN CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP) END AS n8
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n8 < CAST('2024-01-01 01:00:00.000000' AS TIMESTAMP)) OR ((s.n8 >= CAST('2024-01-11 04:00:00.000000' AS TIMESTAMP)) AND (s.n8 < CAST('2024-01-16 07:00:00.000000' AS TIMESTAMP))))
-- arguments ["a" "A" "ä"]

