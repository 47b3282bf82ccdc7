-- PostgreSQL
SELECT (COALESCE(s.n17, 18))::pg_catalog.int4 AS c1,
       pg_catalog.count(*) AS k1
FROM (SELECT (o17.i OPERATOR(pg_catalog.-) '1'::pg_catalog.int8) AS n17
   FROM "clinic"."people" AS t
   LEFT JOIN pg_catalog.unnest('{-9223372036854775808,-3,3,5,8,13,21,34,55,89,144,233,377,610,987,1597,2584,9223372036854775807}'::pg_catalog.int8[]) WITH ORDINALITY AS o17(v, i) ON (t."item" OPERATOR(pg_catalog.=) o17.v)
   WHERE ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
     AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text]))) AS s
GROUP BY s.n17
-- arguments ["a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(s.n17, 18) AS INTEGER) AS c1,
       count(*) AS k1
FROM (SELECT (o17.i - CAST('1' AS BIGINT)) AS n17
   FROM "private"."clinic"."people" AS t
   LEFT JOIN (SELECT unnest(CAST('[-9223372036854775808,-3,3,5,8,13,21,34,55,89,144,233,377,610,987,1597,2584,9223372036854775807]' AS BIGINT[])) AS v, unnest(range(1, 19)) AS i) AS o17 ON (TRY_CAST(t."item" AS BIGINT) = o17.v)
   WHERE ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST('a' AS VARCHAR), CAST('A' AS VARCHAR), CAST('ä' AS VARCHAR)))) AS s
GROUP BY s.n17
-- arguments []

