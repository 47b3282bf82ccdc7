package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestMain lets the heap of plans and texts grow: its collector took a fifth of the time, and no test measures memory.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(sparktest.Main(pgtest.Main(m)))
}

// engine runs a query and returns its rows of integers.
type engine func(t *testing.T, text string, args []any) [][]int64

// TestEnginesAgreeWithTheTwin runs every golden query on the same generated rows in both databases, and checks that
// both count what the twin counts.
func TestEnginesAgreeWithTheTwin(t *testing.T) {
	t.Parallel()
	const seed = 20240611
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	_, visits, people := tables(t)
	peopleRows, visitsRows := generate(r, people, 1500, 900), generate(r, visits, 900, 150)
	fill := func(duck bool) []string {
		list := []string{"CREATE SCHEMA clinic"}
		list = append(list, schemaSQL(people, "person_id", peopleSpecs, peopleRows, duck)...)
		return append(list, schemaSQL(visits, "person_id", visitsSpecs, visitsRows, duck)...)
	}
	duck := duckDB(t, fill(true))
	engines := map[dialect.Dialect]engine{dialect.DuckDB: duckQueries(duck)}
	list, known := append(withRandom(t), otherOrders(t)...), byGo{}
	compareAll := func(t *testing.T, d dialect.Dialect) {
		compareThese(t, list, d, engines[d], peopleRows, visitsRows, known)
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		conn := postgresConn(t, fill(false))
		engines[dialect.PostgreSQL] = postgresQueries(conn)
		compareAll(t, dialect.PostgreSQL)
		engines[dialect.Snapshot] = duckQueries(snapshotOf(t, dialect.PostgreSQL, postgresRows(conn), tablesOf(list)...))
		t.Run("snapshot", func(t *testing.T) { compareAll(t, dialect.Snapshot) })
	})
	t.Run("snapshot of DuckDB", func(t *testing.T) {
		engines[dialect.Snapshot] = duckQueries(snapshotOf(t, dialect.DuckDB, duckRows(duck), tablesOf(list)...))
		some := list[:threats.ByNight(len(list)/2, len(list))]
		compareThese(t, some, dialect.Snapshot, engines[dialect.Snapshot], peopleRows, visitsRows, known)
	})
	t.Run("DuckDB", func(t *testing.T) { compareAll(t, dialect.DuckDB) })
	threats.Reached(t, "T50", "%d measures on %d engines count what Go counts: expressions are evaluated in Go alone", len(list), len(engines))
}

// withRandom adds measures with random predicates, grains and counters to the golden ones.
func withRandom(t *testing.T) []feature {
	list := features(t)
	people, visits, rows := tables(t)
	const seed = 77
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range stattest.Length(24, 60) {
		table := []*policy.Table{people, visits, rows}[i%3]
		m := &plans.Measure{Table: table, Where: randomPred(r, table, 3), Counters: []predicate.Pred{nil, randomPred(r, table, 2)}}
		for _, at := range r.Perm(len(table.Columns))[:r.IntN(3)] {
			m.Grain = append(m.Grain, table.Columns[at])
		}
		if i%4 != 0 {
			m.Cuts = randomCuts(r, m.Grain)
		}
		list = append(list, feature{fmt.Sprintf("random_%d", i), m})
	}
	return append(list, randomSums(t, r, stattest.Length(40, 150))...)
}

// randomCuts cuts the ordered columns of a grain into pieces: a few of any lengths, many of one, or runs of such.
func randomCuts(r *rand.Rand, grain []*policy.Column) [][]int {
	cuts := make([][]int, len(grain))
	for i, c := range grain {
		d := c.Domain
		if !d.Ordered() || c.Open != nil || d.Regular < 4 {
			continue
		}
		cuts[i] = []int{0}
		switch r.IntN(3) {
		case 0:
			for at := 1 + r.IntN(2); at < d.Regular; {
				for length := 1 + r.IntN(1+d.Regular/150); at < d.Regular && r.IntN(40) > 0; at += length {
					cuts[i] = append(cuts[i], at)
				}
			}
		case 1:
			for length, at := 1+r.IntN(1+d.Regular/80), 1+r.IntN(2); at < d.Regular; at += length {
				cuts[i] = append(cuts[i], at)
			}
		default:
			for at := 1 + r.IntN(d.Regular); at < d.Regular; at += 1 + r.IntN(1+d.Regular/3) {
				cuts[i] = append(cuts[i], at)
			}
		}
		if d.Null >= 0 {
			cuts[i] = append(cuts[i], d.Null)
		}
	}
	return cuts
}

// byGo is what the twin has counted of measures, over one set of rows.
type byGo map[*plans.Measure]map[string][]int64

// compareThese counts each measure once for all engines that are given the same known.
func compareThese(t *testing.T, list []feature, d dialect.Dialect, ask engine, peopleRows, visitsRows []stored, known byGo) {
	for _, f := range list {
		t.Run(f.name, func(t *testing.T) {
			rows := peopleRows
			if f.measure.Table.Name == "visits" {
				rows = visitsRows
			}
			want := known[f.measure]
			if want == nil {
				want = twin(t, f.measure, rows)
				known[f.measure] = want
			}
			q, err := rewrite.Render(f.measure, d)
			if err != nil {
				t.Fatal(err)
			}
			if q.TooLong() { // which no engine is asked
				return
			}
			got := map[string][]int64{}
			for _, row := range ask(t, q.SQL(), q.Args()) {
				key := strings.Trim(strings.ReplaceAll(fmt.Sprint(row[:q.Grain()]), " ", ","), "[]")
				if got[key] != nil {
					t.Fatalf("cells %s occur twice", key)
				}
				got[key] = row[q.Grain():]
			}
			for _, answer := range []map[string][]int64{got, want} { // cells that do not come count 0
				maps.DeleteFunc(answer, func(_ string, counts []int64) bool {
					return q.Grain() > 0 && !slices.ContainsFunc(counts, func(n int64) bool { return n != 0 })
				})
			}
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s", difference(got, want))
			}
		})
	}
}

// tablesOf are the tables that measures read, each meaning once.
func tablesOf(list []feature) (tables []*policy.Table) {
	seen := map[string]bool{}
	for _, f := range list {
		for _, t := range f.measure.Table.Base() {
			if e, err := rewrite.Extract(t, dialect.DuckDB); err == nil && !seen[e.Name] {
				tables, seen[e.Name] = append(tables, t), true
			}
		}
	}
	return tables
}

func difference(got, want map[string][]int64) string {
	var lines []string
	for key, n := range want {
		if !slices.Equal(got[key], n) {
			lines = append(lines, fmt.Sprintf("cells %s: got %v, the twin counts %v", key, got[key], n))
		}
	}
	for key, n := range got {
		if want[key] == nil {
			lines = append(lines, fmt.Sprintf("cells %s: got %v, the twin has none", key, n))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines[:min(len(lines), 12)], "\n")
}

func duckEngine(t *testing.T, statements []string) engine {
	return duckQueries(duckDB(t, statements))
}

// duckDB is a database whose private tables lie in a catalog of their own.
func duckDB(t *testing.T, statements []string) *sql.DB {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	// Some hundred rows are one thread's work: others would only be woken.
	for _, s := range append([]string{"SET threads = 1", "SET TimeZone='America/New_York'", "ATTACH ':memory:' AS private", "USE private"}, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%v\n%.300s", err, s)
		}
	}
	return db
}

func duckQueries(db *sql.DB) engine {
	return func(t *testing.T, text string, args []any) [][]int64 {
		rows, err := db.Query(text, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		names, _ := rows.Columns()
		var list [][]int64
		for rows.Next() {
			row := make([]int64, len(names))
			into := make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			list = append(list, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
}

func postgresEngine(t *testing.T, statements []string) engine {
	return postgresQueries(postgresConn(t, statements))
}

func postgresConn(t *testing.T, statements []string) *pgx.Conn {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, statements...)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	for _, s := range []string{"SET timezone = 'America/New_York'", "SET search_path = ''", "SET datestyle = 'German'"} {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func postgresQueries(conn *pgx.Conn) engine {
	ctx := context.Background()
	return func(t *testing.T, text string, args []any) [][]int64 {
		rows, err := conn.Query(ctx, text, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]int64, error) {
			numbers := make([]int64, len(row.FieldDescriptions()))
			into := make([]any, len(numbers))
			for i := range numbers {
				into[i] = &numbers[i]
			}
			return numbers, row.Scan(into...)
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
}
