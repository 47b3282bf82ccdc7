package rewrite_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// benchTables have one row a person, whom a constraint proves unique or not, and about five visits a person, of whom one in
// seventy has more than ten and nine in ten more than two.
const benchTables = `CREATE SCHEMA clinic;
CREATE TABLE clinic.people AS SELECT i AS person_id, CASE WHEN HASH(i) % 2 = 0 THEN 'f' ELSE 'm' END AS sex, HASH(i + 7) % 100 AS age FROM SERIES(ROWS);
CREATE TABLE clinic.visits AS SELECT v.*, row_number() OVER (PARTITION BY who ORDER BY visit) AS rank FROM (SELECT i AS visit, (HASH(i) * (HASH(i + 1) % 1000) / 1000) % (ROWS / 5) AS who, substr('ABCD', (1 + HASH(i + 2) % 4)::int, 1) AS ward, HASH(i + 3) % 60 AS minutes FROM SERIES(ROWS)) AS v`

const benchColumns = `
  - id: clinic
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: bigint, domain: {min: 0, max: 119, step: 1}}
      - name: visits
        source: clinic.visits
        unit: visits.who = people.person_id
        BOUNDS
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: bigint, domain: {min: 0, max: 59, step: 1}}
`

var benchCases = []struct{ name, bounds, text string }{
	{"people, at most 1 row", "max_rows_per_unit: 10", `SELECT count(*) FROM people`},
	{"people, at most 1 row", "max_rows_per_unit: 10", `SELECT count(*) FROM people WHERE age > 40`},
	{"people, at most 1 row", "max_rows_per_unit: 10", `SELECT sex, count(*) FROM people GROUP BY sex`},
	{"visits, at most 10 rows", "max_rows_per_unit: 10", `SELECT count(*) FROM visits`},
	{"visits, at most 10 rows", "max_rows_per_unit: 10", `SELECT count(*) FROM visits WHERE minutes > 20`},
	{"visits, at most 10 rows", "max_rows_per_unit: 10", `SELECT ward, count(*) FROM visits GROUP BY ward`},
	{"visits, at most 2 rows", "max_rows_per_unit: 2", `SELECT ward, count(*) FROM visits GROUP BY ward`},
	{"visits, at most 2 groups of 2 rows", "max_groups_per_unit: 2\n        max_rows_per_group: 2", `SELECT ward, count(*) FROM visits GROUP BY ward`},
	{"visits, at most 2 groups of 2 rows", "max_groups_per_unit: 2\n        max_rows_per_group: 2", `SELECT ward, sum(minutes), count(*) FROM visits GROUP BY ward`},
}

// planned are the ways to run a statement: the analyst's own SQL, what is sent where a constraint proves the bound, what is
// sent where not, and the plans that were weighed against it. Where they bound alike they must answer alike.
func planned(t *testing.T, p *policy.Policy, d dialect.Dialect, text string) (names, sqls []string, args [][]any) {
	t.Helper()
	m := measureOf(t, p, text)
	q, err := rewrite.Render(m, d)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(text, "FROM ", "FROM clinic.", 1)
	add := func(name, text string, given []any) {
		names, sqls, args = append(names, name), append(sqls, text), append(args, given)
	}
	add("own", own, nil)
	if shorter := q.Proven(); len(shorter) > 0 && m.Table.MaxRowsPerUnit == 1 {
		add("proven", shorter[0].SQL(), shorter[0].Args())
	}
	if strings.Contains(q.SQL(), "LEAST(s.k") && len(m.Grain) == 0 {
		add("enforced: least", q.SQL(), q.Args())
		m.Counters = append(m.Counters, predicate.Never{}) // which has the rows numbered
		if q, err = rewrite.Render(m, d); err != nil {
			t.Fatal(err)
		}
		add("numbered", q.SQL(), q.Args())
	} else {
		add("enforced", q.SQL(), q.Args())
	}
	if united := unitedPlan(q.SQL()); united != "" {
		add("numbered where exceeded", united, q.Args())
	}
	return names, sqls, args
}

var numbering = regexp.MustCompile(`(?s)^(.*?FROM )\(SELECT (\S*row_number\(\) OVER \(.*?\) AS r), (.*?)\n  FROM (.*) AS b\) AS s\nWHERE s\.r <= (\d+)(.*)$`)

// unitedPlan numbers the rows of those units alone that have too many.
func unitedPlan(sql string) string {
	m := numbering.FindStringSubmatch(sql)
	if m == nil {
		return ""
	}
	head, number, items, base, most, tail := m[1], m[2], m[3], m[4], m[5], m[6]
	all := strings.ReplaceAll(items, "b.", "x.")
	return "WITH o AS MATERIALIZED (SELECT b.u FROM " + base + " AS b GROUP BY b.u HAVING count(*) > " + most + ")\n" + head +
		"(SELECT " + items + " FROM " + base + " AS b LEFT JOIN o ON o.u = b.u WHERE o.u IS NULL UNION ALL SELECT " + all + " FROM (SELECT " + number + ", " + items +
		" FROM " + base + " AS b JOIN o ON o.u = b.u) AS x WHERE x.r <= " + most + ") AS s\nWHERE true" + tail
}

// TestBenchBounds prints what bounding costs beside the same SQL without it; it asserts only that plans agree.
func TestBenchBounds(t *testing.T) {
	rows := benchRows(t)
	for _, d := range []dialect.Dialect{dialect.DuckDB, dialect.PostgreSQL} {
		t.Run(d.String(), func(t *testing.T) {
			run, _ := benchEngine(t, d, rows)
			for _, c := range benchCases {
				t.Run(c.name+": "+c.text, func(t *testing.T) { benchBound(t, d, run, c.name, c.bounds, c.text) })
			}
		})
	}
}

// benchBound prints the medians of three runs of each plan, by turns.
func benchBound(t *testing.T, d dialect.Dialect, run func(text string, args []any) string, title, bounds, text string) {
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	p, err := policy.Parse([]byte(head+"datasets:"+strings.Replace(benchColumns, "BOUNDS", bounds, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names, sqls, args := planned(t, p, d, text)
	if strings.Contains(text, "visits") && strings.HasPrefix(bounds, "max_rows") {
		q, err := rewrite.Render(measureOf(t, parsedFor(t, strings.Replace(head+"datasets:"+benchColumns, "BOUNDS", bounds+"\n        row_rank: rank", 1), d), text), d)
		if err != nil {
			t.Fatal(err)
		}
		names, sqls, args = append(names, "stored rank"), append(sqls, q.SQL()), append(args, q.Args())
		for _, s := range q.Proven() {
			names, sqls, args = append(names, map[bool]string{true: "within the bound", false: "with CHECKs"}[s.Ranks[0].Within]), append(sqls, s.SQL()), append(args, s.Args())
		}
	}
	times, answers := make([][]float64, len(names)), make([]string, len(names))
	for range 3 {
		for i, text := range sqls {
			start := time.Now()
			answers[i] = run(text, args[i])
			times[i] = append(times[i], float64(time.Since(start).Microseconds())/1000)
		}
	}
	first := 0.0
	for i, name := range names {
		slices.Sort(times[i])
		if i == 0 {
			first = times[i][1]
		}
		column, how, told := strings.Cut(name, ": ")
		if told {
			how += ": "
		}
		figures.Row(benchRows(t)+" rows, "+d.String(), title+": `"+text+"`", column, fmt.Sprintf("%s%s ms (%.1f ×)", how, figures.Number(times[i][1]), times[i][1]/first))
		if strings.HasPrefix(name, "numbered where") && answers[i] != answers[i-1] {
			t.Errorf("%s: %s answers %s, must be %s", text, name, answers[i], answers[i-1])
		}
	}
}

// benchRows is the number of rows to measure with.
func benchRows(t *testing.T) string {
	t.Helper()
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("a benchmark: make bench-bounds")
	}
	return cmp.Or(os.Getenv("DPPROXY_BENCH_ROWS"), "10000000")
}

// benchEngine fills a database and returns how to run a query in it, whose answer is its rows' text, sorted, and how many
// milliseconds its processors have worked.
func benchEngine(t *testing.T, d dialect.Dialect, rows string) (func(text string, args []any) string, func() float64) {
	t.Helper()
	script := strings.NewReplacer("ROWS", rows)
	if d == dialect.DuckDB {
		db, err := sql.Open("duckdb", t.TempDir()+"/bench.duckdb")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1)
		fill := script.Replace(strings.NewReplacer("HASH(", "HASHED(", "SERIES(", "range(", " i ", " range AS i ", "/ 1000", "// 1000", "/ 5", "// 5").Replace(benchTables))
		fill = regexp.MustCompile(`FROM range\((\d+)\)`).ReplaceAllString(fill, "FROM (SELECT range AS i FROM range($1))")
		fill = strings.ReplaceAll(strings.ReplaceAll(fill, "SELECT range AS i AS", "SELECT i AS"), "HASHED(", "h(")
		for _, s := range append([]string{"ATTACH '" + t.TempDir() + "/private.duckdb' AS private", "USE private", "CREATE TEMP MACRO h(x) AS (hash(x) >> 33)::bigint"}, strings.Split(fill, ";")...) {
			if _, err := db.Exec(s); err != nil {
				t.Fatalf("%v\n%s", err, s)
			}
		}
		return func(text string, args []any) string { return duckLines(t, db, text, args) }, worked
	}
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=2GB", "synchronous_commit=off")
	name := server.Database(t)
	fill := script.Replace(strings.NewReplacer("SERIES(", "generate_series(1, ", "FROM generate", "FROM generate").Replace(benchTables))
	fill = strings.ReplaceAll(regexp.MustCompile(`generate_series\(1, (\d+)\)`).ReplaceAllString(fill, "generate_series(1::bigint, $1) AS s(i)"), "HASH(", "h(")
	server.Exec(t, name, append([]string{"CREATE FUNCTION h(x bigint) RETURNS bigint LANGUAGE sql AS 'SELECT (hashint8extended(x, 0) >> 33) + 2147483648'"}, append(strings.Split(fill, ";"), "VACUUM ANALYZE")...)...)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URLFor("postgres", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	return func(text string, args []any) string {
		rows, err := conn.Query(ctx, text, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			values, err := row.Values()
			return fmt.Sprint(values), err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(lines)
		return strings.Join(lines, "; ")
	}, func() float64 { return workedBy(t, conn.PgConn().PID()) }
}

func duckLines(t *testing.T, db *sql.DB, text string, args []any) string {
	rows, err := db.Query(text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(values))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
