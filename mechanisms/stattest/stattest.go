// Package stattest judges samples against claims: a distribution, its mean and variance, how often an interval holds,
// how well two neighbouring databases can be distinguished. Every judgement states the probability with which it
// rejects what is right (Alarm); whoever runs several adds them up. It is for tests: nothing that serves imports it.
package stattest

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Alarm is the probability of a false alarm of one judgement.
type Alarm float64

// Usual is the alarm of most judgements here: a thousand of them in one run raise one false alarm in ten thousand runs.
const Usual Alarm = 1e-7

// leastSamples is from where on the normal approximations below are trusted: at it, with the kurtosis of the Laplace,
// the tails of a mean of squares at z = 5.3 are within a factor of ten of the normal's.
const leastSamples = 10_000

// z returns the two-sided normal quantile: |z| is exceeded with probability a.
func (a Alarm) z() float64 { return -distuv.UnitNormal.Quantile(float64(a) / 2) }

// Moments are a claimed mean, variance and fourth central moment.
type Moments struct{ Mean, Variance, Fourth float64 }

// MomentsOf adds up the moments of an integer distribution symmetric about 0; mass must be negligible outside of
// ±reach.
func MomentsOf(mass func(k int64) float64, reach int64) Moments {
	m := Moments{}
	for k := reach; k > 0; k-- {
		square, w := float64(k)*float64(k), 2*mass(k)
		m.Variance += w * square
		m.Fourth += w * square * square
	}
	return m
}

// Mean judges the mean of samples: it differs from the claim by at most z standard errors.
func Mean(samples []float64, claim Moments, a Alarm) error {
	sum := 0.0
	for _, x := range samples {
		sum += x - claim.Mean
	}
	return normal("mean", sum/float64(len(samples)), claim.Variance, len(samples), a)
}

// Variance judges the mean squared distance of samples from the claimed mean; its own variance is (fourth −
// variance²)/n.
func Variance(samples []float64, claim Moments, a Alarm) error {
	sum := 0.0
	for _, x := range samples {
		sum += (x-claim.Mean)*(x-claim.Mean) - claim.Variance
	}
	return normal("variance", sum/float64(len(samples)), claim.Fourth-claim.Variance*claim.Variance, len(samples), a)
}

// normal judges the mean of n values that is claimed to be 0 with the variance of one of them.
func normal(what string, off float64, variance float64, n int, a Alarm) error {
	Spend(a)
	if n < leastSamples {
		return fmt.Errorf("%s: %d samples, must be at least %d", what, n, leastSamples)
	}
	deviation := math.Sqrt(variance / float64(n))
	if !(math.Abs(off) <= a.z()*deviation) {
		return fmt.Errorf("%s is off by %.6g, which is %.1f standard errors (allowed: %.1f)", what, off, off/deviation, a.z())
	}
	return nil
}

// ChiSquare judges integer samples against a distribution. Neighbouring values are pooled until each pool expects at
// least 50 samples; the two tails are pools. The statistic's distribution is taken to be χ².
func ChiSquare(samples []int64, mass func(k int64) float64, a Alarm) error {
	Spend(a)
	n := float64(len(samples))
	if len(samples) < leastSamples {
		return fmt.Errorf("chi-square: %d samples, must be at least %d", len(samples), leastSamples)
	}
	ordered := slices.Clone(samples)
	slices.Sort(ordered)
	const pooled = 50
	statistic, pools := 0.0, 0
	expected, seen, total, counted, at := 0.0, 0.0, 0.0, 0, 0
	for k := ordered[0]; k <= ordered[len(ordered)-1]; k++ {
		expected += n * mass(k)
		for at < len(ordered) && ordered[at] == k {
			at++
			seen++
		}
		if rest := n - total - expected; expected < pooled || rest < pooled {
			continue
		}
		if pools == 0 {
			expected += n * below(mass, ordered[0])
		}
		statistic += (seen - expected) * (seen - expected) / expected
		total += expected
		counted += int(seen)
		pools++
		expected, seen = 0, 0
	}
	expected, seen = n-total, n-float64(counted)
	statistic += (seen - expected) * (seen - expected) / expected
	if pools == 0 {
		return fmt.Errorf("chi-square: one pool says nothing")
	}
	p := mathext.GammaIncRegComp(float64(pools)/2, statistic/2)
	if !(p >= float64(a)) {
		return fmt.Errorf("chi-square is %.1f over %d pools, p = %.3g (allowed: %.3g)", statistic, pools+1, p, float64(a))
	}
	return nil
}

// below returns the mass below k, as far as it shows.
func below(mass func(k int64) float64, k int64) float64 {
	sum := 0.0
	for {
		k--
		m := mass(k)
		sum += m
		if m < 1e-12 {
			return sum
		}
	}
}

// Coverage is how often an interval held, and how often it should.
type Coverage struct {
	Hits, Trials int
	Claim        float64
}

// Exactly judges a coverage from both sides by the binomial distribution.
func (c Coverage) Exactly(a Alarm) error {
	Spend(a)
	low, high := interval(c.Hits, c.Trials, a/2)
	if !(low <= c.Claim && c.Claim <= high) {
		return fmt.Errorf("coverage is %d of %d, between %.5f and %.5f; claimed %.5f", c.Hits, c.Trials, low, high, c.Claim)
	}
	return nil
}

// AtLeast judges a coverage from below.
func (c Coverage) AtLeast(a Alarm) error {
	Spend(a)
	if _, high := interval(c.Hits, c.Trials, a); !(c.Claim <= high) {
		return fmt.Errorf("coverage is %d of %d, at most %.5f; claimed at least %.5f", c.Hits, c.Trials, high, c.Claim)
	}
	return nil
}

// interval returns the Clopper-Pearson interval of a probability, each side wrong with probability a.
func interval(hits, trials int, a Alarm) (low, high float64) {
	return least(hits, trials, a), 1 - least(trials-hits, trials, a)
}

// maxExact is up to how many trials the binomial tail is computed. The library's incomplete beta function loses digits
// with its arguments: at 10^7 trials a tail is off by a thousandth, at 10^9 it may be negative.
const maxExact = 1 << 20

// atLeast is P(Binomial(n, p) ≥ k), I_p(k, n−k+1), or, of more than maxExact trials, Chernoff's bound of it, which is
// never below it: a judgement is then wrong less often than it says, and sees a little less.
func atLeast(k, n int, p float64) float64 {
	q := float64(k) / float64(n)
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0 || k > n:
		return 0
	case n <= maxExact:
		return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
	case q <= p:
		return 1
	}
	divergence := q * math.Log(q/p)
	if q < 1 {
		divergence += (1 - q) * math.Log((1-q)/(1-p))
	}
	return math.Exp(-float64(n) * divergence)
}

// least returns the largest p with P(Binomial(trials, p) ≥ hits) ≤ a, from below. It is
// bisected, since the library's inverse is far off for few hits and for few misses.
func least(hits, trials int, a Alarm) float64 {
	if hits == 0 {
		return 0
	}
	low, high := 0., 1.
	for {
		p := low + (high-low)/2
		switch {
		case p <= low || p >= high:
			return low
		case atLeast(hits, trials, p) <= float64(a):
			low = p
		default:
			high = p
		}
	}
}
