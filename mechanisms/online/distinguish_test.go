package online

import (
	"io"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

var byRow = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}

func distinguisher(t testing.TB, accountant privacy.Accountant, micro int64, queries ...Query) Distinguisher {
	t.Helper()
	d, err := NewDistinguisher(queries, byRow, accountant, privacy.MicroEpsilon(micro))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// chances is the naive twin: the distributions written out. Permute-and-flip over all orders.
func chances(accountant privacy.Accountant, epsilon float64, scores []int64) []float64 {
	best, accept := int64(0), make([]float64, len(scores))
	for _, s := range scores {
		best = max(best, s)
	}
	for i, s := range scores {
		accept[i] = math.Exp(-epsilon * float64(best-s) / 2)
	}
	p := make([]float64, len(scores))
	if accountant == privacy.ZCDP {
		total := 0.0
		for _, a := range accept {
			total += a
		}
		for i, a := range accept {
			p[i] = a / total
		}
		return p
	}
	var walk func(left []int, mass float64)
	walk = func(left []int, mass float64) {
		for at, i := range left {
			m := mass / float64(len(left))
			p[i] += m * accept[i]
			if accept[i] < 1 {
				rest := append(append([]int(nil), left[:at]...), left[at+1:]...)
				walk(rest, m*(1-accept[i]))
			}
		}
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	walk(order, 1)
	return p
}

// TestFarthestHasItsDistribution, and neighbours' distributions written out are within ε. False alarm: 1e-7 each.
func TestFarthestHasItsDistribution(t *testing.T) {
	queries := []Query{only(t, 4, 0), only(t, 4, 1), only(t, 4, 2), only(t, 4, 0, 3), only(t, 4, 1, 2)}
	cells, guesses := []int64{9, 2, 5, 1}, []int64{6, 4, 5, 8, 3}
	scores, others := []int64{3, 2, 0, 2, 4}, []int64{4, 2, 0, 3, 4} // one more row in the first cell
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		d := distinguisher(t, accountant, 800_000, queries...)
		p, q := chances(accountant, .8, scores), chances(accountant, .8, others)
		for i := range p {
			if loss := math.Abs(math.Log(p[i] / q[i])); loss > .8 {
				t.Errorf("%s: query %d loses %.3f of 0.8", accountant, i, loss)
			}
		}
		samples, random := make([]int64, stattest.Length(20_000, 200_000)), seeded(1)
		for i := range samples {
			chosen, err := d.Farthest(guesses, privacy.Seal(cells), random)
			if err != nil {
				t.Fatal(err)
			}
			samples[i] = int64(chosen.Value())
		}
		mass := func(k int64) float64 {
			if k < 0 || int(k) >= len(p) {
				return 0
			}
			return p[k]
		}
		if err := stattest.ChiSquare(samples, mass, stattest.Usual); err != nil {
			t.Errorf("%s: %v", accountant, err)
		}
	}
}

// TestAuditOfDistinguishers: not more than is paid; and with a sensitivity off by 1.2 more. Three alarms of 1e-6.
func TestAuditOfDistinguishers(t *testing.T) {
	queries := []Query{only(t, 2, 0), only(t, 2, 0, 1)}
	chosen := func(d Distinguisher, answers int, find func(cells []int64, random io.Reader) (privacy.Released[int], error)) float64 {
		random := seeded(2)
		sample := func(cells []int64) []float64 {
			out := make([]float64, answers)
			for i := range out {
				c, err := find(cells, random)
				if err != nil {
					t.Fatal(err)
				}
				out[i] = float64(c.Value())
			}
			return out
		}
		e, err := stattest.Audit{One: sample([]int64{1000, 0}), Other: sample([]int64{1001, 0})}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	farthest := func(micro int64) float64 {
		d := distinguisher(t, privacy.Pure, micro, queries...)
		return chosen(d, stattest.Length(40_000, 1_000_000), func(cells []int64, random io.Reader) (privacy.Released[int], error) {
			return d.Farthest([]int64{998, 1004}, privacy.Seal(cells), random)
		})
	}
	// Ten times a query whose gap shrinks, then one whose gap grows, both about the threshold.
	sequence := []Query{}
	for range 10 {
		sequence = append(sequence, queries[0])
	}
	sparse := distinguisher(t, privacy.Pure, 1_000_000, append(sequence, queries[1])...)
	guesses := make([]int64, 11)
	for i := range 10 {
		guesses[i] = 1000 + 2*sparse.SparseReach(.25) - 4
	}
	guesses[10] = 1000 - 2*sparse.SparseReach(.25) + 4
	first := chosen(sparse, stattest.Length(40_000, 1_000_000), func(cells []int64, random io.Reader) (privacy.Released[int], error) {
		return sparse.First(guesses, .25, privacy.Seal(cells), random)
	})
	for name, e := range map[string]float64{"farthest": farthest(1_000_000), "first": first} {
		t.Logf("%s: epsilon at least %.3f of 1", name, e)
		if e > 1 || e < .3 {
			t.Errorf("seed %q: %s: epsilon is at least %.3f, paid 1", seed, name, e)
		}
	}
	if e := farthest(1_200_000); e <= 1 { // a sensitivity off by 1.2
		t.Errorf("seed %q: a sensitivity off by 1.2 passed: %.3f", seed, e)
	}
}

// TestDistinguishersReach: the theorems' promises hold at their probability. False alarm: 1e-7 each.
func TestDistinguishersReach(t *testing.T) {
	const miss = noise.Probability(.1)
	queries := []Query{}
	for i := range 100 {
		queries = append(queries, only(t, 100, i))
	}
	d := distinguisher(t, privacy.Pure, 500_000, queries...)
	reach, sparse := d.Reach(miss), d.SparseReach(miss)
	cells, guesses := make([]int64, 100), make([]int64, 100)
	cells[70] = 3 * sparse
	farthest, first := stattest.Coverage{Claim: 1 - float64(miss)}, stattest.Coverage{Claim: 1 - float64(miss)}
	random := seeded(4)
	for range stattest.Length(2000, 20_000) {
		a, err := d.Farthest(guesses, privacy.Seal(cells), random)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.First(guesses, miss, privacy.Seal(cells), random)
		if err != nil {
			t.Fatal(err)
		}
		farthest.Trials++
		first.Trials++
		if cells[a.Value()] >= cells[70]-reach {
			farthest.Hits++
		}
		if i := b.Value(); i >= 0 && cells[i] >= sparse {
			first.Hits++
		}
	}
	for name, c := range map[string]stattest.Coverage{"farthest": farthest, "first": first} {
		if err := c.AtLeast(stattest.Usual); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The notes: 4(ln|C| + ln(2/γ))/ε for sparse, (2/ε)(ln|C| + ln(1/γ)) for the exponential mechanism.
	notes := 4 * (math.Log(100) + math.Log(2/float64(miss))) / .5
	if float64(sparse) > notes*1.2 || math.Abs(float64(reach)-4*(math.Log(100)+math.Log(10))) > 1 {
		t.Errorf("reach %d, sparse %d; the notes' sparse %.0f", reach, sparse, notes)
	}
}

func TestDistinguishersAreChecked(t *testing.T) {
	q := only(t, 3, 1)
	for name, f := range map[string]func() error{
		"none": func() error {
			_, err := NewDistinguisher(nil, byRow, privacy.Pure, privacy.MicroEpsilon(1))
			return err
		},
		"epsilon 0": func() error {
			_, err := NewDistinguisher([]Query{q}, byRow, privacy.Pure, privacy.Epsilon{})
			return err
		},
		"accountant": func() error {
			_, err := NewDistinguisher([]Query{q}, byRow, 0, privacy.MicroEpsilon(1))
			return err
		},
		"cells": func() error {
			_, err := NewDistinguisher([]Query{q, only(t, 4, 1)}, byRow, privacy.Pure, privacy.MicroEpsilon(1))
			return err
		},
		"zero":     func() error { _, err := (Distinguisher{}).Cost(); return err },
		"zero too": func() error { _, err := (Distinguisher{}).Farthest(nil, privacy.Seal(skewed), seeded(1)); return err },
		"guesses": func() error {
			_, err := distinguisher(t, privacy.Pure, 5, q).Farthest(nil, privacy.Seal(skewed), seeded(1))
			return err
		},
		"guess": func() error {
			_, err := distinguisher(t, privacy.Pure, 5, q).Farthest([]int64{-1}, privacy.Seal(skewed), seeded(1))
			return err
		},
		"unsealed": func() error {
			_, err := distinguisher(t, privacy.Pure, 5, q).Farthest([]int64{1}, privacy.Sensitive[[]int64]{}, seeded(1))
			return err
		},
		"no randomness": func() error {
			_, err := distinguisher(t, privacy.ZCDP, 5, q, q).Farthest([]int64{1, 3000}, privacy.Seal(skewed), io.LimitReader(seeded(1), 3))
			return err
		},
		"epsilon of first": func() error {
			_, err := distinguisher(t, privacy.Pure, 2, q).First([]int64{1}, .1, privacy.Seal(skewed), seeded(1))
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s passed", name)
		}
	}
	cost, err := distinguisher(t, privacy.ZCDP, 1_000_001, q).Cost()
	if err != nil || cost.Rho.Pico() != (1_000_001*1_000_001+7)/8 {
		t.Error(cost, err)
	}
	// Scores beyond 64 bits times ε: still exact, and so never chosen.
	far := distinguisher(t, privacy.Pure, 1e9, q, only(t, 3, 2))
	if chosen, err := far.Farthest([]int64{0, 0}, privacy.Seal([]int64{0, 1 << 60, 0}), seeded(1)); err != nil || chosen.Value() != 0 {
		t.Error(chosen, err)
	}
}
