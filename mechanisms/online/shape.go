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

// tuning is the part of a shape that privacy and the promised width leave free; it decides how many queries are hard. A
// low threshold leaves more room for noise but doubts more; exact answers teach more but cost more.
type tuning struct {
	doubted  float64 // threshold : width
	answered float64 // width of a hard answer : width
	learned  float64 // half of the slab that a hard answer leaves to a hypothesis : width
}

// The first is the published setting. The second was chosen on the synthetic rows of BenchmarkCovidLike.
var (
	published = tuning{doubted: .5, answered: 1, learned: .5}
	tuned     = tuning{doubted: .65, answered: .6, learned: .2}
)

func (r Rule) tuning() tuning {
	if r == TheoryStep {
		return published
	}
	return tuned
}

// shapeOf finds the cheapest shape with the target's miss.
//
// Derivation: a hypothesis that is off by at least the width passes if the difference of comparison noise and threshold
// noise exceeds width − threshold; a hard answer is off by its own noise. Both tails are set to miss, which leaves the
// ratio of the two scales, searched on a grid.
func shapeOf(s Spec, miss noise.Probability) shape {
	best := shape{cost: math.Inf(1)}
	updates, restarts := float64(s.Updates), float64(s.Restarts)
	tuning := s.Rule.tuning()
	answer := tuning.answered / -math.Log(float64(miss))
	if s.Accountant == privacy.ZCDP {
		answer = tuning.answered / normalQuantile(float64(miss))
	}
	for i := range 121 {
		ratio := math.Pow(10, -2+float64(i)*.02) // threshold scale : comparison scale
		comparison := (1 - tuning.doubted) / reach(ratio, float64(miss))
		m := shape{threshold: tuning.doubted, thresholdScale: ratio * comparison, comparisonScale: comparison, answerScale: answer}
		if s.Accountant == privacy.Pure {
			m.cost = 1/m.thresholdScale + updates*(2/comparison+1/answer) + restarts*max(0, 1/m.thresholdScale-1/answer)
			m.cost *= 1e6
		} else {
			instance := 1/m.thresholdScale + 2/comparison
			m.cost = updates * (instance*instance/2 + 1/(2*answer*answer)) * 1e12
		}
		if m.cost < best.cost {
			best = m
		}
	}
	return best
}

// reach returns the x with P(A + B > x) = miss for independent Laplace noise of scales ratio and 1.
func reach(ratio, miss float64) float64 {
	low, high := 0., 1.
	for differenceTail(ratio, 1, high) > miss {
		high *= 2
	}
	for range 100 {
		middle := (low + high) / 2
		if differenceTail(ratio, 1, middle) > miss {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// differenceTail returns P(A + B > x), x ≥ 0, for independent Laplace noise of scales a and b: from the partial fractions
// of 1/((1+a²u²)(1+b²u²)), and the limit where the scales are equal.
func differenceTail(a, b, x float64) float64 {
	if math.Abs(a-b) < 1e-4*b {
		return (.5 + x/(4*b)) * math.Exp(-x/b)
	}
	return (a*a*math.Exp(-x/a) - b*b*math.Exp(-x/b)) / (2 * (a*a - b*b))
}

// normalQuantile returns the z with P(|Z| > z) = miss.
func normalQuantile(miss float64) float64 { return math.Sqrt2 * math.Erfcinv(miss) }

// Width returns how far off an answer may be, in rows: more with probability at most miss, each by itself, easy or hard.
// The tails are those of continuous noise, which the discrete noise follows within one grid step.
func (p Plan) Width(miss noise.Probability) int64 {
	if !p.valid || checkMiss(miss) != nil {
		return 0
	}
	d, err := p.sources()
	if err != nil {
		return 0
	}
	threshold, comparison := 1e6/float64(p.split.threshold.Micro()), 2e6/float64(p.split.comparison.Micro())
	easy := float64(p.threshold) + comparison*float64(p.moves)*reach(threshold/comparison, float64(miss)) + 1
	hard := float64(d.answer.HalfWidthOfSum(1, miss))
	return int64(math.Ceil(max(easy, hard) / float64(p.spec.Grid)))
}
