-- Thirty charts of one dashboard over orders and users, written as business intelligence tools write them. A line of its own
-- with ;; ends a chart; its first line names the tool and the chart.
;;
-- metabase: number of orders
SELECT COUNT(*) AS "count" FROM "public"."orders"
;;
-- metabase: orders by month
SELECT DATE_TRUNC('month', "public"."orders"."placed_at") AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."placed_at") ORDER BY DATE_TRUNC('month', "public"."orders"."placed_at") ASC
;;
-- metabase: revenue by month of half a year
SELECT DATE_TRUNC('month', "public"."orders"."placed_at") AS "placed_at", SUM("public"."orders"."amount") AS "sum", AVG("public"."orders"."amount") AS "avg" FROM "public"."orders" WHERE ("public"."orders"."placed_at" >= timestamp with time zone '2026-01-01 00:00:00.000Z') AND ("public"."orders"."placed_at" < timestamp with time zone '2026-07-01 00:00:00.000Z') GROUP BY DATE_TRUNC('month', "public"."orders"."placed_at") ORDER BY DATE_TRUNC('month', "public"."orders"."placed_at") ASC
;;
-- metabase: orders by week of the last 90 days
SELECT DATE_TRUNC('week', "public"."orders"."placed_at") AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" WHERE ("public"."orders"."placed_at" >= DATE_TRUNC('day', (NOW() + INTERVAL '-90 day'))) AND ("public"."orders"."placed_at" < DATE_TRUNC('day', NOW())) GROUP BY DATE_TRUNC('week', "public"."orders"."placed_at") ORDER BY DATE_TRUNC('week', "public"."orders"."placed_at") ASC
;;
-- metabase: orders by week that begins on Sunday
SELECT (CAST(DATE_TRUNC('week', (CAST("public"."orders"."placed_at" AS timestamp) + INTERVAL '1 day')) AS timestamp) + INTERVAL '-1 day') AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY (CAST(DATE_TRUNC('week', (CAST("public"."orders"."placed_at" AS timestamp) + INTERVAL '1 day')) AS timestamp) + INTERVAL '-1 day') ORDER BY 1 ASC
;;
-- metabase: orders by day
SELECT CAST("public"."orders"."placed_at" AS date) AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST("public"."orders"."placed_at" AS date) ORDER BY CAST("public"."orders"."placed_at" AS date) ASC
;;
-- metabase: orders by hour of the day
SELECT CAST(extract(hour from "public"."orders"."placed_at") AS integer) AS "placed_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(extract(hour from "public"."orders"."placed_at") AS integer) ORDER BY CAST(extract(hour from "public"."orders"."placed_at") AS integer) ASC
;;
-- metabase: amounts in bins of 250
SELECT FLOOR((("public"."orders"."amount" - 0.0) / 250.0)) * 250.0 + 0.0 AS "amount", COUNT(*) AS "count" FROM "public"."orders" GROUP BY FLOOR((("public"."orders"."amount" - 0.0) / 250.0)) * 250.0 + 0.0 ORDER BY FLOOR((("public"."orders"."amount" - 0.0) / 250.0)) * 250.0 + 0.0 ASC
;;
-- metabase: paid revenue and its share
SELECT SUM(CASE WHEN "public"."orders"."status" = 'paid' THEN "public"."orders"."amount" ELSE 0.0 END) AS "sum_where", SUM(CASE WHEN "public"."orders"."qty" > 3 THEN 1 ELSE 0.0 END) AS "count_where", CAST(SUM(CASE WHEN "public"."orders"."status" = 'paid' THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(COUNT(*), 0.0) AS "share" FROM "public"."orders"
;;
-- metabase: a question on a question
SELECT "source"."status" AS "status", "source"."count" AS "count" FROM (SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC) AS "source" WHERE "source"."count" > 10 LIMIT 2000
;;
-- metabase: orders that are paid or new, with its comment
-- Metabase:: userID: 1 queryType: MBQL queryHash: 6d1f
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE "public"."orders"."status" IN ('paid', 'new')
;;
-- metabase: orders so far by month
SELECT DATE_TRUNC('month', "public"."orders"."placed_at") AS "placed_at", SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', "public"."orders"."placed_at") ASC ROWS UNBOUNDED PRECEDING) AS "count" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."placed_at") ORDER BY DATE_TRUNC('month', "public"."orders"."placed_at") ASC
;;
-- superset: orders by day of two months
SELECT DATE_TRUNC('day', placed_at) AS placed_at,
       COUNT(*) AS count
FROM public.orders
WHERE placed_at >= TO_TIMESTAMP('2026-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND placed_at < TO_TIMESTAMP('2026-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', placed_at)
ORDER BY count DESC
LIMIT 10000;
;;
-- superset: a virtual data set over a join
SELECT status AS status, sum(amount) AS "SUM(amount)", count(*) AS "COUNT(*)"
FROM (select o.*, u.active from orders o join users u on u.id = o.user_id) AS virtual_table
WHERE active = true AND placed_at >= TO_DATE('2026-01-01', 'YYYY-MM-DD')
GROUP BY status
ORDER BY "SUM(amount)" DESC
LIMIT 1000;
;;
-- superset: pivot table
SELECT status AS status, qty AS qty, COUNT(*) AS count FROM public.orders WHERE status IN ('paid', 'new') GROUP BY status, qty HAVING ((COUNT(*) > 5)) ORDER BY count DESC LIMIT 50000
;;
-- superset: big numbers
SELECT AVG(amount) AS "AVG(amount)", SUM(CASE WHEN status='paid' THEN 1 ELSE 0 END)::float/COUNT(*) AS conv
FROM public.orders
LIMIT 50000
;;
-- grafana: orders by hour and status
SELECT
  floor(extract(epoch from placed_at)/3600)*3600 AS "time",
  status AS metric,
  count(*) AS "value"
FROM orders
WHERE
  placed_at >= '2026-01-01T00:00:00Z' AND placed_at < '2026-01-08T00:00:00Z'
GROUP BY 1,2
ORDER BY 1,2
;;
-- grafana: average amount by status
SELECT AVG(amount), status FROM public.orders WHERE placed_at >= '2026-01-01T00:00:00Z' AND placed_at < '2026-02-01T00:00:00Z' GROUP BY status LIMIT 50
;;
-- tableau: revenue
SELECT SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
HAVING (COUNT(1) > 0)
;;
-- tableau: orders by month
SELECT COUNT(1) AS "cnt:orders:ok", DATE_TRUNC( 'MONTH', CAST("orders"."placed_at" AS TIMESTAMP) ) AS "tmn:placed_at:ok"
FROM "public"."orders" "orders"
GROUP BY 2
;;
-- tableau: revenue of all statuses but two
SELECT CAST("orders"."status" AS TEXT) AS "status", SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
WHERE (CASE WHEN (("orders"."status" IN ('paid', 'new')) OR ("orders"."status" IS NULL)) THEN false ELSE true END)
GROUP BY 1
;;
-- tableau: orders by year
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "orders"."placed_at")) AS INTEGER) AS "yr:placed_at:ok", COUNT(1) AS "cnt:orders:ok"
FROM "public"."orders" "orders"
GROUP BY 1
;;
-- tableau: text filter
SELECT SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders"
WHERE (STRPOS(CAST(LOWER(CAST(CAST("orders"."status" AS TEXT) AS TEXT)) AS TEXT),CAST('pai' AS TEXT)) > 0)
;;
-- power bi: revenue and orders by status
select "_"."status", "_"."a0", "_"."a1"
from
(
    select "rows"."status" as "status",
        sum(cast("rows"."amount" as decimal)) as "a0",
        count(1) as "a1"
    from
    (
        select "_"."status", "_"."amount"
        from "public"."orders" "_"
        where "_"."placed_at" < timestamp '2026-06-13 00:00:00' and "_"."placed_at" >= timestamp '2026-01-16 00:00:00'
    ) "rows"
    group by "status"
) "_"
where not "_"."a0" is null
limit 1000001
;;
-- looker: orders of the last 30 days by day and status
SELECT
    (DATE((orders."placed_at" )::timestamptz AT TIME ZONE 'UTC')) AS "orders.placed_date",
    COUNT(*) AS "orders.count"
FROM "public"."orders" AS orders
WHERE ((( orders."placed_at"  ) >= ((SELECT (DATE_TRUNC('day', CURRENT_TIMESTAMP) + (-29 || ' day')::INTERVAL))) AND ( orders."placed_at"  ) < ((SELECT ((DATE_TRUNC('day', CURRENT_TIMESTAMP) + (-29 || ' day')::INTERVAL) + (30 || ' day')::INTERVAL)))))
GROUP BY
    1
HAVING (COUNT(*) > 5)
ORDER BY
    1 DESC
FETCH NEXT 500 ROWS ONLY
;;
-- looker: ages in tiers
SELECT CASE WHEN users."age" < 25 THEN '0' WHEN users."age" >= 25 AND users."age" < 45 THEN '1' ELSE '2' END AS "users.age_tier__sort_", COUNT(*) AS "users.count" FROM "public"."users" AS users GROUP BY 1 ORDER BY 1
;;
-- lightdash: orders by quarter
WITH metrics AS (SELECT DATE_TRUNC('QUARTER', "orders".placed_at) AS "orders_placed_at_quarter", COUNT(*) AS "orders_count" FROM "public"."orders" AS "orders" GROUP BY 1) SELECT * FROM metrics ORDER BY "orders_placed_at_quarter" DESC LIMIT 500
;;
-- redash: orders of the last 30 days
/* Username: a@b, query_id: 4 */ SELECT date_trunc('day', placed_at)::date AS day, count(*) AS n FROM orders WHERE placed_at >= now() - interval '30 days' GROUP BY day ORDER BY day;
;;
-- dbeaver: grouping panel
SELECT status, COUNT(*)
FROM orders
GROUP BY status
ORDER BY COUNT(*) DESC
;;
-- notebook: orders by status and year with totals
SELECT coalesce(status, 'all') AS status, extract(year FROM placed_at) AS y, count(*), round(avg(amount), 2) FROM orders GROUP BY ROLLUP (status, extract(year FROM placed_at)) ORDER BY 1, 2
;;
