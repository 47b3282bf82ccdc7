package ranges

import (
	"math"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// A range is a prefix less another, and so is its reading: what the variance and the shape of any range need is kept for each
// prefix that was asked, so that a range nobody asked before takes a subtraction of two vectors. An example: BETWEEN 20 AND
// 3000 of 4,096 cells is the prefix of 3,001 less that of 20; a release has 8 million ranges and 4,097 prefixes.
//
// Claim: Shape returns Σ w² of the weights w of Terms, and no less than Σ w⁴.
// Proof: with the letters of pidentityread.go, the weights of the sums are MΘU·wanted, linear in what is wanted, so that their
// squares and fourth powers are exact; Σ w² is |v|² − v'Θ'MΘv. The weights of the cells are linear too: in a block of cells
// they are the sum of those of the prefixes, with their signs, and ‖Σ w‖₄ ≤ Σ ‖w‖₄ (Minkowski). The blocks' fourth powers add up.
// Limits: of spans beyond mostPrefixSpans and of strategies beyond mostPrefixed nothing is kept, nor of any beyond mostKept.

// Shaped is a Strategy that finds the shape of a reading without its terms.
type Shaped interface {
	// Shape returns the sum of the squares of the weights of Terms, and a bound from above of that of their fourth powers.
	Shape(spans []Span) (squares, fourths float64)
}

func evenPowers(terms []noise.Term) (squares, fourths float64) {
	for _, t := range terms {
		square := t.Weight * t.Weight
		squares += float64(t.Count) * square
		fourths += float64(t.Count) * square * square
	}
	return squares, fourths
}

const (
	mostPrefixSpans = 8       // more of them are read cell by cell
	mostPrefixed    = 1 << 23 // numbers that the prefixes of a strategy may take: 64 MiB
	mostKept        = 1 << 23 // and those of all
)

// prefixesKept counts numbers that are kept, until strategies are forgotten.
var prefixesKept atomic.Int64

// prefix is what is kept of one: its reading's weights of the sums, and the norms of those of the cells, by blocks.
type prefix struct{ sums, norms []float64 }

// block is how many cells have one norm.
func (s *pIdentity) block() int { return max(4, s.cells/256) }

func (s *pIdentity) prefixed(spans []Span) bool {
	return len(spans) <= mostPrefixSpans && (s.cells+1)*(len(s.rows)+s.cells/s.block()+1) <= mostPrefixed
}

// prefix returns that of so many cells.
func (s *pIdentity) prefix(cells int) *prefix {
	slot := &s.prefixes[cells]
	if p := slot.Load(); p != nil {
		return p
	}
	weights := s.weights(indicator(s.cells, []Span{{0, cells}}))
	block := s.block()
	p := &prefix{norms: make([]float64, 0, s.cells/block+1)}
	for from := 0; from < s.cells; from += block {
		fourths := 0.0
		for _, w := range weights[from:min(from+block, s.cells)] {
			fourths += w * w * w * w
		}
		p.norms = append(p.norms, math.Sqrt(math.Sqrt(fourths)))
	}
	p.sums = append(p.sums, weights[s.cells:]...) // not the weights of the cells beside them
	if prefixesKept.Add(int64(len(p.sums)+len(p.norms))) <= mostKept {
		slot.Store(p) // of two that found it at once either is right
	}
	return p
}

// Shape is what Shaped says.
func (s *pIdentity) Shape(spans []Span) (squares, fourths float64) {
	if !s.prefixed(spans) {
		return evenPowers(s.Terms(spans))
	}
	own, sums := s.combined(spans)
	squares = own
	for k, m := range sums {
		squares -= m * s.rows[k].over(spans)
		fourths += m * m * m * m
	}
	norms := make([]float64, s.cells/s.block()+1)
	for _, span := range spans {
		for _, end := range [2]int{span.From, span.To} {
			for b, norm := range s.prefix(end).norms {
				norms[b] += norm
			}
		}
	}
	for _, norm := range norms {
		fourths += norm * norm * norm * norm
	}
	return squares, fourths * (1 + 1e-9)
}

// combined returns |v|² and the reading's weights of the sums.
func (s *pIdentity) combined(spans []Span) (own float64, sums []float64) {
	sums = make([]float64, len(s.rows))
	for _, span := range spans {
		own += s.squares[span.To] - s.squares[span.From]
		from, to := s.prefix(span.From).sums, s.prefix(span.To).sums
		for k := range sums {
			sums[k] += to[k] - from[k]
		}
	}
	return own, sums
}
