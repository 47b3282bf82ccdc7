-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp) THEN t."seen" WHEN false THEN '2024-01-01 00:00:00.000000'::pg_catalog.timestamp END) OPERATOR(pg_catalog.<) '2024-01-11 19:06:40.123456'::pg_catalog.timestamp)) AS k1,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp) THEN t."seen" WHEN false THEN '2024-01-01 00:00:00.000000'::pg_catalog.timestamp END) OPERATOR(pg_catalog.<>) '2024-01-11 19:06:40.123456'::pg_catalog.timestamp)) AS k2,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."stamp" OPERATOR(pg_catalog.<) '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz WHEN (t."stamp" OPERATOR(pg_catalog.>) '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz ELSE t."stamp" END) OPERATOR(pg_catalog.>=) '2024-03-09 16:00:00.000001+00'::pg_catalog.timestamptz)) AS k3,
       pg_catalog.count(*) FILTER (WHERE ((CASE WHEN (t."hired" OPERATOR(pg_catalog.<) '2000-01-01'::pg_catalog.date) THEN '2000-01-01'::pg_catalog.date WHEN (t."hired" OPERATOR(pg_catalog.>) '2026-12-31'::pg_catalog.date) THEN '2026-12-31'::pg_catalog.date ELSE t."hired" END) OPERATOR(pg_catalog.<=) '2011-01-29'::pg_catalog.date)) AS k4,
       pg_catalog.count(*) FILTER (WHERE false) AS k5
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP)) THEN TRY_CAST(t."seen" AS TIMESTAMP) WHEN false THEN CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP) END) < CAST('2024-01-11 19:06:40.123456' AS TIMESTAMP))) AS k1,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP)) THEN TRY_CAST(t."seen" AS TIMESTAMP) WHEN false THEN CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP) END) <> CAST('2024-01-11 19:06:40.123456' AS TIMESTAMP))) AS k2,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ) WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) > CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ) ELSE TRY_CAST(t."stamp" AS TIMESTAMPTZ) END) >= CAST('2024-03-09 16:00:00.000001+00' AS TIMESTAMPTZ))) AS k3,
       count(*) FILTER (WHERE ((CASE WHEN (TRY_CAST(t."hired" AS DATE) < CAST('2000-01-01' AS DATE)) THEN CAST('2000-01-01' AS DATE) WHEN (TRY_CAST(t."hired" AS DATE) > CAST('2026-12-31' AS DATE)) THEN CAST('2026-12-31' AS DATE) ELSE TRY_CAST(t."hired" AS DATE) END) <= CAST('2011-01-29' AS DATE))) AS k4,
       count(*) FILTER (WHERE false) AS k5
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

