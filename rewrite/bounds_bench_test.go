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

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// benchTables have one row a person, whom a constraint proves unique or not, and about five visits a person, of whom
// one in seventy has more than ten and nine in ten more than two.
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
	{"visits, at most 2 rows", "max_rows_per_unit: 2", `SELECT count(*) FROM visits`},
	{"visits, at most 2 rows", "max_rows_per_unit: 2", `SELECT ward, count(*) FROM visits GROUP BY ward`},
	{"visits, at most 2 groups of 2 rows", "max_groups_per_unit: 2\n        max_rows_per_group: 2", `SELECT ward, count(*) FROM visits GROUP BY ward`},
	{"visits, at most 2 groups of 2 rows", "max_groups_per_unit: 2\n        max_rows_per_group: 2", `SELECT ward, sum(minutes), count(*) FROM visits GROUP BY ward`},
}

// planned are the ways to run a statement: the analyst's own SQL, what is sent where a constraint proves the bound, and
// what is sent where not.
func planned(t *testing.T, p *policy.Policy, d dialect.Dialect, text string) (names, sqls []string, args [][]any) {
	t.Helper()
	m := measureOf(t, p, text)
	q := render(t, m, d)
	add := func(name, text string, given []any) {
		names, sqls, args = append(names, name), append(sqls, text), append(args, given)
	}
	add("her own SQL", strings.Replace(text, "FROM ", "FROM clinic.", 1), nil)
	if shorter := q.Proven(); len(shorter) > 0 && m.Table.MaxRowsPerUnit == 1 {
		add("a constraint proves it", shorter[0].SQL(), shorter[0].Args())
	}
	add("enforced", q.SQL(), q.Args())
	return names, sqls, args
}

// TestBenchBounds prints what bounding costs beside the same SQL without it: enforced by each query, and by a stored
// rank, as `dpproxy prepare` prints it and with more CHECKs. Whatever reads the same rows must answer the same.
func TestBenchBounds(t *testing.T) {
	rows := benchRows(t)
	for _, d := range []dialect.Dialect{dialect.DuckDB, dialect.PostgreSQL} {
		t.Run(d.String(), func(t *testing.T) {
			run, cpu := benchEngine(t, d, rows)
			for _, text := range map[dialect.Dialect][]string{
				dialect.PostgreSQL: {"CREATE INDEX ON clinic.visits (rank) INCLUDE (ward, minutes) WHERE rank > 10 OR rank IS NULL", "CREATE INDEX ON clinic.visits (rank) WHERE rank <= 2", "VACUUM ANALYZE clinic.visits"},
				dialect.DuckDB: {
					"CREATE TABLE clinic.visits_by_rank AS SELECT * REPLACE (CAST(rank AS INTEGER) AS rank) FROM clinic.visits ORDER BY rank",
					"CREATE TABLE clinic.visits_to_10 AS SELECT * FROM clinic.visits_by_rank WHERE rank <= 10 ORDER BY rank",
					"CREATE TABLE clinic.visits_to_2 AS SELECT * FROM clinic.visits_by_rank WHERE rank <= 2 ORDER BY rank",
				},
			}[d] {
				run(text, nil)
			}
			if d == dialect.DuckDB {
				reopened(run)
			}
			for _, c := range benchCases {
				t.Run(c.name+": "+c.text, func(t *testing.T) {
					benchBound(t, d, run, cpu, c.name, c.bounds, c.text, "visits")
					if d == dialect.DuckDB && strings.HasPrefix(c.bounds, "max_rows") && strings.Contains(c.text, "visits") {
						benchBound(t, d, run, cpu, c.name+", written `ORDER BY rank`", c.bounds, c.text, "visits_by_rank")
						benchBound(t, d, run, cpu, c.name+", those alone, as prepare writes them", c.bounds, c.text, "visits_to_"+strings.TrimPrefix(c.bounds, "max_rows_per_unit: "))
					}
				})
			}
		})
	}
}

// reopened attaches a DuckDB file anew, as a served one is: of a table that was written since it was attached DuckDB
// does not know what it knows of one that it found.
func reopened(run func(text string, args []any) string) {
	file := strings.Trim(run("SELECT path FROM duckdb_databases() WHERE database_name = 'private'", nil), "[]")
	for _, text := range []string{"CHECKPOINT private", "USE bench", "DETACH private", "ATTACH '" + file + "' AS private (READ_ONLY)", "USE private"} {
		run(text, nil)
	}
}

// countedAlone is a policy under which a condition is counted as it is, and not with what lies around it (ADR 26).
func countedAlone(t *testing.T, text string, d dialect.Dialect) *policy.Policy {
	p := parsedFor(t, text, d)
	p.Datasets[0].Buying.Cells = 0
	return p
}

// ranked are the texts that a stored rank gives, by what the table has: the last is not of the rows as they are, of
// which some are beyond the bound.
func ranked(t *testing.T, d dialect.Dialect, of, text string) (names, sqls []string, args [][]any) {
	t.Helper()
	q := render(t, measureOf(t, countedAlone(t, of, d), text), d)
	names, sqls, args = []string{"a rank"}, []string{q.SQL()}, [][]any{q.Args()}
	for _, s := range slices.Backward(q.Proven()) {
		name := "and CHECKs"
		switch {
		case s.Ranks[0].Within:
			name = "and none beyond, by a CHECK"
		case s.Ranks[0].Beyond && strings.Contains(of, "max_rows_per_unit: 2\n"):
			continue // most rows are beyond: the index has those within instead
		case s.Ranks[0].Beyond:
			name = "and an index of the rows beyond"
		}
		names, sqls, args = append(names, name), append(sqls, s.SQL()), append(args, s.Args())
	}
	return names, sqls, args
}

// benchBound prints the processor time of each plan, by turns: of one run where rows are numbered, which takes seconds,
// and else the median of nine, or of ninety-nine where one takes a few milliseconds.
func benchBound(t *testing.T, d dialect.Dialect, run func(text string, args []any) string, cpu func() float64, title, bounds, text, visits string) {
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	of := head + "datasets:" + strings.Replace(benchColumns, "clinic.visits", "clinic."+visits, 1)
	names, sqls, args := planned(t, countedAlone(t, strings.Replace(of, "BOUNDS", bounds, 1), d), d, text)
	alone := strings.HasPrefix(visits, "visits_to_")
	if !alone { // of which her own table has more
		sqls[0] = strings.Replace(sqls[0], "clinic.visits", "clinic."+visits, 1)
	}
	enforced := len(names) - 1
	if visits != "visits" { // the order in which rows are stored does not matter to those that number them
		names, sqls, args = names[:enforced], sqls[:enforced], args[:enforced]
	}
	if strings.Contains(text, "visits") && strings.HasPrefix(bounds, "max_rows") {
		more, texts, given := ranked(t, d, strings.Replace(of, "BOUNDS", bounds+"\n        row_rank: rank", 1), text)
		names, sqls, args = append(names, more...), append(sqls, texts...), append(args, given...)
	}
	works, answers := make([][]float64, len(names)), make([]string, len(names))
	rounds := 9
	for round := 0; round < rounds; round++ {
		for i, text := range sqls {
			if names[i] == "enforced" && round > 0 {
				continue
			}
			before := cpu()
			answers[i] = run(text, args[i])
			works[i] = append(works[i], cpu()-before)
		}
		if round == 8 && d == dialect.DuckDB && slices.Max(works[0]) < 10 { // by which what else the process does would show
			rounds = 99
		}
	}
	own := 0.0
	for i, name := range names {
		slices.Sort(works[i])
		median := max(works[i][len(works[i])/2], 0.01)
		if i == 0 {
			own = median
		}
		figures.Row(benchRows(t)+" rows, processor time", d.String()+", "+title+": `"+text+"`", name, fmt.Sprintf("%s ms (%.2f ×)", figures.Number(median), median/own))
		if before := slices.Index(names, "a rank"); before >= 0 && i > before && (alone || !strings.HasPrefix(name, "and none")) && answers[i] != answers[before] {
			t.Errorf("%s, %s: %s answers %s, must be %s", text, name, sqls[i], answers[i], answers[before])
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

// benchEngine fills a database and returns how to run a query in it, whose answer is its rows' text, sorted, and how
// many milliseconds its processors have worked.
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
