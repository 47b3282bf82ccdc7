package noise

import "math"

// Half-widths of wide Laplace noise where few noises have most of the variance. An example: SELECT count(*) … WHERE
// income BETWEEN 20 AND 24 over a range release of 4,096 cells adds up five noises of about a fifth of the variance
// each and some thousand of next to none; no table by variance and shape (mixture.go) is near enough for it.
//
// Claim: few returns a k with P(|X| ≥ k+½) ≤ alpha for any sum X that has the shape. That, and that k is at most 1 %
// above the smallest one, or the integer after that, is proved below; where it would be more nothing is returned.
//
// Theorem. With the letters of mixture.go, let S̃ = E(S | F) for any F. Then with G the greatest and −G' the least
// value of g'', E g(S̃) − ½G'·(κ − Var S̃) ≤ E g(S) ≤ E g(S̃) + ½G·(κ − Var S̃).
//
// Proof. By Taylor g(S̃) + g'(S̃)(S−S̃) − ½G'(S−S̃)² ≤ g(S) ≤ g(S̃) + g'(S̃)(S−S̃) + ½G(S−S̃)². Given F the middle
// terms are 0 in the mean, and E (S−S̃)² = Var S − Var S̃ with Var S = κ. G and G' are at w = 5±√10, by (3) of
// mixture.go.
//
// What F is. Of a noise whose share of the variance is s it tells in which step of the length h the variance sE lies: K
// = ⌊sE/h⌋, with P(K ≥ k) = qᵏ and q = exp(−h/s). An exponential forgets, so that E(sE | K) is hK and a constant, which
// is s − h·E K. Of a noise that is small beside h nothing is given, and its share is in S̃ as it is. So S̃ = hΣK + 1 −
// hΣE K, and Var S̃ = h²Σ q/(1−q)². The law of ΣK is that of one geometric variable after the other: f(k) = q·f(k−1) +
// (1−q)·p(k), sums of positive numbers. What lies beyond the last k counts as g = 1 from above and g = 0 from below,
// and so do probabilities that are left out.
//
// Limits: narrow noise, and alpha outside of 1e-6 and ½, as in mixture.go; thousands of noises that all tell, which
// mixture.go takes. Work: at most maxTelling noises of fewSteps steps, and some ten sums over these.

const (
	fewCoarse  = 1. / 16  // h at first
	fewFine    = 1. / 256 // and at last
	fewTold    = 3        // a noise tells whose share is above h/fewTold
	maxTelling = 1 << 9   // noises that tell
	fewSteps   = 1 << 12  // steps of the law
	fewApart   = 1e-4     // what the search may leave of the reach
	fewAllowed = .004     // and what is lost may add to it, about, when h is chosen
)

// lumped is the law of S̃.
type lumped struct {
	step, first, lost float64   // h, the least value, κ − Var S̃
	masses            []float64 // of first + k·step
	beyond            float64   // what is left out of them
}

// few is HalfWidth by the heavy noises of a shape and the fourth powers of all.
func (m *Mixtures) few(d Distribution, s Shape) (k int64, proved bool) {
	if m.alpha == 0 {
		return 0, false
	}
	if _, wide := widthOf(d, m.farthest(), s.Squares); !wide {
		return 0, false
	}
	big, small, ok := shares(s)
	if !ok {
		return 0, false
	}
	// κ − Var S̃ may be so much that what it adds to the tail is fewAllowed of the reach, were the sum a Gaussian.
	slope := 2 * m.normal * math.Exp(-m.normal*m.normal/2) / math.Sqrt(2*math.Pi)
	allowed, step := fewAllowed*slope/(mixtureGreatest(m.normal)/2), fewCoarse
	for lostOf(big, small, step) > allowed && step > fewFine {
		step /= 2
	}
	for ; step >= fewFine; step /= 2 {
		law, ok := lump(big, small, step, m.alpha)
		if !ok {
			return 0, false
		}
		if reach := law.reach(m.normal/2, m.farthest(), m.alpha); reach > 0 && law.above(reach/mixtureNear) >= float64(m.alpha) {
			return widthOf(d, reach, s.Squares)
		}
	}
	return 0, false
}

// widthOf is the half-width of a sum whose continuous noise, of these squares, is beyond so many deviations with
// probability alpha at most.
func widthOf(d Distribution, deviations, squares float64) (k int64, wide bool) {
	length := math.Sqrt(squares)
	reach, broken := deviations*math.Sqrt2*d.parameter()*length, widthBroken*length
	width := (reach+broken)*(1+1e-9) - .5
	if !(length > 0) || 2*broken > reach*mixtureBroken || width > math.MaxInt64/2 {
		return 0, false
	}
	return int64(max(0, math.Ceil(width))), true
}

// shares are those of the heavy noises, and what the squares of the others' add up to; false means they are too many.
func shares(s Shape) (big []Term, small float64, ok bool) {
	big, small = make([]Term, 0, len(s.Heavy)), s.Fourths/(s.Squares*s.Squares)*(1+1e-9)
	count := 0
	for _, t := range s.Heavy {
		if count += t.Count; count > maxTelling {
			return nil, 0, false
		}
		share := t.Weight * t.Weight / s.Squares
		big = append(big, Term{share, t.Count})
		small -= float64(t.Count) * share * share
	}
	return big, max(small, 0), true
}

// lostOf is κ − Var S̃.
func lostOf(big []Term, small, step float64) float64 {
	lost := small
	for _, t := range big {
		kept := 0.
		if s := t.Weight; s > step/fewTold {
			q := math.Exp(-step / s)
			kept = step * step * q / ((1 - q) * (1 - q))
		}
		lost += float64(t.Count) * max(0, t.Weight*t.Weight-kept)
	}
	return lost * (1 + 1e-9)
}

// lump is the law of S̃ for a step; false means it is too long.
func lump(big []Term, small, step float64, alpha Probability) (l lumped, ok bool) {
	l = lumped{step: step, first: 1, lost: lostOf(big, small, step)}
	n := int(lastOf(big, step, float64(alpha)*1e-4)/step) + 2
	if n > fewSteps {
		return l, false
	}
	l.masses = make([]float64, n)
	l.masses[0] = 1
	for _, t := range big {
		if t.Weight <= step/fewTold {
			continue
		}
		q := math.Exp(-step / t.Weight)
		l.first -= float64(t.Count) * step * q / (1 - q)
		for range t.Count {
			last := 0.
			for k, p := range l.masses {
				last = q*last + (1-q)*p
				l.masses[k] = last
			}
		}
	}
	within := 0.
	for k, p := range l.masses {
		if p < float64(alpha)*1e-9 {
			l.masses[k] = 0
			continue
		}
		within += p
	}
	l.beyond = max(0, 1-within) + 1e-12
	return l, l.first > 0
}

// lastOf is a value that the noises that tell are together beyond with about this probability at most (Chernoff).
func lastOf(big []Term, step, beyond float64) float64 {
	greatest := 0.
	for _, t := range big {
		greatest = max(greatest, t.Weight)
	}
	least := math.Inf(1)
	for _, part := range [...]float64{.25, .5, .7, .8, .9} {
		theta := part / greatest
		sum := -math.Log(beyond)
		for _, t := range big {
			if t.Weight > step/fewTold {
				sum -= float64(t.Count) * math.Log1p(-theta*t.Weight)
			}
		}
		least = min(least, sum/theta)
	}
	return least
}

// mean is E g(S̃) but for what is beyond.
func (l *lumped) mean(z float64) (sum float64) {
	for k, p := range l.masses {
		if p > 0 {
			sum += p * math.Erfc(z/math.Sqrt(2*(l.first+float64(k)*l.step)))
		}
	}
	return sum
}

// below and above bound E g(S) from above and from below.
func (l *lumped) below(z float64) float64 { return l.mean(z) + mixtureGreatest(z)/2*l.lost + l.beyond }

func (l *lumped) above(z float64) float64 { return l.mean(z) - mixtureLeast(z)/2*l.lost }

// mixtureGreatest and mixtureLeast are G and G'.
func mixtureGreatest(z float64) float64 {
	w := 5 + math.Sqrt(10)
	return mixtureCurvature(w, z*z/w)
}

func mixtureLeast(z float64) float64 {
	w := 5 - math.Sqrt(10)
	return -mixtureCurvature(w, z*z/w)
}

// farthest is a number of deviations that no sum's reach is beyond: one noise's, and more.
func (m *Mixtures) farthest() float64 {
	return max(m.normal, -math.Log(float64(m.alpha))/math.Sqrt2) * 1.2
}

// reach is a number of deviations at which alpha is proved, near the least; 0 means none is found. What is looked at is
// where the tail's logarithm would come to alpha's were it straight, and then a little to the side on which alpha's is.
func (l *lumped) reach(low, high float64, alpha Probability) float64 {
	most := float64(alpha) * (1 - 1e-6) // as in NewMixtures
	atLow, atHigh := math.Log(l.below(low)/most), math.Log(l.below(high)/most)
	if atHigh > 0 || atLow <= 0 {
		return 0
	}
	look := func(z float64) (proved bool) {
		if z <= low || z >= high {
			return z >= high
		}
		at := math.Log(l.below(z) / most)
		if proved = at <= 0; proved {
			high, atHigh = z, at
		} else {
			low, atLow = z, at
		}
		return proved
	}
	for range 40 {
		if high-low <= fewApart*high {
			break
		}
		straight := low + (high-low)*atLow/(atLow-atHigh)
		if look(straight) {
			look(high * (1 - fewApart/2))
		} else if !look(low * (1 + fewApart/2)) {
			look((low + high) / 2)
		}
	}
	return high
}
