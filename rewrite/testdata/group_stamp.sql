-- PostgreSQL
SELECT (COALESCE(((((EXTRACT(EPOCH FROM s.x1) OPERATOR(pg_catalog.*) '1000000'::pg_catalog.numeric))::pg_catalog.int8 OPERATOR(pg_catalog.-) '1709251200000000'::pg_catalog.int8) OPERATOR(pg_catalog./) '86400000000'::pg_catalog.int8), 61))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM (SELECT pg_catalog.date_bin('86400000000 microseconds'::pg_catalog.interval, CASE WHEN (t."stamp" OPERATOR(pg_catalog.<) '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz WHEN (t."stamp" OPERATOR(pg_catalog.>) '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz ELSE t."stamp" END, '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz) AS x1,
       pg_catalog.count(*) AS k1
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(((epoch_us(s.n9) - CAST('1709251200000000' AS BIGINT)) // CAST('86400000000' AS BIGINT)), 61) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT CASE WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ) WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) > CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ) ELSE TRY_CAST(t."stamp" AS TIMESTAMPTZ) END AS n9
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) AS s
GROUP BY 1
-- arguments []

