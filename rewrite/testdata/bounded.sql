-- PostgreSQL
SELECT (COALESCE(pg_catalog.sum(LEAST(s.k, 2)), 0))::pg_catalog.int8 AS k1
FROM (SELECT b.u, pg_catalog.count(*) AS k
  FROM (SELECT t."person_id" AS u
   FROM "clinic"."visits" AS t
   WHERE t."person_id" IS NOT NULL
     AND NOT (t."cost" IS NULL OR (t."cost" OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.numeric))) AS b
  GROUP BY b.u) AS s
-- arguments []

-- DuckDB
SELECT CAST(COALESCE(sum(LEAST(s.k, 2)), 0) AS BIGINT) AS k1
FROM (SELECT b.u, count(*) AS k
  FROM (SELECT t."person_id" AS u
   FROM "private"."clinic"."visits" AS t
   WHERE t."person_id" IS NOT NULL
     AND NOT TRY_CAST(t."cost" AS DECIMAL(8,2)) IS NULL) AS b
  GROUP BY b.u) AS s
-- arguments []

