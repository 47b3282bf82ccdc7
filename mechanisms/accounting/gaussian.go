package accounting

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Variance is σ² = Num/Den of Gaussian noise.
type Variance struct{ Num, Den int64 }

// Float returns σ².
func (v Variance) Float() float64 { return float64(v.Num) / float64(v.Den) }

// GaussianVariance returns the smallest σ², rounded up, for which real-valued normal noise on vectors at a squared
// distance of at most l2squared is (ε, δ)-DP.
//
// Theorem (Balle and Wang 2018, Theorem 8): with Δ² = l2squared, exactly when
//
//	δ ≥ Φ(Δ/(2σ) − εσ/Δ) − e^ε Φ(−Δ/(2σ) − εσ/Δ).
//
// It is the yardstick; what a computer draws is discrete: DiscreteGaussianVariance.
func GaussianVariance(e privacy.Epsilon, d privacy.Delta, l2squared int64) (Variance, error) {
	if l2squared < 1 || l2squared > mostCoordinates {
		return Variance{}, fmt.Errorf("squared sensitivity is %d, must be from 1 to %d", l2squared, int64(mostCoordinates))
	}
	return calibrated(e, d, func(sigma2 float64) float64 {
		return normalDelta(e.Float(), sigma2/float64(l2squared))
	})
}

// DiscreteGaussianVariance returns a σ² for which discrete Gaussian noise on each of any number of integers, of which
// neighbours differ in at most k by 1 each, is (ε, δ)-DP: a histogram of units under add-remove, each in at most k cells.
// Under replace-one k is twice that.
//
// Claim: the δ that bounds below proves for the returned σ² is at most d; the smallest such σ² to within 1e-9 of it.
// Proof: fewer than k differing integers are a post-processing of k (replace a noisy integer by fresh noise). With all k
// noises N_i, S = ΣN_i, the loss of an outcome is (2S+k)/(2σ²), so that the hockey-stick divergence is
//
//	P(S ≥ j) − e^ε P(S ≥ j+k),  j = ⌊εσ² − k/2⌋ + 1
//
// and S is within e^±τ of one discrete Gaussian of variance kσ², see fold. So δ ≤ e^τ P(≥ j) − e^(ε−τ) P(≥ j+k) of that.
// Limits: differences by more than 1 are not covered: the discrete Gaussian is not invariant under rotation, and a norm
// alone does not determine its δ. Such releases are accounted by zCDP.
func DiscreteGaussianVariance(e privacy.Epsilon, d privacy.Delta, k int64) (Variance, error) {
	if k < 1 || k > mostCoordinates {
		return Variance{}, fmt.Errorf("number of coordinates is %d, must be from 1 to %d", k, int64(mostCoordinates))
	}
	return calibrated(e, d, func(sigma2 float64) float64 { return discreteDelta(e.Float(), sigma2, k) })
}

const mostCoordinates = 1 << 22

// calibrated returns the smallest rational for which delta, an upper bound, is at most d.
func calibrated(e privacy.Epsilon, d privacy.Delta, delta func(sigma2 float64) float64) (Variance, error) {
	if err := checkPair(e, d); err != nil {
		return Variance{}, err
	}
	goal := d.Float() * (1 - 0x1p-50)
	low, high := math.Ldexp(1, -60), 1.
	for delta(high) > goal {
		if low, high = high, high*2; high > 1<<61 {
			return Variance{}, fmt.Errorf("variance for epsilon %s and delta %s is out of range", e, d)
		}
	}
	for high/low > 1+1e-13 {
		middle := math.Sqrt(low * high)
		if middle <= low || middle >= high {
			break
		}
		if delta(middle) <= goal {
			high = middle
		} else {
			low = middle
		}
	}
	for grow := 1.; ; grow *= 2 { // a rational of at most 52 bits; where delta is not monotone, the next that is proved
		_, exponent := math.Frexp(high)
		bits := min(max(52-exponent, 0), 61)
		num := math.Ceil(math.Ldexp(high, bits))
		if v := (Variance{int64(num), 1 << bits}); num < 1<<62 && delta(v.Float()) <= goal {
			return v, nil
		}
		if high *= 1 + grow*0x1p-51; !(high < 1<<61) {
			return Variance{}, fmt.Errorf("variance for epsilon %s and delta %s is out of range", e, d)
		}
	}
}

// normalDelta bounds Balle and Wang's δ at Δ = 1 from above. With x = εσ − 1/(2σ) and y = εσ + 1/(2σ), y² − x² = 2ε, so
// that e^ε Φ(−y) = φ(x)·M(y) with Mills' ratio M: nothing overflows. The error of either term is its relative one,
// amplified by its argument's.
func normalDelta(epsilon, sigma2 float64) float64 {
	sigma := math.Sqrt(sigma2)
	x, y := epsilon*sigma-1/(2*sigma), epsilon*sigma+1/(2*sigma)
	first, second := math.Erfc(x/math.Sqrt2)/2, math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)*mills(y)
	return first - second + (first+second)*(1+math.Abs(x)*y)*0x1p-48
}

// mills returns Φ(−y)/φ(y) for y ≥ 0: directly, or by its continued fraction.
func mills(y float64) float64 {
	if y < 6 {
		return math.Erfc(y/math.Sqrt2) / 2 * math.Sqrt(2*math.Pi) * math.Exp(y*y/2)
	}
	f := y
	for k := 60.; k > 0; k-- {
		f = y + k/f
	}
	return 1 / f
}

// discreteDelta bounds the δ of k differing coordinates from above, by 1 where nothing is proved.
func discreteDelta(epsilon, sigma2 float64, k int64) float64 {
	tau := fold(sigma2, k)
	if !(tau < 1) {
		return 1
	}
	total := sigma2 * float64(k)
	// Rounding may only lower j: outcomes just below the true j have a loss of at most ε and so take nothing away but
	// floating-point error, which the bound of the error below covers.
	j := math.Floor(epsilon*sigma2-float64(k)/2) + 1
	if j > 1<<51 {
		return 1
	}
	upper, _ := tails(total, j)
	_, lower := tails(total, j+float64(k))
	// exp(ε) times a tail, in one exponent.
	first, second := upper.value(0), lower.value(epsilon-2*tau)
	return math.Exp(tau) * (first*(1+0x1p-36) - second*(1-0x1p-36))
}

// fold bounds how far the sum of k discrete Gaussians of variance σ² is from one of variance kσ²: every probability is
// within a factor exp(±τ).
//
// Proof: for variances a and b the probability of a sum m is exp(−m²/(2(a+b)))·Σ_j exp(−(j−s)²/(2c)) over a constant,
// c = ab/(a+b), s = ma/(a+b). By Poisson summation the inner sum is √(2πc)·(1 + 2Σ_n exp(−2π²cn²)cos(2πns)), within
// 1 ± w of √(2πc), w = 2·exp(−2π²c)/(1−exp(−2π²c)). Both distributions being normalised, they are within
// (1+w)/(1−w). The i-th step has a = iσ², b = σ².
func fold(sigma2 float64, k int64) float64 {
	tau := 0.0
	for i := int64(1); i < k; i++ {
		c := sigma2 * float64(i) / float64(i+1)
		w := 2 / math.Expm1(2*math.Pi*math.Pi*c)
		if w >= .5 {
			return math.Inf(1)
		}
		if step := math.Log1p(w) - math.Log1p(-w); step < 1e-14 || i > 1000 { // steps fall with i
			return tau + step*float64(k-i)
		} else {
			tau += step
		}
	}
	return tau
}
