-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n13 IS NULL OR (s.n13 OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n13 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n13 IS NULL OR s.n13 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT (pg_catalog.array_position(ARRAY[$1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.uuid], t."device") OPERATOR(pg_catalog.-) 1) AS n13
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n13 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8) OR (s.n13 OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8))
-- arguments ["00000000-0000-0000-0000-000000000001" "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" "a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n13 IS NULL OR (s.n13 >= CAST('1' AS BIGINT)))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n13 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n13 IS NULL OR s.n13 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT (list_position([CAST(CAST($1 AS VARCHAR) AS UUID), CAST(CAST($2 AS VARCHAR) AS UUID)], TRY_CAST(t."device" AS UUID)) - 1) AS n13
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($3 AS VARCHAR), CAST($4 AS VARCHAR), CAST($5 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n13 < CAST('1' AS BIGINT)) OR (s.n13 >= CAST('1' AS BIGINT)))
-- arguments ["00000000-0000-0000-0000-000000000001" "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" "a" "A" "ä"]

