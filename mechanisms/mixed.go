package mechanisms

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Weighted is a weighted sum of cells of one counter of a release, as a part of a sum over several releases. Cells of one
// release may stand in several parts where its strategy is Identity, and then each in one.
type Weighted struct {
	Spec    Spec
	Counter int
	Spans   []Span
	Weight  float64
}

// mostTerms is how many different terms of a part are looked at by themselves.
const mostTerms = 64

// MixedError returns the expected error of a rounded sum of independent parts: the exact variance, and a certified
// half-width (HalfWidthOfParts of package noise), which also holds the rounding of parts that are not whole numbers.
func MixedError(parts []Weighted, confidence Confidence) Error {
	if len(parts) == 1 && parts[0].Weight == 1 {
		return parts[0].Spec.Only(parts[0].Counter).Error(parts[0].Spans, confidence)
	}
	var e Error
	var list []noise.Part
	rounding := 0.0
	for _, p := range parts {
		own := p.Spec.Only(p.Counter)
		errors := own.Errors(confidence)
		e.Variance += p.Weight * p.Weight * errors.Variance(p.Spans)
		spans := normal(p.Spans, own.Cells)
		terms := []noise.Term{{Weight: p.Weight, Count: countOf(spans)}}
		if errors.reader != nil {
			terms = errors.reader.Terms(sameSpans(spans))
			extra := 0.0
			if len(terms) > mostTerms {
				terms, extra = ranges.Coarsen(terms)
			}
			for i := range terms {
				terms[i].Weight *= p.Weight
			}
			rounding += math.Abs(p.Weight) * (extra + .5)
		}
		list = append(list, noise.Part{Of: errors.noise, Terms: terms})
	}
	e.HalfWidth = noise.HalfWidthOfParts(list, noise.Probability(1-confidence.p)) + int64(math.Ceil(rounding))
	return e
}
