package noise

import "math"

// Half-widths of wide Laplace noise by variance and shape, in a look-up. An example: SELECT count(*) … WHERE income
// BETWEEN 20 AND 3000 over a range release of 4,096 cells adds up thousands of noises; with V their variance and κ the
// sum of the squares of their shares of it, its half-width is √V times a number that depends on κ and the confidence
// alone.
//
// Claim: HalfWidth returns a k with P(|X| ≥ k+½) ≤ alpha, X = Σ wᵢYᵢ of discrete Laplace noises Yᵢ of parameter t. That
// is proved below, and for few noises in fewnoises.go. That k is at most 1 % above the smallest one, or the integer
// after that, is proved for the two kinds of sums that are farthest from the bound (near) and measured for others
// (TestMixturesAgainstTheExact).
//
// Proof. Write dev² = 2t²Σwᵢ² and κ = Σwᵢ⁴/(Σwᵢ²)².
//
// (1) Continuous noise. Y is ⌊E⌋−⌊E'⌋ for two exponentials of mean t, whose whole and broken parts are independent. So
// X+D is a sum X' of continuous Laplace noises for a D = Σ wᵢdᵢ independent of X, the dᵢ of mean 0 and within ±1, and
// by Hoeffding P(|D| > c) ≤ 2·exp(−32) =: η for c = 8√Σwᵢ². Hence P(|X| ≥ a)(1−η) ≤ P(|X'| ≥ a−c).
//
// (2) A Gaussian of random variance. A continuous Laplace noise is a Gaussian whose variance is exponential. So, given
// the variances, X'/dev is a Gaussian of variance S = Σ sᵢEᵢ, the Eᵢ exponential of mean 1, Σsᵢ = 1 and Σsᵢ² = κ, and
// P(|X'| ≥ z·dev) = E g(S) with g(s) = P(|N(0,1)| ≥ z/√s). E S = 1, E (S−1)² = κ, and for λ ≥ 0 E exp(−λ(S−1)) = Π
// exp(λsᵢ)/(1+λsᵢ) ≤ exp(λ²κ/2), as x − ln(1+x) ≤ x²/2.
//
// (3) The curvature of g. With w = z²/s and φ the normal density, g''(s) = φ(√w)·√w·(w−3)/(2s²) and g'''(s)/g''(s) =
// (w²−10w+15)/(2s(w−3)). So g'' rises from 0 to its peak at w = 5+√10, falls below 0 at w = 3 to its least value at w =
// 5−√10, and rises to 0. Where g'' > 0 it is log-concave in s: (w²−10w+15)·w/(w−3) has in w the derivative
// (2w³−19w²+60w−45)/(w−3)², whose numerator is least on w ≥ 3 at 10/3, where it is 485/27. So for a w* in (3, 5+√10]
// and λ = −g'''/g'' there, which is ≥ 0, g''(s)·exp(λ(s−1)) is nowhere above its value G at w*.
//
// (4) From above: g(s) ≤ g(1) + g'(1)(s−1) + G·ψ(s) for ψ(s) = (exp(−λ(s−1)) − 1 + λ(s−1))/λ² (λ = 0: (s−1)²/2), since
// the difference of the two sides and its derivative are 0 at 1, and its second derivative is G·exp(−λ(s−1)) − g'' ≥ 0.
// So P(|X'| ≥ z·dev) ≤ g(1) + G·(exp(λ²κ/2)−1)/λ², whatever w* is: the least over some is taken.
//
// A κ is rounded up: (4) grows with it. Limits: few noises (κ above a twelfth at 95 %, a fortieth at 99.9 %), and alpha
// below some 2e-4 are left to the noises one by one (fewnoises.go), narrow ones to inversions.

// Mixtures is such a table for one alpha. It is safe for concurrent use.
type Mixtures struct {
	alpha  Probability                // 0: too small, or too large
	normal float64                    // the reach of a Gaussian
	reach  [mixtureShapes + 1]float64 // z by κ, or 0 where none is near enough
}

const (
	mixtureShapes = 240       // κ is rounded up to a multiple
	mixtureStep   = 1. / 2048 // of this
	mixtureTouch  = 48        // so many values of w* are tried
	mixtureNear   = 1.009     // what the bound may add
	mixtureBroken = .001      // and what the lattice may
	mixtureLoose  = 1. / 512  // and how much of κ may be a bound of its own
	widthBroken   = 8         // the lattice's reach, of the weights' length: c of (1)
)

// NewMixtures makes the table in some ten milliseconds; it is empty where alpha is not within 1e-6 and ½.
func NewMixtures(alpha Probability) *Mixtures {
	m := &Mixtures{}
	if !(alpha >= 1e-6 && alpha <= .5) {
		return m
	}
	normal := math.Sqrt2 * math.Erfcinv(float64(alpha))
	m.alpha, m.normal = alpha, normal
	most := float64(alpha) * (1 - 1e-6) // the margin is for η and for what floating point rounds away
	for i := range m.reach {
		kappa := float64(i) * mixtureStep
		z := reached(normal*.99, normal*1.3, func(z float64) bool { return mixtureAtMost(z, kappa) <= most })
		if z == 0 || !near(z/mixtureNear, kappa, float64(alpha)) {
			break
		}
		m.reach[i] = z
	}
	return m
}

// near reports whether alpha is passed at z by the tails of the sums of shape κ that are farthest below the bound: one
// noise with a Gaussian rest, of which the third moment of S is the greatest, and equal noises, of which it is the
// least.
func near(z, kappa, alpha float64) bool {
	if kappa == 0 {
		return true
	}
	const step = .02
	heavy, equal, share, count := 0., 0., math.Sqrt(kappa), 1/kappa
	gamma, _ := math.Lgamma(count)
	for x := step / 2; x < 40; x += step {
		heavy += step * math.Exp(-x) * math.Erfc(z/math.Sqrt(2*(1+share*(x-1))))
	}
	for s := step / 4; s < 8; s += step / 2 {
		equal += step / 2 * count * math.Exp((count-1)*math.Log(s*count)-s*count-gamma) * math.Erfc(z/math.Sqrt(2*s))
	}
	return min(heavy, equal) >= alpha
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

// mixtureCurvature is g” at s with w = z²/s.
func mixtureCurvature(w, s float64) float64 {
	return math.Exp(-w/2) / math.Sqrt(2*math.Pi) * math.Sqrt(w) * (w - 3) / (2 * s * s)
}

// Shape is what a half-width of weighted noise depends on.
type Shape struct {
	Squares float64 // of the weights
	Fourths float64 // their fourth powers, or a bound from above
	Loose   float64 // what of the fourth powers is a bound
	Heavy   []Term  // noises with more than a little of the squares, or some of them, each by itself
}

// heavy is the share of the squares above which a noise is kept by itself: what tells at the finest step of
// fewnoises.go.
const heavy = fewFine / fewTold

// ShapeOf is the shape of a sum of these terms.
func ShapeOf(terms []Term) (s Shape) {
	for _, t := range terms {
		s.Squares += float64(max(t.Count, 0)) * t.Weight * t.Weight
	}
	for _, t := range terms {
		square := t.Weight * t.Weight
		s.Fourths += float64(max(t.Count, 0)) * square * square
		if square > s.Weighs() && t.Count > 0 {
			s.Heavy = append(s.Heavy, t)
		}
	}
	return s
}

// Weighs is the square above which a noise is heavy, in a shape whose squares are there already.
func (s *Shape) Weighs() float64 { return heavy * s.Squares }

// HalfWidth returns the half-width of a sum of noises of d of this shape; false where none is proved that is near
// enough. The table's is near as far as the shape is known.
func (m *Mixtures) HalfWidth(d Distribution, s Shape) (k int64, proved bool) {
	if d.kind != Laplace || !(s.Squares > 0) {
		return 0, false
	}
	// A million squares that are added up lose less than 1e-9.
	shape := math.Ceil(s.Fourths / (s.Squares * s.Squares) * (1 + 1e-9) / mixtureStep)
	if shape <= mixtureShapes && m.reach[int(shape)] > 0 && s.Loose <= mixtureLoose*s.Squares*s.Squares {
		return widthOf(d, m.reach[int(shape)], s.Squares)
	}
	return m.few(d, s)
}
