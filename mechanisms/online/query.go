package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// The ends of what a query can say: sums of cells are cut at maxCount, noisy ones at ±maxNoisy.
const (
	maxCount = noise.MaxCount
	maxNoisy = noise.MaxNoisy
	maxCells = 1 << 22
)

// Query counts the rows in some cells of a universe. It is immutable; the zero value is refused.
type Query struct {
	cells int
	bits  []uint64 // the cells that are in it
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

func empty(cells int) (Query, error) {
	if cells < 1 || cells > maxCells {
		return Query{}, fmt.Errorf("cells is %d, must be from 1 to %d", cells, maxCells)
	}
	return Query{cells: cells, bits: make([]uint64, (cells+63)/64)}, nil
}

// check reports whether q can be asked of a universe.
func (q Query) check(cells int) error {
	if q.cells != cells {
		return fmt.Errorf("query is over %d cells, must be over %d", q.cells, cells)
	}
	return nil
}

// has reports whether the query counts a cell.
func (q Query) has(cell int) bool { return q.bits[cell/64]>>(cell%64)&1 == 1 }

// each calls f with the cells that are in the query.
func (q Query) each(f func(cell int)) {
	for w, word := range q.bits {
		for ; word != 0; word &= word - 1 {
			f(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// sum returns the rows of the query's cells, cut at maxCount. A negative cell counts as 0, a missing one too. It equals
// min(exact sum, maxCount), which a change of the exact sum moves by no more than itself.
func (q Query) sum(cells []int64) int64 {
	total := int64(0)
	q.each(func(i int) {
		if i < len(cells) && cells[i] > 0 {
			total = min(total+min(cells[i], maxCount), maxCount)
		}
	})
	return total
}

// mass returns the share of a distribution that is in the query's cells, in [0, 1] up to rounding. The distribution is
// public.
func (q Query) mass(p []float64) float64 {
	total := 0.0
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

// Key identifies the query: equal keys, equal cells.
func (q Query) Key() string { return string(q.append(nil)) }

// append writes the query as runs of cells that are in it, 1, or not, 0. The first byte is its form.
func (q Query) append(to []byte) []byte {
	to = binary.AppendUvarint(append(to, 0), uint64(q.cells))
	for i := 0; i < q.cells; {
		in, from := uint64(0), i
		if q.has(i) {
			in = 1
		}
		for i < q.cells && q.has(i) == (in == 1) {
			i++
		}
		to = binary.AppendUvarint(binary.AppendUvarint(to, in), uint64(i-from))
	}
	return to
}

// cutQuery reads what append wrote and returns the rest.
func cutQuery(from []byte, cells int) (Query, []byte, error) {
	bad := errors.New("a query in the state is malformed")
	if len(from) == 0 || from[0] != 0 {
		return Query{}, nil, bad
	}
	size, from, ok := cutUvarint(from[1:])
	if !ok || size != uint64(cells) {
		return Query{}, nil, bad
	}
	members := make([]bool, cells)
	for i := 0; i < cells; {
		var in, run uint64
		if in, from, ok = cutUvarint(from); !ok || in > 1 {
			return Query{}, nil, bad
		}
		if run, from, ok = cutUvarint(from); !ok || run == 0 || run > uint64(cells-i) {
			return Query{}, nil, bad
		}
		for range run {
			members[i] = in == 1
			i++
		}
	}
	q, err := Members(cells, func(i int) bool { return members[i] })
	return q, from, err
}

func cutUvarint(from []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(from)
	if n <= 0 {
		return 0, nil, false
	}
	return v, from[n:], true
}
