-- PostgreSQL
SELECT s.k, (pg_catalog.count(*))::pg_catalog.int8 AS units
FROM (SELECT g.k, pg_catalog.row_number() OVER (PARTITION BY g.u ORDER BY pg_catalog.hashtextextended(((((g.u)::pg_catalog.text OPERATOR(pg_catalog.||) ' '::pg_catalog.text) OPERATOR(pg_catalog.||) COALESCE(g.k, ' ')) COLLATE pg_catalog."C"), 0), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        pg_catalog.left((t."ward" COLLATE pg_catalog."C"), 128) AS k
   FROM "clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments []

-- DuckDB
SELECT s.k, CAST(count(*) AS BIGINT) AS units
FROM (SELECT g.k, row_number() OVER (PARTITION BY g.u ORDER BY hash(g.u, g.k), g.k) AS d
  FROM (SELECT DISTINCT b.u, b.k
  FROM (SELECT t."who" AS u,
        left(TRY_CAST(t."ward" AS VARCHAR), 128) AS k
   FROM "private"."clinic"."visits" AS t
   WHERE t."who" IS NOT NULL) AS b) AS g) AS s
WHERE s.d <= 2
GROUP BY s.k
-- arguments []

