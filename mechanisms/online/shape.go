package online

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// shape is a session's noise as multiples of its width: halving the budget doubles them all (under zCDP: by √2). It
// decides the error alone; what it costs is computed from the rounded plan, exactly.
type shape struct {
	threshold                                    float64 // an answer of the hypothesis is doubted from this error on
	thresholdScale, comparisonScale, answerScale float64 // Laplace scales; under zCDP the answer's deviation
	cost                                         float64 // micro-units of ε at width 1, or pico-units of ρ
}

// What privacy and the promised width leave free, as multiples of the width; it decides how many queries are hard. A low
// trust leaves more room for noise but doubts more; exact answers teach more but cost more. Chosen on the synthetic rows
// of BenchmarkCovidLike.
const (
	trusted  = .3 // error of a hypothesis that is doubted needlessly with probability at most miss
	answered = .6 // width of a hard answer
	learned  = .2 // half of the slab that a hard answer leaves to a hypothesis
)

// shapeOf finds the cheapest shape with the target's miss.
//
// Derivation: the noise has one side, so that a hypothesis that is off by at least the width passes only if the
// threshold's noise exceeds the comparison's by width − threshold, and one that is off by the trusted part is doubted
// only if the comparison's exceeds the threshold's by threshold − trusted; a hard answer is off by its own noise. All
// three tails are set to miss. For a threshold this gives a scale each, of which exceeds depends on both but weakly:
// iterated. The threshold is searched on a grid.
func shapeOf(s Spec, miss noise.Probability) shape {
	best := shape{cost: math.Inf(1)}
	updates, restarts := float64(s.Updates), float64(s.Restarts)
	answer := answered / -math.Log(float64(miss))
	if s.Accountant == privacy.ZCDP {
		answer = answered / normalQuantile(float64(miss))
	}
	for i := 1; i < 200; i++ {
		at := trusted + (1-trusted)*float64(i)/200
		threshold, comparison := oneSidedScales(1-at, at-trusted, float64(miss))
		m := shape{threshold: at, thresholdScale: threshold, comparisonScale: comparison, answerScale: answer}
		if s.Accountant == privacy.Pure {
			m.cost = 1/threshold + updates*(2/comparison+1/answer) + restarts*max(0, 1/threshold-1/answer)
			m.cost *= 1e6
		} else {
			instance := 1/threshold + 2/comparison
			m.cost = updates * (instance*instance/2 + 1/(2*answer*answer)) * 1e12
		}
		if m.cost < best.cost {
			best = m
		}
	}
	return best
}

// oneSidedScales returns scales a and b of exponential noises A and B with P(A − B > above) = P(B − A > below) = miss.
func oneSidedScales(above, below, miss float64) (a, b float64) {
	a, b = above, below
	for range 60 {
		a, b = above/math.Log(a/((a+b)*miss)+1e-9), below/math.Log(b/((a+b)*miss)+1e-9)
		a, b = min(max(a, 1e-6*above), 4*above), min(max(b, 1e-6*below), 4*below)
	}
	return a, b
}

// exceeds returns the least k ≥ 0 with P(A − B ≥ k) ≤ miss for independent geometric noises of scales a and b: from
// Σ over B of P(A ≥ B + k) = exp(−k/a)·(1 − exp(−1/b))/(1 − exp(−1/a−1/b)).
func exceeds(a, b, miss float64) float64 {
	share := math.Expm1(-1/b) / math.Expm1(-1/a-1/b)
	return math.Ceil(max(0, a*math.Log(share/miss)))
}

// normalQuantile returns the z with P(|Z| > z) = miss.
func normalQuantile(miss float64) float64 { return math.Sqrt2 * math.Erfcinv(miss) }

// Width returns how far off an answer may be, easy or hard.
func (p Plan) Width(miss noise.Probability) int64 {
	if !p.valid || checkMiss(miss) != nil {
		return 0
	}
	d, err := p.sources()
	if err != nil {
		return 0
	}
	moves := float64(p.moves)
	threshold, comparison := moves*1e6/float64(p.split.threshold.Micro()), moves*2e6/float64(p.split.comparison.Micro())
	easy := float64(p.threshold) + exceeds(threshold, comparison, float64(miss)) // gap < threshold + (A − B)
	hard := float64(d.answer.HalfWidthOfSum(1, miss))
	return int64(math.Ceil(max(easy, hard)))
}
