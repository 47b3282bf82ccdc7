-- PostgreSQL
SELECT s.k, pg_catalog.count(*) AS units
FROM (SELECT g.k, pg_catalog.row_number() OVER (PARTITION BY g.u ORDER BY ((((((((((((((('723279573'::pg_catalog.int8 OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((g.u)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) COALESCE(((('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.left(pg_catalog.md5(pg_catalog.left((g.k)::pg_catalog.text, 128)), 7)))::pg_catalog.bit(28))::pg_catalog.int8, '268435456'::pg_catalog.int8)) OPERATOR(pg_catalog.*) '1899447441'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '961987163'::pg_catalog.int8) OPERATOR(pg_catalog.*) '901839823'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '1508970993'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1773525925'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8) OPERATOR(pg_catalog.#) '306152100'::pg_catalog.int8) OPERATOR(pg_catalog.*) '1116352408'::pg_catalog.int8) OPERATOR(pg_catalog.%) '2147483647'::pg_catalog.int8), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        pg_catalog.left((t."ward" COLLATE pg_catalog."C"), 128) AS k
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments []

-- DuckDB
SELECT s.k, count(*) AS units
FROM (SELECT g.k, row_number() OVER (PARTITION BY g.u ORDER BY ((xor(((xor(((xor(((xor(((xor(CAST('723279573' AS BIGINT), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(g.u AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), COALESCE(TRY_CAST('0x' || left(md5(left(CAST(g.k AS VARCHAR), 128)), 7) AS BIGINT), CAST('268435456' AS BIGINT))) * CAST('1899447441' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('961987163' AS BIGINT)) * CAST('901839823' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('1508970993' AS BIGINT)) * CAST('1773525925' AS BIGINT)) % CAST('2147483647' AS BIGINT)), CAST('306152100' AS BIGINT)) * CAST('1116352408' AS BIGINT)) % CAST('2147483647' AS BIGINT)), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        left(TRY_CAST(t."ward" AS VARCHAR), 128) AS k
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments []

