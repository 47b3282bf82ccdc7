-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE (t."stamp" IS NULL OR (t."stamp" OPERATOR(pg_catalog.>=) '2024-04-01 00:00:00.000000+00'::pg_catalog.timestamptz))) AS k1,
       pg_catalog.count(*) FILTER (WHERE t."stamp" IS NULL) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE (t."stamp" IS NULL OR (NOT t."stamp" IS NULL))) AS k4
FROM "clinic"."people" AS t
WHERE ((t."stamp" OPERATOR(pg_catalog.<) '2024-03-02 00:00:00.000000+00'::pg_catalog.timestamptz) OR ((t."stamp" OPERATOR(pg_catalog.>=) '2024-03-21 00:00:00.000000+00'::pg_catalog.timestamptz) AND (t."stamp" OPERATOR(pg_catalog.<) '2024-04-01 00:00:00.000000+00'::pg_catalog.timestamptz)))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."stamp" AS TIMESTAMPTZ) IS NULL OR (TRY_CAST(t."stamp" AS TIMESTAMPTZ) >= CAST('2024-04-01 00:00:00.000000+00' AS TIMESTAMPTZ)))) AS k1,
       count(*) FILTER (WHERE TRY_CAST(t."stamp" AS TIMESTAMPTZ) IS NULL) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."stamp" AS TIMESTAMPTZ) IS NULL OR (NOT TRY_CAST(t."stamp" AS TIMESTAMPTZ) IS NULL))) AS k4
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-03-02 00:00:00.000000+00' AS TIMESTAMPTZ)) OR ((TRY_CAST(t."stamp" AS TIMESTAMPTZ) >= CAST('2024-03-21 00:00:00.000000+00' AS TIMESTAMPTZ)) AND (TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-04-01 00:00:00.000000+00' AS TIMESTAMPTZ))))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

