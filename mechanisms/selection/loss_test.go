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
	}{{Exponential, 11.18, 3.14, .01}, {PermuteAndFlip, 10.91, 1.75, .01}} {
		m := mustOf(New(c.rule, mustOf(Columns(4096))(t), replace, epsilon(1_000_000)))(t)
		worst := 0.0
		for gap := uint64(10); gap < 16; gap++ { // the worst is among them
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
			for rule := Exponential; rule <= PermuteAndFlip; rule++ {
				m := mustOf(New(rule, mustOf(Counts(max(2, len(losses))))(t), one, epsilon(micro)))(t)
				claim := map[Rule]func() []float64{
					Exponential:    func() []float64 { return exponentialTwin(losses, m.rate.Float()) },
					PermuteAndFlip: func() []float64 { return flipTwin(losses, m.rate.Float()) },
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
	for rule := Exponential; rule <= PermuteAndFlip; rule++ {
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

// Expected returns the expected loss of one draw when the losses are these: what a planner asks of public guesses.
func (m Mechanism) Expected(losses []uint64) float64 {
	r := m.rate.Float()
	switch m.rule {
	case Exponential:
		sum, mean := 0.0, 0.0
		for _, g := range losses {
			w := math.Exp(-r * float64(g))
			sum, mean = sum+w, mean+w*float64(g)
		}
		return mean / sum
	case PermuteAndFlip:
		return flipped(losses, r)
	}
	return math.NaN()
}

// flipped: all coins may be thrown at once, and a uniform one of the heads taken; so P(i) = p_i·∫ Π_{j≠i} (1 − p_j +
// p_j·x) dx over [0, 1], p_j the coins' probabilities: x^heads averages to 1/(heads+1). Gauss-Legendre on pieces that
// halve towards x = 1, where it is steep.
func flipped(losses []uint64, r float64) float64 {
	nodes, weights := legendre()
	alike := map[uint64]float64{}
	for _, g := range losses {
		alike[g]++
	}
	mean, high := 0.0, 1.0
	for piece := range 40 {
		low := high / 2
		if piece == 39 {
			low = 0
		}
		for at, node := range nodes {
			y := low + (high-low)*node // y = 1 − x
			product, sum := 0.0, 0.0
			for g, n := range alike {
				p := math.Exp(-r * float64(g))
				product += n * math.Log1p(-p*y)
				sum += n * float64(g) * p / (1 - p*y)
			}
			mean += weights[at] * (high - low) * math.Exp(product) * sum
		}
		high = low
	}
	return mean
}

// legendre returns nodes and weights of order 16 on [0, 1].
func legendre() (nodes, weights [16]float64) {
	for i := range 16 {
		x := math.Cos(math.Pi * (float64(i) + .75) / 16.5)
		slope := 0.0
		for range 50 {
			a, b := 1.0, x
			for k := 2.0; k <= 16; k++ {
				a, b = b, ((2*k-1)*x*b-(k-1)*a)/k
			}
			slope = 16 * (x*b - a) / (x*x - 1)
			x -= b / slope
		}
		nodes[i], weights[i] = (1-x)/2, 1/((1-x*x)*slope*slope)
	}
	return nodes, weights
}
