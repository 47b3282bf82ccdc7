package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// unitMoves is how far a unit has moved a measure's counters: the largest share of the squared and the plain sensitivity
// that any of them has shown.
type unitMoves struct{ l1, l2 float64 }

// TestNeighborsMoveWithinTheSensitivity: whatever rows one person has, more than the bounds allow too, each counter of each
// statement's measures moves by at most the sensitivity that its noise is made for, whether the person comes or is another.
// Without the bound of rows some move further: the test sees what it is for.
func TestNeighborsMoveWithinTheSensitivity(t *testing.T) {
	const seed, variants = 77, 7
	t.Logf("seed %d", seed)
	p, err := policy.Parse([]byte(joinPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	others := joinRows(rand.New(rand.NewPCG(seed, 1)))
	engines := []engine{duckEngine(t, others)}
	for v := range uint64(variants) {
		engines = append(engines, duckEngine(t, append(others[:len(others):len(others)], manyRows(rand.New(rand.NewPCG(seed, 2+v)))...)))
	}
	unbounded := 0.
	for _, text := range append(joinStatements, sumStatements...) {
		for _, m := range measuresOf(t, p, text) {
			q, err := rewrite.Render(m, rewrite.DuckDB)
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
				got := furthest(t, m, q, kind, engines, q.SQL(), q.Args())
				if got.l1 > 1 || got.l2 > 1 {
					t.Errorf("%s: %s: %s: a person moves a counter by %.2f of its L1, %.2f of its squared L2 sensitivity", kind, text, m.Name, got.l1, got.l2)
				}
			}
			if sql, args, ok := q.Proven(); ok && strings.Contains(text, "FROM visits") {
				unbounded = max(unbounded, furthest(t, m, q, privacy.AddRemove, engines, sql, args).l1)
			}
		}
	}
	if unbounded <= 1 {
		t.Errorf("without its bounds a person moves a counter by %.2f of its sensitivity: the test shows nothing", unbounded)
	}
}

// measuresOf plans a statement.
func measuresOf(t *testing.T, p *policy.Policy, text string) []*planner.Measure {
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := planner.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(statements[0], nil, planner.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0), Public: publicWards{},
		Settings: planner.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatalf("%s: %s", text, refusal.Message)
	}
	return plan.Measures
}

// furthest compares a measure's counters on databases that differ in one person.
func furthest(t *testing.T, m *planner.Measure, q rewrite.Query, kind privacy.Neighbors, engines []engine, sql string, args []any) (most unitMoves) {
	c := m.Contribution()
	c.Neighbors = kind
	vectors := make([][]int64, len(engines))
	for i, run := range engines {
		vectors[i] = trueCells(m, q, run(t, sql, args))
	}
	for i, one := range vectors {
		for j, other := range vectors[:i] {
			if kind == privacy.AddRemove && j > 0 {
				break
			}
			for counter := range m.Spec.Counters {
				bound := m.Spec.Only(counter).Sensitivity(c)
				l1, l2 := 0., 0.
				for cell := counter * m.Spec.Cells; cell < (counter+1)*m.Spec.Cells; cell++ {
					d := float64(one[cell] - other[cell])
					l1, l2 = l1+max(d, -d), l2+d*d
				}
				most.l1, most.l2 = max(most.l1, l1/float64(bound.L1)), max(most.l2, l2/float64(bound.L2Squared))
			}
		}
	}
	return most
}

// manyRows are one more person's: some have few rows, some more than any bound.
func manyRows(r *rand.Rand) []string {
	const person = 1000
	list := []string{fmt.Sprintf("INSERT INTO clinic.people VALUES (%d, %d, '%s')", person, r.IntN(10), string("fm"[r.IntN(2)]))}
	spread := 1 + r.IntN(3) // how many wards and days there are
	for visit := range r.IntN(12) {
		list = append(list, fmt.Sprintf("INSERT INTO clinic.visits VALUES (%d, %d, '%s', %d, %d.50, DATE '2025-0%d-%02d')",
			person+visit, person, string("ABC"[r.IntN(spread)]), []int{-5, 9, 3}[r.IntN(spread)], r.IntN(10), 1+r.IntN(spread), 1+r.IntN(28)))
		for range r.IntN(5) {
			list = append(list, fmt.Sprintf("INSERT INTO clinic.doses VALUES (%d, '%s')", person+visit, string("xy"[r.IntN(2)])))
		}
	}
	return list
}
