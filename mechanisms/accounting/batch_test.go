package accounting

import (
	"math"
	"sort"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func approximate(t testing.TB, micro, atto int64) ApproximateCost {
	t.Helper()
	c, err := Approximate(privacy.MicroEpsilon(micro), privacy.AttoDelta(atto))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// most returns the largest n that fits; fits must be monotone.
func most(fits func(n int64) bool) int64 {
	return int64(sort.Search(1<<20, func(n int) bool { return !fits(int64(n) + 1) }))
}

// TestQueriesOfOneBudget: how many releases of ε_i fit into (1, 1e-6), by each composition, against the known figures.
func TestQueriesOfOneBudget(t *testing.T) {
	one, d := privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e12)
	logDelta := math.Log(1e6)
	rho, err := LargestRho(one, d)
	if err != nil {
		t.Fatal(err)
	}
	v, err := GaussianVariance(one, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	simple := math.Pow(math.Sqrt(logDelta+1)-math.Sqrt(logDelta), 2)
	if math.Abs(simple-.01747) > 5e-6 {
		t.Errorf("simple rho is %.6f, known .01747", simple)
	}
	for _, c := range []struct {
		micro                                              int64
		basic, advanced, simple, tight, renyi, kov, normal int64
	}{
		{500_000, 2, 0, 0, 0, 2, 2, 0}, {200_000, 5, 0, 0, 1, 5, 5, 2}, {100_000, 10, 3, 3, 4, 10, 10, 11}, {50_000, 20, 13, 13, 19, 23, 26, 44},
		{20_000, 50, 84, 87, 121, 126, 142, 280}, {10_000, 100, 337, 349, 487, 492, 562, 1120}, {5_000, 200, 1351, 1397, 1948, 1955, 2244, 4482},
		{2_000, 500, 8446, 8734, 12177, 12189, 14010, 28014}, {1_000, 1000, 33785, 34937, 48711, 48731, 56032, 112057},
	} {
		e := float64(c.micro) / 1e6
		each := approximate(t, c.micro, 0)
		basic := one.Micro() / c.micro
		advanced := most(func(n int64) bool {
			return math.Sqrt(2*float64(n)*logDelta)*e+float64(n)*e*math.Expm1(e) <= 1
		})
		cost := PureCost{epsilon: each.epsilon}.Concentrated()
		tight := rho.Pico() / cost.rho.Pico()
		renyi := most(func(n int64) bool { return n <= basic || laplaceDelta(float64(n), e) <= 1e-6 })
		kov := most(func(n int64) bool {
			b, err := NewBatch(n, each)
			if err != nil {
				t.Fatal(err)
			}
			return b.delta(1) <= 1e-6
		})
		normal := int64(2 / (v.Float() * e * e)) // sd √2/ε_i each: the squared shifts add up
		filter := admitted(t, one, d, each)
		t.Logf("epsilon_i %.3f: basic %d, advanced %d, adaptive filter %d, zCDP %d, Renyi Laplace %d, optimal %d, Gaussian of the same deviation %d", e, basic, advanced, filter, tight, renyi, kov, normal)
		if simpleFits := int64(simple / (e * e / 2)); filter != simpleFits || filter != c.simple {
			t.Errorf("epsilon_i %g: the filter admits %d, simple zCDP %d, known %d", e, filter, simpleFits, c.simple)
		}
		if basic != c.basic || advanced != c.advanced || tight != c.tight || renyi != c.renyi || kov != c.kov || normal != c.normal {
			t.Errorf("epsilon_i %g: %d %d %d %d %d %d, known %+v", e, basic, advanced, tight, renyi, kov, normal, c)
		}
	}
}

// admitted counts the charges that an ApproximateFilter accepts, the large counts by one charge of equal square.
func admitted(t *testing.T, e privacy.Epsilon, d privacy.Delta, each ApproximateCost) int64 {
	t.Helper()
	f, err := NewApproximateFilter(e, Deltas{Composition: d})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for f.Charge(each) == nil {
		n++
	}
	return n
}

// laplaceDelta is the δ at ε = 1 of n Laplace releases by Rényi DP: the loss at each order, converted as LargestRho does.
func laplaceDelta(n, e float64) float64 {
	return math.Exp(-highest(func(u float64) float64 {
		over := math.Exp(u)
		a := 1 + over
		if over*e > 600 {
			return math.Inf(-1)
		}
		divergence := math.Log(a/(2*a-1)*math.Exp(over*e)+over/(2*a-1)*math.Exp(-a*e)) / over
		return -(over*(n*divergence-1) - u - a*(math.Log1p(over)-u))
	}))
}

// TestBatchAgainstAllOutcomes: every outcome of n randomised responses, one by one.
func TestBatchAgainstAllOutcomes(t *testing.T) {
	for _, e := range []float64{.001, .1, 1, 4} {
		for n := range 12 {
			for _, at := range []float64{0, .05, .5, 1, 3} {
				truth, want := math.Exp(e)/(1+math.Exp(e)), 0.0
				for outcome := range 1 << (n + 1) {
					p, q := 1.0, 1.0
					for i := range n + 1 {
						if outcome>>i&1 == 1 {
							p, q = p*truth, q*(1-truth)
						} else {
							p, q = p*(1-truth), q*truth
						}
					}
					want += max(0, p-math.Exp(at)*q)
				}
				if got := responses(float64(n+1), e, at); got < want*(1-1e-12)-1e-15 || got > want*(1+1e-11)+1e-14 {
					t.Errorf("%d releases of %g at %g: %g, outcome by outcome %g", n+1, e, at, got, want)
				}
			}
		}
	}
}

func TestBatchCost(t *testing.T) {
	b, err := NewBatch(562, approximate(t, 10_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Cost(privacy.AttoDelta(1e12))
	if err != nil || c.epsilon.Micro() > 1e6 || c.epsilon.Micro() < 998_000 {
		t.Errorf("562 releases of 0.01 at delta 1e-6 cost epsilon %s (%v)", c.epsilon, err)
	}
	if d, err := b.Delta(c.epsilon); err != nil || d.Atto() > 1e12 {
		t.Errorf("delta %s (%v)", d, err)
	}
	few, _ := NewBatch(2, approximate(t, 500_000, 0))
	if c, err := few.Cost(privacy.AttoDelta(1)); err != nil || c.epsilon.Micro() != 1e6 {
		t.Errorf("two releases of 0.5 cost %s (%v)", c.epsilon, err)
	}
	own, _ := NewBatch(10, approximate(t, 1000, 1e12))
	if _, err := own.Cost(privacy.AttoDelta(9e12)); err == nil {
		t.Error("a delta below the releases' own passed")
	}
	if d, err := own.Delta(privacy.MicroEpsilon(10_000)); err != nil || math.Abs(d.Float()-1e-5) > 1e-9 {
		t.Errorf("ten deltas of 1e-6 are %s (%v)", d, err)
	}
	for want, f := range map[string]func() error{
		"number of releases is 0, must be from 1 to 16777216": func() error { _, err := NewBatch(0, approximate(t, 1, 0)); return err },
		"cost of a release is 0, must be greater than 0":      func() error { _, err := NewBatch(1, ApproximateCost{}); return err },
		"batch was not made by NewBatch":                      func() error { _, err := Batch{}.Delta(privacy.MicroEpsilon(1)); return err },
		"epsilon is -0.000001, must be at least 0":            func() error { _, err := few.Delta(privacy.MicroEpsilon(-1)); return err },
		"epsilon of a release is 1000000000000, out of range for 10000000 of them": func() error {
			b, _ := NewBatch(1e7, approximate(t, 1e18, 0))
			_, err := b.Cost(privacy.AttoDelta(1))
			return err
		},
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
