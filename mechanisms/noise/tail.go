package noise

import "math"

// Term is Count independent noises, each times Weight.
type Term struct {
	Weight float64
	Count  int
}

const (
	// leastTail is the least tail probability for which 1 − (a sum of cosines) is computed with digits to spare; below it
	// the Chernoff bound stands alone.
	leastTail = 1e-10
	rounding  = 1e-13 // a bound of the floating-point error of such a sum, measured below 1e-14
	narrow    = 1e-5  // of a tail: what each bound may add to it
)

// HalfWidthOfSum returns the smallest k with P(|X| > k) ≤ alpha, X the sum of count noises.
//
// Claim: never less than that k, and more only where the tail at it is within 1e-4 of alpha.
// One discrete Laplace has the tail 2q^(k+1)/(1+q). Otherwise the characteristic function φ^count is inverted: on the
// integers modulo an odd P, P(|X| ≤ k) = (1/P) Σ_n φ(2πn/P)^count sin((k+½)2πn/P)/sin(πn/P). What the modulus folds
// back is at most P(|X| ≥ P−k), bounded by Chernoff; the terms left out are bounded because φ falls on [0, π]. Both
// bounds are added to the tail.
func (d Distribution) HalfWidthOfSum(count int, alpha Probability) int64 {
	switch {
	case count <= 0 || alpha >= 1:
		return 0
	case count == 1 && d.kind == Laplace:
		return d.laplaceHalfWidth(alpha)
	}
	t := inversionOf([]Part{{d, []Term{{1, count}}}}, alpha, true)
	return t.smallest(alpha)
}

// HalfWidthOf returns a k with P(|X| ≥ k+½) ≤ alpha, X the sum of the terms: half the width of an interval around the
// rounded X.
//
// Claim: the smallest such k for a noise that is wider by c, which is a hundredth of X's deviation and at least 1/16.
// Weighted noise has no lattice, so X is smoothed by an independent Z with a density on [−c, c]:
// P(|X| ≥ a) ≤ P(|X+Z| ≥ a−c). With the Kaiser density of shape β its transform is known: with scale β/sinh β it
// falls like 1/u from u = √2·β/c on, so that the inversion of HalfWidthOfSum, on a circle of length P, is a short sum
// whatever the characteristic function of X does. What is left out adds at most Σ 2/(πn)·transform ≤ 4/π·exp(−β).
func (d Distribution) HalfWidthOf(terms []Term, alpha Probability) int64 {
	return HalfWidthOfParts([]Part{{d, terms}}, alpha)
}

// Part is noises of one distribution in a sum of several.
type Part struct {
	Of    Distribution
	Terms []Term
}

// HalfWidthOfParts is HalfWidthOf for a sum of independent noises of several distributions. Nothing in it needs them to be
// the same: their characteristic functions are multiplied, and the logarithms of their moments added.
func HalfWidthOfParts(parts []Part, alpha Probability) int64 {
	var kept []Part
	for _, p := range parts {
		own := Part{Of: p.Of}
		for _, t := range p.Terms {
			if t.Weight != 0 && t.Count > 0 {
				own.Terms = append(own.Terms, Term{math.Abs(t.Weight), t.Count})
			}
		}
		if len(own.Terms) > 0 {
			kept = append(kept, own)
		}
	}
	if len(kept) == 0 || alpha >= 1 {
		return 0
	}
	t := inversionOf(kept, alpha, false)
	return t.smallest(alpha)
}

func (d Distribution) laplaceHalfWidth(alpha Probability) int64 {
	t := d.parameter()
	tail := func(k float64) float64 { return 2 * math.Exp(-(k+1)/t) / (1 + math.Exp(-1/t)) * (1 + 1e-12) }
	k := max(0, math.Floor(t*math.Log(2/(float64(alpha)*(1+math.Exp(-1/t)))))-2)
	for tail(k) > float64(alpha) {
		k++
	}
	return int64(k)
}

// inversion is a tail as a sum of sines: tail(a) = 1 − (2a + Σ sines)/P + slack.
type inversion struct {
	period   float64
	smoothed float64 // c, or 0 on the integers
	beta     float64 // the shape of the smoothing density
	reach    float64 // P(|X| ≥ reach) ≤ alpha by Chernoff alone
	slack    float64
	at, size []float64 // the sum's frequencies, and the factors of sin(a·frequency)
}

// inversionOf prepares the inversion; integers is for one part of one term of weight 1.
func inversionOf(parts []Part, alpha Probability, integers bool) inversion {
	t := inversion{reach: reachOf(parts, alpha)}
	if alpha < leastTail {
		return t
	}
	folded := float64(alpha) * narrow
	t.slack = folded + rounding
	t.period = t.reach + 2 + reachOf(parts, Probability(folded))
	if integers {
		t.period = 2*math.Ceil(t.period/2) + 1
		t.addIntegers(parts[0].Of.characteristic(), parts[0].Terms[0].Count, folded)
		return t
	}
	t.smoothed = max(1./16, math.Sqrt(varianceOf(parts))/100)
	t.beta = 1 - math.Log(folded) // 4/π·exp(−β) < folded
	t.slack += folded
	t.addSmoothed(parts)
	return t
}

func varianceOf(parts []Part) float64 {
	sum := 0.0
	for _, p := range parts {
		sum += p.Of.Variance() * squares(p.Terms)
	}
	return sum
}

func squares(terms []Term) float64 {
	sum := 0.0
	for _, t := range terms {
		sum += t.Weight * t.Weight * float64(t.Count)
	}
	return sum
}

// addIntegers adds frequencies until those left out, at most φ^count·Σ 1/n, are below enough.
func (t *inversion) addIntegers(phi func(float64) float64, count int, enough float64) {
	last := math.Floor(t.period / 2)
	for n := 1.0; n <= last; n++ {
		u := 2 * math.Pi * n / t.period
		value := math.Pow(phi(u), float64(count))
		rest := value * (1 + math.Log(last/n))
		if rest < enough {
			t.slack += rest
			return
		}
		t.at = append(t.at, u)
		t.size = append(t.size, 2*value/math.Sin(u/2))
	}
}

// addSmoothed adds frequencies until the transform of the smoothing density bounds those left out.
func (t *inversion) addSmoothed(parts []Part) {
	const negligible = 1e-20
	phis := make([]func(float64) float64, len(parts))
	for i, p := range parts {
		phis[i] = p.Of.characteristic()
	}
	last := math.Ceil(math.Sqrt2 * t.beta * t.period / (2 * math.Pi * t.smoothed))
	for n := 1.0; n <= last; n++ {
		u := 2 * math.Pi * n / t.period
		value := kaiserTransform(t.beta, t.smoothed*u)
		for i, p := range parts {
			for _, term := range p.Terms {
				if math.Abs(value) < negligible {
					break
				}
				value *= math.Pow(phis[i](term.Weight*u), float64(term.Count))
			}
		}
		if math.Abs(value) < negligible {
			continue // all of them together are below the bound of the rounding
		}
		t.at = append(t.at, u)
		t.size = append(t.size, 4*value/u)
	}
}

// kaiserTransform is E cos(x·Z) for Z with the density ∝ I0(β·√(1−z²)) on [−1, 1]: (β/sinh β)·sinh(√(β²−x²))/√(β²−x²).
func kaiserTransform(beta, x float64) float64 {
	scale := 2 * beta / -math.Expm1(-2*beta) // β/sinh β = scale·exp(−β)
	under := beta*beta - x*x
	switch root := math.Sqrt(math.Abs(under)); {
	case root < 1e-9:
		return scale * math.Exp(-beta)
	case under > 0:
		return scale * (math.Exp(root-beta) - math.Exp(-root-beta)) / (2 * root)
	default:
		return scale * math.Exp(-beta) * math.Sin(root) / root
	}
}

// tail bounds P(|X| > k), or P(|X| ≥ k+½), from above.
func (t *inversion) tail(k float64) float64 {
	a := k + .5 - t.smoothed
	sum := 2 * a
	for i, u := range t.at {
		sum += t.size[i] * math.Sin(a*u)
	}
	return 1 - sum/t.period + t.slack
}

// smallest returns the least k that the bounds prove.
func (t *inversion) smallest(alpha Probability) int64 {
	low, high := -1., math.Ceil(t.reach) // high is proved by Chernoff, low is not
	if t.period == 0 {
		return int64(high)
	}
	for high-low > 1 {
		middle := math.Floor(low + (high-low)/2)
		if t.tail(middle) <= float64(alpha) {
			high = middle
		} else {
			low = middle
		}
	}
	return int64(high)
}

// reachOf returns an x with P(|X| ≥ x) ≤ alpha: the least (ln(2/alpha) + ln E exp(θX))/θ over θ. Every θ proves its own.
func reachOf(parts []Part, alpha Probability) float64 {
	moments, farthest := make([]func(float64) float64, len(parts)), math.Inf(1)
	for i, p := range parts {
		var limit float64
		moments[i], limit = p.Of.logMoment()
		for _, t := range p.Terms {
			farthest = min(farthest, limit/t.Weight)
		}
	}
	goal := math.Log(2 / float64(alpha))
	at := func(logTheta float64) float64 {
		theta := math.Exp(logTheta)
		sum := goal
		for i, p := range parts {
			for _, t := range p.Terms {
				sum += float64(t.Count) * moments[i](t.Weight*theta)
			}
		}
		return sum / theta
	}
	center := .5 * math.Log(2*goal/varianceOf(parts)) // the Gaussian's optimum
	low, high := center-8, min(center+8, math.Log(farthest))
	if low >= high {
		low = high - 8
	}
	for range 60 {
		a, b := low+(high-low)*.382, low+(high-low)*.618
		if at(a) <= at(b) {
			high = b
		} else {
			low = a
		}
	}
	return at(low+(high-low)/2) * (1 + 1e-9)
}
