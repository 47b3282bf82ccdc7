package truth

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// step is one act of a session: a text of the simple protocol, a statement that Parse prepares, or one that Bind and
// Execute run.
type step struct {
	sql     string
	prepare string   // sql is prepared under this name
	execute string   // a statement is run, with parameters as texts
	params  []string // of execute
}

// settings are what a session of TestPrepared begins with.
const settings = "SET search_path = public; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = postgres; SET TimeZone = 'UTC'; SET extra_float_digits = 1; DEALLOCATE ALL"

// begin gives both sessions these settings, and a new ledger.
func (p *pair) begin(t *testing.T) {
	t.Helper()
	p.fresh()
	for _, c := range []*client{p.proxy, p.plain} {
		if a := c.ask(settings); a.err != nil {
			t.Fatal(a.err)
		}
	}
	if a := p.plain.ask("SET search_path = plain"); a.err != nil {
		t.Fatal(a.err)
	}
}

// do takes a step.
func (c *client) do(s step) answer {
	ctx := context.Background()
	switch {
	case s.prepare != "":
		_, err := c.conn.Prepare(ctx, s.prepare, s.sql, nil)
		return c.outcome(nil, err)
	case s.execute != "":
		params := make([][]byte, len(s.params))
		for i, p := range s.params {
			params[i] = []byte(p)
		}
		r := c.conn.ExecPrepared(ctx, s.execute, params, nil, nil).Read()
		return c.outcome(r, r.Err)
	}
	return c.ask(s.sql)
}

func (c *client) outcome(r *pgconn.Result, err error) (a answer) {
	c.t.Helper()
	if err != nil {
		e, ok := asPgError(err)
		if !ok {
			c.t.Fatal(err)
		}
		a.err = e
	}
	if r != nil {
		for _, row := range r.Rows {
			texts := make([]string, len(row))
			for i, v := range row {
				if texts[i] = string(v); v == nil {
					texts[i] = null
				}
			}
			a.rows = append(a.rows, texts)
		}
	}
	a.said, c.said = c.said, nil
	return a
}

// TestPrepared: of a statement that is prepared its literals are read once, by the settings of then; its parameters,
// what its functions do and how its answer is written go by the settings of each execution. Each script is
// PostgreSQL's, by the extended protocol and by PREPARE.
func TestPrepared(t *testing.T) {
	below := `SELECT count(*) FROM outage WHERE began > '05/03/2024' AND began < $1`
	shown := `SELECT $1::timestamp AS p, count(*) FROM outage WHERE began > '05/03/2024' AND began < $1 GROUP BY 1`
	zoned := `SELECT count(*) FROM reading WHERE seen_at > '2024-05-02 12:00' AND seen_at <= $1`
	days := `SELECT seen_at::date AS d, count(*) FROM reading WHERE seen_at < '2024-05-03 01:00' GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`
	above := `SELECT n, '05/03/2024'::date AS d, ('05/03/' || '2024')::date AS e, interval '-1 02:03' AS i, (interval '-1 02:03')::text AS it, timestamptz '2024-05-03 00:00' AS z,
		'2024-05-03 22:00'::timestamptz::date AS zd, date '05/03/2024' + 1 AS f, $1::date AS p, '{05/03/2024}'::date[] AS a FROM (SELECT count(*) AS n FROM device) q`
	deep := `SELECT m::date AS d, sum(n) AS n FROM (SELECT date_trunc('hour', seen_at) AS m, count(*) AS n FROM reading GROUP BY 1) q WHERE m > '2024-05-02 12:00' AND m::date < $1 GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1`
	constant := `SELECT '05/03/2024'::date AS d, $1::date AS p, timestamptz '2024-05-03 00:00' AS z, '2024-05-03 00:00'::text::timestamptz AS t, date_part('hour', '2024-05-03 00:00+00'::timestamptz) AS h`
	turned := []string{"SET DateStyle = 'ISO, DMY'", "SET TimeZone = 'Asia/Tokyo'", "SET IntervalStyle = sql_standard"}
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, telemetry(*seed), engine, func(*schema) {})
		play := func(name string, steps ...step) {
			t.Run(engine+"/"+name, func(t *testing.T) {
				p.begin(t)
				for _, s := range steps {
					theirs := s
					theirs.sql = strings.ReplaceAll(s.sql, "public", "plain")
					got, want := p.proxy.do(s), p.plain.do(theirs)
					if (got.err == nil) != (want.err == nil) || got.err != nil && got.err.Code != want.err.Code || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
						t.Errorf("%+v\ngot  %v, %v\nwant %v, %v", s, got.rows, got.err, want.rows, want.err)
					}
				}
			})
		}
		for _, of := range []struct{ name, sql, typ, param string }{
			{"below", below, "timestamp", "06/05/2024"}, {"shown", shown, "timestamp", "06/05/2024"}, {"zoned", zoned, "timestamptz", "2024-05-04 00:00"},
			{"above", above, "date", "06/05/2024"}, {"deep", deep, "date", "04/05/2024"}, {"constant", constant, "date", "06/05/2024"},
		} {
			prepared := step{prepare: of.name, sql: of.sql}
			run := step{execute: of.name, params: []string{of.param}}
			named := step{sql: "PREPARE " + of.name + "(" + of.typ + ") AS " + of.sql}
			execute := step{sql: "EXECUTE " + of.name + "('" + of.param + "')"}
			for i, first := range []step{prepared, named} {
				again := []step{run, execute}[i]
				how := []string{"extended", "PREPARE"}[i] + "/"
				steps := []step{first, again}
				for _, set := range turned {
					steps = append(steps, step{sql: set}, again)
				}
				play(how+of.name, append(steps, step{sql: "SET search_path = public, pg_catalog"}, again, step{sql: "SET DateStyle = 'ISO, MDY'"}, again, step{sql: "RESET TimeZone"}, again)...)
				play(how+of.name+", set before", step{sql: strings.Join(turned, "; ")}, first, again, step{sql: settings[:strings.LastIndex(settings, ";")]}, again)
				play(how+of.name+", in a transaction", step{sql: "BEGIN"}, step{sql: "SET LOCAL DateStyle = 'ISO, DMY'"}, step{sql: "SET LOCAL TimeZone = 'America/New_York'"}, first, again, step{sql: "COMMIT"}, again)
				play(how+of.name+", rolled back", step{sql: "BEGIN"}, step{sql: "SET DateStyle = 'ISO, DMY'"}, first, step{sql: "ROLLBACK"}, again)
			}
		}
		play("days", step{prepare: "days", sql: days}, step{execute: "days"}, step{sql: "SET TimeZone = 'Asia/Tokyo'"}, step{execute: "days"}, step{sql: "SET TIME ZONE -7"}, step{execute: "days"})
		play("spans", step{prepare: "d", sql: `SELECT count(*) FROM outage WHERE began > timestamp '2024-05-03' + $1 AND began < timestamp '2024-05-03' + interval '1 day' * $2`}, step{execute: "d", params: []string{"-1 day", "2.5"}})
		play("chars and arrays", step{sql: `PREPARE a AS SELECT count(*) FROM outage WHERE 'a '::char(3) = ANY ($1::text[])`}, step{sql: `EXECUTE a('{"a ",b}')`}, step{sql: `EXECUTE a('{a,b}')`})
		play("only then a date", step{sql: "SET DateStyle = 'ISO, DMY'"}, step{prepare: "d", sql: `SELECT count(*) FROM outage WHERE began > '25/05/2024'`}, step{execute: "d"}, step{sql: "SET DateStyle = 'ISO, MDY'"}, step{execute: "d"},
			step{sql: `SELECT count(*) FROM outage WHERE began > '25/05/2024'`}, step{execute: "d"})
		play("no date then", step{prepare: "d", sql: `SELECT count(*) FROM outage WHERE began > '25/05/2024'`}, step{sql: "SET DateStyle = 'ISO, DMY'"}, step{execute: "d"})
		play("cursors", step{prepare: "d", sql: `DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM outage WHERE began > '05/03/2024'`}, step{sql: "SET DateStyle = 'ISO, DMY'"}, step{execute: "d"}, step{sql: "FETCH ALL FROM c"},
			step{sql: "CLOSE c"}, step{sql: `DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM outage WHERE began > '05/03/2024'`}, step{sql: "SET DateStyle = 'ISO, MDY'"}, step{sql: "FETCH ALL FROM c"})
		const twice = `SELECT count(*) FROM outage WHERE began > '05/03/2024'`
		play("one text read twice", step{sql: twice}, step{prepare: "d", sql: twice}, step{execute: "d"}, step{sql: "SET DateStyle = 'ISO, DMY'"}, step{sql: twice}, step{execute: "d"}, step{sql: twice}, step{execute: "d"},
			step{prepare: "e", sql: twice}, step{execute: "e"}, step{sql: "SET DateStyle = 'ISO, MDY'"}, step{execute: "e"}, step{execute: "d"}, step{sql: twice})
		play("zones without a name", step{sql: "SET TIME ZONE 5"}, step{sql: strings.Replace(deep, "$1", "'2024-05-04'", 1)}, step{sql: days}, step{sql: "SET TIME ZONE '-03:30'"}, step{sql: strings.Replace(deep, "$1", "'2024-05-04'", 1)},
			step{sql: "SET TimeZone = '<+07>-05'"}, step{sql: days}, step{sql: strings.Replace(deep, "$1", "'2024-05-04'", 1)},
			step{sql: "SET TIME ZONE INTERVAL '-09:30' HOUR TO MINUTE"}, step{sql: strings.Replace(deep, "$1", "'2024-05-04'", 1)}, step{sql: strings.Replace(above, "$1", "'05/03/2024'", 1)})
	}
}

// TestCursorOfOtherSettings: what DECLARE has computed is not computed anew, which FETCH says once, where settings that
// it depends on have changed.
func TestCursorOfOtherSettings(t *testing.T) {
	p := pairOver(t, telemetry(*seed), "duckdb", func(*schema) {})
	for _, at := range []struct {
		set  string
		told int
	}{{"SET TimeZone = 'Asia/Tokyo'", 1}, {"SET DateStyle = 'ISO, DMY'", 1}, {"SET IntervalStyle = iso_8601", 1}, {"SET work_mem = '8MB'", 0}, {"SET TimeZone = 'Asia/Tokyo'; SET TimeZone = 'UTC'", 0}} {
		told := 0
		for _, sql := range []string{settings, "DECLARE c CURSOR WITH HOLD FOR SELECT seen_at::date, count(*) FROM reading GROUP BY 1", at.set, "FETCH 1 FROM c", "FETCH ALL FROM c", "CLOSE c"} {
			a := p.ask(sql)
			if a.err != nil {
				t.Fatal(a.err)
			}
			for _, said := range a.said {
				if strings.Contains(said, "was computed by its DECLARE") {
					told++
				}
			}
		}
		if told != at.told {
			t.Errorf("%s: told %d times", at.set, told)
		}
	}
}

// TestViewsAreRead: the constants of a policy's SELECT are the owner's, whatever an analyst has set.
func TestViewsAreRead(t *testing.T) {
	p := pairOver(t, telemetry(*seed), "duckdb", func(s *schema) {
		outage, reading := s.table("outage"), s.table("reading")
		s.tables = append(s.tables,
			&table{name: "late", source: "SELECT o.began, o.cause FROM outage o WHERE o.began > '05/10/2024 12:00'", columns: []column{outage.columns[1], outage.columns[3]}},
			&table{name: "seen", source: "SELECT r.state FROM reading r WHERE r.seen_at > '2024-05-02 12:00'", columns: []column{reading.columns[2]}})
	})
	for _, set := range []string{"SET work_mem = '8MB'", "SET DateStyle = 'ISO, DMY'", "SET TimeZone = 'Asia/Tokyo'"} {
		for _, sql := range []string{set, `SELECT count(*) FROM late WHERE began < '2024-05-25'`, `SELECT count(*) FROM seen`} {
			p.fresh()
			got, want := p.ask(sql), p.plain.ask(sql)
			if got.err != nil || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
				t.Errorf("%s; %s: got %v, %v; want %v", set, sql, got.rows, got.err, want.rows)
			}
		}
	}
}

// TestPreparedTexts: the same of literals and parameters wherever a text becomes a date, a time or an interval.
func TestPreparedTexts(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, telemetry(*seed), engine, func(*schema) {})
		for _, of := range []struct {
			sql    string
			params []string
		}{
			{`SELECT d, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d > $1 ORDER BY 1`, []string{"01/05/2024"}},
			{`SELECT d, n, d - $1 AS x FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, []string{"01/05/2024"}},
			{`SELECT d, greatest(d, $1) AS x, coalesce($2, d), nullif(d, $3), CASE WHEN n > 5 THEN d ELSE $4 END FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, []string{"02/05/2024", "02/05/2024", "02/05/2024", "02/05/2024"}},
			{`SELECT count(*) FROM reading WHERE seen_at::date = ANY ($1)`, []string{"{02/05/2024,03/05/2024}"}},
			{`SELECT count(*) FROM reading WHERE seen_at::date = ANY ('{02/05/2024,03/05/2024}') OR seen_at::date IN ('04/05/2024', $1)`, []string{"05/05/2024"}},
			{`SELECT d, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d = ANY ($1) OR d = ANY ('{02/05/2024,03/05/2024}') ORDER BY 1`, []string{"{02/05/2024,03/05/2024}"}},
			{`SELECT d, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d BETWEEN $1 AND '05/04/2024' ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT date_trunc('day', $1::timestamptz) AS a, $1::text AS b, $2::timestamptz = '2024-05-02' AS c, n FROM (SELECT count(*) AS n FROM reading) q`, []string{"2024-05-02 22:00", "2024-05-02"}},
			{`SELECT count(*) FROM reading WHERE seen_at > $1::date AND seen_at < '03/05/2024'::date + 60`, []string{"02/05/2024"}},
			{`SELECT count(*) FROM reading WHERE seen_at > $1::text::timestamptz`, []string{"02/05/2024"}},
			{`SELECT n * $1::interval AS a, (n * $1)::text AS t, interval '-1 02:00' * n AS c, n * '-1 02:00'::interval = n * $1 AS e FROM (SELECT count(*) AS n FROM device) q`, []string{"-1 02:00"}},
			{`SELECT (interval '-1 -02:03' * n) AS c, (-n || ' day 2 hours')::interval AS g, (interval '-1 day 02:00' * n)::text AS e FROM (SELECT count(*) AS n FROM device) q`, nil},
			{`SELECT max(m) AS a, min(m) FROM (SELECT seconds * interval '-1 02:00' AS m, count(*) FROM outage GROUP BY seconds HAVING count(*) > 0) q WHERE m < $1`, []string{"-20 02:00"}},
			{`WITH w AS (SELECT '03/05/2024'::date AS d) SELECT w.d, (SELECT count(*) FROM reading WHERE seen_at::date > '02/05/2024' AND seen_at::date < $1) FROM w`, []string{"03/09/2024"}},
			{`SELECT v.d, count(*) FROM reading r JOIN (VALUES ('02/05/2024'::date), ('03/05/2024')) AS v(d) ON r.seen_at::date = v.d GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`, nil},
			{`SELECT a.d, a.n, b.n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading WHERE seen_at > '02/05/2024' GROUP BY 1) a JOIN (SELECT began::date AS d, count(*) AS n FROM outage WHERE began < '03/12/2024' GROUP BY 1) b USING (d) WHERE a.n > 0 AND b.n > 0 AND d > $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT count(*) FROM outage WHERE began > to_date('02/05/2024', 'DD/MM/YYYY') AND began < to_timestamp('2024-05-20 10', 'YYYY-MM-DD HH24')`, nil},
			{`SELECT count(*) FROM reading WHERE seen_at > to_timestamp('2024-05-02 10', 'YYYY-MM-DD HH24') AND seen_at < '2024-05-03 10:00'::timestamp`, nil},
			{`SELECT avg(seen_at::date - '02/05/2024'::date), count(*) FROM reading`, nil},
			{`SELECT age('02/05/2024'::timestamptz, '2024-01-01') AS a, '2024-05-02'::timestamptz - '02/05/2024' AS b, n FROM (SELECT count(*) AS n FROM device) q`, nil},
			{`SELECT d, lag(d, 1, '02/05/2024') OVER (ORDER BY d) AS l, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, nil},
			{`SELECT '02/05/2024'::date UNION SELECT seen_at::date FROM reading GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`, nil},
			{`SELECT '02/05/2024' UNION SELECT seen_at::date FROM reading GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`, nil},
			{`SELECT seen_at::date FROM reading GROUP BY 1 HAVING count(*) > 0 UNION ALL SELECT '02/05/2024' UNION ALL SELECT NULL ORDER BY 1`, nil},
			{`SELECT d, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d IN (SELECT '02/05/2024'::date UNION SELECT '05/03/2024') OR d IN (VALUES ('04/05/2024'::date), ('01/05/2024')) ORDER BY 1`, nil},
			{`SELECT d, n FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE (d, n) > ('02/05/2024', 3) AND d = ANY (ARRAY['02/05/2024', '2024-05-03', '03/05/2024']::date[]) ORDER BY 1`, nil},
			{`SELECT max(d) FILTER (WHERE d < '03/05/2024') AS m, array_agg(d ORDER BY d) AS a, min(d + '1 day'::interval) AS i FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q`, nil},
			{`SELECT date_trunc('month', '02/05/2024'::timestamptz) AS m, date_part('month', '02/05/2024'::date) AS p, extract(day FROM timestamp '02/05/2024') AS e, n FROM (SELECT count(*) AS n FROM device) q`, nil},
			{`SELECT to_char('02/05/2024'::date, 'DD Mon') AS c, '02/05/2024' AS t, '02/05/2024' || n AS w, '02/05/2024'::text::date AS r, date('02/05/2024') AS f, n FROM (SELECT count(*) AS n FROM device) q`, nil},
			{`SELECT count(*) FROM outage WHERE date(began) > date('02/05/2024') AND began < timestamp '03/12/2024 10:00' AND date_trunc('day', began) > '02/05/2024'`, nil},
			{`SELECT CASE WHEN began::date > '05/06/2024' THEN 'late' ELSE 'early' END AS k, count(*) FROM outage GROUP BY 1 ORDER BY 1`, nil},
			{`COPY (SELECT '02/05/2024'::date, count(*) FROM outage WHERE began > '02/05/2024') TO STDOUT`, nil},
			{`SELECT d, lag(d, 1, $1) OVER (ORDER BY d) AS l FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE (d, n) > ($1, 3) ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d IN ($1, '2024-05-03') ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q UNION ALL SELECT $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d IN (VALUES ($1), ('2024-05-03'::date)) ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT max(d) FILTER (WHERE d < $1) AS m FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q`, []string{"02/05/2024"}},
			{`SELECT ARRAY[d, $1] AS m FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d IS DISTINCT FROM $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE NOT d = $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE $1 < d ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT q.d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q JOIN (SELECT '2024-05-01'::date AS e) z ON q.d > z.e AND q.d > $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d > (SELECT $1::date) ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE CASE d WHEN $1 THEN true ELSE false END ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT date_trunc('month', $1::date) AS m, d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 2`, []string{"02/05/2024"}},
			{`SELECT d + interval '1 day' > $1 AS k FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY d`, []string{"02/05/2024"}},
			{`SELECT age($1, d) AS k FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY d`, []string{"02/05/2024"}},
			{`SELECT sum(n) FILTER (WHERE d BETWEEN SYMMETRIC $1 AND '2024-05-01') AS k FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q WHERE d = ANY (ARRAY[$1, '2024-05-03']::date[]) ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT first_value(d) OVER (ORDER BY d > $1, d) AS k FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY d`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY d > $1, d`, []string{"02/05/2024"}},
			{`SELECT d FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q GROUP BY d HAVING max(d) > $1 ORDER BY 1`, []string{"02/05/2024"}},
			{`WITH w AS (SELECT * FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q) SELECT d FROM w WHERE d > $1 AND EXISTS (SELECT 1 FROM w x WHERE x.d < $1) ORDER BY 1`, []string{"02/05/2024"}},
			{`SELECT d, lag(d, 1, $1) OVER (ORDER BY d) AS l, greatest('b', $2) AS g FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q ORDER BY 1`, []string{"02/05/2024", "02/05/2024"}},
			{`SELECT u FROM (SELECT d + $2::interval AS u FROM (SELECT seen_at::date AS d, count(*) AS n FROM reading GROUP BY 1 HAVING count(*) > 0) q) z WHERE u > $1 ORDER BY 1`, []string{"02/05/2024", "-1 02:00"}},
		} {
			p.begin(t)
			run := step{execute: "s", params: of.params}
			steps := []step{{prepare: "s", sql: of.sql}, run}
			for _, set := range []string{"SET DateStyle = 'ISO, DMY'", "SET TimeZone = 'Asia/Tokyo'", "SET IntervalStyle = sql_standard", "SET TIME ZONE -9; SET DateStyle = 'ISO, MDY'"} {
				steps = append(steps, step{sql: set}, run)
			}
			for i, s := range steps {
				got, want := p.proxy.do(s), p.plain.do(s)
				if got.err != nil || want.err != nil || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
					t.Errorf("%s, step %d: %s\ngot  %v, %v\nwant %v, %v", engine, i, of.sql, got.rows, got.err, want.rows, want.err)
				}
			}
		}
	}
}

// TestPreparedKinds: parameters of declared types, and series whose ends are parameters.
func TestPreparedKinds(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, kinds(*seed), engine, func(*schema) {})
		for _, of := range []struct {
			sql, types string // empty: none is declared
			params     []string
			refused    bool
		}{
			{`SELECT count(*) FROM thing WHERE c5 = $1`, "bpchar", []string{"ab  "}, false},
			{`SELECT count(*) FROM thing WHERE c5 = $1`, "char(2)", []string{"abc  "}, false},
			{`SELECT count(*) FROM thing WHERE v = $1`, "character", []string{"ab "}, false},
			{`SELECT count(*) FROM thing WHERE t = $1`, "text", []string{"ab "}, false},
			{`SELECT count(*) FROM thing WHERE i4 = $1 AND c5 <> $2`, "int, pg_catalog.bpchar", []string{"5", "12"}, false},
			{`SELECT count(*) FROM thing WHERE c5 = ANY ($1)`, "bpchar[]", []string{`{"ab  ",x}`}, false},
			{`SELECT count(*) FROM thing WHERE v = ANY ($1)`, "char(2)[]", []string{`{"ab ",x}`}, false},
			{`SELECT count(*) FROM thing WHERE t <> ALL ($1)`, "pg_catalog.bpchar[]", []string{`{"ab ","12 3"}`}, false},
			{`SELECT count(*) FROM thing WHERE c5 = ANY ($1::text[])`, "bpchar[]", []string{`{"ab "}`}, true},
			{`SELECT count(*) FROM thing WHERE c5 = ANY ($1) AND i4 > $2`, "bpchar[], int", []string{`{"ab ",NULL}`, "1"}, false},
			{`SELECT count(*) FROM thing WHERE c5 = $1 OR c5 IN ($2, $3) OR c5 = ANY ($4)`, "", []string{"ab  ", "x ", "abc ", `{"12 "}`}, false},
			{`SELECT count(*) FROM thing WHERE coalesce(c5, $1) = $2 AND nullif(c5, $3) IS NOT NULL`, "", []string{"ab  ", "ab", "abc "}, false},
			{`SELECT count(*) FROM (SELECT lag(c3, 1, $1) OVER (PARTITION BY thing_id ORDER BY event_id) AS k FROM event) q WHERE k = $2`, "", []string{"x  ", "x "}, false},
			{`SELECT label FROM sort WHERE label = ANY ($1) OR code = ANY ($1) ORDER BY 1`, "bpchar[]", []string{`{"ab ","one"}`}, false},
			{`SELECT g FROM generate_series(timestamp '2024-01-01', $1, '1 day') g`, "", []string{"2024-01-03"}, false},
			{`SELECT g FROM generate_series(timestamp '2024-01-01', $1, $2) g`, "", []string{"2024-01-03", "12 hours"}, false},
			{`SELECT g FROM generate_series(date '2024-01-01', $1, '1 day') g`, "", []string{"2024-01-03"}, false},
			{`SELECT g FROM generate_series($1, timestamptz '2024-01-03 00:00+00', '1 day') g`, "", []string{"2024-01-01"}, false},
			{`SELECT g FROM generate_series($1, $2, interval '1 day') g`, "", []string{"2024-01-01", "2024-01-03"}, false},
			{`SELECT g FROM generate_series(1, $1, $2) g`, "", []string{"7", "3"}, false},
			{`SELECT g FROM generate_series(1.5, $1, 0.5) g`, "", []string{"3"}, engine == "duckdb"},
			{`SELECT g FROM generate_series(5000000000, $1) g`, "", []string{"5000000002"}, false},
			{`SELECT g, count(thing_id) FROM generate_series(1, $1) g LEFT JOIN thing ON i4 = g GROUP BY 1 ORDER BY 1`, "", []string{"4"}, false},
			{`SELECT g, count(thing_id) FROM generate_series(timestamp '2024-02-27', $1, '1 day') g LEFT JOIN thing ON d = g::date GROUP BY 1 ORDER BY 1`, "", []string{"2024-03-02"}, false},
			{`SELECT n > $1 AS a FROM (SELECT count(*) AS n FROM thing) q`, "numeric", []string{"NaN"}, engine == "duckdb"},
			{`SELECT count(*) FROM thing WHERE n < $1`, "numeric", []string{"NaN"}, true},
			{`SELECT count(*) FROM thing WHERE n < $1`, "numeric", []string{"-Infinity"}, true},
			{`SELECT count(*) FROM thing WHERE f < $1`, "double precision", []string{"NaN"}, false},
			{`SELECT count(*) FROM thing WHERE f IS DISTINCT FROM $1 AND f BETWEEN -1 AND $1`, "double precision", []string{"NaN"}, false},
			{`SELECT count(*) FROM thing WHERE f IS NOT DISTINCT FROM $1 OR f >= $1`, "double precision", []string{"NaN"}, false},
			{`SELECT count(*) FROM thing WHERE f IN ($1, 0.5) OR f > $2`, "double precision, double precision", []string{"NaN", "Infinity"}, false},
		} {
			p.begin(t)
			steps := []step{{prepare: "s", sql: of.sql}, {execute: "s", params: of.params}}
			if of.types != "" {
				args := "'" + strings.Join(of.params, "', '") + "'"
				steps = []step{{sql: "PREPARE s(" + of.types + ") AS " + of.sql}, {sql: "EXECUTE s(" + args + ")"}}
			}
			for i, s := range steps {
				got, want := p.proxy.do(s), p.plain.do(s)
				if of.refused && got.err != nil && strings.HasPrefix(got.err.Code, "DP") {
					break
				}
				if got.err != nil || want.err != nil || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
					t.Errorf("%s, step %d: %s\ngot  %v, %v\nwant %v, %v", engine, i, of.sql, got.rows, got.err, want.rows, want.err)
				}
			}
		}
	}
}
