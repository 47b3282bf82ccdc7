package noise

import "math"

// steepest is the ends of the search for θ, as logarithms: from noises of 2^40 with weights of 10^12, a million of
// them, to weights of 10^-12 of noises that are 0 but once in exp(10^19).
const steepest = 160

// reachOf returns an x with P(|X| ≥ x) ≤ alpha: the least (ln(2/alpha) + ln E exp(θX))/θ over θ. Every θ proves its own
// (Chernoff 1952), and the least is where the search ends, as the fraction falls before its least and rises after it:
// its derivative has the sign of θK′ − K − ln(2/alpha), which grows because K is convex.
func reachOf(sum []summand, alpha Probability) float64 {
	moments, farthest := make([]func(float64) float64, len(sum)), math.Inf(1)
	for i, s := range sum {
		var limit float64
		if i > 0 && sum[i-1].of == s.of {
			moments[i] = moments[i-1]
			_, limit = s.of.logMoment()
		} else {
			moments[i], limit = s.of.logMoment()
		}
		farthest = min(farthest, limit/s.weight)
	}
	goal := math.Log(2) - math.Log(float64(alpha))
	at := func(logTheta float64) float64 {
		theta := math.Exp(logTheta)
		if theta >= farthest {
			return math.Inf(1)
		}
		total := goal
		for i, s := range sum {
			total += s.count * moments[i](s.weight*theta)
		}
		return total / theta
	}
	const golden = 0.6180339887498949
	low, high := -float64(steepest), min(steepest, math.Log(farthest))
	a, b := high-(high-low)*golden, low+(high-low)*golden
	atA, atB := at(a), at(b)
	for high-low > 1e-9 {
		if atA <= atB {
			high, b, atB = b, a, atA
			a = high - (high-low)*golden
			atA = at(a)
		} else {
			low, a, atA = a, b, atB
			b = low + (high-low)*golden
			atB = at(b)
		}
	}
	return min(atA, atB) * (1 + 1e-9)
}
