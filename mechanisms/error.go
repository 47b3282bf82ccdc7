package mechanisms

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Error returns the expected error of the sum of the cells in spans (disjoint, sorted) of one counter, as Estimate.Sum
// gives it. It needs no data. Errors is faster where a release is read at many spans. Where each counter has noise of
// its own, it speaks of the first; see Only.
func (s Spec) Error(spans []Span, confidence Confidence) Error { return s.Errors(confidence).Of(spans) }

// Errors tells the expected errors of sums read from a release of one Spec, at one confidence.
//
// The variance is the exact one of the least-squares reading before it is rounded; for Identity the half-width is
// exact, for others it is certified and within a few percent of the least (HalfWidthOf of package noise, and
// smoothHalfWidth). It is safe for concurrent use.
type Errors struct {
	cells    int
	reader   ranges.Strategy // nil for Identity
	kind     StrategyKind
	law      Noise
	each     float64            // the variance of one noise of the law
	noise    noise.Distribution // in the law's steps
	seen     int                // observations
	shaped   ranges.Shaped      // the reader, where it tells variance and shape at once; else nil
	mixtures *noise.Mixtures    // half-widths by variance and shape, where sums of wide Laplace noise are read
	smooth   bool               // the noise is Gaussian and wide: its sums are as good as continuous
	alpha    noise.Probability
	prefix   []byte // of the keys in widths: the noise, the confidence, and the strategy but for trees
	asked    *Error // of a session: that of every answer
}

// widths remembers half-widths for the whole process: each is a function of its key alone, which names noise,
// confidence and weights or what determines them, and dashboards ask the same ranges again and again.
var widths halfWidths

type halfWidths struct {
	mu    sync.RWMutex
	known map[string]int64
	bytes int
}

// maxWidthBytes bounds the memory of remembered half-widths; beyond it they are forgotten, all at once.
const maxWidthBytes = 32 << 20

// mixtures are the tables of half-widths, by alpha. They take milliseconds to make and two kilobytes.
var mixtures = memo.Map[noise.Probability, *noise.Mixtures]{Most: memo.Small}

func mixturesOf(alpha noise.Probability) *noise.Mixtures {
	return mixtures.Of(alpha, 1, func() *noise.Mixtures { return noise.NewMixtures(alpha) })
}

// Errors prepares to tell expected errors. It panics on a Spec that was not planned and on the zero Confidence.
func (s Spec) Errors(confidence Confidence) *Errors {
	if confidence.p == 0 {
		panic("mechanisms: error at a confidence that NewConfidence did not make")
	}
	if err := s.check(); err != nil {
		panic("mechanisms: error of a Spec that was not planned: " + err.Error())
	}
	return s.Kind.errors(s, confidence)
}

// countsNothing is what a kind panics with whose releases are not read as counts.
const countsNothing = "mechanisms: error of a count by a Spec that counts nothing"

func (c *Counts) errors(s Spec, confidence Confidence) *Errors {
	own := s.noise(0)
	d, _ := own.distribution()
	e := &Errors{cells: s.Cells, law: own, each: own.variance(), noise: d, seen: s.observed(), alpha: noise.Probability(1 - confidence.p)}
	e.smooth = own.Kind == DiscreteGaussian && own.Num/own.Den >= wideVariance
	e.prefix = append(binary.AppendVarint(binary.AppendVarint(nil, own.Num), own.Den), byte(own.Kind))
	e.prefix = binary.BigEndian.AppendUint64(e.prefix, math.Float64bits(confidence.p))
	e.reader, e.kind = s.reader(), s.Counts().Strategy.Kind
	if e.kind > Tree {
		e.prefix = append(e.prefix, keyOf(s.description())...)
		if open, ok := e.reader.(*openStrategy); ok && own.Kind == DiscreteLaplace {
			if e.shaped, ok = open.Strategy.(ranges.Shaped); ok {
				e.mixtures = mixturesOf(e.alpha)
			}
		}
	}
	return e
}

// Of returns the expected error of the sum of the cells in spans of one counter.
func (e *Errors) Of(spans []Span) Error {
	spans = normal(spans, e.cells)
	if e.asked != nil {
		return e.ofSession(spans)
	}
	return e.inRows(e.inSteps(spans))
}

// Quick is Of where that takes microseconds, whoever asked before: no characteristic function is inverted.
func (e *Errors) Quick(spans []Span) (error Error, ok bool) {
	if e.asked != nil {
		return Error{}, false
	}
	own, ok := e.quick(sameSpans(normal(spans, e.cells)))
	return e.inRows(own), ok
}

// inRows is an error that is one in the law's steps.
func (e *Errors) inRows(own Error) Error {
	if e.law.step() == 1 {
		return own
	}
	squares := own.Variance / e.noise.Variance()
	weight := math.Sqrt(squares * float64(e.seen)) // of the terms in size, by Cauchy and Schwarz
	if e.reader == nil {
		weight = squares // each is 1
	}
	return Error{Variance: squares * e.each, HalfWidth: e.law.halfWidth(own.HalfWidth, weight)}
}

// inSteps is the error of the sum of the noise, in its steps.
func (e *Errors) inSteps(spans []Span) Error {
	if e.reader == nil {
		count := CellsIn(spans)
		width := e.remembered(binary.AppendVarint([]byte{0}, int64(count)), func() int64 { return e.noise.HalfWidthOfSum(count, e.alpha) })
		return Error{Variance: float64(count) * e.noise.Variance(), HalfWidth: width}
	}
	same := sameSpans(spans)
	if e.kind == Tree {
		terms := e.reader.Terms(same)
		squares, key := keyOfTerms(terms)
		return Error{Variance: squares * e.noise.Variance(), HalfWidth: e.remembered(key, func() int64 { return e.noise.HalfWidthOf(terms, e.alpha) })}
	}
	if own, ok := e.quick(same); ok {
		return own
	}
	width := e.remembered(keyOfSpans(same), func() int64 {
		terms := e.reader.Terms(same)
		if e.shaped != nil { // of the terms the shape is exact
			if k, proved := e.mixtures.HalfWidth(e.noise, noise.ShapeOf(terms)); proved {
				return k
			}
		}
		return e.noise.HalfWidthOf(terms, e.alpha)
	})
	return Error{Variance: e.reader.Variance(same) * e.noise.Variance(), HalfWidth: width}
}

// quick is inSteps where a formula or a proved bound tells.
func (e *Errors) quick(same []ranges.Span) (own Error, ok bool) {
	switch {
	case e.reader == nil || e.kind == Tree:
	case e.smooth:
		squares := e.reader.Variance(same)
		return Error{Variance: squares * e.noise.Variance(), HalfWidth: e.smoothHalfWidth(squares)}, true
	case e.shaped != nil:
		room := heavies.Get().(*[]noise.Term)
		defer heavies.Put(room)
		shape := e.shaped.Shape(same, *room)
		*room = shape.Heavy
		own.Variance = shape.Squares * e.noise.Variance()
		own.HalfWidth, ok = e.mixtures.HalfWidth(e.noise, shape)
	}
	return own, ok
}

// heavies are rooms for the heavy noises of a shape, which nobody needs once the half-width is found.
var heavies = sync.Pool{New: func() any { return new([]noise.Term) }}

// Variance returns the variance of Of alone, which is faster to find.
func (e *Errors) Variance(spans []Span) float64 {
	spans = normal(spans, e.cells)
	if e.asked != nil {
		return e.ofSession(spans).Variance
	}
	if e.reader == nil {
		return float64(CellsIn(spans)) * e.each
	}
	return e.reader.Variance(sameSpans(spans)) * e.each
}

// Every returns the step in which to look through so many rows of spans for the one with the largest variance, so that
// it takes milliseconds: each row where a variance is one multiplication, some 256 of them where it takes microseconds,
// and some 64 where it takes a Fourier transform.
func (e *Errors) Every(rows int) int {
	switch e.kind {
	case Identity:
		return 1
	case Sine, Cosine, Matrix, Marginals, Product:
		return 1 + rows/64
	}
	return 1 + rows/256
}

// wideVariance is the variance parameter from where on sums of discrete Gaussian noise are taken for continuous.
const wideVariance = 1 << 24

// smoothHalfWidth returns a k with P(|X| ≥ k+½) ≤ alpha for X a weighted sum of discrete Gaussian noise of parameter σ²
// ≥ 2^24, the squares of the weights adding up to w².
//
// Claim: at most 1 % more than the smallest such k, or the next integer. Proof: add to each noise Y a continuous
// Gaussian of deviation s = 4. By completing the square the density of the sum at x is that of a Gaussian of variance
// σ²+s² times Σ_k exp(−(k−μ)²/(2τ²)) over its mean over μ, with τ² = σ²s²/(σ²+s²) > 15, so by Poisson summation times 1
// ± 3·exp(−2π²τ²), for 2^24 of them together times 1 ± 1e-100. What was added to X is a Gaussian Z of deviation s·w,
// independent of it: P(|X| ≥ a)·P(|Z| ≤ c) ≤ P(|X+Z| ≥ a−c). With c = 8s·w the second factor is above 1 − 1e-14, and c
// is below 1 % of the deviation σ·w.
func (e *Errors) smoothHalfWidth(squares float64) int64 {
	if squares == 0 || e.alpha >= 1 {
		return 0
	}
	const s = 4
	w := math.Sqrt(squares)
	quantile := math.Sqrt2 * math.Erfcinv(float64(e.alpha)*(1-1e-13))
	reach := quantile*w*math.Sqrt(e.noise.Variance()+s*s) + 8*s*w
	return int64(max(0, math.Ceil(reach*(1+1e-12)-.5)))
}

// CellsIn counts the cells of spans.
func CellsIn(spans []Span) (count int) {
	for _, s := range spans {
		count += s.To - s.From
	}
	return count
}

func sameSpans(spans []Span) []ranges.Span {
	same := make([]ranges.Span, len(spans))
	for i, s := range spans {
		same[i] = ranges.Span(s)
	}
	return same
}

// keyOfTerms sorts the terms and returns Σ Count·Weight² and what tells them from others.
func keyOfTerms(terms []noise.Term) (squares float64, key []byte) {
	slices.SortFunc(terms, func(a, b noise.Term) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)))
	})
	key = append(make([]byte, 0, 1+16*len(terms)), 1)
	for _, t := range terms {
		squares += float64(t.Count) * t.Weight * t.Weight
		// Twelve digits tell weights apart that are different at all; what rounding makes of equal ones they do not.
		const lost = 1 << 12 // of 52 bits
		weight := (math.Float64bits(math.Abs(t.Weight)) + lost/2) &^ (lost - 1)
		key = binary.BigEndian.AppendUint64(binary.AppendVarint(key, int64(t.Count)), weight)
	}
	return squares, key
}

func keyOfSpans(spans []ranges.Span) []byte {
	key := []byte{2}
	for _, s := range spans {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(s.From)), int64(s.To))
	}
	return key
}

func (e *Errors) remembered(key []byte, width func() int64) int64 {
	return widths.remembered(append(key, e.prefix...), width)
}

func (h *halfWidths) remembered(key []byte, width func() int64) int64 {
	h.mu.RLock()
	w, ok := h.known[string(key)]
	h.mu.RUnlock()
	if ok {
		return w
	}
	w = width()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes += len(key) + 32; h.known == nil || h.bytes > maxWidthBytes {
		h.known, h.bytes = map[string]int64{}, len(key)+32
	}
	h.known[string(key)] = w
	return w
}

// isNormal tells sorted spans within the cells with gaps between them.
func isNormal(spans []Span, cells int) bool {
	end := -1
	for _, s := range spans {
		if s.From <= end || s.From >= s.To || s.To > cells {
			return false
		}
		end = s.To
	}
	return true
}

// normal returns the union of spans within the cells as sorted spans with gaps between them: the same, where they are
// that already.
func normal(spans []Span, cells int) []Span {
	if isNormal(spans, cells) {
		return spans
	}
	ordered := slices.Clone(spans)
	slices.SortFunc(ordered, func(a, b Span) int { return a.From - b.From })
	union := ordered[:0]
	for _, s := range ordered {
		s = Span{max(s.From, 0), min(s.To, cells)}
		switch n := len(union); {
		case s.From >= s.To:
		case n > 0 && s.From <= union[n-1].To:
			union[n-1].To = max(union[n-1].To, s.To)
		default:
			union = append(union, s)
		}
	}
	return union
}

// Weighted is a weighted sum of cells of one counter of a release, as a part of a sum over several releases. Cells of
// one release may be in several parts where its strategy is Identity, and then each in one.
type Weighted struct {
	Spec    Spec
	Counter int
	Spans   []Span
	Weight  float64
}

// MixedVariance is the variance of MixedError alone, which is faster to find.
func MixedVariance(parts []Weighted, confidence Confidence) (v float64) {
	for _, p := range parts {
		v += p.Weight * p.Weight * p.Spec.Only(p.Counter).Errors(confidence).Variance(p.Spans)
	}
	return v
}

// maxMixed bounds the rows of WidestMixed whose half-widths are computed: those with the largest variances.
const maxMixed = 8

// WidestMixed is the largest of the MixedErrors of so many rows. Their variances are compared, and a half-width, which
// takes a thousand times as long, is found for the first of them alone.
func WidestMixed(rows [][]Weighted, confidence Confidence) (widest Error) {
	type looked struct {
		row      int
		variance float64
	}
	list := make([]looked, len(rows))
	for i, parts := range rows {
		list[i] = looked{i, MixedVariance(parts, confidence)}
	}
	slices.SortStableFunc(list, func(a, b looked) int { return cmp.Compare(b.variance, a.variance) })
	for _, l := range list[:min(len(list), maxMixed)] {
		if e := MixedError(rows[l.row], confidence); e.HalfWidth > widest.HalfWidth || widest == (Error{}) {
			widest = e
		}
	}
	return widest
}

// MixedError returns the expected error of a rounded sum of independent parts: the exact variance, and a certified
// half-width (HalfWidthOfParts of package noise), which also holds the rounding of parts that are not whole numbers.
func MixedError(parts []Weighted, confidence Confidence) Error {
	if len(parts) == 1 && parts[0].Weight == 1 {
		return parts[0].Spec.Only(parts[0].Counter).Error(parts[0].Spans, confidence)
	}
	var e Error
	var list []noise.Part
	rounding, key := 0.0, binary.BigEndian.AppendUint64([]byte{3}, math.Float64bits(confidence.p))
	for _, p := range parts {
		own := p.Spec.Only(p.Counter)
		errors := own.Errors(confidence)
		e.Variance += p.Weight * p.Weight * errors.Variance(p.Spans)
		spans := normal(p.Spans, own.Cells)
		terms := []noise.Term{{Weight: p.Weight, Count: CellsIn(spans)}}
		if errors.reader != nil {
			terms = errors.reader.Terms(sameSpans(spans))
			for i := range terms {
				terms[i].Weight *= p.Weight
			}
			rounding += math.Abs(p.Weight) / 2
		}
		law := own.noise(0)
		_, told := keyOfTerms(terms)
		key = append(binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(append(key, byte(law.Kind)), law.Num), law.Den), law.step()), told...)
		for i := range terms {
			rounding += math.Abs(terms[i].Weight) * float64(terms[i].Count) * float64(law.step()-1) / 2
			terms[i].Weight *= float64(law.step())
		}
		list = append(list, noise.Part{Of: errors.noise, Terms: terms})
	}
	e.HalfWidth = widths.remembered(binary.BigEndian.AppendUint64(key, math.Float64bits(rounding)), func() int64 {
		width := noise.HalfWidthOfParts(list, noise.Probability(1-confidence.p))
		return width + min(math.MaxInt64-width, int64(math.Ceil(rounding)))
	})
	return e
}
