package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

var groupPolicy = policytest.Over("duckdb:warehouse.duckdb") + `
  - id: clinic
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns: [{name: sex, type: text, domain: {values: [f, m]}}]
      - name: visits
        source: clinic.visits
        unit: visits.who = people.person_id
        BOUNDS
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: integer, domain: {min: -5, max: 9, step: 1}}
          - {name: day, type: date, domain: {min: 2025-01-01, max: 2025-03-31, step: 1 day}}
          - {name: visit, type: integer, keys: join}
`

// groupStatements are counted and summed in groups of one column's cells, of classes of them, of cells of several
// columns, with conditions that the database tests and conditions that only the cells decide, and within derived
// tables.
var groupStatements = []string{
	`SELECT ward, count(*) FROM visits GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE minutes > 1 GROUP BY 1`,
	`SELECT extract(month FROM day), count(*) FROM visits GROUP BY 1`,
	`SELECT ward, extract(month FROM day), count(*) FROM visits GROUP BY 1, 2`,
	`SELECT ward || (minutes % 3)::text, count(*) FROM visits WHERE abs(minutes) <> 2 GROUP BY 1`,
	`SELECT minutes > 3, count(*) FROM visits WHERE ward <> 'B' OR minutes > 5 GROUP BY 1`,
	`SELECT ward, count(*), count(*) FILTER (WHERE minutes % 2 = 0) FROM visits GROUP BY 1`,
	`SELECT ward, sum(minutes), count(*) FROM visits GROUP BY 1`,
	`SELECT extract(month FROM day), sum(minutes), count(*) FROM visits WHERE ward IN ('A', 'C') GROUP BY 1`,
	`SELECT ward, sum(minutes * minutes), count(*) FROM visits GROUP BY 1`,
	`SELECT count(*) FROM visits`,
	`SELECT count(*), sum(minutes) FROM visits WHERE minutes % 4 <> 1`,
	`SELECT sex, ward, count(*) FROM people JOIN visits ON person_id = who GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM (SELECT DISTINCT who, ward FROM visits) v GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY 1) v GROUP BY 1`,
}

func groupsOf(t testing.TB, bounds string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(strings.Replace(groupPolicy, "BOUNDS", bounds, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func measureOf(t testing.TB, p *policy.Policy, text string) *plans.Measure {
	t.Helper()
	return measuresOf(t, p, text)[0]
}

// measuresOf are the measures of a statement that she asks for the first time.
func measuresOf(t testing.TB, p *policy.Policy, text string) []*plans.Measure {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0),
		Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatalf("%s: %s: %s", text, refusal.ID, refusal.Message)
	}
	return plan.Measures
}

// visitRow is one visit: who, and the rest.
type visitRow struct {
	who  int
	text string
}

func randomVisits(r *rand.Rand, units, most int) []visitRow {
	var rows []visitRow
	for who := range units {
		far := r.IntN(2) == 0 // all of her rows move a sum as far as a row can
		for range r.IntN(most + 1) {
			minutes := fmt.Sprint(r.IntN(17) - 6)
			switch {
			case far:
				minutes = "9"
			case r.IntN(6) == 0:
				minutes = "NULL"
			}
			rows = append(rows, visitRow{who, fmt.Sprintf("(%d, %d, '%s', %s, DATE '2025-0%d-%02d')", r.IntN(1000), who, string("ABCDE"[r.IntN(5)]), minutes, 1+r.IntN(3), 1+r.IntN(28))})
		}
	}
	return rows
}

// visitDatabase holds the visits: store runs statements, run a measure's SQL.
type visitDatabase struct {
	store func(t *testing.T, statements ...string)
	run   engine
}

func (d visitDatabase) fill(t *testing.T, rows []visitRow) {
	t.Helper()
	d.store(t, "DELETE FROM clinic.visits")
	var values []string
	for _, r := range rows {
		values = append(values, r.text)
	}
	if len(values) > 0 {
		d.store(t, "INSERT INTO clinic.visits VALUES "+strings.Join(values, ", "))
	}
}

const visitTables = "CREATE SCHEMA clinic; CREATE TABLE clinic.people (person_id int, sex text); CREATE TABLE clinic.visits (visit int, who int, ward text, minutes int, day date);" +
	"INSERT INTO clinic.people VALUES (0, 'f'), (1, 'm'), (2, 'f'), (3, NULL), (4, 'm')"

func groupDatabases(t *testing.T) map[dialect.Dialect]func(t *testing.T) visitDatabase {
	return map[dialect.Dialect]func(t *testing.T) visitDatabase{
		dialect.DuckDB: func(t *testing.T) visitDatabase {
			db, err := sql.Open("duckdb", "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			db.SetMaxOpenConns(1)
			store := func(t *testing.T, statements ...string) {
				for _, s := range statements {
					if _, err := db.Exec(s); err != nil {
						t.Fatal(err)
					}
				}
			}
			store(t, "ATTACH ':memory:' AS private", "USE private", "SET threads = 1", visitTables)
			return visitDatabase{store, duckQueries(db)}
		},
		dialect.PostgreSQL: func(t *testing.T) visitDatabase {
			server := pgtest.Shared(t)
			name := server.Database(t)
			server.Exec(t, name, strings.Split(visitTables, ";")...)
			ctx := context.Background()
			conn, err := pgx.Connect(ctx, server.URLFor("postgres", name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close(ctx) })
			store := func(t *testing.T, statements ...string) {
				for _, s := range statements {
					if _, err := conn.Exec(ctx, s); err != nil {
						t.Fatal(err)
					}
				}
			}
			return visitDatabase{store, postgresQueries(conn)}
		},
	}
}

// cellsOf runs a measure's SQL and adds the groups up as a release does.
func cellsOf(t *testing.T, m *plans.Measure, d dialect.Dialect, run engine) []int64 {
	t.Helper()
	q, err := rewrite.Render(m, d)
	if err != nil {
		t.Fatal(err)
	}
	cells := make([]int64, m.Spec.Cells*m.Spec.Counters)
	for _, row := range run(t, q.SQL(), q.Args()) {
		at := make([]int32, q.Grain())
		for i := range at {
			at[i] = int32(row[i])
		}
		for c := range q.Counters() {
			if cell := m.Place(at, c); cell >= 0 {
				n := row[q.Grain()+c]
				if m.Weigh != nil {
					n *= m.Weigh(at, c)
				}
				cells[c*m.Spec.Cells+cell] += n
			}
		}
	}
	return cells
}

// farthest is how much further than its sensitivity a measure has moved, at most, in L1 and in squared L2: 1 is as far.
type farthest struct{ l1, l2 float64 }

func (f *farthest) add(a, b []int64, s privacy.Sensitivity) {
	l1, l2 := int64(0), int64(0)
	for i := range a {
		d := a[i] - b[i]
		l1, l2 = l1+max(d, -d), l2+d*d
	}
	f.l1, f.l2 = max(f.l1, float64(l1)/float64(s.L1)), max(f.l2, float64(l2)/float64(s.L2Squared))
}

// moved compares random databases with those that lack one unit's rows, in each statement.
func moved(t *testing.T, open func(t *testing.T) visitDatabase, d dialect.Dialect, trials, most int, run, claimed *policy.Policy) map[string]*farthest {
	const seed = 31
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 7))
	db := open(t)
	out := map[string]*farthest{}
	measures, claims := map[string]*plans.Measure{}, map[string]privacy.Sensitivity{}
	for _, text := range groupStatements {
		out[text], measures[text] = &farthest{}, measureOf(t, run, text)
		m := measureOf(t, claimed, text)
		claims[text] = m.Spec.Sensitivity(m.Table.ContributionTo(m.Spec.Cells))
	}
	for range trials {
		rows, who := randomVisits(r, 5, most), r.IntN(5)
		fewer := slices.DeleteFunc(slices.Clone(rows), func(v visitRow) bool { return v.who == who })
		texts := []string{groupStatements[r.IntN(len(groupStatements))], groupStatements[r.IntN(len(groupStatements))], groupStatements[r.IntN(len(groupStatements))]}
		with := map[string][]int64{}
		db.fill(t, rows)
		for _, text := range texts {
			with[text] = cellsOf(t, measures[text], d, db.run)
		}
		db.fill(t, fewer)
		for _, text := range texts {
			out[text].add(with[text], cellsOf(t, measures[text], d, db.run), claims[text])
		}
	}
	return out
}

// TestGroupBoundsHoldOnNeighbours (privacy rule 10): a thousand comparisons of random databases in which units have
// many rows, each with and without one unit, never differ by more than the declared sensitivity; and two planted faults
// do: a bound that the SQL does not enforce, and a sensitivity that is half of what it should be.
func TestGroupBoundsHoldOnNeighbours(t *testing.T) {
	t.Parallel()
	const bounds, none = "{max_groups_per_unit: 2, max_rows_per_group: 2}", "{max_groups_per_unit: 1000, max_rows_per_group: 1000}"
	inline := func(s string) *policy.Policy {
		return groupsOf(t, strings.NewReplacer("{", "", "}", "", ", ", "\n        ").Replace(s))
	}
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			reached := 0
			for text, f := range moved(t, open, d, threats.ByNight(60, stattest.Length(100, 500)), 11, inline(bounds), inline(bounds)) {
				if f.l1 > 1 || f.l2 > 1 {
					t.Errorf("%s: a unit moves the cells by %.3g times the declared L1 and %.3g times the squared L2", text, f.l1, f.l2)
				}
				if f.l1 > .5 && f.l2 > .25 {
					reached++ // half the sensitivity would be caught
				}
			}
			if reached < len(groupStatements)-4 {
				t.Errorf("only %d of %d statements come near their bound: a sensitivity of half would not be noticed", reached, len(groupStatements))
			}
			for text, f := range moved(t, open, d, 40, 100, inline(none), inline(bounds)) {
				if f.l1 <= 1 && !strings.Contains(text, "AS n") && !strings.Contains(text, "DISTINCT") && !strings.Contains(text, "JOIN") {
					t.Errorf("%s: without the bounds nothing is noticed: at most %.3g times the declared L1", text, f.l1)
				}
			}
		})
	}
}

// TestGroupBoundsAreTheUnitsOwn: what is counted of all units is the sum of what is counted of each alone, so a unit's
// rows decide for themselves; of a unit alone as many groups count as may, with as many rows as may; and whether rows
// are numbered or counted, the same groups stay.
func TestGroupBoundsAreTheUnitsOwn(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	p := groupsOf(t, "max_groups_per_unit: 2\n        max_rows_per_group: 3")
	free := groupsOf(t, "max_rows_per_unit: 1000")
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			for range threats.ByNight(5, 12) {
				rows := randomVisits(r, 5, 11)
				for i, text := range groupStatements[:12] {
					m, plain := measureOf(t, p, text), measureOf(t, free, text)
					db.fill(t, rows)
					all := cellsOf(t, m, d, db.run)
					if i == 0 || i == 2 {
						numbered := cellsOf(t, measureOf(t, p, strings.Replace(text, "count(*)", "sum(minutes), count(*)", 1)), d, db.run)
						if !containsRun(numbered, all) {
							t.Errorf("%s: counted %v, numbered %v", text, all, numbered)
						}
					}
					if r.IntN(4) > 0 {
						continue
					}
					sum := make([]int64, len(all))
					for who := range 5 {
						own := slices.DeleteFunc(slices.Clone(rows), func(v visitRow) bool { return v.who != who })
						db.fill(t, own)
						one := cellsOf(t, m, d, db.run)
						for c := range sum {
							sum[c] += one[c]
						}
						if i < 6 {
							keepsWhatItMay(t, text, one, cellsOf(t, plain, d, db.run))
						}
					}
					if !slices.Equal(sum, all) {
						t.Errorf("%s: all units %v, each alone %v", text, all, sum)
					}
				}
			}
		})
	}
}

// containsRun reports whether one of the counters of a measure equals the only one of another.
func containsRun(counters, one []int64) bool {
	for at := 0; at+len(one) <= len(counters); at += len(one) {
		if slices.Equal(counters[at:at+len(one)], one) {
			return true
		}
	}
	return false
}

func keepsWhatItMay(t *testing.T, text string, kept, have []int64) {
	t.Helper()
	groups, full := 0, 0
	for c, n := range have {
		if n > 0 {
			groups++
		}
		if kept[c] > 0 {
			full++
		}
		if kept[c] != 0 && kept[c] != min(n, 3) {
			t.Errorf("%s: of %d rows of a unit in a group %d count, must be %d", text, n, kept[c], min(n, 3))
		}
	}
	if full != min(groups, 2) {
		t.Errorf("%s: of %d groups of a unit %d count, must be %d", text, groups, full, min(groups, 2))
	}
}

// TestGroupBoundsGolden shows the SQL of the two plans.
func TestGroupBoundsGolden(t *testing.T) {
	p := groupsOf(t, "max_groups_per_unit: 2\n        max_rows_per_group: 3")
	for name, text := range map[string]string{"grouped_counts": groupStatements[3], "grouped_rows": groupStatements[8], "grouped_cells": groupStatements[5]} {
		golden(t, name, measureOf(t, p, text))
	}
}
