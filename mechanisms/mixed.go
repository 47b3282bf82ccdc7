package mechanisms

import (
	"encoding/binary"
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
	rounding, whole, key := 0.0, true, binary.BigEndian.AppendUint64([]byte{3}, math.Float64bits(confidence.p))
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
			rounding += math.Abs(p.Weight) * (extra*float64(own.noise(0).step()) + .5)
		}
		whole = whole && errors.reader == nil && math.Abs(p.Weight) == 1 && own.noise(0) == parts[0].Spec.noise(parts[0].Counter)
		law := own.noise(0)
		_, told := keyOfTerms(terms)
		key = append(binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(append(key, byte(law.Kind)), law.Num), law.Den), law.step()), told...)
		for i := range terms {
			rounding += math.Abs(terms[i].Weight) * float64(terms[i].Count) * float64(law.step()-1) / 2
			terms[i].Weight *= float64(law.step())
		}
		whole = whole && law.step() == 1
		list = append(list, noise.Part{Of: errors.noise, Terms: terms})
	}
	e.HalfWidth = widths.remembered(binary.BigEndian.AppendUint64(key, math.Float64bits(rounding)), func() int64 {
		alpha := noise.Probability(1 - confidence.p)
		if !whole {
			return noise.HalfWidthOfParts(list, alpha) + int64(math.Ceil(rounding))
		}
		count := 0
		for _, p := range list {
			count += p.Terms[0].Count
		}
		return list[0].Of.HalfWidthOfSum(count, alpha)
	})
	return e
}
