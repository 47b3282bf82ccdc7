package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// openPolicy has wards that nobody declared.
func openPolicy(t *testing.T, bounds string) *policy.Policy {
	t.Helper()
	text := strings.NewReplacer("{name: ward, type: text, domain: {values: [A, B, C, D]}}", "{name: ward, type: text, keys: discover}",
		"cap: {epsilon: 20}", "cap: {epsilon: 20, delta: 1e-5}", "alice: {epsilon: 3}", "alice: {epsilon: 3, delta: 1e-6}", "BOUNDS", bounds).Replace(groupPolicy)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// holdsKeys is a holder of one release of keys.
type holdsKeys struct {
	digest plans.Digest
	noisy  mechanisms.Noisy
}

func (h holdsKeys) Held(d plans.Digest) []reuse.Holding {
	if d != h.digest {
		return nil
	}
	return []reuse.Holding{{ID: 1, Digest: d, Spec: mechanisms.Spec{Counters: 1, Cells: 1, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 10, Den: 1}}}}}
}

func (holdsKeys) Views(*policy.Table) *reuse.Views { return nil }

func openPlan(t *testing.T, p *policy.Policy, text string, held holdsKeys) *plans.Plan {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0), Holdings: held,
		Found:    func(int64) (mechanisms.Noisy, bool) { return held.noisy, true },
		Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatalf("%s: %s: %s", text, refusal.ID, refusal.Message)
	}
	return plan
}

// TestDiscoveryCountsUnits: each key's number of units, on both engines; without one unit no key's changes by more than
// one, and no more keys' than the noise is made for, one where rows have no bound; with a larger bound, more do.
func TestDiscoveryCountsUnits(t *testing.T) {
	const seed = 8
	t.Logf("seed %d", seed)
	tight := openPlan(t, openPolicy(t, "max_groups_per_unit: 2\n        max_rows_per_group: 2"), groupStatements[0], holdsKeys{}).Finds[0]
	loose := openPlan(t, openPolicy(t, "max_rows_per_unit: 100"), groupStatements[0], holdsKeys{}).Finds[0]
	few := openPlan(t, openPolicy(t, ""), groupStatements[0], holdsKeys{}).Finds[0] // no bound of rows
	golden(t, "discovery", tight)
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			units := func(m *plans.Measure, rows []visitRow) map[int64]int64 {
				db.fill(t, rows)
				q, err := rewrite.Render(m, d)
				if err != nil {
					t.Fatal(err)
				}
				out := map[int64]int64{}
				for _, row := range db.run(t, "SELECT COALESCE(ascii(x.k), -1)::bigint, x.units FROM ("+q.SQL()+") AS x", q.Args()) {
					out[row[0]] = row[1]
				}
				return out
			}
			exceeded := false
			for range 60 {
				rows, who := randomVisits(r, 5, 11), r.IntN(5)
				for i := range rows {
					if r.IntN(8) == 0 {
						rows[i].text = strings.NewReplacer("'A'", "NULL", "'B'", "''").Replace(rows[i].text)
					}
				}
				fewer := slices.DeleteFunc(slices.Clone(rows), func(v visitRow) bool { return v.who == who })
				for _, m := range []*plans.Measure{tight, loose, few} {
					all, less, changed := units(m, rows), units(m, fewer), 0
					for k, n := range all {
						if n-less[k] < 0 || n-less[k] > 1 {
							t.Errorf("key %d has %d units, and %d without one", k, n, less[k])
						}
						changed += int(n - less[k])
					}
					if most := m.Finding.KeysEach(); changed > int(most) {
						t.Errorf("a unit is in %d keys, must be in at most %d", changed, most)
					}
					exceeded = exceeded || m == loose && changed > 2
				}
			}
			if !exceeded {
				t.Error("no unit has more keys than the bound: the test shows nothing")
			}
		})
	}
}

// TestOpenKeysAreCounted: what is counted by found keys, few (compared one by one) and many (looked up), and by
// constants, is what the same SQL counts, on both engines.
func TestOpenKeysAreCounted(t *testing.T) {
	p := openPolicy(t, "max_rows_per_unit: 100")
	text := groupStatements[0]
	few := holdsKeys{digest: openPlan(t, p, text, holdsKeys{}).Finds[0].Digest, noisy: mechanisms.Noisy{Keys: []string{"=A", "=B", "=C"}, Observations: []int64{3, 2, 1}}}
	many := few
	many.noisy = mechanisms.Noisy{Keys: []string{"=A", "=B", "=C", "n"}, Observations: []int64{5, 4, 3, 2}}
	for i := range 30 {
		many.noisy.Keys, many.noisy.Observations = append(many.noisy.Keys, fmt.Sprintf("=it's \\%d", i)), append(many.noisy.Observations, 1)
	}
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := open(t)
			db.store(t, "INSERT INTO clinic.visits VALUES (1, 1, 'A', 3, NULL), (2, 1, 'A', 4, NULL), (3, 2, 'B', 5, NULL), (4, 2, NULL, 6, NULL), (5, 3, 'unknown', 7, NULL), (6, 3, 'it''s \\3', 8, NULL)")
			for _, c := range []struct {
				held  holdsKeys
				text  string
				total int64
				cells int
			}{{few, text, 3, 3}, {many, text, 5, 34}, {few, `SELECT count(*) FROM visits WHERE ward = 'unknown'`, 1, 1}, {few, `SELECT count(*) FROM visits WHERE ward NOT IN ('A', 'it''s \3')`, 2, 1},
				{many, `SELECT lower(ward), minutes > 4, count(*) FROM visits GROUP BY 1, 2`, 5, 34 * 3}, {few, `SELECT count(*) FROM visits WHERE ward IS NULL OR ward = 'B'`, 2, 1},
				{few, `SELECT ward, count(DISTINCT who) FROM visits GROUP BY 1`, 2, 3}} {
				plan := openPlan(t, p, c.text, c.held)
				m := plan.Measures[0]
				total := int64(0)
				for _, n := range cellsOf(t, m, d, db.run) {
					total += n
				}
				if total != c.total || m.Spec.Cells != c.cells || len(plan.Finds) != 0 {
					t.Errorf("%s: %d rows in %d cells, want %d in %d", c.text, total, m.Spec.Cells, c.total, c.cells)
				}
			}
		})
	}
}

// foundMeasures are the measures of a column whose keys nobody declared: what finds them, and what counts few and many.
func foundMeasures(t *testing.T) []*plans.Measure {
	t.Helper()
	var list []*plans.Measure
	for _, bounds := range []string{"max_rows_per_unit: 3", "max_groups_per_unit: 2\n        max_rows_per_group: 2", ""} {
		p := openPolicy(t, bounds)
		find := openPlan(t, p, groupStatements[0], holdsKeys{}).Finds[0]
		held := holdsKeys{digest: find.Digest, noisy: mechanisms.Noisy{Keys: []string{"=A", "=B", "n"}, Observations: []int64{3, 2, 1}}}
		list = append(list, find, openPlan(t, p, `SELECT lower(ward), minutes > 4, count(*) FROM visits GROUP BY 1, 2`, held).Measures[0])
		for i := range 30 {
			held.noisy.Keys, held.noisy.Observations = append(held.noisy.Keys, fmt.Sprintf("=it's \\%d", i)), append(held.noisy.Observations, 1)
		}
		for _, text := range []string{groupStatements[0], `SELECT count(*) FROM visits WHERE ward NOT IN ('A', 'it''s \3')`, `SELECT ward, count(DISTINCT who) FROM visits GROUP BY 1`} {
			list = append(list, openPlan(t, p, text, held).Measures[0])
		}
		p = largePolicy(t, bounds)
		find = openPlan(t, p, largeStatement, holdsKeys{}).Finds[0]
		held = holdsKeys{digest: find.Digest, noisy: mechanisms.Noisy{Keys: []string{"=0,1,2", "=1,2,3"}, Observations: []int64{2, 1}}}
		list = append(list, find, openPlan(t, p, largeStatement, held).Measures[0])
	}
	return list
}
