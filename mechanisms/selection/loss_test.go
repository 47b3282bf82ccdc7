package selection

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// oneBest are 4096 candidates, all but one gap below the best.
func oneBest(gap uint64) []uint64 {
	losses := make([]uint64, 4096)
	for i := range losses {
		losses[i] = gap
	}
	losses[2048] = 0
	return losses
}

// TestBestKnownLosses: 4096 candidates, ε = 1, sensitivity 1: the figures of the literature's formulas, by ours.
func TestBestKnownLosses(t *testing.T) {
	replace := privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	for _, c := range []struct {
		rule      Rule
		worst, at float64
		within    float64
	}{{Exponential, 11.18, 3.14, .01}, {PermuteAndFlip, 10.91, 1.75, .01}, {NoisyMax, 10.93, 3.09, .05}} {
		m := mustOf(New(c.rule, mustOf(Columns(4096))(t), replace, epsilon(1_000_000)))(t)
		worst := 0.0
		for gap := uint64(8); gap < 24; gap++ {
			worst = max(worst, m.Expected(oneBest(gap)))
		}
		at := m.Expected(oneBest(20))
		t.Logf("%-22v worst %.3f (best known %.2f), gap 20 %.3f (%.2f)", c.rule, worst, c.worst, at, c.at)
		if math.Abs(worst-c.worst) > c.within+.05 || math.Abs(at-c.at) > c.within {
			t.Errorf("%v: worst %.4f, want %.2f; at gap 20 %.4f, want %.2f", c.rule, worst, c.worst, at, c.at)
		}
		monotone := mustOf(New(c.rule, mustOf(Columns(4096))(t), one, epsilon(1_000_000)))(t)
		if half := monotone.Expected(oneBest(10)); math.Abs(half-at/2) > .02*at {
			t.Errorf("%v: monotone %.4f at half the gap, want half of %.4f", c.rule, half, at)
		}
	}
}

// TestExpectedIsTheMeanOfTheTwins.
func TestExpectedIsTheMeanOfTheTwins(t *testing.T) {
	for _, losses := range shapes[:5] {
		for _, micro := range []int64{100_000, 700_000, 3_000_000} {
			for rule := Exponential; rule <= NoisyMax; rule++ {
				m := mustOf(New(rule, mustOf(Counts(max(2, len(losses))))(t), one, epsilon(micro)))(t)
				claim := map[Rule]func() []float64{
					Exponential:    func() []float64 { return exponentialTwin(losses, m.rate.Float()) },
					PermuteAndFlip: func() []float64 { return flipTwin(losses, m.rate.Float()) },
					NoisyMax:       func() []float64 { return noisyTwin(losses, mustOf(laplace(m.rate))(t), 700) },
				}[rule]()
				want := 0.0
				for i, p := range claim {
					want += p * float64(losses[i])
				}
				if got := m.Expected(losses); math.Abs(got-want) > 1e-6*(1+want) {
					t.Errorf("%v of %v at rate %v: %v, want %v", rule, losses, m.rate, got, want)
				}
			}
		}
	}
}

// TestLossBoundsHold on scores that make losses likely: one best, the others at the bound.
func TestLossBoundsHold(t *testing.T) {
	const candidates, beta = 200, .1
	n := stattest.Length(3000, 30_000)
	cells := make([]int64, candidates)
	exceed := func(bound float64, draw func() []int) stattest.Coverage {
		for i := range cells {
			cells[i] = 1000 - int64(bound) - 1
		}
		cells[0] = 1000
		hits := 0
		for range n {
			chosen := draw()
			if cells[chosen[0]] == 1000 {
				hits++
			}
		}
		return stattest.Coverage{Hits: hits, Trials: n, Claim: 1 - beta}
	}
	scores := mustOf(Counts(candidates))(t)
	random := seeded(30)
	for rule := Exponential; rule <= NoisyMax; rule++ {
		m := mustOf(New(rule, scores, one, epsilon(500_000)))(t)
		c := exceed(m.LossBound(beta), func() []int { return []int{mustOf(m.Select(privacy.Seal(cells), random))(t).Value()} })
		if err := c.AtLeast(alarm); err != nil {
			t.Errorf("%v: %v", rule, err)
		}
	}
	for method := Gumbel; method <= Bins; method++ {
		top := mustOf(NewTop(method, 3, scores, one, epsilon(1_500_000)))(t)
		c := exceed(top.LossBound(beta), func() []int { return mustOf(top.Select(privacy.Seal(cells), random))(t).Value() })
		if err := c.AtLeast(alarm); err != nil {
			t.Errorf("%v: %v", method, err)
		}
	}
}

func TestLossBoundRefuses(t *testing.T) {
	if !math.IsNaN((Mechanism{}).LossBound(.1)) || !math.IsNaN((Top{}).LossBound(noise.Probability(math.NaN()))) {
		t.Error("a bound of nothing")
	}
}
