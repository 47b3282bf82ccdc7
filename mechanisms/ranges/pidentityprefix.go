package ranges

import (
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

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
// The weights of the sums of all prefixes are made at once: a prefix has one cell i more than the one before it, whose column of MΘU is
// u² times that of M·T, and T is sparse. Adding up D columns loses some D·2⁻⁵³ of the largest, which is far within what Mixtures.HalfWidth
// allows for. TestPrefixSums holds them against solving for each.
//
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

// tabled makes the weights of the sums of every prefix, one behind the other, unless too much is kept already: 10 MB for 4,096 cells, in
// as many milliseconds.
func (s *pIdentity) tabled() {
	p := len(s.rows)
	if p == 0 {
		return
	}
	inverse := mat.NewSymDense(p, nil) // M
	if s.factor.InverseTo(inverse) != nil {
		return // I + ΘΘ' is at least I
	}
	if size := int64((s.cells + 1) * p); prefixesKept.Add(size) > mostKept {
		prefixesKept.Add(-size)
		return
	}
	table := make([]float64, (s.cells+1)*p)
	at := make([]int, 0, p) // the rows that have a weight of the cell
	for i, u := range s.inverse {
		at = at[:0]
		for k := range s.rows {
			if r := &s.rows[k]; i >= r.from && i < r.from+len(r.weights) && r.weights[i-r.from] != 0 {
				at = append(at, k)
			}
		}
		next := table[(i+1)*p : (i+2)*p]
		copy(next, table[i*p:(i+1)*p])
		for _, k := range at {
			times := u * u * float64(s.rows[k].weights[i-s.rows[k].from])
			for j := range next {
				next[j] += times * inverse.At(k, j)
			}
		}
	}
	s.table = table
}

// prefix returns that of so many cells.
func (s *pIdentity) prefix(cells int) *prefix {
	slot := &s.prefixes[cells]
	if p := slot.Load(); p != nil {
		return p
	}
	p := &prefix{sums: s.prefixSums(cells)}
	weights := s.weightsOf(indicator(s.cells, []Span{{0, cells}}), p.sums)
	block := s.block()
	p.norms = make([]float64, 0, s.cells/block+1)
	for from := 0; from < s.cells; from += block {
		fourths := 0.0
		for _, w := range weights[from:min(from+block, s.cells)] {
			fourths += w * w * w * w
		}
		p.norms = append(p.norms, math.Sqrt(math.Sqrt(fourths)))
	}
	size := len(p.norms)
	if s.table == nil {
		size += len(p.sums)
	}
	if prefixesKept.Add(int64(size)) <= mostKept {
		slot.Store(p) // of two that found it at once either is right
	}
	return p
}

// sumsOf returns the weights of the sums in the reading of so many cells, which are kept one way or the other.
func (s *pIdentity) sumsOf(cells int) []float64 {
	if s.tabling.Do(s.tabled); s.table == nil {
		return s.prefix(cells).sums
	}
	return s.prefixSums(cells)
}

func (s *pIdentity) prefixSums(cells int) []float64 {
	s.tabling.Do(s.tabled)
	if p := len(s.rows); s.table != nil {
		return s.table[cells*p : (cells+1)*p : (cells+1)*p]
	}
	return s.solvedFor(indicator(s.cells, []Span{{0, cells}}))
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
		from, to := s.sumsOf(span.From), s.sumsOf(span.To)
		for k := range sums {
			sums[k] += to[k] - from[k]
		}
	}
	return own, sums
}
