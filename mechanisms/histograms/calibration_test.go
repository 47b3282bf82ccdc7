package histograms

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

var (
	bounded = []privacy.Contribution{
		oneRow, {Rows: 1, Neighbors: privacy.ReplaceOne}, {Rows: 3, Neighbors: privacy.AddRemove}, {Rows: 3, Neighbors: privacy.ReplaceOne},
	}
	paid = []privacy.Cost{eps(1), eps(.37), {Rho: privacy.PicoRho(5e11)}, {Rho: privacy.PicoRho(777_777_777_777)}}
)

// perStep returns the ε, or ρ, that a step of 1 takes: 1/t of a Laplace noise, 1/(2σ²) of a narrow Gaussian.
func perStep(d noise.Distribution) float64 { return math.Log(float64(d.Mass(0) / d.Mass(1))) }

// lost returns the ε, or ρ, that noise takes for numbers that move by so much.
func lost(d noise.Distribution, s privacy.Sensitivity, rows int64, pure bool) float64 {
	switch {
	case pure:
		return perStep(d) * float64(rows*s.L1)
	case d.Variance() < 5: // where that is not the parameter
		return perStep(d) * float64(rows*rows*s.L2Squared)
	}
	return float64(rows*rows*s.L2Squared) / (2 * d.Variance())
}

// TestDawaTakesWhatItCosts: what the noises of the partition and of any number of buckets lose, computed from them and the
// sensitivities, is the cost, not more and hardly less, for several rows a unit under both relations.
func TestDawaTakesWhatItCosts(t *testing.T) {
	for _, cost := range paid {
		for _, c := range bounded {
			d, err := NewDawa(64, c, cost)
			if err != nil {
				t.Fatal(err)
			}
			pure, steps := cost.Rho.Pico() == 0, c.Rows
			if c.Neighbors == privacy.ReplaceOne {
				steps *= 2
			}
			partition := 32 * float64(steps) * perStep(d.partition.noise)
			if !pure {
				partition *= partition / 2
			}
			for _, n := range []int{1, 2, 5, 64} {
				described, buckets, err := d.buckets(n)
				if err != nil {
					t.Fatal(err)
				}
				strategy, err := ranges.Open(described)
				if err != nil {
					t.Fatal(err)
				}
				all := partition + lost(buckets, strategy.Sensitivity(c.Neighbors), c.Rows, pure)
				if most := cost.Epsilon.Float() + cost.Rho.Float(); all > most*(1+1e-9) || all < most*(1-1e-5) {
					t.Errorf("%s, %+v, %d buckets: takes %.9f", cost, c, n, all)
				}
			}
		}
	}
}

// TestPrefixesTakeWhatTheyCost: the same for the noise of a tree of prefixes.
func TestPrefixesTakeWhatTheyCost(t *testing.T) {
	for _, cost := range paid {
		for _, c := range bounded {
			p := mustPrefixes(t, 12, 3, c, withDelta(cost, 1e12))
			times := int64(1)
			if c.Neighbors == privacy.ReplaceOne {
				times = 2
			}
			all := lost(p.noise, privacy.Sensitivity{L1: 4 * times, L2Squared: 4 * times}, c.Rows, cost.Rho.Pico() == 0)
			if most := cost.Epsilon.Float() + cost.Rho.Float(); all > most*(1+1e-9) || all < .8*most {
				t.Errorf("%s, %+v: takes %.9f", cost, c, all)
			}
		}
	}
}
