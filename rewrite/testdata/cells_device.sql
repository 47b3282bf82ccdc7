-- PostgreSQL
SELECT pg_catalog.count(*) FILTER (WHERE (t."device" IS NULL OR (t."device" OPERATOR(pg_catalog.<>) $1::pg_catalog.text::pg_catalog.uuid))) AS k1,
       pg_catalog.count(*) FILTER (WHERE (t."device" IS NULL OR (t."device" OPERATOR(pg_catalog.<>) ALL (ARRAY[$1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.uuid])))) AS k2,
       pg_catalog.count(*) AS k3,
       pg_catalog.count(*) FILTER (WHERE (t."device" IS NULL OR t."device" IS NOT NULL)) AS k4
FROM "clinic"."people" AS t
WHERE (t."device" OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.uuid]))
  AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text]))
-- arguments ["00000000-0000-0000-0000-000000000001" "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" "a" "A" "ä"]

-- DuckDB
SELECT count(*) FILTER (WHERE (TRY_CAST(t."device" AS UUID) IS NULL OR (TRY_CAST(t."device" AS UUID) <> CAST(CAST('00000000-0000-0000-0000-000000000001' AS VARCHAR) AS UUID)))) AS k1,
       count(*) FILTER (WHERE (TRY_CAST(t."device" AS UUID) IS NULL OR (TRY_CAST(t."device" AS UUID) NOT IN (CAST(CAST('00000000-0000-0000-0000-000000000001' AS VARCHAR) AS UUID), CAST(CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS VARCHAR) AS UUID))))) AS k2,
       count(*) AS k3,
       count(*) FILTER (WHERE (TRY_CAST(t."device" AS UUID) IS NULL OR TRY_CAST(t."device" AS UUID) IS NOT NULL)) AS k4
FROM "private"."clinic"."people" AS t
WHERE (TRY_CAST(t."device" AS UUID) IN (CAST(CAST('00000000-0000-0000-0000-000000000001' AS VARCHAR) AS UUID), CAST(CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS VARCHAR) AS UUID)))
  AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
-- arguments []

