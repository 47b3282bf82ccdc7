-- PostgreSQL
SELECT (COALESCE((s.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 AS c1,
       (GREATEST(LEAST(COALESCE(pg_catalog.sum(CASE WHEN s.n2 IS NOT NULL THEN GREATEST(LEAST((s.n2)::pg_catalog.int8, '9'::pg_catalog.int8), '-5'::pg_catalog.int8) END) FILTER (WHERE s.n2 IS NOT NULL), '0'::pg_catalog.numeric), '2305843009213693952'::pg_catalog.numeric), '-2305843009213693952'::pg_catalog.numeric))::pg_catalog.int8 AS k1,
       (pg_catalog.count(*))::pg_catalog.int8 AS k2
FROM (SELECT pg_catalog.row_number() OVER (PARTITION BY g.u, g.f1 ORDER BY g.n1 ASC NULLS LAST, g.n2 ASC NULLS LAST, g.n3 ASC NULLS LAST, g.j1 ASC NULLS LAST) AS r, pg_catalog.dense_rank() OVER (PARTITION BY g.u ORDER BY pg_catalog.hashtextextended(((((g.u)::pg_catalog.text OPERATOR(pg_catalog.||) ' '::pg_catalog.text) OPERATOR(pg_catalog.||) (g.f1)::pg_catalog.text) COLLATE pg_catalog."C"), 0), g.f1) AS d, g.n1, g.n2, g.n3
  FROM (SELECT b.u, CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '59'::pg_catalog.int4) THEN CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '31'::pg_catalog.int4) THEN '0'::pg_catalog.int4 ELSE '31'::pg_catalog.int4 END ELSE CASE WHEN ((COALESCE((b.n3 OPERATOR(pg_catalog.-) '2025-01-01'::pg_catalog.date), 90))::pg_catalog.int4 OPERATOR(pg_catalog.<) '90'::pg_catalog.int4) THEN '59'::pg_catalog.int4 ELSE '90'::pg_catalog.int4 END END AS f1, b.n1, b.n2, b.n3, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((pg_catalog.array_position(ARRAY[$1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text], (t."ward" COLLATE pg_catalog."C")) OPERATOR(pg_catalog.-) 1), CASE WHEN (t."ward" COLLATE pg_catalog."C") IS NOT NULL THEN 4 END) AS n1,
        CASE WHEN (t."minutes" OPERATOR(pg_catalog.>=) '-5'::pg_catalog.int8) AND (t."minutes" OPERATOR(pg_catalog.<=) '9'::pg_catalog.int8) THEN t."minutes" WHEN false THEN '-5'::pg_catalog.int8 END AS n2,
        CASE WHEN (t."day" OPERATOR(pg_catalog.>=) '2025-01-01'::pg_catalog.date) AND (t."day" OPERATOR(pg_catalog.<=) '2025-03-31'::pg_catalog.date) THEN t."day" WHEN false THEN '2025-01-01'::pg_catalog.date END AS n3,
        t."visit" AS j1
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b
  WHERE ((b.n1 OPERATOR(pg_catalog.<) '1'::pg_catalog.int8) OR ((b.n1 OPERATOR(pg_catalog.>=) '2'::pg_catalog.int8) AND (b.n1 OPERATOR(pg_catalog.<) '3'::pg_catalog.int8)))) AS g
  WHERE g.f1 IS NOT NULL) AS s
WHERE s.r <= 3 AND s.d <= 2
GROUP BY s.n3
-- arguments ["A" "B" "C" "D"]

-- DuckDB
SELECT CAST(COALESCE((s.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) AS c1,
       CAST(GREATEST(LEAST(COALESCE(sum(CASE WHEN s.n2 IS NOT NULL THEN GREATEST(LEAST(CAST(s.n2 AS BIGINT), CAST('9' AS BIGINT)), CAST('-5' AS BIGINT)) END) FILTER (WHERE s.n2 IS NOT NULL), CAST('0' AS HUGEINT)), CAST('2305843009213693952' AS HUGEINT)), CAST('-2305843009213693952' AS HUGEINT)) AS BIGINT) AS k1,
       CAST(count(*) AS BIGINT) AS k2
FROM (SELECT row_number() OVER (PARTITION BY g.u, g.f1 ORDER BY g.n1 ASC NULLS LAST, g.n2 ASC NULLS LAST, g.n3 ASC NULLS LAST, g.j1 ASC NULLS LAST) AS r, dense_rank() OVER (PARTITION BY g.u ORDER BY hash(g.u, g.f1), g.f1) AS d, g.n1, g.n2, g.n3
  FROM (SELECT b.u, CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('59' AS INTEGER)) THEN CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('31' AS INTEGER)) THEN CAST('0' AS INTEGER) ELSE CAST('31' AS INTEGER) END ELSE CASE WHEN (CAST(COALESCE((b.n3 - CAST('2025-01-01' AS DATE)), 90) AS INTEGER) < CAST('90' AS INTEGER)) THEN CAST('59' AS INTEGER) ELSE CAST('90' AS INTEGER) END END AS f1, b.n1, b.n2, b.n3, b.j1
  FROM (SELECT t."who" AS u,
        COALESCE((list_position([CAST($1 AS VARCHAR), CAST($2 AS VARCHAR), CAST($3 AS VARCHAR), CAST($4 AS VARCHAR)], TRY_CAST(t."ward" AS VARCHAR)) - 1), CASE WHEN TRY_CAST(t."ward" AS VARCHAR) IS NOT NULL THEN 4 END) AS n1,
        CASE WHEN (TRY_CAST(t."minutes" AS BIGINT) >= CAST('-5' AS BIGINT)) AND (TRY_CAST(t."minutes" AS BIGINT) <= CAST('9' AS BIGINT)) THEN TRY_CAST(t."minutes" AS BIGINT) WHEN false THEN CAST('-5' AS BIGINT) END AS n2,
        CASE WHEN (TRY_CAST(t."day" AS DATE) >= CAST('2025-01-01' AS DATE)) AND (TRY_CAST(t."day" AS DATE) <= CAST('2025-03-31' AS DATE)) THEN TRY_CAST(t."day" AS DATE) WHEN false THEN CAST('2025-01-01' AS DATE) END AS n3,
        t."visit" AS j1
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b
  WHERE ((b.n1 < CAST('1' AS BIGINT)) OR ((b.n1 >= CAST('2' AS BIGINT)) AND (b.n1 < CAST('3' AS BIGINT))))) AS g
  WHERE g.f1 IS NOT NULL) AS s
WHERE s.r <= 3 AND s.d <= 2
GROUP BY s.n3
-- arguments ["A" "B" "C" "D"]

