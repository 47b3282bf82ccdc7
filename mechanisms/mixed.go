package mechanisms

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Weighted is a weighted sum of cells of one counter of a release, as a part of a sum over several releases. Cells of
// one release may stand in several parts where its strategy is Identity, and then each in one.
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
