package sparse

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestNoiseTakesWhatItCosts: the losses that Ask's proof counts, from the noises' own laws: a step of Δ of every run's
// threshold, and of Δ or 2Δ of every positive's comparison.
func TestNoiseTakesWhatItCosts(t *testing.T) {
	perStep := func(d noise.Distribution) float64 { return math.Log(float64(d.Mass(0) / d.Mass(1))) }
	for _, s := range []Spec{
		{Positives: 1, Sensitivity: 1, Cost: epsilon(1e6)}, {Positives: 5, Restarts: 3, Sensitivity: 7, Cost: epsilon(1e6)},
		{Positives: 5, Restarts: 3, Sensitivity: 7, Monotone: true, Cost: epsilon(3e6)},
		{Positives: 4, Sensitivity: 3, Cost: rho(5e11)}, {Positives: 4, Sensitivity: 3, Monotone: true, Cost: rho(5e11)},
	} {
		m := made(t, s)
		delta, answers, runs := float64(s.Sensitivity), float64(s.Positives), float64(1+s.Restarts)
		if m.refreshed {
			answers, runs = 1, 1
		}
		if !s.Monotone {
			answers *= 2
		}
		takes, paid := runs*delta*perStep(m.threshold)+answers*delta*perStep(m.comparison), s.Cost.Epsilon.Float()
		if m.refreshed {
			takes, paid = float64(s.Positives)*takes*takes/2, s.Cost.Rho.Float()
		}
		if takes > paid*(1+1e-9) || takes < paid*(1-1e-5) {
			t.Errorf("answers of %+v take %.9f, paid %.9f", s, takes, paid)
		}
	}
}

// TestThresholdsAreDrawnAnewUnderRho: after each positive there, and never under an ε, where it was paid once.
func TestThresholdsAreDrawnAnewUnderRho(t *testing.T) {
	for _, c := range []struct {
		cost privacy.Cost
		anew bool
	}{{epsilon(1e6), false}, {rho(5e11), true}} {
		i := opened(t, made(t, Spec{Positives: 40, Sensitivity: 1000, Cost: c.cost}), seeded(60))
		seen := map[int64]bool{i.threshold: true}
		for range 30 {
			if a, err := i.Ask(privacy.Seal[int64](0), -most); err != nil || !a.Value() {
				t.Fatal(a, err)
			}
			seen[i.threshold] = true
		}
		if anew := len(seen) > 20; anew != c.anew || !anew && len(seen) > 1 {
			t.Errorf("%v: %d thresholds after 30 positives", c.cost, len(seen))
		}
	}
}

// TestNoiseStays: runs that were saved go on by the noise that is made of their Spec now. Were it other than at their
// opening, positives before and after might together cost more than was charged. The figures are version 0.2.0's.
func TestNoiseStays(t *testing.T) {
	for _, c := range []struct {
		spec                  Spec
		threshold, comparison [2]int64 // scales
		offset                int64
	}{
		{Spec{Positives: 5, Restarts: 1, Sensitivity: 7, Monotone: true, Cost: epsilon(1e6)},
			[2]int64{7e9, 175_931_467}, [2]int64{175e8, 324_068_533}, 14},
		{Spec{Positives: 5, Restarts: 1, Sensitivity: 7, Cost: epsilon(1e6)},
			[2]int64{7e9, 127_420_423}, [2]int64{35e9, 372_579_577}, 39},
		{Spec{Positives: 5, Sensitivity: 7, Monotone: true, Cost: rho(5e11)},
			[2]int64{35e8, 111_803_399}, [2]int64{7e9, 223_606_797}, 0},
		{Spec{Positives: 5, Sensitivity: 7, Cost: rho(5e11)},
			[2]int64{5e8, 12_345_913}, [2]int64{14e9, 274_370_813}, 11},
	} {
		m := made(t, c.spec)
		threshold, err := noise.New(noise.Laplace, c.threshold[0], c.threshold[1])
		comparison, failed := noise.New(noise.Laplace, c.comparison[0], c.comparison[1])
		if err != nil || failed != nil || m.threshold != threshold || m.comparison != comparison || m.offset != c.offset {
			t.Errorf("%+v: %+v, %+v and %d, was %+v, %+v and %d", c.spec, m.threshold, m.comparison, m.offset, threshold,
				comparison, c.offset)
		}
	}
}
