-- PostgreSQL
SELECT (COALESCE(s.n1, 4))::pg_catalog.int4 AS c1,
       (COALESCE((s.n2 OPERATOR(pg_catalog./) '5'::pg_catalog.int8), 12))::pg_catalog.int4 AS c2,
       (COALESCE(pg_catalog.div((s.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric), '0.5'::pg_catalog.numeric), 1001))::pg_catalog.int4 AS c3,
       pg_catalog.count(*) AS k1
FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY b.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((b.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) ((((COALESCE((b.n1)::pg_catalog.int8, '5'::pg_catalog.int8) OPERATOR(pg_catalog.*) '61'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE(b.n2, '60'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '50002'::pg_catalog.int8) OPERATOR(pg_catalog.+) COALESCE((((b.n3 OPERATOR(pg_catalog.-) '0.00'::pg_catalog.numeric) OPERATOR(pg_catalog.*) '100'::pg_catalog.numeric))::pg_catalog.int8, '50001'::pg_catalog.int8))) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3
  FROM (SELECT t."person_id" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text], (t."clinic" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."clinic" COLLATE pg_catalog."C") IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (t."minutes" OPERATOR(pg_catalog.<) '0'::pg_catalog.int8) THEN '0'::pg_catalog.int8 WHEN (t."minutes" OPERATOR(pg_catalog.>) '59'::pg_catalog.int8) THEN '59'::pg_catalog.int8 ELSE t."minutes" END AS n2,
        CASE WHEN (t."cost" OPERATOR(pg_catalog.>=) '0.00'::pg_catalog.numeric) AND (t."cost" OPERATOR(pg_catalog.<=) '500.00'::pg_catalog.numeric) THEN t."cost" WHEN false THEN '0.00'::pg_catalog.numeric END AS n3
   FROM "clinic"."visits" AS t
   WHERE t."person_id" IS NOT NULL
     AND NOT (t."cost" IS NULL OR (t."cost" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric))) AS b) AS s
WHERE s.r <= 2
GROUP BY s.n1, 2, 3
-- arguments ["north" "south" "east"]

-- DuckDB
SELECT CAST(COALESCE(s.n1, 4) AS INTEGER) AS c1,
       CAST(COALESCE((s.n2 // CAST('5' AS BIGINT)), 12) AS INTEGER) AS c2,
       CAST(COALESCE((TRY_CAST((TRY_CAST(s.n3 AS DECIMAL(5,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) // CAST('50' AS BIGINT)), 1001) AS INTEGER) AS c3,
       count(*) AS k1
FROM (SELECT row_number() OVER (PARTITION BY b.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(b.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), ((((COALESCE(CAST(b.n1 AS BIGINT), CAST('5' AS BIGINT)) * CAST('61' AS BIGINT)) + COALESCE(b.n2, CAST('60' AS BIGINT))) * CAST('50002' AS BIGINT)) + COALESCE(CAST(TRY_CAST((TRY_CAST(b.n3 AS DECIMAL(5,2)) * CAST('100' AS DECIMAL(3,0))) AS BIGINT) AS BIGINT), CAST('50001' AS BIGINT)))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)) ASC NULLS LAST, b.n1 ASC NULLS LAST, b.n2 ASC NULLS LAST, b.n3 ASC NULLS LAST) AS r, b.n1, b.n2, b.n3
  FROM (SELECT t."person_id" AS u,
        COALESCE((list_position([CAST('north' AS VARCHAR), CAST('south' AS VARCHAR), CAST('east' AS VARCHAR)], TRY_CAST(t."clinic" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."clinic" AS VARCHAR) IS NOT NULL THEN 3 END) AS n1,
        CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) < CAST('0' AS BIGINT)) THEN CAST('0' AS BIGINT) WHEN (TRY_CAST(t."minutes" AS BIGINT) > CAST('59' AS BIGINT)) THEN CAST('59' AS BIGINT) ELSE TRY_CAST(t."minutes" AS BIGINT) END AS n2,
        CASE WHEN (TRY_CAST(t."cost" AS DECIMAL(8,2)) >= CAST('0.00' AS DECIMAL(8,2))) AND (TRY_CAST(t."cost" AS DECIMAL(8,2)) <= CAST('500.00' AS DECIMAL(8,2))) THEN TRY_CAST(t."cost" AS DECIMAL(8,2)) WHEN false THEN CAST('0.00' AS DECIMAL(8,2)) END AS n3
   FROM "private"."clinic"."visits" AS t
   WHERE t."person_id" IS NOT NULL
     AND NOT TRY_CAST(t."cost" AS DECIMAL(8,2)) IS NULL) AS b) AS s
WHERE s.r <= 2
GROUP BY s.n1, 2, 3
-- arguments []

