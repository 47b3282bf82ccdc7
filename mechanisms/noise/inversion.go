package noise

import "math"

const (
	// leastTail is the least tail probability for which 1 − (a sum of cosines) is computed with digits to spare; below
	// it the Chernoff bound is alone, some 7 % above.
	leastTail = 1e-10
	rounding  = 1e-13 // a bound of the floating-point error of such a sum, but for the phases, measured below 1e-14
	narrow    = 1e-5  // of a tail: what each bound may add to it

	leastSmoothing = 1. / 16
	maxFrequencies = 1 << 13
	maxEvaluations = 1 << 18
	maxSmoothings  = 4
	negligible     = -46 // the logarithm of what is below the bound of the rounding, all frequencies together
)

// maxInversions bounds the inversions of one half-width.
const maxInversions = maxDrops * (2 + 2*maxSmoothings)

// inversion is a tail as a sum of sines: tail(a) = 1 − (2a + Σ sines)/P + slack.
//
// On the integers modulo an odd P, P(|X| ≤ k) = (1/P) Σ_n φ(2πn/P) sin((k+½)2πn/P)/sin(πn/P), φ the product of the
// noises' characteristic functions. What the modulus folds back is at most P(|X| ≥ P−k), bounded by Chernoff; the terms
// left out are bounded because φ falls on [0, π]. Both bounds are added to the tail.
//
// Weighted noise has no lattice, so X is smoothed by an independent Z with a density on [−c, c]: P(|X| ≥ a) ≤ P(|X+Z| ≥
// a−c). With the Kaiser density of shape β its transform is known: with scale β/sinh β it falls like 1/u from u =
// √2·β/c on, so that the inversion, on a circle of length P, is a short sum whatever the characteristic function of X
// does. What is left out adds at most Σ 2/(πn)·transform ≤ 4/π·exp(−β).
type inversion struct {
	period   float64
	smoothed float64 // c, or 0 on the integers
	beta     float64 // the shape of the smoothing density
	reach    float64 // P(|X| ≥ reach) ≤ alpha by Chernoff alone
	slack    float64
	at, size []float64 // the sum's frequencies, and the factors of sin(a·frequency)
}

// settle finds the period, and the slack for what it folds back.
func (t *inversion) settle(sum []summand, alpha Probability) {
	folded := float64(alpha) * narrow
	t.slack = folded + rounding
	t.period = t.reach + 2 + reachOf(sum, Probability(folded))
	t.beta = 1 - math.Log(folded) // 4/π·exp(−β) < folded
	for i := range sum {
		if i > 0 && sum[i-1].of == sum[i].of {
			sum[i].logPhi = sum[i-1].logPhi
			continue
		}
		sum[i].logPhi = sum[i].of.logCharacteristic()
	}
}

// add adds a frequency. Of a phase a·u, with a below half a period, 2^-53 of it is rounded away in each of its factors.
func (t *inversion) add(u, size float64) {
	t.slack += math.Abs(size) * u * 0x1p-53
	t.at, t.size = append(t.at, u), append(t.size, size)
}

// addIntegers adds frequencies until those left out, at most φ·Σ 1/n, are below enough; false means they would be too
// many.
func (t *inversion) addIntegers(w *widening, sum []summand, enough float64) bool {
	last := math.Floor(t.period / 2)
	most := maxFrequenciesOf(len(sum))
	for n := 1.0; n <= last; n++ {
		if n > most {
			return false
		}
		u := 2 * math.Pi * n / t.period
		value := math.Exp(w.logPhi(sum, u, 0))
		rest := value * (1 + math.Log(last/n))
		if rest < enough {
			t.slack += rest
			break
		}
		t.add(u, 2*value/math.Sin(u/2))
	}
	return true
}

// maxFrequenciesOf is how many frequencies there may be for so many terms.
func maxFrequenciesOf(terms int) float64 { return float64(min(maxFrequencies, maxEvaluations/terms)) }

// logPhi adds up ln φ from start until it is negligible.
func (w *widening) logPhi(sum []summand, u, start float64) float64 {
	for _, s := range sum {
		if start < negligible {
			break
		}
		w.evaluations++
		start += s.count * s.logPhi(s.weight*u)
	}
	return start
}

// smoothing is the least smoothing with which addSmoothed has at most so many frequencies.
func (t *inversion) smoothing(frequencies float64) float64 {
	return math.Sqrt2 * t.beta * t.period / (2 * math.Pi * (frequencies - 1))
}

// addSmoothed adds frequencies until the transform of the smoothing density bounds those left out; false means they
// would be too many, or take too long. Most of many terms are not looked at, for the first of them make a frequency
// negligible.
func (t *inversion) addSmoothed(w *widening, sum []summand) bool {
	t.slack += 4 / math.Pi * math.Exp(-t.beta)
	last, most := math.Ceil(math.Sqrt2*t.beta*t.period/(2*math.Pi*t.smoothed)), w.evaluations+maxEvaluations
	for n := 1.0; n <= last; n++ {
		if n > maxFrequencies || w.evaluations > most {
			return false
		}
		u := 2 * math.Pi * n / t.period
		value := kaiserTransform(t.beta, t.smoothed*u)
		if value == 0 {
			continue
		}
		size := w.logPhi(sum, u, math.Log(math.Abs(value)))
		if size < negligible {
			continue
		}
		t.add(u, math.Copysign(math.Exp(size), value)*4/u)
	}
	return true
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
func (t *inversion) tail(w *widening, k float64) float64 {
	a := k + .5 - t.smoothed
	if a <= 0 {
		return 1
	}
	sum := 2 * a
	w.sines += len(t.at)
	for i, u := range t.at {
		sum += t.size[i] * math.Sin(a*u)
	}
	return 1 - sum/t.period + t.slack
}

// smallest returns the least k that the bounds prove; beyond 2^24 a k above it by a share of 2^-24 at most.
//
// Each round looks where the logarithm of the tail, were it straight, would reach alpha's, then a little to the side on
// which alpha's is, then in the middle of what is left: some three rounds, and never more than bisection's.
func (t *inversion) smallest(w *widening, alpha Probability) float64 {
	low, high := -1., math.Ceil(t.reach) // high is proved by Chernoff, low is not
	atLow, atHigh := 1., float64(alpha)/2
	look := func(k float64) (proved bool) {
		k = math.Floor(min(max(k, low+1), high-1))
		if k <= low {
			return false
		}
		at := t.tail(w, k)
		if proved = at <= float64(alpha); proved {
			high, atHigh = k, max(at, float64(alpha)/8)
		} else {
			low, atLow = k, at
		}
		return proved
	}
	for high-low > max(1, high*0x1p-24) {
		width := high - low
		if look(low + width*math.Log(atLow/float64(alpha))/math.Log(atLow/atHigh)) {
			look(high - max(1, width/64))
		} else {
			look(low + max(1, width/64))
		}
		look(low + (high-low)/2)
	}
	return high
}
