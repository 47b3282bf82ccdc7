package truth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestDateOrder: dates are read in the order of DateStyle, in conditions, above the counts and as parameters.
func TestDateOrder(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, telemetry(*seed), engine, func(*schema) {})
		for _, order := range []string{"DMY", "YMD", "MDY"} {
			for _, c := range []*client{p.proxy, p.plain} {
				if a := c.ask("SET DateStyle = 'ISO, " + order + "'"); a.err != nil {
					t.Fatal(a.err)
				}
			}
			of := map[string]string{"DMY": "03/05/2024", "MDY": "05/03/2024", "YMD": "24/05/03"}[order]
			for _, sql := range []string{
				`SELECT count(*) FROM reading WHERE seen_at > '` + of + `'`,
				`SELECT count(*) FROM outage WHERE began BETWEEN '` + of + ` 10:00' AND '` + strings.ReplaceAll(of, "/", "-") + `'::date + 9`,
				`SELECT count(*) FROM account JOIN device USING (account_id) WHERE installed < '05-Mar-04'`,
				`SELECT n, date '` + of + `' AS d, ('` + of + `' || ' 12:00')::timestamp AS t, '2024-05-03'::date AS i, '20240503'::date::text AS c, timestamptz '` + of + `' AS z FROM (SELECT count(*) AS n FROM device) q`,
				`SELECT '13/13/2024'::date, count(*) FROM device`,
				`SELECT count(*) FROM reading WHERE seen_at > '` + map[string]string{"DMY": "05/13/2024", "MDY": "13/05/2024", "YMD": "05/13/24"}[order] + `'`,
			} {
				p.fresh()
				got, want := p.ask(sql), p.plain.ask(sql)
				if (got.err == nil) != (want.err == nil) || got.err != nil && got.err.Code != want.err.Code || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
					t.Errorf("%s, %s: %s\ngot  %v, %v\nwant %v, %v", engine, order, sql, got.rows, got.err, want.rows, want.err)
				}
			}
		}
	}
}

// TestZones: a session's zone holds below the counts and above them, however it is named.
func TestZones(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, kinds(*seed), engine, func(*schema) {})
		for _, zone := range []string{"TIME ZONE -3", "TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "TimeZone = '+05:30'", "TimeZone = 'Europe/Berlin'", "TimeZone = '<-02>+2'", "TimeZone = '5.5'"} {
			for _, c := range []*client{p.proxy, p.plain} {
				if a := c.ask("SET " + zone); a.err != nil {
					t.Fatal(a.err)
				}
			}
			for _, sql := range []string{
				`SELECT extract(hour FROM date_trunc('hour', tz)) AS h, tz::date AS d, count(*) FROM thing GROUP BY 1, 2 HAVING count(*) > 0`,
				`SELECT code, tz::date AS d, date_trunc('day', tz) AS t, extract(hour FROM tz) AS h, tz::text AS x, ts::timestamptz AS z, to_char(tz, 'HH24:MI') AS c, day - ('00:30:00'::interval - interval '1 day') AS i FROM sort`,
				`SELECT min(q.h)::date AS d, date_trunc('day', q.h)::text AS t, sum(n) AS n FROM (SELECT date_trunc('hour', tz) AS h, count(*) AS n FROM thing GROUP BY 1 HAVING count(*) > 0) q GROUP BY 2`,
			} {
				p.fresh()
				got, want := p.ask(sql), p.plain.ask(sql)
				if got.err != nil || want.err != nil {
					t.Fatalf("%s: %s: %v; PostgreSQL: %v", engine, sql, got.err, want.err)
				}
				if !slices.EqualFunc(sortedRows(got), sortedRows(want), slices.Equal[[]string]) {
					t.Errorf("%s, %s: %s\ngot  %v\nwant %v", engine, zone, sql, sortedRows(got), sortedRows(want))
				}
			}
		}
		// A kept answer is of its own zone.
		sql := `SELECT extract(hour FROM date_trunc('hour', tz)) AS h, count(*) FROM thing GROUP BY 1 HAVING count(*) > 0`
		for _, zone := range []string{"TimeZone = '+05:30'", "TimeZone = '+05:30'", "TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "TimeZone = '+05:30'"} {
			for _, c := range []*client{p.proxy, p.plain} {
				c.ask("SET " + zone)
			}
			if got, want := p.ask(sql), p.plain.ask(sql); got.err != nil || !slices.EqualFunc(sortedRows(got), sortedRows(want), slices.Equal[[]string]) {
				t.Errorf("%s, %s: %s\ngot  %v %v\nwant %v", engine, zone, sql, sortedRows(got), got.err, sortedRows(want))
			}
		}
		// Intervals that go to and fro between the engine and dpproxy's own functions.
		for _, c := range []*client{p.proxy, p.plain} {
			c.ask("SET IntervalStyle = sql_standard")
		}
		sql = `SELECT code, ('00:30:00'::interval - interval '1 day') * small AS i, day - ('00:30:00'::interval - interval '1 day') AS d FROM sort`
		if got, want := p.ask(sql), p.plain.ask(sql); got.err != nil || !slices.EqualFunc(sortedRows(got), sortedRows(want), slices.Equal[[]string]) {
			t.Errorf("%s: %s\ngot  %v %v\nwant %v", engine, sql, sortedRows(got), got.err, sortedRows(want))
		}
	}
}

// TestDeclared: parameters above the counts have the types that their client says, in what is described too.
func TestDeclared(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, kinds(*seed), engine, func(*schema) {})
		for _, d := range []*drawn{
			{text: "SELECT s.code, s.day - \x010\x02 AS a FROM sort s", given: []given{{of: int4Type, text: "3", declared: true, exact: true}}},
			{text: "SELECT \x010\x02 / \x011\x02 AS a, code FROM sort", given: []given{{of: int8Type, text: "7", declared: true, exact: true}, {of: int8Type, text: "2", declared: true, exact: true}}},
			{text: "SELECT text(\x010\x02) AS a, concat(\x010\x02, '|') AS b, code FROM sort", given: []given{{of: charType, text: "ab ", declared: true, exact: true}}},
			{text: "SELECT count(*) AS n FROM thing WHERE coalesce(c5, \x010\x02) = \x010\x02", given: []given{{of: charType, text: "ab ", declared: true, exact: true}}},
		} {
			for by := extended; by <= prepared; by++ {
				p.fresh()
				d.by, d.truth = by, d.text
				if v, got, want := p.drawn(d); v.class != equal && (v.class != refused || d.given[0].of != charType) { // PREPARE refuses char, the twin some of it
					t.Errorf("%s, %s: %s: %s %s\ngot  %s\nwant %s", engine, wayNames[by], d.text, v.class, v.why, text30(got), text30(want))
				}
			}
		}
	}
}

// TestForms: texts that a statement makes of numbers and intervals are those that the session's settings ask for, below
// the counts, above them, and in what is sent.
func TestForms(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, telemetry(*seed), engine, func(*schema) {})
		for _, style := range []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"} {
			for _, digits := range []int{1, 0, -11, 3} {
				for _, c := range []*client{p.proxy, p.plain} {
					if a := c.ask(fmt.Sprintf("SET IntervalStyle = %s; SET extra_float_digits = %d", style, digits)); a.err != nil {
						t.Fatal(a.err)
					}
				}
				for _, sql := range []string{
					`SELECT (packets::float8 / 7)::text AS k, 'v' || packets::real / 7 AS v, count(*) FROM reading WHERE packets < 9 GROUP BY 1, 2 HAVING count(*) > 0`,
					`SELECT concat(seconds * interval '1.5 seconds', '') AS k, count(*) FROM outage WHERE seconds < 99 GROUP BY 1 HAVING count(*) > 0`,
					`SELECT 'of ' || (n / 3.0::float8) AS of, concat(n::real / 7, '!') AS c, n::float8 / 3 AS f, (n * interval '1 day -00:00:01.5')::text AS t, n * interval '-1 02:03' AS i, array[n::float8 / 7]::text AS a
						FROM (SELECT state, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q`,
					`SELECT (interval '1 year 2 mons' * count(*))::text || '.' AS t, (count(*) / 3::float8)::text AS f, count(*) / 3::float8 AS g FROM device`,
				} {
					p.fresh()
					got, want := p.ask(sql), p.plain.ask(sql)
					if got.err != nil || want.err != nil {
						t.Fatalf("%s: %s: %v; PostgreSQL: %v", engine, sql, got.err, want.err)
					}
					for _, rows := range [][][]string{got.rows, want.rows} {
						slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(show(a), show(b)) })
					}
					if !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
						t.Errorf("%s, %s, %d: %s\ngot  %v\nwant %v", engine, style, digits, sql, got.rows, want.rows)
					}
				}
			}
		}
	}
}

// TestRefined: a question that is asked at less ε first and then at more is refined, and as exact as if it had been
// asked at once.
func TestRefined(t *testing.T) {
	p := pairOver(t, hospital(*seed), "duckdb", func(*schema) {})
	for _, epsilon := range []string{"10000", "20000", "50000"} {
		if a := p.ask("SET dp.epsilon = " + epsilon); a.err != nil {
			t.Fatal(a.err)
		}
		const sql = `SELECT ward, count(*) FROM stay GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`
		got, want := p.ask(sql), p.plain.ask(sql)
		if got.err != nil || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
			t.Errorf("ε %s: got %v, %v; want %v", epsilon, got.rows, got.err, want.rows)
		}
	}
}
