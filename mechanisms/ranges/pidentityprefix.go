package ranges

import (
	"math"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// A range is a prefix less another, and so is its reading: what the variance and the shape of any range need is kept
// for each prefix that was asked, so that a range nobody asked before takes a subtraction of two vectors. An example:
// BETWEEN 20 AND 3000 of 4,096 cells is the prefix of 3,001 less that of 20; a release has 8 million ranges and 4,097
// prefixes.
//
// Claim: Shape returns Σ w² of the weights w of Terms, and no less than Σ w⁴, at most 1e-3 of (Σ w²)² more; and weights
// of Terms alone are heavy. Proof: with the letters of pidentity.go, the weights of the sums are MΘU·wanted, linear
// in what is wanted, so that their squares and fourth powers are exact; Σ w² is |v|² − v'Θ'MΘv. The weights of the
// cells are linear too: in a block of cells they are the sum of those of the prefixes, with their signs, and ‖Σ w‖₄ ≤ Σ
// ‖w‖₄ (Minkowski). The blocks' fourth powers add up. Blocks near the ends, where that is most, are looked at cell by
// cell: of the others each of some 257 adds 2e-6 at most. The weights of the sums of all prefixes are made at once: a
// prefix has one cell i more than the one before it, whose column of MΘU is u² times that of M·T, and T is sparse.
// Adding up D columns loses some D·2⁻⁵³ of the largest, which is far within what Mixtures.HalfWidth allows for.
// TestPrefixSums holds them against solving for each.
//
// Limits: of spans beyond maxPrefixSpans and of strategies beyond maxPrefixed nothing is kept, nor of any beyond
// maxKept.

// Shaped is a Strategy that finds the shape of a reading without its terms.
type Shaped interface {
	// Shape returns that of Terms; its heavy noises are put into room.
	Shape(spans []Span, room []noise.Term) noise.Shape
}

const (
	maxPrefixSpans = 8       // more of them are read cell by cell
	maxPrefixed    = 1 << 23 // numbers that the prefixes of a strategy may take: 64 MiB
	maxKept        = 1 << 23 // and those of all
	maxLoose       = 2e-6    // of the squares' square: a block of cells whose fourth powers may be more is looked at cell by cell
)

// prefixesKept counts numbers that are kept, until strategies are forgotten.
var prefixesKept atomic.Int64

// prefix is what is kept of one: its reading's weights of the sums, and the norms of those of the cells, by blocks.
type prefix struct{ sums, norms []float64 }

// block is how many cells have one norm.
func (s *pIdentity) block() int { return max(4, s.cells/256) }

func (s *pIdentity) prefixed(spans []Span) bool {
	return len(spans) <= maxPrefixSpans && (s.cells+1)*(len(s.rows)+s.cells/s.block()+1) <= maxPrefixed
}

// tabled makes the weights of the sums of every prefix, one behind the other, unless too much is kept already: 10 MB
// for 4,096 cells, in as many milliseconds.
func (s *pIdentity) tabled() {
	p := len(s.rows)
	if p == 0 {
		return
	}
	inverse := mat.NewSymDense(p, nil) // M
	if s.factor.InverseTo(inverse) != nil {
		return // I + ΘΘ' is at least I
	}
	columns := s.byCells()
	if size := int64((s.cells+1)*p + 2*len(columns.of)); prefixesKept.Add(size) > maxKept {
		prefixesKept.Add(-size)
		return
	}
	table := make([]float64, (s.cells+1)*p)
	for i, u := range s.inverse {
		next := table[(i+1)*p : (i+2)*p]
		copy(next, table[i*p:(i+1)*p])
		for _, w := range columns.of[columns.from[i]:columns.from[i+1]] {
			times := u * u * w.weight
			for j := range next {
				next[j] += times * inverse.At(w.row, j)
			}
		}
	}
	s.table, s.columns = table, columns
}

// columns are the weights of T that are not 0, cell by cell.
type columns struct {
	from []int // of each cell, and where the last one's end
	of   []columnWeight
}

type columnWeight struct {
	row    int
	weight float64
}

func (s *pIdentity) byCells() *columns {
	c := &columns{from: make([]int, 0, s.cells+1)}
	for i := range s.cells {
		c.from = append(c.from, len(c.of))
		for k := range s.rows {
			if r := &s.rows[k]; i >= r.from && i < r.from+len(r.weights) && r.weights[i-r.from] != 0 {
				c.of = append(c.of, columnWeight{k, float64(r.weights[i-r.from])})
			}
		}
	}
	c.from = append(c.from, len(c.of))
	return c
}

// weightOf is a cell's in the reading of spans, as weightsOf gives all of them, by those of the sums.
func (s *pIdentity) weightOf(cell int, spans []Span, sums []float64) float64 {
	weight := 0.0
	for _, span := range spans {
		if cell >= span.From && cell < span.To {
			weight = 1
		}
	}
	for _, w := range s.columns.of[s.columns.from[cell]:s.columns.from[cell+1]] {
		weight -= w.weight * sums[w.row]
	}
	return s.inverse[cell] * weight
}

// prefix returns that of so many cells.
func (s *pIdentity) prefix(cells int) *prefix {
	slot := &s.prefixes[cells]
	if p := slot.Load(); p != nil {
		return p
	}
	p := &prefix{sums: s.prefixSums(cells)}
	own, weights := []Span{{0, cells}}, []float64(nil)
	if s.columns == nil {
		weights = s.weightsOf(indicator(s.cells, own), p.sums)
	}
	block := s.block()
	p.norms = make([]float64, 0, s.cells/block+1)
	for from := 0; from < s.cells; from += block {
		fourths := 0.0
		for i := from; i < min(from+block, s.cells); i++ {
			w := 0.0
			if weights == nil {
				w = s.weightOf(i, own, p.sums)
			} else {
				w = weights[i]
			}
			fourths += w * w * w * w
		}
		p.norms = append(p.norms, math.Sqrt(math.Sqrt(fourths)))
	}
	size := len(p.norms)
	if s.table == nil {
		size += len(p.sums)
	}
	if prefixesKept.Add(int64(size)) <= maxKept {
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
func (s *pIdentity) Shape(spans []Span, heavy []noise.Term) (shape noise.Shape) {
	if !s.prefixed(spans) {
		return noise.ShapeOf(s.Terms(spans))
	}
	room := s.room()
	defer rooms.Put(room)
	sums := room.sums
	shape.Squares = s.combined(spans, sums) - s.explained(spans, sums)
	fourths, weighs := 0.0, shape.Weighs()
	heavy = heavy[:0]
	for _, m := range sums {
		square := m * m
		if fourths += square * square; square > weighs {
			heavy = append(heavy, noise.Term{Weight: m, Count: 1})
		}
	}
	norms := room.norms
	for i, span := range spans {
		from, to := s.prefix(span.From).norms[:len(norms)], s.prefix(span.To).norms[:len(norms)]
		if i == 0 {
			for b := range norms {
				norms[b] = from[b] + to[b]
			}
			continue
		}
		for b := range norms {
			norms[b] += from[b] + to[b]
		}
	}
	loose, least := 0.0, maxLoose*shape.Squares*shape.Squares
	for b, norm := range norms {
		square := norm * norm
		if square*square <= least || s.columns == nil {
			loose += square * square
			continue
		}
		from := b * s.block()
		for i := from; i < min(from+s.block(), s.cells); i++ {
			w := s.weightOf(i, spans, sums)
			square := w * w
			if fourths += square * square; square > weighs {
				heavy = append(heavy, noise.Term{Weight: w, Count: 1})
			}
		}
	}
	shape.Heavy, shape.Loose = heavy, loose*(1+1e-9)
	shape.Fourths = fourths + shape.Loose
	return shape
}

// room is what Shape needs while it works. Thousands of them a second would else be what the collector has most to do
// with.
type room struct{ sums, norms []float64 }

var rooms = sync.Pool{New: func() any { return &room{} }}

func (s *pIdentity) room() *room {
	r := rooms.Get().(*room)
	r.sums, r.norms = zeros(r.sums, len(s.rows)), zeros(r.norms, (s.cells+s.block()-1)/s.block())
	return r
}

func zeros(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	x = x[:n]
	clear(x)
	return x
}

// combined returns |v|² and adds the reading's weights of the sums up.
func (s *pIdentity) combined(spans []Span, sums []float64) (own float64) {
	for _, span := range spans {
		own += s.squares[span.To] - s.squares[span.From]
		from, to := s.sumsOf(span.From)[:len(sums)], s.sumsOf(span.To)[:len(sums)]
		for k := range sums {
			sums[k] += to[k] - from[k]
		}
	}
	return own
}
