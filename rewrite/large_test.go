package rewrite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// largePolicy has more combinations of ward, minutes and day than an answer has room for. Minutes are in steps, with a
// cell for NULL and what is outside; rows of undeclared wards are left out.
func largePolicy(t *testing.T, bounds string) *policy.Policy {
	t.Helper()
	text := strings.NewReplacer("domain: {values: [A, B, C, D]}}", "domain: {values: [A, B, C, D]}, outside: exclude}", "max: 9, step: 1}", "max: 99999, step: 1}, nulls: cell",
		"cap: {epsilon: 20}", "cap: {epsilon: 20, delta: 1e-5}", "alice: {epsilon: 3}", "alice: {epsilon: 3, delta: 1e-6}", "    tables:", "    large_products: threshold\n    tables:", "BOUNDS", bounds).Replace(groupPolicy)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const largeStatement = `SELECT ward, minutes, day, count(*) FROM visits GROUP BY 1, 2, 3`

// TestCombinationsAreFound: each combination's number of units is what plain SQL says, on both engines; without one
// unit none changes by more than one, and no more change than the policy says; without that bound, more do.
func TestCombinationsAreFound(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	tight := openPlan(t, largePolicy(t, "max_groups_per_unit: 2\n        max_rows_per_group: 2"), largeStatement, holdsKeys{}).Finds[0]
	loose := openPlan(t, largePolicy(t, "max_rows_per_unit: 100"), largeStatement, holdsKeys{}).Finds[0]
	golden(t, "combinations", tight)
	// The plain twin names a combination by its raw values; NULL and what is outside share a cell.
	const plain = `SELECT ascii(ward) * 1000000 + (CASE WHEN minutes BETWEEN -5 AND 99999 THEN minutes ELSE 99 END + 10) * 1000 + CAST(extract(doy FROM day) AS int) AS k, count(DISTINCT who) AS units
	  FROM clinic.visits WHERE ward IN ('A', 'B', 'C', 'D') GROUP BY 1`
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			units := func(m *plans.Measure) map[int64]int64 {
				q, err := rewrite.Render(m, d)
				if err != nil {
					t.Fatal(err)
				}
				part := func(i int) string { return fmt.Sprintf("CAST(split_part(x.k, ',', %d) AS bigint)", i) }
				key := fmt.Sprintf("(%s + 65) * 1000000 + CASE WHEN %s = 100005 THEN 109000 ELSE (%s + 5) * 1000 END + %s + 1", part(1), part(2), part(2), part(3))
				return pairs(db.run(t, "SELECT "+key+", x.units FROM ("+q.SQL()+") AS x", q.Args()))
			}
			exceeded := false
			for range 40 {
				rows, who := randomVisits(r, 6, 9), r.IntN(6)
				fewer := slices.DeleteFunc(slices.Clone(rows), func(v visitRow) bool { return v.who == who })
				all := map[*plans.Measure]map[int64]int64{}
				db.fill(t, rows)
				for _, m := range []*plans.Measure{tight, loose} {
					all[m] = units(m)
				}
				if want := pairs(db.run(t, plain, nil)); !maps.Equal(all[loose], want) {
					t.Fatalf("found %v, want %v", all[loose], want)
				}
				db.fill(t, fewer)
				for m, all := range all {
					less, changed := units(m), 0
					for k, n := range all {
						if n-less[k] < 0 || n-less[k] > 1 {
							t.Errorf("combination %d has %d units, and %d without one", k, n, less[k])
						}
						changed += int(n - less[k])
					}
					if m == tight && changed > 2 {
						t.Errorf("a unit is in %d combinations, must be in at most 2", changed)
					}
					exceeded = exceeded || m == loose && changed > 2
				}
			}
			if !exceeded {
				t.Error("no unit has more combinations than the bound: the test shows nothing")
			}
		})
	}
}

func pairs(rows [][]int64) map[int64]int64 {
	out := map[int64]int64{}
	for _, row := range rows {
		out[row[0]] = row[1]
	}
	return out
}

// TestFoundCombinationsAreCounted: what is counted by found combinations, few and many, is what the same SQL counts, on
// both engines; rows of others are in none.
func TestFoundCombinationsAreCounted(t *testing.T) {
	p := largePolicy(t, "max_rows_per_unit: 100")
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := open(t)
			db.store(t, "INSERT INTO clinic.visits VALUES (1, 1, 'A', 3, DATE '2025-01-02'), (2, 1, 'A', 3, DATE '2025-01-02'), (3, 2, 'B', NULL, DATE '2025-03-31'), (4, 2, 'D', 99999, NULL), (5, 3, 'E', 7, DATE '2025-01-01')")
			for _, c := range []struct {
				text  string
				more  int // found combinations that no row has
				total int64
				cells int
			}{
				{largeStatement, 0, 3, 3}, {largeStatement, 30, 3, 33},
				{`SELECT day, ward, minutes, count(*) FROM visits WHERE ward = 'A' GROUP BY 1, 2, 3`, 0, 2, 1},
				{`SELECT ward, minutes, day, sum(minutes) FROM visits GROUP BY 1, 2, 3`, 0, 6, 3},
				{`SELECT ward, minutes, day, count(DISTINCT who) FROM visits GROUP BY 1, 2, 3`, 30, 2, 33},
			} {
				find := openPlan(t, p, c.text, holdsKeys{}).Finds[0]
				combinations := []string{"=0,8,1", "=1,100005,89", "=3,100004,1"}
				if strings.HasPrefix(c.text, "SELECT day") {
					combinations = []string{"=1,0,8", "=89,1,100005", "=1,3,100004"}
				}
				held := holdsKeys{digest: find.Digest, noisy: mechanisms.Noisy{Keys: combinations, Observations: []int64{9, 9, 9}}}
				for i := range c.more {
					held.noisy.Keys, held.noisy.Observations = append(held.noisy.Keys, fmt.Sprintf("=2,%d,5", i)), append(held.noisy.Observations, 1)
				}
				plan := openPlan(t, p, c.text, held)
				m := plan.Measures[0]
				total := int64(0)
				for _, n := range cellsOf(t, m, d, db.run) {
					total += n
				}
				if total != c.total || m.Spec.Cells != c.cells || len(plan.Finds) != 0 {
					t.Errorf("%s: %d in %d cells, want %d in %d", c.text, total, m.Spec.Cells, c.total, c.cells)
				}
			}
		})
	}
}
