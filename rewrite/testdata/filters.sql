-- PostgreSQL
SELECT (COALESCE(s.n2, 3))::pg_catalog.int4 AS c1,
       (pg_catalog.count(*))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*) FILTER (WHERE ((s.n1 OPERATOR(pg_catalog.>=) '18'::pg_catalog.int8) AND (s.n1 OPERATOR(pg_catalog.<) '65'::pg_catalog.int8))))::pg_catalog.int8 AS k2,
       (pg_catalog.count(*) FILTER (WHERE ((s.n12 OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8) AND (s.n1 IS NULL OR (s.n1 OPERATOR(pg_catalog.>=) '30'::pg_catalog.int8)))))::pg_catalog.int8 AS k3,
       (pg_catalog.count(*) FILTER (WHERE false))::pg_catalog.int8 AS k4
FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.n6 ASC NULLS LAST, b.n7 ASC NULLS LAST, b.n8 ASC NULLS LAST, b.n9 ASC NULLS LAST, b.n10 ASC NULLS LAST, b.n11 ASC NULLS LAST, b.n12 ASC NULLS LAST, b.n13 ASC NULLS LAST, b.n14 ASC NULLS LAST, b.n15 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3, b.n4, b.n5, b.n6, b.n7, b.n8, b.n9, b.n10, b.n11, b.n12, b.n13, b.n14, b.n15
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (t."age" OPERATOR(pg_catalog.<) '0'::pg_catalog.int8) THEN '0'::pg_catalog.int8 WHEN (t."age" OPERATOR(pg_catalog.>) '119'::pg_catalog.int8) THEN '119'::pg_catalog.int8 ELSE t."age" END AS n1,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text], (t."sex" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."sex" COLLATE pg_catalog."C") IS NOT NULL THEN 2 END) AS n2,
        CASE WHEN (t."income" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."income" OPERATOR(pg_catalog.<=) '200000.00'::pg_catalog.numeric) THEN t."income" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3,
        CASE WHEN (t."loose" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric) THEN NULL WHEN (t."loose" OPERATOR(pg_catalog.<) '-1.5'::pg_catalog.numeric) THEN '-1.5'::pg_catalog.numeric WHEN (t."loose" OPERATOR(pg_catalog.>) '7.25'::pg_catalog.numeric) THEN '7.25'::pg_catalog.numeric ELSE t."loose" END AS n4,
        CASE WHEN (t."score" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8) THEN NULL WHEN (t."score" OPERATOR(pg_catalog.<) '-0.3'::pg_catalog.float8) THEN '-0.3'::pg_catalog.float8 WHEN (t."score" OPERATOR(pg_catalog.>) '2.35'::pg_catalog.float8) THEN '2.35'::pg_catalog.float8 ELSE t."score" END AS n5,
        CASE WHEN (t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8) THEN t."ratio" WHEN false THEN '0.10000000149011612'::pg_catalog.float8 END AS n6,
        CASE WHEN (t."hired" OPERATOR(pg_catalog.<) '2000-01-01'::pg_catalog.date) THEN '2000-01-01'::pg_catalog.date WHEN (t."hired" OPERATOR(pg_catalog.>) '2026-12-31'::pg_catalog.date) THEN '2026-12-31'::pg_catalog.date ELSE t."hired" END AS n7,
        CASE WHEN (t."seen" OPERATOR(pg_catalog.>=) '2024-01-01 00:00:00.000000'::pg_catalog.timestamp) AND (t."seen" OPERATOR(pg_catalog.<=) '2024-01-31 12:00:00.000000'::pg_catalog.timestamp) THEN t."seen" WHEN false THEN '2024-01-01 00:00:00.000000'::pg_catalog.timestamp END AS n8,
        CASE WHEN (t."stamp" OPERATOR(pg_catalog.<) '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-03-01 00:00:00.000000+00'::pg_catalog.timestamptz WHEN (t."stamp" OPERATOR(pg_catalog.>) '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz) THEN '2024-04-30 00:00:00.000000+00'::pg_catalog.timestamptz ELSE t."stamp" END AS n9,
        CASE WHEN (t."big" OPERATOR(pg_catalog.<) '-9223372036854775808'::pg_catalog.int8) THEN '-9223372036854775808'::pg_catalog.int8 WHEN (t."big" OPERATOR(pg_catalog.>) '9223372036854775807'::pg_catalog.int8) THEN '9223372036854775807'::pg_catalog.int8 ELSE t."big" END AS n10,
        CASE WHEN (t."small" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."small" OPERATOR(pg_catalog.<=) '5'::pg_catalog.int8) THEN t."small" WHEN false THEN '-5'::pg_catalog.int8 END AS n11,
        CASE WHEN NOT t."member" THEN 0 WHEN t."member" THEN 1 END AS n12,
        (pg_catalog.array_position(ARRAY[$3::pg_catalog.text::pg_catalog.uuid, $4::pg_catalog.text::pg_catalog.uuid], t."device") OPERATOR(pg_catalog.-) 1) AS n13,
        COALESCE((pg_catalog.array_position(ARRAY[$5::pg_catalog.text, $6::pg_catalog.text, $7::pg_catalog.text, $8::pg_catalog.text], (t."city" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."city" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n14,
        (pg_catalog.array_position(ARRAY[$9::pg_catalog.text, $10::pg_catalog.text, $11::pg_catalog.text], (t."grade" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1) AS n15
   FROM "clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL
     AND ((t."ratio" IS NULL OR (t."ratio" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.float8)) OR ((t."ratio" OPERATOR(pg_catalog.>=) '0.10000000149011612'::pg_catalog.float8) AND (t."ratio" OPERATOR(pg_catalog.<=) '1.899999976158142'::pg_catalog.float8)))
     AND ((t."grade" COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) ANY (ARRAY[$9::pg_catalog.text, $10::pg_catalog.text, $11::pg_catalog.text]))) AS b) AS s
WHERE s.r <= 1
GROUP BY s.n2
-- arguments ["Female" "Male" "00000000-0000-0000-0000-000000000001" "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" "Köln" "O'Hara" "x\"y$1" "other" "a" "A" "ä"]

-- DuckDB
SELECT CAST(COALESCE(s.n2, 3) AS INTEGER) AS c1,
       CAST(count(*) AS BIGINT) AS k1,
       CAST(count(*) FILTER (WHERE ((s.n1 >= CAST('18' AS BIGINT)) AND (s.n1 < CAST('65' AS BIGINT)))) AS BIGINT) AS k2,
       CAST(count(*) FILTER (WHERE ((s.n12 >= CAST('1' AS BIGINT)) AND (s.n1 IS NULL OR (s.n1 >= CAST('30' AS BIGINT))))) AS BIGINT) AS k3,
       CAST(count(*) FILTER (WHERE false) AS BIGINT) AS k4
FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST, b.n4 ASC NULLS LAST, b.n5 ASC NULLS LAST, b.n6 ASC NULLS LAST, b.n7 ASC NULLS LAST, b.n8 ASC NULLS LAST, b.n9 ASC NULLS LAST, b.n10 ASC NULLS LAST, b.n11 ASC NULLS LAST, b.n12 ASC NULLS LAST, b.n13 ASC NULLS LAST, b.n14 ASC NULLS LAST, b.n15 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3, b.n4, b.n5, b.n6, b.n7, b.n8, b.n9, b.n10, b.n11, b.n12, b.n13, b.n14, b.n15
  FROM (SELECT t."person_id" AS u,
        CASE WHEN (TRY_CAST(t."age" AS BIGINT) < CAST('0' AS BIGINT)) THEN CAST('0' AS BIGINT) WHEN (TRY_CAST(t."age" AS BIGINT) > CAST('119' AS BIGINT)) THEN CAST('119' AS BIGINT) ELSE TRY_CAST(t."age" AS BIGINT) END AS n1,
        COALESCE((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR)], TRY_CAST(t."sex" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."sex" AS VARCHAR) IS NOT NULL THEN 2 END) AS n2,
        CASE WHEN (TRY_CAST(t."income" AS DECIMAL(12,2)) >= CAST('0.00' AS DECIMAL(12,2))) AND (TRY_CAST(t."income" AS DECIMAL(12,2)) <= CAST('200000.00' AS DECIMAL(12,2))) THEN TRY_CAST(t."income" AS DECIMAL(12,2)) WHEN false THEN CAST('0.00' AS DECIMAL(12,2)) END AS n3,
        CASE WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) < CAST('-1.500000000' AS DECIMAL(38,9))) THEN CAST('-1.500000000' AS DECIMAL(38,9)) WHEN (TRY_CAST(t."loose" AS DECIMAL(38,9)) > CAST('7.250000000' AS DECIMAL(38,9))) THEN CAST('7.250000000' AS DECIMAL(38,9)) ELSE TRY_CAST(t."loose" AS DECIMAL(38,9)) END AS n4,
        CASE WHEN isnan(TRY_CAST(t."score" AS DOUBLE)) THEN NULL WHEN (TRY_CAST(t."score" AS DOUBLE) < CAST('-0.3' AS DOUBLE)) THEN CAST('-0.3' AS DOUBLE) WHEN (TRY_CAST(t."score" AS DOUBLE) > CAST('2.35' AS DOUBLE)) THEN CAST('2.35' AS DOUBLE) ELSE TRY_CAST(t."score" AS DOUBLE) END AS n5,
        CASE WHEN (TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE)) THEN TRY_CAST(t."ratio" AS FLOAT) WHEN false THEN CAST('0.10000000149011612' AS DOUBLE) END AS n6,
        CASE WHEN (TRY_CAST(t."hired" AS DATE) < CAST('2000-01-01' AS DATE)) THEN CAST('2000-01-01' AS DATE) WHEN (TRY_CAST(t."hired" AS DATE) > CAST('2026-12-31' AS DATE)) THEN CAST('2026-12-31' AS DATE) ELSE TRY_CAST(t."hired" AS DATE) END AS n7,
        CASE WHEN (TRY_CAST(t."seen" AS TIMESTAMP) >= CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP)) AND (TRY_CAST(t."seen" AS TIMESTAMP) <= CAST('2024-01-31 12:00:00.000000' AS TIMESTAMP)) THEN TRY_CAST(t."seen" AS TIMESTAMP) WHEN false THEN CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP) END AS n8,
        CASE WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) < CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-03-01 00:00:00.000000+00' AS TIMESTAMPTZ) WHEN (TRY_CAST(t."stamp" AS TIMESTAMPTZ) > CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ)) THEN CAST('2024-04-30 00:00:00.000000+00' AS TIMESTAMPTZ) ELSE TRY_CAST(t."stamp" AS TIMESTAMPTZ) END AS n9,
        CASE WHEN (TRY_CAST(t."big" AS BIGINT) < CAST('-9223372036854775808' AS BIGINT)) THEN CAST('-9223372036854775808' AS BIGINT) WHEN (TRY_CAST(t."big" AS BIGINT) > CAST('9223372036854775807' AS BIGINT)) THEN CAST('9223372036854775807' AS BIGINT) ELSE TRY_CAST(t."big" AS BIGINT) END AS n10,
        CASE WHEN (TRY_CAST(t."small" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."small" AS BIGINT) <= CAST('5' AS BIGINT)) THEN TRY_CAST(t."small" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END AS n11,
        CASE WHEN NOT TRY_CAST(t."member" AS BOOLEAN) THEN 0 WHEN TRY_CAST(t."member" AS BOOLEAN) THEN 1 END AS n12,
        (list_position([CAST(CAST($3 AS VARCHAR) AS UUID), CAST(CAST($4 AS VARCHAR) AS UUID)], TRY_CAST(t."device" AS UUID)) - 1) AS n13,
        COALESCE((list_position([CAST($5 AS VARCHAR), CAST($6 AS VARCHAR), CAST($7 AS VARCHAR), CAST($8 AS VARCHAR)], TRY_CAST(t."city" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."city" AS VARCHAR) IS NOT NULL THEN 3 END) AS n14,
        (list_position([CAST($9 AS VARCHAR), CAST($10 AS VARCHAR), CAST($11 AS VARCHAR)], TRY_CAST(t."grade" AS VARCHAR)) - 1) AS n15
   FROM "private"."clinic"."people" AS t
   WHERE t."person_id" IS NOT NULL
     AND ((TRY_CAST(t."ratio" AS FLOAT) IS NULL OR isnan(TRY_CAST(t."ratio" AS FLOAT))) OR ((TRY_CAST(t."ratio" AS FLOAT) >= CAST('0.10000000149011612' AS DOUBLE)) AND (TRY_CAST(t."ratio" AS FLOAT) <= CAST('1.899999976158142' AS DOUBLE))))
     AND (TRY_CAST(t."grade" AS VARCHAR) IN (CAST($9 AS VARCHAR), CAST($10 AS VARCHAR), CAST($11 AS VARCHAR)))) AS b) AS s
WHERE s.r <= 1
GROUP BY s.n2
-- arguments ["Female" "Male" "00000000-0000-0000-0000-000000000001" "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" "Köln" "O'Hara" "x\"y$1" "other" "a" "A" "ä"]

