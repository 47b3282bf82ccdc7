package planner

import "github.com/dpproxy/dpproxy/policy"

// MadeUp is how the rows of a leaf are made of the cells that a release names.
type MadeUp struct {
	Measure int // index into Plan.Measures
	sizes   []int
	of      []int   // by column of the leaf: which dimension; −1: the release does not have it, and it is NULL
	from    [][]int // by dimension and its cell: the column's first cell in it
	columns []*policy.Column
}

// Values are those of a row, of which the cell is known. Of a cell that holds several values an even spread is shown: which,
// the number of the row decides.
func (m *MadeUp) Values(row int, cell int32) []policy.Value {
	at, rest := make([]int, len(m.sizes)), int(cell)
	for i := len(m.sizes) - 1; i >= 0; i-- {
		at[i], rest = rest%m.sizes[i], rest/m.sizes[i]
	}
	out := make([]policy.Value, len(m.columns))
	for i, c := range m.columns {
		if m.of[i] < 0 {
			continue
		}
		from := m.from[m.of[i]]
		first, end := from[at[m.of[i]]], c.Domain.Size()
		if at[m.of[i]]+1 < len(from) {
			end = from[at[m.of[i]]+1]
		}
		spread := (uint64(row)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9) >> 33
		out[i] = c.Domain.Low(first + int(spread%uint64(end-first)))
	}
	return out
}
