package mechanisms

import (
	"math"
	"math/rand"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestMixedError: the half-width of a sum over several releases is passed by no more of simulated sums than it says,
// and by not many fewer. Seed 5; of 40,000 draws at 95 % the share beyond is within 0.6 % of the bound (five
// deviations: a false alarm in 10^6), and at one unit less it is above 4 %.
func TestMixedError(t *testing.T) {
	c := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	fine, err := Plain(1, 12, c, privacy.Cost{Epsilon: privacy.MicroEpsilon(400_000)})
	if err != nil {
		t.Fatal(err)
	}
	coarse, err := Plain(1, 1, c, privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000)})
	if err != nil {
		t.Fatal(err)
	}
	confidence, _ := NewConfidence(.95)
	r := rand.New(rand.NewSource(5))
	for _, parts := range [][]Weighted{
		{{fine, 0, []Span{{0, 3}}, 1}, {coarse, 0, []Span{{0, 1}}, -1}},
		{{fine, 0, []Span{{0, 3}}, .75}, {coarse, 0, []Span{{0, 1}}, .25}},
		{{fine, 0, []Span{{0, 1}}, 1}, {fine, 0, []Span{{4, 9}}, -1}},
		{{coarse, 0, []Span{{0, 1}}, 2. / 3}, {fine, 0, []Span{{0, 12}}, 1. / 3}},
	} {
		e := MixedError(parts, confidence)
		const draws = 40_000
		beyond, less, squares := 0, 0, 0.
		for range draws {
			sum := 0.
			for _, p := range parts {
				d := float64(p.Spec.Counts().Noise.Num) / float64(p.Spec.Counts().Noise.Den)
				for range CellsIn(p.Spans) {
					sum += p.Weight * math.Round(laplace(r, d))
				}
			}
			off := int64(math.Abs(math.Round(sum)))
			squares += sum * sum
			if off > e.HalfWidth {
				beyond++
			}
			if off > e.HalfWidth-2 {
				less++
			}
		}
		if share := float64(beyond) / draws; share > .056 {
			t.Errorf("±%d is passed by %.2f %%", e.HalfWidth, 100*share)
		}
		if share := float64(less) / draws; share < .045 {
			t.Errorf("±%d is too wide: ±%d is passed by %.2f %% alone", e.HalfWidth, e.HalfWidth-2, 100*share)
		}
		if got := squares / draws; math.Abs(got/e.Variance-1) > .06 {
			t.Errorf("variance is %.1f, told %.1f", got, e.Variance)
		}
	}
}

// laplace draws continuous Laplace noise; rounded it is as good as the discrete one for scales of ten and more.
func laplace(r *rand.Rand, scale float64) float64 {
	u := r.Float64() - .5
	return -scale * math.Copysign(math.Log(1-2*math.Abs(u)), u)
}

// TestGreatWeightsAreToldApart: half-widths are remembered by what tells one sum from another, weights of millions too.
func TestGreatWeightsAreToldApart(t *testing.T) {
	seen := map[string]float64{}
	for _, weight := range []float64{1e-14, 1e-13, 1, 1 + 1e-9, 1e7, 2e7, 1e12} {
		_, key := keyOfTerms([]noise.Term{{Weight: weight, Count: 3}})
		if other, known := seen[string(key)]; known {
			t.Errorf("weights %g and %g have one key", weight, other)
		}
		seen[string(key)] = weight
	}
}
