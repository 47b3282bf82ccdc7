package rewrite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// totalsTables are orders of 1,000,000 persons, 5.47 of each in the mean and up to 1,000, in no order, without
// constraints or indexes; a person of the people is unique by a constraint.
var totalsTables = []string{
	"CREATE TABLE people (person int8 PRIMARY KEY, city text NOT NULL)",
	"INSERT INTO people SELECT g, 'c' || g % 12 FROM generate_series(1, 1000000) g",
	"CREATE TABLE orders (person int8, kind text, channel int4, amount numeric(12,2))",
	"SELECT setseed(0.5)",
	`INSERT INTO orders SELECT p, 'k' || (floor(random() ^ 2 * 8))::int, (random() * 5)::int,
		least(100000, round((10 * random() ^ (-0.6))::numeric, 2))
		FROM (SELECT p, generate_series(1, least(1000, ceil(1.9 * random() ^ (-0.62)))::int)
			FROM generate_series(1, 1000000) p) s ORDER BY random()`,
	"VACUUM ANALYZE people", "VACUUM ANALYZE orders",
}

const totalsPolicy = `
  - id: shop
    unit: {name: person, key: people.person}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: public.people
        max_rows_per_unit: 1
        columns:
          - {name: city, type: text, domain: {values: [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11]}}
      - name: orders
        source: public.orders
        unit: orders.person = people.person
        max_rows_per_unit: 1000
        columns:
          - {name: kind, type: text, domain: {values: [k0, k1, k2, k3, k4, k5, k6, k7]}}
          - {name: channel, type: integer, domain: {min: 0, max: 5, step: 1}}
          - {name: amount, type: "numeric(12,2)", domain: {min: 0, max: 100000, step: 100}}
`

// duckTotals are the same tables for DuckDB.
var duckTotals = []string{
	"SET threads = 2", "CREATE SCHEMA public", "USE private.public",
	"CREATE TABLE people AS SELECT g AS person, 'c' || g % 12 AS city FROM range(1, 1000001) r(g)",
	"SELECT setseed(0.5)",
	`CREATE TABLE orders AS SELECT p AS person, 'k' || floor(random() ** 2 * 8)::int AS kind,
		(random() * 5)::int AS channel, least(100000, (10 * random() ** (-0.6))::numeric(12,2)) AS amount
		FROM (SELECT p, unnest(range(least(1000, ceil(1.9 * random() ** (-0.62))::int)))
			FROM range(1, 1000001) r(p)) s ORDER BY random()`,
}

// TestBenchTotals prints what statements take that are asked of units' totals, beside the analyst's own SQL, by turns,
// and beside the grouping by unit alone, which no form of them does without: medians of three. On PostgreSQL with two
// sizes of work_mem, then with an index on the unit; on DuckDB.
func TestBenchTotals(t *testing.T) {
	benchRows(t)
	// What dpproxy sets in each transaction, and of memory what PostgreSQL's users have, or more.
	server := pgtest.Start(t, "shared_buffers=1GB", "max_wal_size=8GB", "jit=off", "enable_parallel_hash=off")
	name := server.Database(t)
	server.Exec(t, name, totalsTables...)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URLFor("postgres", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	postgres := func(text string, args ...any) {
		rows, err := conn.Query(ctx, text, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Close(); rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	for _, with := range [][]string{{"work_mem 4MB", "SET work_mem = '4MB'"},
		{"work_mem 64MB", "SET work_mem = '64MB'"},
		{"an index on the unit", "CREATE INDEX ON orders (person)", "VACUUM ANALYZE orders"}} {
		for _, setting := range with[1:] {
			postgres(setting)
		}
		benchTotals(t, "PostgreSQL, "+with[0], dialect.PostgreSQL, postgres)
	}
	duck := duckDB(t, duckTotals)
	benchTotals(t, "DuckDB", dialect.DuckDB, func(text string, args ...any) {
		rows, err := duck.Query(text, args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

func benchTotals(t *testing.T, engine string, d dialect.Dialect, ask func(text string, args ...any)) {
	milliseconds := func(text string, args ...any) float64 {
		begun := time.Now()
		ask(text, args...)
		return float64(time.Since(begun).Microseconds()) / 1000
	}
	for _, c := range [][2]string{
		{`SELECT count(*) FROM orders`, `SELECT count(*) FROM orders GROUP BY person`},
		{`SELECT count(*) FROM orders WHERE amount > 20`,
			`SELECT count(*) FROM orders WHERE amount > 20 GROUP BY person`},
		{`SELECT kind, count(*) FROM orders GROUP BY kind`,
			`SELECT kind, count(*) FROM orders GROUP BY person, kind`},
		{`SELECT kind, channel, count(*) FROM orders GROUP BY kind, channel`,
			`SELECT kind, channel, count(*) FROM orders GROUP BY person, kind, channel`},
		{`SELECT sum(amount) FROM orders`, `SELECT sum(amount) FROM orders GROUP BY person`},
		{`SELECT p.city, sum(o.amount) FROM orders o JOIN people p ON p.person = o.person GROUP BY p.city`,
			`SELECT p.city, sum(o.amount) FROM orders o JOIN people p ON p.person = o.person
				GROUP BY o.person, p.city`},
	} {
		q := laddered(t, c[0], d)
		var times [3][]float64
		for range 3 {
			times[0] = append(times[0], milliseconds(c[0]))
			times[1] = append(times[1], milliseconds("SELECT count(*) FROM ("+c[1]+") t"))
			times[2] = append(times[2], milliseconds(q.SQL(), q.Args()...))
		}
		for i := range times {
			slices.Sort(times[i])
		}
		figures.Row("units' totals on "+engine, "`"+c[0]+"`", "her own, grouped by unit, ours",
			fmt.Sprintf("%s, %s, %s ms: %.1f × (%.1f ×)", figures.Number(times[0][1]), figures.Number(times[1][1]),
				figures.Number(times[2][1]), times[2][1]/times[0][1], times[2][1]/times[1][1]))
	}
}

// laddered is the query of a statement about units' totals.
func laddered(t *testing.T, text string, d dialect.Dialect) rewrite.Query {
	t.Helper()
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	p := parsedFor(t, head+"datasets:"+totalsPolicy, d)
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	parsed, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(parsed[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice",
		Now: time.Unix(0, 0), Public: publicRows{}, Settings: plans.Settings{Epsilon: privacy.MicroEpsilon(100_000),
			Confidence: confidence, Zone: time.UTC, Contribution: plans.Contribution{Ladder: true}}})
	if refusal != nil {
		t.Fatal(refusal)
	}
	return render(t, plan.Measures[0], d)
}
