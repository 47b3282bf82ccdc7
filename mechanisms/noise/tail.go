package noise

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
)

// How far a sum of noises may be off, for EXPLAIN, notices and error columns. An example: SELECT count(*) … WHERE age <
// 40 over a range release adds up some noises with the weights of the least-squares reading, and what is shown beside
// it is the half-width of that sum at 95 %.
//
// Three bounds, each proved by itself; the least of them is returned:
//   - nothing: where all noises together are 0 but with probability alpha, the half-width is 0;
//   - Chernoff's (reach.go), of a few hundred evaluations;
//   - the allInversions characteristic function (inversion.go): exact on a lattice, smoothed otherwise.
//
// And each of them for what is left when noises of great weight that are seldom not 0 are taken for lost (drops).
// Work: whatever the scales, weights and counts, at most maxTerms different terms, maxFrequencies frequencies and
// maxEvaluations evaluations of a characteristic function an inversion, at most maxInversions inversions: under 2 MiB.

// Term is Count independent noises, each times Weight.
type Term struct {
	Weight float64
	Count  int
}

// Part is noises of one distribution in a sum of several.
type Part struct {
	Of    Distribution
	Terms []Term
}

// HalfWidthOfSum returns the smallest k with P(|X| > k) ≤ alpha, X the sum of count noises.
//
// Claim: never less than that k, and more only where the tail at it is within 1e-4 of alpha, or alpha is below
// leastTail. Limits: where the lattice has more than maxFrequencies frequencies (two discrete Laplace of a scale above
// 1000 at an alpha below 1e-7), a hundredth of X's deviation more.
func (d Distribution) HalfWidthOfSum(count int, alpha Probability) int64 {
	return HalfWidthOfParts([]Part{{d, []Term{{1, count}}}}, alpha)
}

// HalfWidthOf returns a k with P(|X| ≥ k+½) ≤ alpha, X the sum of the terms: half the width of an interval around the
// rounded X.
//
// Claim: at most the smallest such k for a noise that is wider by 1/16 and by 2 % of k. Where the terms are more than
// maxTerms or alpha is below leastTail it may be some percent more.
func (d Distribution) HalfWidthOf(terms []Term, alpha Probability) int64 {
	return HalfWidthOfParts([]Part{{d, terms}}, alpha)
}

// HalfWidthOfParts is HalfWidthOf for a sum of independent noises of several distributions. Nothing in it needs them to
// be the same: their characteristic functions are multiplied, and the logarithms of their moments added. A half-width
// beyond the integers is the greatest of them.
func HalfWidthOfParts(parts []Part, alpha Probability) int64 {
	w := widening{}
	defer func() { allInversions.Add(int64(w.inversions)) }()
	return w.of(parts, alpha)
}

// allInversions counts the inversions of characteristic functions, each of which takes milliseconds, since the process
// began.
var allInversions atomic.Int64

// Inversions is for tests that count what a plan takes.
func Inversions() int64 { return allInversions.Load() }

// widening is the search for one half-width; it counts what it does.
type widening struct {
	inversions  int
	evaluations int // of characteristic functions
	sines       int // of tails
}

// summand is count noises of one distribution, each times weight > 0.
type summand struct {
	of            Distribution
	weight, count float64
	unit          float64                 // the variance of one of them
	logPhi        func(u float64) float64 // ln E cos(u·noise)
}

func (s *summand) variance() float64 { return s.weight * s.weight * s.count * s.unit }

func varianceOf(sum []summand) (v float64) {
	for i := range sum {
		v += sum[i].variance()
	}
	return v
}

func (w *widening) of(parts []Part, alpha Probability) int64 {
	if alpha >= 1 {
		return 0
	}
	best := math.Inf(1)
	for _, d := range w.drops(summands(parts), alpha) {
		few, left, moved := gathered(d.rest, d.alpha)
		best = min(best, math.Ceil(w.width(few, left)+moved))
	}
	if best < math.MaxInt64 {
		return int64(best)
	}
	return math.MaxInt64
}

// summands lists what parts add up, each distribution and weight once, the greatest weights first.
func summands(parts []Part) []summand {
	if len(parts) == 1 {
		if sum, ok := singles(parts[0]); ok {
			return sum
		}
	}
	var sum []summand
	for _, p := range parts {
		unit := p.Of.Variance()
		for _, t := range p.Terms {
			if t.Weight != 0 && t.Count > 0 {
				sum = append(sum, summand{of: p.Of, weight: math.Abs(t.Weight), count: float64(t.Count), unit: unit})
			}
		}
	}
	slices.SortFunc(sum, func(a, b summand) int {
		switch { // thousands of noises have weights of their own
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return a.of.compare(b.of)
	})
	merged := sum[:0]
	for _, s := range sum {
		if last := len(merged) - 1; last >= 0 && merged[last].of == s.of && merged[last].weight == s.weight {
			merged[last].count += s.count
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// singles is summands of one distribution whose terms are one noise each, as in the reading of a release of thousands
// of cells: numbers alone are sorted. False: there are terms of several.
func singles(p Part) ([]summand, bool) {
	weights := make([]float64, 0, len(p.Terms))
	for _, t := range p.Terms {
		if t.Count > 1 || math.IsNaN(t.Weight) {
			return nil, false
		}
		if t.Weight != 0 && t.Count > 0 {
			weights = append(weights, math.Abs(t.Weight))
		}
	}
	slices.Sort(weights)
	sum, unit := make([]summand, 0, len(weights)), p.Of.Variance()
	for i, weight := range slices.Backward(weights) {
		if last := len(sum) - 1; i+1 < len(weights) && weights[i+1] == weight {
			sum[last].count++
			continue
		}
		sum = append(sum, summand{of: p.Of, weight: weight, count: 1, unit: unit})
	}
	return sum, true
}

// compare orders distributions, to put those that are the same beside each other.
func (d Distribution) compare(other Distribution) int {
	return cmp.Or(cmp.Compare(d.kind, other.kind), cmp.Compare(d.num, other.num), cmp.Compare(d.den, other.den))
}

// drop is what is left of a sum, and the tail that is left for it.
type drop struct {
	rest  []summand
	alpha Probability
}

const (
	maxDrops       = 6    // so many ways to drop are tried
	forFree        = 1e-5 // of alpha: noises that are seldomer not 0 are dropped in every way
	leastCancelled = 1e-3 // the tail for which an inversion is prepared that tells how likely noises cancel
)

// drops lists ways to leave out the noises of the greatest weights.
//
// Claim: k is a half-width of the sum at alpha when it is one of the rest at the rest's alpha.
// Proof: with p = P(the dropped noises of some weight do not add up to 0), P(|X| < a) ≥ (1−p)·P(|rest| < a) ≥
// (1−p)(1−(alpha−p)/(1−p)) = 1−alpha.
// What this is for: a noise of weight 10^6 that is not 0 once in 10^4 widens a half-width at 99.9 % by nothing, but the
// period of an inversion to 10^6.
func (w *widening) drops(sum []summand, alpha Probability) (list []drop) {
	kept := 1.0 // P(the noises dropped so far add up to 0, those of each weight)
	for len(sum) > 0 {
		p := 1 - kept
		if p >= float64(alpha) {
			return list
		}
		if p <= forFree*float64(alpha) {
			list = list[:0]
		}
		if len(list) == maxDrops {
			list = list[:maxDrops-1]
		}
		list = append(list, drop{sum, Probability((float64(alpha) - p) / kept)})
		same := 1
		for same < len(sum) && sum[same].weight == sum[0].weight {
			same++
		}
		kept *= 1 - w.nonzero(sum[:same])
		sum = sum[same:]
	}
	if 1-kept <= float64(alpha) {
		return []drop{{nil, alpha}}
	}
	return list
}

// nonzero bounds P(the noises of one weight do not add up to 0) from above. What cancels matters only where some of
// them are likely not to be 0.
func (w *widening) nonzero(sum []summand) float64 {
	clear := 0.0
	for _, s := range sum {
		clear += s.count * math.Log1p(-s.of.nonzero())
	}
	p := -math.Expm1(clear)
	if p < .01 || p > .99 || w.inversions >= maxDrops {
		return p
	}
	if t, done := w.lattice(sum, leastCancelled); done {
		p = min(p, t.tail(w, 0))
	}
	return p
}

// width returns a k, a whole number, with P(|X| ≥ k+½) ≤ alpha.
func (w *widening) width(sum []summand, alpha Probability) float64 {
	switch {
	case len(sum) == 0:
		return 0
	case sum[0].weight == sum[len(sum)-1].weight:
		// On the lattice of the multiples of the weight, P(|X|/weight > n) ≤ alpha for n, and k+½ > n·weight for k.
		unit := sum[0].weight
		if n, done := w.onLattice(sum, alpha); done {
			return math.Floor(n*unit*(1+1e-15) + .5)
		}
	}
	return w.smoothed(sum, alpha)
}

// onLattice returns an n with P(|X| > n) ≤ alpha for the sum with the weight 1, if that can be had within the bounds.
func (w *widening) onLattice(sum []summand, alpha Probability) (n float64, done bool) {
	if s := sum[0]; len(sum) == 1 && s.count == 1 && s.of.kind == Laplace {
		return s.of.laplaceHalfWidth(alpha), true
	}
	if alpha < leastTail {
		return math.Ceil(reachOf(ones(sum), alpha)) - 1, true
	}
	t, done := w.lattice(sum, alpha)
	if !done {
		return 0, false
	}
	return t.smallest(w, alpha), true
}

// lattice is the inversion for the sum with the weight 1.
func (w *widening) lattice(sum []summand, alpha Probability) (t inversion, done bool) {
	plain := ones(sum)
	t.reach = reachOf(plain, alpha)
	t.settle(plain, alpha)
	t.period = 2*math.Ceil(t.period/2) + 1
	w.inversions++
	return t, t.addIntegers(w, plain, narrow*float64(alpha))
}

// ones gives each term the weight 1.
func ones(sum []summand) []summand {
	plain := slices.Clone(sum)
	for i := range plain {
		plain[i].weight = 1
	}
	return plain
}

// laplaceHalfWidth is for one discrete Laplace, whose tail is 2q^(k+1)/(1+q).
func (d Distribution) laplaceHalfWidth(alpha Probability) float64 {
	t := d.parameter()
	tail := func(k float64) float64 { return 2 * math.Exp(-(k+1)/t) / (1 + math.Exp(-1/t)) * (1 + 1e-12) }
	k := max(0, math.Floor(t*math.Log(2/(float64(alpha)*(1+math.Exp(-1/t)))))-2)
	for tail(k) > float64(alpha) {
		k++
	}
	return k
}

// smoothed returns a k for a sum without a lattice. The smoothing is at first a hundredth of the deviation, and a
// hundredth of the half-width where that turns out to be the less: seldom noises of great weight have a large
// deviation.
func (w *widening) smoothed(sum []summand, alpha Probability) float64 {
	t := inversion{reach: reachOf(sum, alpha)}
	best := math.Ceil(t.reach)
	if alpha < leastTail {
		return best
	}
	t.settle(sum, alpha)
	wanted := max(leastSmoothing, math.Sqrt(varianceOf(sum))/100)
	for range maxSmoothings {
		own := w.prepared(t, sum, max(wanted, t.smoothing(maxFrequencies)))
		best = min(best, own.smallest(w, alpha))
		finer := max(leastSmoothing, best/100)
		if finer >= wanted || own.smoothed > wanted {
			break
		}
		wanted = finer
	}
	return best
}

// prepared adds the frequencies for a smoothing, or for one that is coarse enough.
func (w *widening) prepared(t inversion, sum []summand, smoothing float64) inversion {
	own := t
	own.smoothed = smoothing
	if w.inversions++; !own.addSmoothed(w, sum) {
		own = t
		own.smoothed = max(smoothing, t.smoothing(maxFrequenciesOf(len(sum))))
		w.inversions++
		own.addSmoothed(w, sum)
	}
	return own
}
