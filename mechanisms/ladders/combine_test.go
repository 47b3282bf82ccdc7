package ladders

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func TestCombine(t *testing.T) {
	const n = 20_000
	s := privacy.Sensitivity{L2Squared: 2}
	first, err := NewObserver(s, privacy.PicoRho(1e10))
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.Finer(s, privacy.PicoRho(4e10))
	if err != nil || second.Cost().Rho.Pico() != 3e10 {
		t.Fatal(second.Cost(), err)
	}
	truth := privacy.Seal(make([]int64, n))
	random := seeded(6)
	a, err := first.Observe(truth, random)
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.Observe(truth, random)
	if err != nil {
		t.Fatal(err)
	}
	both, err := Combine(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if v := both.Value().Variance; math.Abs(v-25) > 1e-9 { // L2²/(2·0.04)
		t.Errorf("variance is %g, that of one observation is 25", v)
	}
	claim := stattest.Moments{Variance: 25, Fourth: 3 * 25 * 25}
	for _, err := range []error{stattest.Mean(both.Value().Values, claim, stattest.Usual), stattest.Variance(both.Value().Values, claim, stattest.Usual)} {
		if err != nil {
			t.Errorf("seed %q: %v", seed, err)
		}
	}
	short := privacy.Published(Observation{[]float64{1}, 1})
	flat := privacy.Published(Observation{make([]float64, n), 0})
	for want, f := range map[string]func() error{
		"number of observations is 0, must be at least 1":              func() error { _, err := Combine(); return err },
		"observation 1 has 1 cells, must have 20000 like the first":    func() error { _, err := Combine(a, short); return err },
		"observation 1 has variance 0, must be greater than 0":         func() error { _, err := Combine(a, flat); return err },
		"observation 0 was never released":                             func() error { _, err := Combine(privacy.Released[Observation]{}); return err },
		"wanted rho is 0.01, must be greater than 0.01, which is paid": func() error { _, err := first.Finer(s, privacy.PicoRho(1e10)); return err },
		"rho is 0, must be greater than 0":                             func() error { _, err := NewObserver(s, privacy.Rho{}); return err },
		"squared L2 sensitivity is 0, must be greater than 0":          func() error { _, err := NewObserver(privacy.Sensitivity{}, privacy.PicoRho(1)); return err },
		"observer was not made by NewObserver":                         func() error { _, err := Observer{}.Observe(truth, random); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
