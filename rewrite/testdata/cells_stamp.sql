-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n9 IS NULL OR (s.n9 OPERATOR(pg_catalog.>=) '2024-04-01 00:00:00.000000+00'::pg_catalog.timestamptz))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n9 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n9 IS NULL OR s.n9 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."stamp" OPERATOR(pg_catalog.<) '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz WHEN (t."stamp" OPERATOR(pg_catalog.>) '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz ELSE t."stamp" END AS n9
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n9 OPERATOR(pg_catalog.<) '2024-03-02 00:00:00.000000+00'::pg_catalog.timestamptz) OR ((s.n9 OPERATOR(pg_catalog.>=) '2024-03-21 00:00:00.000000+00'::pg_catalog.timestamptz) AND (s.n9 OPERATOR(pg_catalog.<) '2024-04-01 00:00:00.000000+00'::pg_catalog.timestamptz)))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n9 IS NULL OR (s.n9 >= CAST('2024-04-01 00:00:00.000000+00' AS TIMESTAMPTZ)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n9 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n9 IS NULL OR s.n9 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT CASE WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ) WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) > CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ) ELSE TRY_CAST(t."stamp" AS TIMESTAMPTZ) END AS n9
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n9 < CAST('2024-03-02 00:00:00.000000+00' AS TIMESTAMPTZ)) OR ((s.n9 >= CAST('2024-03-21 00:00:00.000000+00' AS TIMESTAMPTZ)) AND (s.n9 < CAST('2024-04-01 00:00:00.000000+00' AS TIMESTAMPTZ))))
-- arguments ["a" "A" "ä"]

