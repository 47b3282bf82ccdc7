package sparse

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// ratio returns q = P(n+1)/P(n) of a Laplace noise, n ≥ 0.
func ratio(d noise.Distribution) float64 { return float64(d.Mass(1)) / float64(d.Mass(0)) }

// geometricMean returns q/(1−q).
func geometricMean(d noise.Distribution) float64 {
	q := ratio(d)
	return q / (1 - q)
}

func (m Mechanism) variance(d noise.Distribution) float64 {
	if m.spec.Shape == Laplace {
		return d.Variance()
	}
	q := ratio(d)
	return q / ((1 - q) * (1 - q))
}

// Deviation returns the standard deviation of the noise of one comparison, threshold's and query's together.
func (m Mechanism) Deviation() float64 {
	return math.Sqrt(m.variance(m.threshold) + m.variance(m.comparison))
}

// Margin returns an α such that, with probability at least 1 − beta, each of the queries that is at least α above its
// threshold is said to be above, and each that is α below it below, as long as the instance answers.
//
// Of the runs' thresholds, and of all comparisons, none is further out than its share of beta/2 allows. Noise of one
// side errs towards "below" by the threshold's alone, towards "above" by the comparison's alone.
func (m Mechanism) Margin(queries int, beta noise.Probability) float64 {
	if m.spec.Positives == 0 || queries < 1 || !(beta > 0 && beta < 1) {
		return math.NaN()
	}
	thresholds := 1 + m.spec.Restarts
	if m.refreshed {
		thresholds = m.spec.Positives
	}
	reach := func(d noise.Distribution, draws int) float64 { // P(noise ≥ x) ≤ q^x, on each side for the Laplace
		return math.Ceil(math.Log(2*float64(draws)/float64(beta)) / -math.Log(ratio(d)))
	}
	first, second, offset := reach(m.threshold, thresholds), reach(m.comparison, queries), float64(m.offset)
	if m.spec.Shape == Laplace {
		return first + second
	}
	return max(first+offset, second-offset)
}
