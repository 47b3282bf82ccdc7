package selection

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Expected returns the expected loss of one draw when the losses are these: what a planner asks of public guesses. The
// noise of NoisyMax is summed up where it has mass.
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
	case NoisyMax:
		d, err := laplace(m.rate)
		if err != nil {
			return math.NaN()
		}
		return noisyMaxExpected(losses, d, r)
	}
	return math.NaN()
}

// flipped: all coins may be thrown at once, and a uniform one of the heads taken; so P(i) = p_i·∫ Π_{j≠i} (1 − p_j + p_j·x) dx
// over [0, 1], p_j the coins' probabilities: x^heads averages to 1/(heads+1). Gauss-Legendre on pieces that halve towards
// x = 1, where it is steep.
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

// noisyMaxExpected sums over the value of the largest: P(all ≤ v), candidates before the winner strictly below.
func noisyMaxExpected(losses []uint64, d noise.Distribution, r float64) float64 {
	q := math.Exp(-r)
	atMost := func(v float64) float64 { // P(noise ≤ v)
		if v >= 0 {
			return 1 - math.Pow(q, v+1)/(1+q)
		}
		return math.Pow(q, -v) / (1 + q)
	}
	reach := int64(60/r) + 1
	mean := 0.0
	for v := -reach; v <= reach+int64(2*math.Log(float64(len(losses)))/r); v++ {
		product, zero := 0.0, false
		for _, g := range losses {
			p := atMost(float64(v) + float64(g))
			product += math.Log(p)
			zero = zero || p == 0
		}
		if zero || product < -700 {
			continue
		}
		earlier := 1.0
		for _, g := range losses {
			at := float64(v) + float64(g)
			mass := float64(d.Mass(v + int64(g)))
			mean += float64(g) * mass / atMost(at) * math.Exp(product) * earlier
			earlier *= atMost(at-1) / atMost(at)
		}
	}
	return mean
}

// LossBound returns a loss that a draw exceeds with probability at most beta, whatever the scores are.
//
// Exponential mechanism: at most candidates·exp(−rate·t) (McSherry and Talwar 2007; theorem 6 of lecture notes on it);
// permute-and-flip exceeds no loss more often. Noisy max: some noise is by t above the best's; two discrete Laplace
// noises differ by at least t with probability at most (2 + rate·t)/4·exp(−rate·t), up to the rounding of t.
func (m Mechanism) LossBound(beta noise.Probability) float64 {
	if m.rule == 0 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	r, others := m.rate.Float(), math.Log(float64(m.scores.candidates)/float64(beta))
	if m.rule != NoisyMax {
		return others / r
	}
	low, high := 0.0, 4*others
	for range 100 {
		if x := (low + high) / 2; others-x+math.Log((2+x)/4) > 0 {
			low = x
		} else {
			high = x
		}
	}
	return high/r + 1
}

// LossBound returns a loss that no place exceeds but with probability at most beta: how far the score chosen for a place
// is below the best left (Gumbel, Peeling) or below the true one of the place (Joint, Bins).
func (t Top) LossBound(beta noise.Probability) float64 {
	if t.method == 0 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	d, k, b := float64(t.scores.candidates), float64(t.k), float64(beta)
	switch t.method {
	case Bins:
		return 2 * float64(t.noise.HalfWidthOfSum(1, beta/noise.Probability(d)))
	case Joint:
		n := big.NewInt(1)
		n.MulRange(int64(t.scores.candidates-t.k+1), int64(t.scores.candidates))
		mantissa := new(big.Float)
		exponent := new(big.Float).SetInt(n).MantExp(mantissa)
		m, _ := mantissa.Float64()
		return (math.Log(m) + float64(exponent)*math.Ln2 - math.Log(b)) / t.rate.Float()
	}
	return math.Log(d*k/b) / t.rate.Float()
}
