package noise

import "math"

// Half-widths of wide Laplace noise by variance and shape, in a look-up. An example: SELECT count(*) … WHERE income
// BETWEEN 20 AND 3000 over a range release of 4,096 cells adds up thousands of noises; with V their variance and κ the sum
// of the squares of their shares of it, its half-width is √V times a number that depends on κ and the confidence alone.
//
// Claim: HalfWidth returns a k with P(|X| ≥ k+½) ≤ alpha, X = Σ wᵢYᵢ of discrete Laplace noises Yᵢ of parameter t; and k is
// at most 1 % above the smallest such k, or the integer after that.
//
// Proof. Write dev² = 2t²Σwᵢ² and κ = Σwᵢ⁴/(Σwᵢ²)².
//
// (1) Continuous noise. Y is ⌊E⌋−⌊E'⌋ for two exponentials of mean t, whose whole and broken parts are independent. So
// X+D is a sum X' of continuous Laplace noises for a D = Σ wᵢdᵢ independent of X, the dᵢ of mean 0 and within ±1, and by
// Hoeffding P(|D| > c) ≤ 2·exp(−32) =: η for c = 8√Σwᵢ². Hence P(|X| ≥ a)(1−η) ≤ P(|X'| ≥ a−c), and
// P(|X| ≥ a) ≥ P(|X'| ≥ a+c) − η.
//
// (2) A Gaussian of random variance. A continuous Laplace noise is a Gaussian whose variance is exponential. So, given the
// variances, X'/dev is a Gaussian of variance S = Σ sᵢEᵢ, the Eᵢ exponential of mean 1, Σsᵢ = 1 and Σsᵢ² = κ, and
// P(|X'| ≥ z·dev) = E g(S) with g(s) = P(|N(0,1)| ≥ z/√s). E S = 1, E (S−1)² = κ, and for λ ≥ 0
// E exp(−λ(S−1)) = Π exp(λsᵢ)/(1+λsᵢ) ≤ exp(λ²κ/2), as x − ln(1+x) ≤ x²/2.
//
// (3) The curvature of g. With w = z²/s and φ the normal density, g''(s) = φ(√w)·√w·(w−3)/(2s²) and
// g'''(s)/g''(s) = (w²−10w+15)/(2s(w−3)). So g'' rises from 0 to its peak at w = 5+√10, falls below 0 at w = 3 to its least
// value at w = 5−√10, and rises to 0. Where g'' > 0 it is log-concave in s: (w²−10w+15)·w/(w−3) has in w the derivative
// (2w³−19w²+60w−45)/(w−3)², whose numerator is least on w ≥ 3 at 10/3, where it is 485/27. So for a w* in (3, 5+√10] and
// λ = −g'''/g'' there, which is ≥ 0, g''(s)·exp(λ(s−1)) is nowhere above its value G at w*.
//
// (4) From above: g(s) ≤ g(1) + g'(1)(s−1) + G·ψ(s) for ψ(s) = (exp(−λ(s−1)) − 1 + λ(s−1))/λ² (λ = 0: (s−1)²/2), since the
// difference of the two sides and its derivative are 0 at 1, and its second derivative is G·exp(−λ(s−1)) − g'' ≥ 0. So
// P(|X'| ≥ z·dev) ≤ g(1) + G·(exp(λ²κ/2)−1)/λ², whatever w* is: the least over some is taken. (5) From below: g'' is at least
// its least value L, so P(|X'| ≥ z·dev) ≥ g(1) + L·κ/2. The table holds, for each κ, a z with (4) at most alpha and one with (5)
// above it; that the first is at most 1 % above the second, with (1), is looked at for each sum.
//
// A κ is rounded up: both bounds move outward as it grows.
// Limits: few noises (κ above 1/16; above 1/20 at 95 %, 1/60 at 99 %) and narrow ones are left to HalfWidthOf.

// Mixtures is such a table for one alpha. It is safe for concurrent use.
type Mixtures struct {
	above, below [mixtureShapes + 1]float64 // z by κ; above is 0 where there is none
}

const (
	mixtureShapes = 128       // κ is rounded up to a multiple of
	mixtureStep   = 1. / 2048 // this
	mixtureTouch  = 48        // values of w* are tried
	mixtureNear   = 1.01
)

// NewMixtures makes the table; without entries where alpha is not within 1e-6 and ½.
func NewMixtures(alpha Probability) *Mixtures {
	m := &Mixtures{}
	if !(alpha >= 1e-6 && alpha <= .5) {
		return m
	}
	// The margins are for η and for what floating point rounds away.
	normal := math.Sqrt2 * math.Erfcinv(float64(alpha))
	most, least := float64(alpha)*(1-1e-6), float64(alpha)*(1+1e-6)
	for i := range m.above {
		kappa := float64(i) * mixtureStep
		m.above[i] = reached(normal*.9, normal*1.05, func(z float64) bool { return mixtureAtMost(z, kappa) <= most })
		m.below[i] = -reached(-normal*1.05, -normal*.8, func(z float64) bool { return mixtureAtLeast(-z, kappa) >= least })
	}
	return m
}

// reached returns a z up to high at which ok holds, near one below which it does not, or 0.
func reached(low, high float64, ok func(z float64) bool) float64 {
	if !ok(high) {
		return 0
	}
	for range 40 {
		if middle := (low + high) / 2; ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// mixtureAtMost is (4).
func mixtureAtMost(z, kappa float64) float64 {
	top, least := 5+math.Sqrt(10), math.Inf(1)
	for i := range mixtureTouch {
		w := top - (top-3)*float64(i)/mixtureTouch
		s := z * z / w
		lambda := max(0, 10*w-15-w*w) / (2 * s * (w - 3))
		value := mixtureCurvature(w, s) * math.Exp(lambda*(s-1)) * kappa / 2
		if x := lambda * lambda * kappa / 2; x > 1e-9 {
			value *= math.Expm1(x) / x
		} else {
			value *= 1 + 1e-9
		}
		least = min(least, value)
	}
	return math.Erfc(z/math.Sqrt2) + least
}

// mixtureAtLeast is (5).
func mixtureAtLeast(z, kappa float64) float64 {
	w := 5 - math.Sqrt(10)
	return math.Erfc(z/math.Sqrt2) + mixtureCurvature(w, z*z/w)*kappa/2
}

// mixtureCurvature is g” at s with w = z²/s.
func mixtureCurvature(w, s float64) float64 {
	return math.Exp(-w/2) / math.Sqrt(2*math.Pi) * math.Sqrt(w) * (w - 3) / (2 * s * s)
}

// HalfWidth returns the half-width of a sum of noises of d, of which the squares and the fourth powers of the weights add
// up to these, the fourth powers at most; false where the table does not prove one that is near enough.
func (m *Mixtures) HalfWidth(d Distribution, squares, fourths float64) (k int64, proved bool) {
	if d.kind != Laplace || !(squares > 0) {
		return 0, false
	}
	shape := math.Ceil(fourths / (squares * squares) * (1 + 1e-9) / mixtureStep)
	if !(shape <= mixtureShapes) || m.above[int(shape)] == 0 || m.below[int(shape)] == 0 {
		return 0, false
	}
	// A million squares that are added up lose less than 1e-9.
	length := math.Sqrt(squares)
	deviation, broken := math.Sqrt2*d.parameter()*length, 8*length
	wide := (m.above[int(shape)]*deviation+broken)*(1+1e-9) - .5
	if narrow := (m.below[int(shape)]*deviation-broken)*(1-1e-9) - .5; wide > narrow*mixtureNear || wide >= math.MaxInt64/2 {
		return 0, false
	}
	return int64(math.Ceil(wide)), true
}
