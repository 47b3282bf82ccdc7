package truth

import (
	"slices"
	"testing"
)

// TestConstants: constants in words that only an engine knows, moments without end, and functions that are comparisons
// are what PostgreSQL says.
func TestConstants(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		for _, c := range []struct {
			of   func(uint64) *schema
			list []string
		}{{shop, shopConstants}, {telemetry, telemetryConstants}} {
			p := pairOver(t, c.of(*seed), engine, func(*schema) {})
			for _, sql := range c.list {
				p.fresh()
				got, want := p.ask(sql), p.plain.ask(sql)
				if got.err != nil || want.err != nil || !slices.EqualFunc(sortedRows(got), sortedRows(want), slices.Equal[[]string]) {
					t.Errorf("%s: %s\ngot  %v, %v\nwant %v, %v", engine, sql, sortedRows(got), got.err, sortedRows(want), want.err)
				}
			}
		}
	}
}

var shopConstants = []string{
	`SELECT count(*) FROM orders WHERE status IN (VALUES ('F'), ('O'))`,
	`SELECT count(*) FROM orders WHERE channel IN (SELECT unnest(ARRAY['web','shop']))`,
	`SELECT count(*) FROM orders WHERE priority IN (SELECT generate_series(2, 4))`,
	`SELECT count(*) FROM orders WHERE channel = ANY (string_to_array('web,shop', ','))`,
	`SELECT count(*) FROM lineitem WHERE product_id = ANY (ARRAY(SELECT product_id FROM product WHERE list_price > 50))`,
	`SELECT count(*) FROM orders WHERE priority = ANY (ARRAY(SELECT generate_series(2,4)))`,
	`SELECT count(*) FROM orders WHERE channel = ANY (regexp_split_to_array('web shop', ' '))`,
	`SELECT count(*) FROM orders WHERE channel <> ALL (regexp_split_to_array('web shop', ' '))`,
	`SELECT count(*) FROM orders WHERE NOT (channel = ANY (string_to_array('web,,x', ',', '')))`,
	`SELECT count(*) FROM orders WHERE channel <> ALL (string_to_array('', ','))`,
	`SELECT count(*) FROM orders WHERE channel <> ALL (string_to_array(NULL, ','))`,
	`SELECT count(*) FROM orders WHERE (channel = ANY (string_to_array(NULL, ','))) IS NULL`,
	`SELECT count(*) FROM customer WHERE tier = ANY (string_to_array('gold,bronze', ','))`,
	`SELECT count(*) FROM customer WHERE tier = ANY (string_to_array('gold  ,bronze', ','))`,
	`SELECT count(*) FROM customer WHERE tier IN (VALUES ('gold'), ('bronze'))`,
	`SELECT count(*) FROM customer WHERE tier IN (SELECT unnest(ARRAY['gold'::char(6), 'bronze'::char(6)]))`,
	`SELECT count(*) FROM customer WHERE tier = ANY (ARRAY['gold'::char(6)] || ARRAY['bronze'::char(6)])`,
	`SELECT count(*) FROM customer WHERE tier = (ARRAY['gold','bronze'])[1]`,
	`SELECT count(*) FROM customer WHERE country = (string_to_array('de,at', ','))[2]`,
	`SELECT count(*) FROM customer WHERE country = (string_to_array('de,at', ','))[5]`,
	`SELECT count(*) FROM orders WHERE total > ALL (ARRAY(SELECT list_price FROM product WHERE list_price < 50))`,
	`SELECT count(*) FROM orders WHERE total > (SELECT max(x) FROM unnest(ARRAY[20,30]) x)`,
	`SELECT count(*) FROM orders WHERE channel LIKE ANY (string_to_array('w%,s%', ','))`,
	`SELECT count(*) FROM orders WHERE priority = ANY ((string_to_array('2,3', ','))::int[])`,
	`SELECT count(*) FROM orders WHERE placed > '-infinity'`,
	`SELECT count(*) FROM orders WHERE shipped > '-infinity'`,
	`SELECT count(*) FROM orders WHERE NOT shipped < '-infinity'`,
	`SELECT count(*) FROM orders WHERE (shipped > 'infinity') IS NULL`,
	`SELECT count(*) FROM orders WHERE shipped BETWEEN '2023-02-01' AND 'infinity'`,
	`SELECT count(*) FROM orders WHERE shipped NOT BETWEEN '-infinity' AND '2023-02-01'`,
	`SELECT count(*) FROM orders WHERE coalesce(shipped, 'infinity') > '2023-03-01'`,
	`SELECT count(*) FROM orders WHERE coalesce(shipped, '-infinity'::date) <= placed + 5`,
	`SELECT count(*) FROM orders WHERE shipped = date 'infinity'`,
	`SELECT count(*) FROM orders WHERE shipped <> 'infinity'::timestamp`,
	`SELECT count(*) FROM orders WHERE 'infinity' > shipped`,
	`SELECT count(*) FROM orders WHERE (placed, shipped) OVERLAPS (date '2023-02-01', date '2023-03-01')`,
	`SELECT count(*) FROM orders WHERE NOT (placed, shipped) OVERLAPS (date '2023-02-01', date '2023-03-01')`,
	`SELECT count(*) FROM orders WHERE ((placed, shipped) OVERLAPS (date '2023-02-01', date '2023-03-01')) IS NULL`,
	`SELECT count(*) FROM orders WHERE ((placed, shipped) OVERLAPS (date '2023-02-01', NULL)) IS NULL`,
	`SELECT count(*) FROM orders WHERE ((placed, shipped) OVERLAPS (NULL, date '2023-02-01'))`,
	`SELECT count(*) FROM orders WHERE (shipped, placed) OVERLAPS (date '2023-03-01', date '2023-02-01')`,
	`SELECT count(*) FROM orders WHERE (placed, placed) OVERLAPS (date '2023-02-14', date '2023-03-31')`,
	`SELECT count(*) FROM orders WHERE (placed, placed) OVERLAPS (date '2023-02-14', date '2023-02-14')`,
	`SELECT count(*) FROM orders WHERE (placed, interval '10 days') OVERLAPS (date '2023-02-14', interval '1 month')`,
	`SELECT count(*) FROM orders WHERE (placed, NULL) OVERLAPS (date '2023-02-14', date '2023-03-31')`,
	`SELECT count(*) FROM lineitem WHERE (due, received) OVERLAPS (received, due)`,
	`SELECT (placed, shipped) OVERLAPS (date '2023-02-01', date '2023-03-01') AS o, count(*) FROM orders GROUP BY 1`,
	`SELECT count(*) FROM orders WHERE num_nonnulls(shipped, paid) = 2`,
	`SELECT format('%s-%s', channel, priority) AS k, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0`,
	`SELECT format('%2$s/%1$L%%', tier, newsletter) AS k, count(*) FROM customer GROUP BY 1 HAVING count(*) > 0`,
	`SELECT format('%s|', tier) AS k, count(*) FROM customer GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(*) FROM orders WHERE array_position(ARRAY['web','shop'], channel) IS NOT NULL`,
	`SELECT count(*) FROM lineitem WHERE int4range(2,5) @> quantity`,
	`SELECT count(*) FROM lineitem WHERE quantity <@ int4range(2,5,'(]')`,
	`SELECT count(*) FROM lineitem WHERE quantity <@ int4range(5,5)`,
	`SELECT count(*) FROM lineitem WHERE quantity <@ int4range(NULL,5)`,
	`SELECT count(*) FROM lineitem WHERE quantity <@ NULL::int4range`,
	`SELECT count(*) FROM lineitem WHERE received <@ daterange('2023-03-01','infinity')`,
	`SELECT count(*) FROM lineitem WHERE NOT received <@ daterange(NULL,NULL)`,
	`SELECT count(*) FROM lineitem WHERE (received <@ daterange(NULL,NULL)) IS NULL`,
	`SELECT count(*) FROM orders WHERE total <@ numrange(10.5, 100)`,
	`SELECT w AS w, count(*) FROM orders JOIN unnest(ARRAY['web','shop']) WITH ORDINALITY x(code, w) ON channel = x.code GROUP BY 1`,
	`SELECT x.d, count(*) FROM orders JOIN string_to_table('web,shop', ',') x(d) ON channel = x.d GROUP BY 1`,
	`SELECT x AS x, count(*) FROM orders JOIN generate_series(2, 4) x ON priority = x GROUP BY 1`,
	`SELECT count(*) FROM orders WHERE total + 10.25 > 50`,
	`SELECT count(*) FROM orders WHERE 100 - total >= 50.25`,
	`SELECT count(*) FROM orders WHERE total * 2 <= 99.5`,
	`SELECT count(*) FROM orders WHERE shipped - date '2023-02-01' > 10`,
	`SELECT sum(total) AS s FROM orders WHERE channel = ANY (string_to_array('web,shop', ','))`,
	`SELECT count(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.channel = ANY (string_to_array('web,shop', ',')))`,
	`SELECT count(*) FILTER (WHERE channel = ANY (string_to_array('web,shop', ','))) AS a FROM orders`,
	`SELECT channel = ANY (string_to_array('web,shop', ',')) AS k, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(*) FROM orders WHERE note LIKE ANY (string_to_array('%late%,%lost%', ','))`,
	`SELECT count(*) FROM orders WHERE campaign = ANY (string_to_array('a,b', ','))`,
	`SELECT count(*) FROM customer WHERE balance <> ALL (ARRAY(SELECT list_price FROM product))`,
	`SELECT count(*) FROM orders WHERE channel IN (SELECT channel FROM orders GROUP BY 1 HAVING count(*) > 100)`,
	`SELECT count(*) FROM orders WHERE channel = ANY (ARRAY(SELECT channel FROM orders GROUP BY 1 HAVING count(*) > 100))`,
	`SELECT num_nulls(shipped, paid, status) AS k, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0`,
	`SELECT array_position(ARRAY['web','shop',NULL], channel) AS k, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0`,
	`SELECT array_position(ARRAY[1,3,3], priority::int) AS k, count(*) FROM orders GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(*) FROM orders WHERE campaign LIKE 'B%'`,
	`SELECT count(*) FROM orders WHERE campaign NOT LIKE '%e%'`,
	`SELECT count(*) FROM orders WHERE campaign LIKE ANY (string_to_array('B%,b%', ','))`,
	`SELECT count(*) FROM orders WHERE campaign LIKE 'B%' OR campaign = 'O''Hara'`,
	`SELECT count(*) FROM orders WHERE campaign ILIKE 'b%'`,
	`SELECT count(*) FROM orders WHERE starts_with(campaign, 'Ba')`,
	`SELECT count(*) FROM orders WHERE coalesce(campaign, '') LIKE '%'`,
	`SELECT count(*) FROM orders WHERE (campaign LIKE 'B%') IS NULL`,
	`SELECT o.status, count(*) FROM customer c JOIN orders o USING (customer_id) WHERE c.city LIKE 'B%' AND o.campaign LIKE '%n%' GROUP BY 1 HAVING count(*) > 0`,
	`SELECT count(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.campaign LIKE 'B%')`,
}

var telemetryConstants = []string{
	`SELECT count(*) FROM reading WHERE seen_at - timestamptz '2024-05-02' > interval '1 day'`,
	`SELECT count(*) FROM reading WHERE seen_at - timestamptz '2024-05-02 10:00:30' >= interval '1 hour 3 seconds'`,
	`SELECT count(*) FROM reading WHERE seen_at + interval '90 minutes' < timestamptz '2024-05-03 00:00:10'`,
	`SELECT count(*) FROM reading WHERE timestamptz '2024-05-03' - seen_at BETWEEN interval '10 hours 20 seconds' AND interval '1 day'`,
	`SELECT count(*) FROM reading WHERE (seen_at, seen_at) OVERLAPS (timestamptz '2024-05-02', interval '1 day')`,
	`SELECT count(*) FROM outage WHERE (began, interval '1 day') OVERLAPS (timestamp '2024-05-02', timestamp '2024-05-10')`,
	`SELECT count(*) FROM outage WHERE (began, interval '1 day') OVERLAPS (timestamp '2024-05-02 10:20', timestamp '2024-05-10')`,
	`SELECT count(*) FROM reading WHERE seen_at < 'infinity'`,
	`SELECT count(*) FROM outage WHERE began >= timestamp '-infinity'`,
	`SELECT count(*) FROM outage WHERE NOT began < timestamptz 'infinity'`,
	`SELECT count(*) FROM reading WHERE seen_at <@ tstzrange('2024-05-02', 'infinity', '[)')`,
	`SELECT count(*) FROM outage WHERE tsrange('2024-05-02', '2024-05-09 10:30', '()') @> began`,
	`SELECT count(*) FROM device WHERE model = ANY (ARRAY(SELECT model FROM model WHERE price > 100))`,
	`SELECT count(*) FROM device WHERE model = ANY (string_to_array('mk1,mk2', ','))`,
	`SELECT count(*) FROM reading WHERE volts = ANY (ARRAY(SELECT x / 4.0 FROM generate_series(1,40) x))`,
	`SELECT count(*) FROM outage WHERE began = ANY (ARRAY(SELECT generate_series(timestamp '2024-05-02', timestamp '2024-05-09', interval '1 hour')))`,
	`SELECT count(*) FROM reading WHERE seen_at - timestamptz '2024-05-02' = interval '1 hour'`,
	`SELECT format('%s', seconds * interval '1 second') AS k, count(*) FROM outage WHERE seconds < 90 GROUP BY 1 HAVING count(*) > 0`,
}
