package sparse

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestNoiseTakesWhatItCosts: the losses that Ask's proof counts, from the noises' own laws: a step of Δ of every run's
// threshold, of Δ or 2Δ of every positive's comparison, and of Δ of every value.
func TestNoiseTakesWhatItCosts(t *testing.T) {
	perStep := func(d noise.Distribution) float64 { return math.Log(float64(d.Mass(0) / d.Mass(1))) }
	near := func(name string, s Spec, got, want float64) {
		t.Helper()
		if got > want*(1+1e-9) || got < want*(1-1e-5) {
			t.Errorf("%s of %+v take %.9f, paid %.9f", name, s, got, want)
		}
	}
	for _, s := range []Spec{
		{Positives: 1, Sensitivity: 1, Bits: epsilon(1e6)}, {Positives: 5, Restarts: 3, Sensitivity: 7, Bits: epsilon(1e6), Values: epsilon(5e5)},
		{Positives: 5, Restarts: 3, Sensitivity: 7, Monotone: true, Bits: epsilon(3e6), Values: rho(2e11)},
		{Positives: 4, Sensitivity: 3, Bits: rho(5e11), Values: rho(1e11)}, {Positives: 4, Sensitivity: 3, Monotone: true, Bits: rho(5e11), Values: epsilon(1e6)},
	} {
		for _, s.Shape = range []Shape{Geometric, Laplace} {
			m := made(t, s)
			delta, c, runs := float64(s.Sensitivity), float64(s.Positives), float64(1+s.Restarts)
			answers := c
			if s.Bits.Rho.Pico() > 0 {
				answers, runs = 1, 1
			}
			if !s.Monotone {
				answers *= 2
			}
			bits := runs*delta*perStep(m.threshold) + answers*delta*perStep(m.comparison)
			if s.Bits.Rho.Pico() > 0 {
				near("bits", s, c*bits*bits/2, s.Bits.Rho.Float())
			} else {
				near("bits", s, bits, s.Bits.Epsilon.Float())
			}
			switch {
			case s.Values.Epsilon.Micro() > 0:
				near("values", s, c*delta*perStep(m.value), s.Values.Epsilon.Float())
			case s.Values.Rho.Pico() > 0:
				near("values", s, c*delta*delta/(2*m.value.Variance()), s.Values.Rho.Float())
			}
		}
	}
}

// TestACostBeyondEveryBudgetFitsNone: where the ρ of an ε is beyond what budgets can name, what is said does not fit
// either.
func TestACostBeyondEveryBudgetFitsNone(t *testing.T) {
	largest, err := privacy.ParseRho("1000000")
	if err != nil {
		t.Fatal(err)
	}
	cost, err := made(t, Spec{Positives: 1, Sensitivity: 1, Shape: Laplace, Bits: epsilon(1e12), Values: epsilon(1e12)}).Cost(privacy.ZCDP)
	if err != nil || cost.Fits(privacy.Cost{Rho: largest}) {
		t.Errorf("%v fits into %v (%v)", cost, largest, err)
	}
}

// TestThresholdsAreDrawnAnewUnderRho: after each positive there, and never under an ε, where it was paid once.
func TestThresholdsAreDrawnAnewUnderRho(t *testing.T) {
	for _, c := range []struct {
		bits privacy.Cost
		anew bool
	}{{epsilon(1e6), false}, {rho(5e11), true}} {
		i := opened(t, made(t, Spec{Positives: 40, Sensitivity: 1000, Shape: Laplace, Bits: c.bits}), seeded(60))
		seen := map[int64]bool{i.threshold: true}
		for range 30 {
			if a, err := i.Ask(privacy.Seal[int64](0), -most); err != nil || !a.Value().Above {
				t.Fatal(a, err)
			}
			seen[i.threshold] = true
		}
		if anew := len(seen) > 20; anew != c.anew || !anew && len(seen) > 1 {
			t.Errorf("%v: %d thresholds after 30 positives", c.bits, len(seen))
		}
	}
}
