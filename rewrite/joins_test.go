package rewrite_test

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestJoinsCountWhatTheSQLSays runs the generated SQL of derived tables, and the analyst's own, on both engines.
func TestJoinsCountWhatTheSQLSays(t *testing.T) {
	t.Parallel()
	const seed = 991
	t.Logf("seed %d", seed)
	fill := joinRows(rand.New(rand.NewPCG(seed, 1)))
	all := slices.Concat(joinStatements, rowStatements, viewStatements, lookupStatements, matchStatements, usingStatements, sumStatements, unitStatements, windowStatements, unionStatements, listStatements, listedStatements, fullStatements)
	t.Run("DuckDB", func(t *testing.T) {
		own, ranked := duckTexts(t, fill), postgresTexts(t, fill)
		over := parsedFor(t, joinPolicy, dialect.DuckDB)
		joinsOn(t, over, dialect.DuckDB, duckEngine(t, fill), func(t *testing.T, text string) [][]string {
			// What DuckDB has not, and of rows with NULL has otherwise.
			if strings.Contains(text, "rank(2) WITHIN GROUP") || strings.Contains(text, "(age, person_id) NOT IN") {
				return ranked(t, text)
			}
			return own(t, text)
		}, all)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		joinsOn(t, parsedFor(t, joinPolicy, dialect.PostgreSQL), dialect.PostgreSQL, postgresEngine(t, fill), postgresTexts(t, fill), all)
	})
	for _, s := range []struct {
		name, old, new string
		statements     []string
	}{
		{"snapshot", "", "", all},
		{"snapshot, units of a declared type", "key: people.person_id", "key: people.person_id, type: integer", byTurns(all, 0)},
		{"snapshot, units of a type that one table declares", "          - {name: age,", "          - {name: person_id, type: integer, keys: join}\n          - {name: age,", byTurns(all, 1)},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := parsedFor(t, strings.Replace(joinPolicy, s.old, s.new, 1), dialect.PostgreSQL)
			joinsOn(t, p, dialect.Snapshot, duckQueries(copied(t, p, postgresConn(t, fill))), postgresTexts(t, fill), s.statements)
		})
	}
}

// copied is a snapshot of a policy's private tables in PostgreSQL.
func copied(t *testing.T, p *policy.Policy, from *pgx.Conn) *sql.DB {
	t.Helper()
	var tables []*policy.Table
	for _, table := range p.Datasets[0].Tables {
		if !table.Public && !table.Analysed() {
			tables = append(tables, table)
		}
	}
	return snapshotOf(t, dialect.PostgreSQL, postgresRows(from), tables...)
}

// parsedFor reads a policy whose trusted SELECTs are written for DuckDB, as the dialect writes them.
func parsedFor(t testing.TB, text string, d dialect.Dialect) *policy.Policy {
	t.Helper()
	if d.PostgreSQLs {
		text = strings.NewReplacer("private.clinic.", "clinic.", `url: "duckdb:warehouse.duckdb"`, `url: "postgres://dpproxy@127.0.0.1/prod"`).Replace(text)
	}
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err == nil {
		err = planner.CheckSQL(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func joinsOn(t *testing.T, p *policy.Policy, d dialect.Dialect, generated engine, own texts, list []string) {
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range list {
		t.Run(text, func(t *testing.T) {
			statements, refusal := parse.Parse(text)
			if refusal != nil {
				t.Fatal(refusal)
			}
			epsilon := p.Datasets[0].Defaults.Epsilon
			if strings.Contains(text, "(DISTINCT ") { // where their number is lost in noise, each of few values is counted by itself
				epsilon = privacy.MicroEpsilon(100_000_000)
			}
			plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0), Public: publicRows{},
				Settings: plans.Settings{Epsilon: epsilon, Confidence: confidence, Zone: time.UTC}})
			if refusal != nil {
				t.Fatalf("%s: %s", refusal.ID, refusal.Message)
			}
			leaf := plan.Leaves[0]
			queries, shorter := make([]rewrite.Query, len(plan.Measures)), false
			for i, m := range plan.Measures {
				if queries[i], err = rewrite.Render(m, d); err != nil {
					t.Fatal(err)
				}
				shorter = shorter || len(queries[i].Proven()) > 0
			}
			for _, proven := range []bool{false, true} {
				if proven && !shorter {
					continue
				}
				cells := make([][]int64, len(plan.Measures))
				for i, m := range plan.Measures {
					q := queries[i]
					sql, args := q.SQL(), q.Args()
					if shorter := q.Proven(); proven && len(shorter) > 0 {
						sql, args = shorter[0].SQL(), shorter[0].Args()
					}
					cells[i] = trueCells(m, q, generated(t, sql, args))
				}
				got, want := leafCounts(leaf, plan, cells), ownCounts(own(t, text), len(leaf.Keys))
				if slices.Contains(sumStatements, text) || slices.Contains(listedStatements, text) {
					got, want = leafValues(t, plan, cells), ownValues(own(t, text), len(leaf.Keys))
				}
				if !maps.Equal(got, want) {
					t.Errorf("got %v\nwant %v", got, want)
				}
			}
		})
	}
}

// trueCells are a measure's cells without noise, of the rows that its SQL gives.
func trueCells(m *plans.Measure, q rewrite.Query, rows [][]int64) []int64 {
	cells, seen := make([]int64, m.Spec.Cells*m.Spec.Counters), map[[2]int]bool{}
	for _, row := range rows {
		at := make([]int32, q.Grain())
		for i := range at {
			at[i] = int32(row[i])
		}
		for c := range q.Counters() {
			cell, n := m.Place(at, c), row[q.Grain()+c]
			if cell < 0 {
				continue
			}
			if m.Sums != nil && m.Sums[c] != nil && m.Sums[c].Values > 0 {
				if n == 0 || seen[[2]int{c, cell}] {
					continue
				}
				seen[[2]int{c, cell}], n = true, 1
			}
			if m.Weigh != nil {
				n *= m.Weigh(at, c)
			}
			if m.Sums != nil && m.Sums[c] != nil && m.Sums[c].Values > 0 {
				cell /= m.Sums[c].Values
			}
			cells[c*m.Spec.Cells+cell] += n
		}
	}
	return cells
}

// leafCount is a count of one row of a leaf.
func leafCount(c plans.CountColumn, row int, plan *plans.Plan, cells [][]int64) (n int64) {
	run, spans := c.At(row)
	for _, s := range spans {
		for cell := s.From; cell < s.To; cell++ {
			n += cells[run.Measure][run.Counter*plan.Measures[run.Measure].Spec.Cells+cell]
		}
	}
	return n
}

func leafCounts(leaf *plans.Leaf, plan *plans.Plan, cells [][]int64) map[string]string {
	out := map[string]string{}
	for row := range leaf.Rows {
		var keys, counts []string
		for _, k := range leaf.Keys {
			keys = append(keys, valueText(k.Values[row]))
		}
		some := false
		for _, c := range leaf.Counts {
			n := leafCount(c, row, plan, cells)
			some = some || n != 0
			counts = append(counts, fmt.Sprint(n))
		}
		if some {
			out[strings.Join(keys, "|")] = strings.Join(counts, "|")
		}
	}
	return out
}

// leafValues evaluates the direct form above the leaf on the exact counts.
func leafValues(t *testing.T, plan *plans.Plan, cells [][]int64) map[string]string {
	leaf, out := plan.Leaves[0], map[string]string{}
	if plan.Outer.Direct == nil {
		t.Fatal("not a direct form")
	}
	for r := range leaf.Rows {
		var row []policy.Value
		var keys []string
		for _, k := range leaf.Keys {
			row, keys = append(row, k.Values[r]), append(keys, valueText(k.Values[r]))
		}
		some := false
		for _, c := range leaf.Counts {
			n := leafCount(c, r, plan, cells)
			row, some = append(row, n), some || n != 0
		}
		var values []string
		for _, e := range plan.Outer.Direct.Items[len(leaf.Keys):] {
			v, err := e.Eval(row)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, rounded(valueText(v)))
		}
		if some {
			out[strings.Join(keys, "|")] = strings.Join(values, " ")
		}
	}
	return out
}
