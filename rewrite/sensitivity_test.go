package rewrite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestOneUnitMovesAtMostItsBound (rules 9 and 10): without one unit's rows the counts differ by at most
// max_rows_per_unit in all, rows without a unit count nowhere, and the order in which rows are stored decides nothing.
func TestOneUnitMovesAtMostItsBound(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	_, visits, _ := tables(t)
	rows := generate(r, visits, 300, 30)
	counts := func(rows []stored) map[string]int64 {
		run := duckEngine(t, append([]string{"CREATE SCHEMA clinic"}, schemaSQL(visits, "person_id", visitsSpecs, rows, true)...))
		q, err := rewrite.Render(&plans.Measure{Table: visits, Grain: visits.Columns, Counters: []predicate.Pred{nil}}, dialect.DuckDB)
		if err != nil {
			t.Fatal(err)
		}
		answer := map[string]int64{}
		for _, row := range run(t, q.SQL(), q.Args()) {
			answer[fmt.Sprint(row[:3])] = row[3]
		}
		return answer
	}
	all := counts(rows)
	shuffled := slices.Clone(rows)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if got := counts(shuffled); !maps.Equal(got, all) {
		t.Error("the order of the stored rows decides which of them count")
	}
	without := func(unit policy.Value) []stored {
		return slices.DeleteFunc(slices.Clone(rows), func(s stored) bool { return s.unit == unit })
	}
	if got := counts(without(nil)); !maps.Equal(got, all) {
		t.Error("rows without a unit count")
	}
	moved := int64(0)
	for unit := range int64(8) {
		distance := int64(0)
		fewer := counts(without(unit))
		for key, n := range all {
			distance += max(n-fewer[key], fewer[key]-n)
		}
		for key, n := range fewer {
			if all[key] == 0 {
				distance += n
			}
		}
		if distance > visits.MaxRowsPerUnit {
			t.Errorf("unit %d moves the counts by %d, its bound is %d", unit, distance, visits.MaxRowsPerUnit)
		}
		moved = max(moved, distance)
	}
	if moved != visits.MaxRowsPerUnit {
		t.Errorf("no unit moves the counts by its bound: the test shows nothing")
	}
}
