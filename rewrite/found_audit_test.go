package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestAuditFoundKeys plays the guessing game against what finds keys, in both engines: eight keys of about as many
// units as are needed to be shown, and one unit more that has all of them. The guesser is given by how much the numbers
// that are shown of the keys are nearer to the one database's than to the other's. Bounded by rows and by groups nobody
// does better than is paid, (ε, δ); with bounding switched off, with sensitivity halved and with half of the noise the
// releases are caught. A sound release is accused with a probability of at most 1e-7, all four with 4e-7.
func TestAuditFoundKeys(t *testing.T) {
	const seed, alarm, wards = 515, stattest.Alarm(1e-7), 8
	t.Logf("seed %d", seed)
	answers := stattest.Length(40_000, 400_000)
	for d, open := range groupDatabases(t) {
		for _, bounds := range []string{"max_groups_per_unit: 2\n        max_rows_per_group: 2", "max_rows_per_unit: 2", ""} {
			t.Run(d.String()+", "+bounds, func(t *testing.T) {
				p := openPolicy(t, bounds)
				p.Datasets[0].Defaults.Epsilon = privacy.MicroEpsilon(1_000_000)
				m := openPlan(t, p, groupStatements[0], holdsKeys{}).Finds[0]
				db := open(t)
				q, err := rewrite.Render(m, d)
				if err != nil {
					t.Fatal(err)
				}
				sides := func(sql string) (list [2][]privacy.Group) {
					for i := range list {
						db.store(t, fmt.Sprintf("DELETE FROM clinic.visits; INSERT INTO clinic.visits SELECT i, i, chr((65 + i %% %d)::int), 1, NULL FROM generate_series(0, %d) AS s(i)",
							wards, wards*(m.Finding.Half()+8)-1))
						if i == 1 {
							db.store(t, fmt.Sprintf("INSERT INTO clinic.visits SELECT -1 - i, -7, chr((65 + i)::int), 1, NULL FROM generate_series(0, %d) AS s(i)", wards-1))
						}
						for _, row := range db.run(t, "SELECT COALESCE(ascii(x.k), 0)::bigint, x.units FROM ("+sql+") AS x", q.Args()) {
							list[i] = append(list[i], privacy.Group{Key: fmt.Sprint("=", row[0]), Counts: row[1:]})
						}
					}
					return list
				}
				paid := m.Cost.Epsilon.Float()
				truth := sides(q.SQL())
				if got := foundEpsilon(t, m, m.Finding, truth, answers, alarm); got > paid {
					t.Errorf("ε is at least %.4f, paid are %.4f", got, paid)
				}
				twice := m.Cost
				twice.Epsilon = privacy.MicroEpsilon(2 * m.Cost.Epsilon.Micro())
				loud, err := mechanisms.NewDiscovery(mechanisms.Contribution{Rows: m.Finding.KeysEach(), Neighbors: privacy.AddRemove}, twice)
				if err != nil {
					t.Fatal(err)
				}
				if got := foundEpsilon(t, m, loud, truth, answers, alarm); got <= paid {
					t.Errorf("half of the noise is not caught: ε is at least %.4f of %.4f", got, paid)
				}
				for name, pattern := range map[string]string{"bounding is switched off": "s.d <= 1000", "sensitivity is halved": fmt.Sprintf("s.d <= %d", 2*m.Finding.KeysEach())} {
					if got := foundEpsilon(t, m, m.Finding, sides(planted(`s\.d <= \d+`, pattern)(q.SQL())), answers, alarm); got <= paid {
						t.Errorf("%s is not caught: ε is at least %.4f of %.4f", name, got, paid)
					}
				}
			})
		}
	}
}

// foundEpsilon is a lower bound of what the keys found in two databases tell about which of them it is.
func foundEpsilon(t *testing.T, m *plans.Measure, d mechanisms.Discovery, sides [2][]privacy.Group, answers int, alarm stattest.Alarm) float64 {
	t.Helper()
	units := map[string][2]int64{}
	for i, groups := range sides {
		for _, g := range groups {
			n := units[g.Key]
			n[i] = g.Counts[0]
			units[g.Key] = n
		}
	}
	random := rand.NewChaCha8([32]byte{9})
	var nearer [2][]float64
	for i, groups := range sides {
		truth := privacy.Seal(groups)
		for range answers {
			found, err := mechanisms.Discover(d, truth, random)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for at, x := range found.Value().Observations {
				n := units[found.Value().Keys[at]]
				sum += math.Abs(float64(x-n[0])) - math.Abs(float64(x-n[1]))
			}
			nearer[i] = append(nearer[i], sum)
		}
	}
	bound, err := stattest.Audit{One: nearer[0], Other: nearer[1], Delta: m.Cost.Delta.Float()}.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
