-- PostgreSQL
SELECT (pg_catalog.count(*) FILTER (WHERE (s.n4 IS NULL OR (s.n4 OPERATOR(pg_catalog.>=) '3.00'::pg_catalog.numeric))))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE s.n4 IS NULL))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE (s.n4 IS NULL OR s.n4 IS NOT NULL)))::pg_catalog.int8 AS k4
FROM (SELECT CASE WHEN (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric) THEN NULL WHEN (t."loose" OPERATOR(pg_catalog.<) '-1.5'::pg_catalog.numeric) THEN '-1.5'::pg_catalog.numeric WHEN (t."loose" OPERATOR(pg_catalog.>) '7.25'::pg_catalog.numeric) THEN '7.25'::pg_catalog.numeric ELSE t."loose" END AS n4
   FROM "clinic"."people" AS t
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR (CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END) IS NOT NULL)
     AND ((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1)) IS NOT NULL) AS s
WHERE ((s.n4 OPERATOR(pg_catalog.<) '-1.25'::pg_catalog.numeric) OR ((s.n4 OPERATOR(pg_catalog.>=) '1.50'::pg_catalog.numeric) AND (s.n4 OPERATOR(pg_catalog.<) '3.00'::pg_catalog.numeric)))
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(count(*) FILTER (WHERE (s.n4 IS NULL OR (s.n4 >= CAST('3.000000000' AS DECIMAL(38,9))))) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE s.n4 IS NULL) AS BIGINT) AS k2,
       CAST(count(*) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE (s.n4 IS NULL OR s.n4 IS NOT NULL)) AS BIGINT) AS k4
FROM (SELECT CASE WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) < CAST('-1.500000000' AS DECIMAL(38,9))) THEN CAST('-1.500000000' AS DECIMAL(38,9)) WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) > CAST('7.250000000' AS DECIMAL(38,9))) THEN CAST('7.250000000' AS DECIMAL(38,9)) ELSE TRY_CAST(t."loose" AS DECIMAL(38,9)) END AS n4
   FROM "private"."clinic"."people" AS t
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR (CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END) IS NOT NULL)
     AND ((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1)) IS NOT NULL) AS s
WHERE ((s.n4 < CAST('-1.250000000' AS DECIMAL(38,9))) OR ((s.n4 >= CAST('1.500000000' AS DECIMAL(38,9))) AND (s.n4 < CAST('3.000000000' AS DECIMAL(38,9)))))
-- arguments ["a" "A" "ä"]

