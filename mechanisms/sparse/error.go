package sparse

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// ratio returns q = P(n+1)/P(n) of a geometric noise, which is that of the Laplace noise it is one side of.
func ratio(d noise.Distribution) float64 { return float64(d.Mass(1)) / float64(d.Mass(0)) }

// geometricMean returns q/(1−q).
func geometricMean(d noise.Distribution) float64 {
	q := ratio(d)
	return q / (1 - q)
}

// Margin returns an α such that, with probability at least 1 − beta, a query that is at least α above its threshold is
// said to be above, and one that is α below it below, as long as the instance answers.
//
// Neither one of the runs' thresholds nor the comparison is further out than beta/2 allows. Noise of one side errs
// towards "below" by the threshold's alone, towards "above" by the comparison's alone.
func (m Mechanism) Margin(beta noise.Probability) float64 {
	if m.spec.Positives == 0 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	thresholds := 1 + m.spec.Restarts
	if m.refreshed {
		thresholds = m.spec.Positives
	}
	reach := func(d noise.Distribution, draws int) float64 { // P(noise ≥ x) ≤ q^x
		return math.Ceil(math.Log(2*float64(draws)/float64(beta)) / -math.Log(ratio(d)))
	}
	offset := float64(m.offset)
	return max(reach(m.threshold, thresholds)+offset, reach(m.comparison, 1)-offset)
}
