-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE (t."seen" IS NULL OR ((t."seen" OPERATOR(pg_catalog.<) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) OR (t."seen" OPERATOR(pg_catalog.>) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)) OR ((t."seen" OPERATOR(pg_catalog.>=) '2024-01-16 07:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)))) AS k1,
       pg_catalog.count(*) FILTER (WHERE (t."seen" IS NULL OR ((t."seen" OPERATOR(pg_catalog.<) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) OR (t."seen" OPERATOR(pg_catalog.>) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)))) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE (t."seen" IS NULL OR ((t."seen" OPERATOR(pg_catalog.<) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) OR (t."seen" OPERATOR(pg_catalog.>) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)) OR ((t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp)))) AS k4
FROM "clinic"."people" AS t
WHERE (((t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<) '2024-01-01 01:00:00.000000'::pg_catalog.timestamp)) OR ((t."seen" OPERATOR(pg_catalog.>=) '2024-01-11 04:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<) '2024-01-16 07:00:00.000000'::pg_catalog.timestamp)))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."seen" AS TIMESTAMP) IS NULL OR ((TRY_CAST(t."seen" AS TIMESTAMP) < CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) OR (TRY_CAST(t."seen" AS TIMESTAMP) > CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP))) OR ((TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-16 07:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP))))) AS k1,
       count(*) FILTER (WHERE (TRY_CAST(t."seen" AS TIMESTAMP) IS NULL OR ((TRY_CAST(t."seen" AS TIMESTAMP) < CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) OR (TRY_CAST(t."seen" AS TIMESTAMP) > CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP))))) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."seen" AS TIMESTAMP) IS NULL OR ((TRY_CAST(t."seen" AS TIMESTAMP) < CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) OR (TRY_CAST(t."seen" AS TIMESTAMP) > CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP))) OR ((TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP))))) AS k4
FROM "private"."clinic"."people" AS t
WHERE (((TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) < CAST('2024-01-01 01:00:00.000000' AS TIMESTAMP))) OR ((TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-11 04:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) < CAST('2024-01-16 07:00:00.000000' AS TIMESTAMP))))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

