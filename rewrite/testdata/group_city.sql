-- PostgreSQL
SELECT (COALESCE((COALESCE((pg_catalog.array_position(ARRAY[$4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text, $7::pg_catalog.text], s.x1) OPERATOR(pg_catalog.-) 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4))::pg_catalog.int4 AS c1,
       (pg_catalog.sum(s.k1))::pg_catalog.int8 AS k1
FROM (SELECT (t."city" COLLATE pg_catalog."C") AS x1,
       pg_catalog.count(*) AS k1
FROM "clinic"."people" AS t
WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
  AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))
GROUP BY 1) AS s
GROUP BY 1
-- arguments ["a" "A" "ä" "Köln" "O'Hara" "x\"y$1" "other"]

-- DuckDB
SELECT CAST(COALESCE((COALESCE((list_position([CAST('Köln' AS VARCHAR), CAST('O''Hara' AS VARCHAR), CAST('x"y$1' AS VARCHAR), CAST('other' AS VARCHAR)], s.x1) - 1), CASE WHEN s.x1 IS NOT NULL THEN 3 END)), 4) AS INTEGER) AS c1,
       CAST(sum(s.k1) AS BIGINT) AS k1
FROM (SELECT TRY_CAST(t."city" AS VARCHAR) AS x1,
       count(*) AS k1
FROM "private"."clinic"."people" AS t
WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
  AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))
GROUP BY 1) AS s
GROUP BY 1
-- arguments []

