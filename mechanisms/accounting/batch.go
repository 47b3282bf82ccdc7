package accounting

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Batch is a number of releases of equal cost, fixed together before the first is drawn. Their queries may depend on
// earlier answers, their number and costs may not. It has no Charge: the optimal composition below is not a filter.
// Charge what the batch costs together (Approximate) to an ApproximateFilter.
//
// Claim: n releases, each (ε, δ)-DP, are together (ε_g, 1 − (1−δ)^n (1−δ_g))-DP with
//
//	δ_g = Σ_l max(0, P(l) − e^ε_g P(n−l)),  P binomial of n and e^ε/(1+e^ε),
//
// and for no smaller δ_g in general.
// Theorem (Kairouz, Oh, Viswanath 2015, Theorem 3.3): randomised response is the worst (ε, 0)-DP mechanism; an outcome of
// n of them with l truths has the probabilities P(l) and, on the neighbour, P(n−l), to be divided by the same binomial
// coefficient.
// Limits: sums of at most mostReleases terms, whose floating-point error is added.
type Batch struct {
	releases int64
	each     ApproximateCost
}

const mostReleases = 1 << 24

// NewBatch returns the batch of n releases.
func NewBatch(n int64, each ApproximateCost) (Batch, error) {
	if n < 1 || n > mostReleases {
		return Batch{}, fmt.Errorf("number of releases is %d, must be from 1 to %d", n, mostReleases)
	}
	if each.epsilon.Micro() <= 0 {
		return Batch{}, fmt.Errorf("cost of a release is %s, must be greater than 0", each.epsilon)
	}
	return Batch{n, each}, nil
}

// Delta returns the smallest δ, rounded up, for which the batch is (e, δ)-DP.
func (b Batch) Delta(e privacy.Epsilon) (privacy.Delta, error) {
	if b.releases == 0 {
		return privacy.Delta{}, fmt.Errorf("batch was not made by NewBatch")
	}
	if e.Micro() < 0 {
		return privacy.Delta{}, fmt.Errorf("epsilon is %s, must be at least 0", e)
	}
	d := b.delta(e.Float())
	if !(d < 1) {
		return privacy.Delta{}, fmt.Errorf("epsilon %s has no delta below 1 for %d releases", e, b.releases)
	}
	return privacy.AttoDelta(int64(max(1, math.Ceil(d*1e18)))), nil
}

// Cost returns the smallest ε, rounded up, for which the batch is (ε, d)-DP, as a cost.
func (b Batch) Cost(d privacy.Delta) (ApproximateCost, error) {
	if b.releases == 0 {
		return ApproximateCost{}, fmt.Errorf("batch was not made by NewBatch")
	}
	if err := checkDelta(d); err != nil {
		return ApproximateCost{}, err
	}
	low, high := int64(0), b.each.epsilon.Micro()
	if high > math.MaxInt64/4/b.releases {
		return ApproximateCost{}, fmt.Errorf("epsilon of a release is %s, out of range for %d of them", b.each.epsilon, b.releases)
	}
	high *= b.releases
	if b.delta(float64(high)/1e6) > d.Float() {
		return ApproximateCost{}, fmt.Errorf("delta is %s, must be more than what %d releases of %s leave", d, b.releases, b.each.delta)
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; b.delta(float64(middle)/1e6) <= d.Float()*(1-0x1p-50) {
			high = middle
		} else {
			low = middle
		}
	}
	return ApproximateCost{privacy.MicroEpsilon(high), d}, nil
}

// delta bounds 1 − (1−δ)^n (1−δ_g) from above.
func (b Batch) delta(e float64) float64 {
	own := -math.Expm1(float64(b.releases) * math.Log1p(-b.each.delta.Float()))
	optimal := 0.0
	if n := float64(b.releases); e < n*b.each.epsilon.Float() {
		optimal = responses(n, b.each.epsilon.Float(), e)
	}
	return (own + optimal - own*optimal) * (1 + 0x1p-40)
}

// responses bounds δ_g. The outcome with l truths has the loss (2l−n)ε, so its term is P(l)·(1 − exp(e − (2l−n)ε)),
// positive from l = ⌊(e/ε + n)/2⌋ + 1 on. Terms fall from the mode on by the ratio (n−l)/(l+1)·e^ε; ln P(l) loses at most
// some 2^-52 of the largest factorial's logarithm, which is added.
func responses(n, epsilon, e float64) float64 {
	logTotal := n * (epsilon + math.Log1p(math.Exp(-epsilon))) // ln (1+e^ε)^n
	factorial := func(x float64) float64 {
		v, _ := math.Lgamma(x + 1)
		return v
	}
	least := factorial(n)
	slack := (e + n*epsilon) * 0x1p-51 // of the loss
	sum := 0.0
	mode := n / (1 + math.Exp(-epsilon))
	for l := max(0, math.Floor((e/epsilon+n)/2)); l <= n; l++ {
		gain := -math.Expm1(e - (2*l-n)*epsilon - slack)
		if gain <= 0 {
			continue
		}
		term := math.Exp(least-factorial(l)-factorial(n-l)+l*epsilon-logTotal) * gain
		sum += term
		if l > mode && term < sum*1e-17 {
			sum += term * n // those left out
			break
		}
	}
	return sum * math.Exp(4*(least+logTotal)*0x1p-52)
}
