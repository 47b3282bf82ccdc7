package keys

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// guard is more than the relative floating-point error of any tail below; thresholds are found with tails that are
// larger by so much.
const guard = 1e-9

// gaussianThreshold sets the smallest threshold with P(1+noise ≥ threshold) ≤ each, and at least 1+σ.
func (r *Rule) gaussianThreshold(each privacy.Delta) error {
	sigma := math.Sqrt(r.sigma2())
	if reach := 40 * (sigma + 1); !(reach < maxThreshold) {
		return fmt.Errorf("deviation is %.3g, must be below %d: the cost is too small", sigma, int64(maxThreshold/40))
	}
	low, high := math.Ceil(sigma)-1, math.Ceil(20*sigma)+20 // the tail at high is far below 1e-18
	for high-low > 1 {
		if middle := math.Floor((low + high) / 2); r.gaussianTail(int64(middle))*(1+guard) <= each.Float()*(1-guard) {
			high = middle
		} else {
			low = middle
		}
	}
	r.threshold = int64(high) + 1
	return nil
}

func (r Rule) sigma2() float64 { return float64(r.num) / float64(r.den) }

// widest is the deviation up to which Gaussian tails are summed term by term.
const widest = 1 << 12

// gaussianTail returns P(noise ≥ m), for m ≥ 0, or beyond a deviation of widest and for m > σ an upper bound of it.
//
// The bound is the normal distribution's tail from m−½ on: exp(−x²/(2σ²)) is convex beyond σ, so each term is at most
// the integral over the unit around it, and by Poisson summation the terms' total is at least the integral over all
// reals.
func (r Rule) gaussianTail(m int64) float64 {
	s2 := r.sigma2()
	if s2 > widest*widest {
		return math.Erfc((float64(m)-.5)/math.Sqrt(2*s2)) / 2
	}
	first := float64(r.noise.Mass(m))
	if first == 0 {
		return 0
	}
	sum, x := 0.0, float64(m)
	last := math.Sqrt(x*x+90*s2) + 1 // where terms are exp(−45) of the first
	for k := math.Ceil(last) - x; k >= 0; k-- {
		sum += math.Exp(-k * (2*x + k) / (2 * s2))
	}
	return first * sum
}

// Chance returns the probability that a key with n units is shown.
func (r Rule) Chance(n int64) noise.Probability {
	switch {
	case n <= 0 || !r.Valid():
		return 0
	case r.kind == Truncated:
		share := float64(r.mixed) / mixture
		return noise.Probability(share*r.truncatedTail(r.threshold-1-n, r.threshold-2) + (1-share)*r.truncatedTail(r.threshold-n, r.threshold-1))
	}
	if m := r.threshold - n; m > 0 {
		return noise.Probability(r.gaussianTail(m))
	}
	return noise.Probability(1 - r.gaussianTail(1-r.threshold+n))
}

// Half returns the smallest number of units from which on a key is shown with probability at least one half.
func (r Rule) Half() int64 {
	low, high := int64(0), 2*r.threshold+1
	for high-low > 1 {
		if middle := low + (high-low)/2; r.Chance(middle) >= .5 {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// Variance returns the noise's variance.
func (r Rule) Variance() float64 {
	switch {
	case !r.Valid():
		return math.NaN()
	case r.kind == Truncated:
		return r.truncatedVariance()
	}
	return r.noise.Variance()
}
