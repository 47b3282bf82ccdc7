package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// The ends of what a query can say: sums of cells are cut at maxCount, noisy ones at ±maxNoisy.
const (
	maxCount = 1 << 61
	maxNoisy = 1 << 62
	maxCells = 1 << 22
	maxGrid  = 1 << 20
)

// Query is a counting query over a universe of cells: each cell has a weight from 0 to 1, given as whole numbers over a
// public grid, or as membership. It is immutable; the zero value is refused.
type Query struct {
	cells   int
	bits    []uint64 // membership; of a weighted query: where the weight is not 0
	weights []uint32 // nil: 0 or 1
	heavy   uint32   // the largest weight; 0 for membership
}

// Span is the cells From, …, To−1.
type Span struct{ From, To int }

// Members returns the query that counts the rows in some cells.
func Members(cells int, in func(cell int) bool) (Query, error) {
	q, err := empty(cells)
	if err != nil {
		return Query{}, err
	}
	if in == nil {
		return Query{}, errors.New("membership is nil, must be a function")
	}
	for i := range cells {
		if in(i) {
			q.bits[i/64] |= 1 << (i % 64)
		}
	}
	return q, nil
}

// Spans returns the query that counts the rows in a union of spans.
func Spans(cells int, spans ...Span) (Query, error) {
	q, err := empty(cells)
	if err != nil {
		return Query{}, err
	}
	for _, s := range spans {
		if s.From < 0 || s.To < s.From || s.To > cells {
			return Query{}, fmt.Errorf("span is [%d, %d), must lie within [0, %d)", s.From, s.To, cells)
		}
		for i := s.From; i < s.To; i++ {
			q.bits[i/64] |= 1 << (i % 64)
		}
	}
	return q, nil
}

// Weights returns the query Σ weight·rows/grid, the grid being that of the plan it is asked under.
func Weights(weights []uint32) (Query, error) {
	q, err := empty(len(weights))
	if err != nil {
		return Query{}, err
	}
	q.weights = append([]uint32(nil), weights...)
	for i, w := range weights {
		if w > maxGrid {
			return Query{}, fmt.Errorf("weight is %d, must be at most the grid, which is at most %d", w, maxGrid)
		}
		if w > 0 {
			q.bits[i/64] |= 1 << (i % 64)
		}
		q.heavy = max(q.heavy, w)
	}
	return q, nil
}

func empty(cells int) (Query, error) {
	if cells < 1 || cells > maxCells {
		return Query{}, fmt.Errorf("cells is %d, must be from 1 to %d", cells, maxCells)
	}
	return Query{cells: cells, bits: make([]uint64, (cells+63)/64)}, nil
}

// check reports whether q can be asked of a universe.
func (q Query) check(cells int, grid int64) error {
	if q.cells != cells {
		return fmt.Errorf("query is over %d cells, must be over %d", q.cells, cells)
	}
	if int64(q.heavy) > grid {
		return fmt.Errorf("query has weight %d, must be at most the grid %d", q.heavy, grid)
	}
	return nil
}

// weight returns the weight of a cell on the grid.
func (q Query) weight(cell int, grid int64) int64 {
	switch {
	case q.weights != nil:
		return int64(q.weights[cell])
	case q.bits[cell/64]>>(cell%64)&1 == 1:
		return grid
	}
	return 0
}

// each calls f with the cells that have a weight.
func (q Query) each(f func(cell int)) {
	for w, word := range q.bits {
		for ; word != 0; word &= word - 1 {
			f(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// sum returns Σ weight·rows on the grid, cut at maxCount. A negative cell counts as 0, a missing one too. It equals
// min(exact sum, maxCount), which a change of the exact sum moves by no more than itself.
func (q Query) sum(cells []int64, grid int64) int64 {
	total := uint64(0)
	q.each(func(i int) {
		if i >= len(cells) || cells[i] <= 0 {
			return
		}
		high, low := bits.Mul64(uint64(cells[i]), uint64(q.weight(i, grid)))
		if high != 0 || low > maxCount {
			low = maxCount
		}
		total = min(total+low, maxCount)
	})
	return int64(total)
}

// mass returns the weight of a distribution of the cells, in [0, 1] up to rounding. The distribution is public.
func (q Query) mass(p []float64, grid int64) float64 {
	total := 0.0
	if q.weights != nil {
		for i, w := range q.weights {
			total += float64(w) * p[i]
		}
		return total / float64(grid)
	}
	for w, word := range q.bits {
		part := p[w*64:]
		if word == ^uint64(0) {
			for _, x := range part[:64] {
				total += x
			}
			continue
		}
		for ; word != 0; word &= word - 1 {
			total += part[bits.TrailingZeros64(word)]
		}
	}
	return total
}

// Key identifies the query: equal keys, equal weights.
func (q Query) Key() string { return string(q.append(nil)) }

// append writes the query as runs of equal weight, membership as weights 0 and 1.
func (q Query) append(to []byte) []byte {
	kind := byte(0)
	if q.weights != nil {
		kind = 1
	}
	to = binary.AppendUvarint(append(to, kind), uint64(q.cells))
	for i := 0; i < q.cells; {
		w, from := q.weight(i, 1), i
		for i < q.cells && q.weight(i, 1) == w {
			i++
		}
		to = binary.AppendUvarint(binary.AppendUvarint(to, uint64(w)), uint64(i-from))
	}
	return to
}

// cutQuery reads what append wrote and returns the rest.
func cutQuery(from []byte, cells int) (Query, []byte, error) {
	bad := errors.New("a query in the state is malformed")
	if len(from) == 0 || from[0] > 1 {
		return Query{}, nil, bad
	}
	weighted := from[0] == 1
	size, from, ok := cutUvarint(from[1:])
	if !ok || size != uint64(cells) {
		return Query{}, nil, bad
	}
	weights := make([]uint32, cells)
	for i := 0; i < cells; {
		var w, run uint64
		if w, from, ok = cutUvarint(from); !ok || w > maxGrid || !weighted && w > 1 {
			return Query{}, nil, bad
		}
		if run, from, ok = cutUvarint(from); !ok || run == 0 || run > uint64(cells-i) {
			return Query{}, nil, bad
		}
		for range run {
			weights[i] = uint32(w)
			i++
		}
	}
	if weighted {
		q, err := Weights(weights)
		return q, from, err
	}
	q, err := Members(cells, func(i int) bool { return weights[i] == 1 })
	return q, from, err
}

func cutUvarint(from []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(from)
	if n <= 0 {
		return 0, nil, false
	}
	return v, from[n:], true
}
