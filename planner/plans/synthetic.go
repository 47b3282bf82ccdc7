package plans

import (
	"math"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
)

// Synthetic is how the rows of a leaf are made of the cells that a release names.
type SyntheticRows struct {
	Measure int // index into Plan.Measures
	Sizes   []int
	Of      []int   // by column of the leaf: which dimension; −1: the release does not have it, and it is NULL; RowNumber: it is a key, and numbers the rows
	From    [][]int // by dimension and its cell: the column's first cell in it
	Hidden  []int   // by dimension: its cell of which nothing is shown; −1: there is none
	Columns []*policy.Column
}

// RowNumber in SyntheticRows.Of is a key by which made-up rows are numbered, so that they have a primary key.
const RowNumber = -2

// rowNumber is the number of a row, counted from 1, in the type of a key; NULL where it has none.
func rowNumber(row int, t policy.Type) policy.Value {
	n := int64(row) + 1
	switch {
	case t == policy.Int2 && n > math.MaxInt16 || t == policy.Int4 && n > math.MaxInt32:
		return nil
	case t.Integer():
		return n
	case t.Textual():
		return strconv.FormatInt(n, 10)
	}
	return nil
}

// Values are those of a row, of which the cell is known; nil means it is of a value that no group is shown of (other:
// hide), and neither is it. Of a cell that holds several values an even spread is shown: which, the number of the row
// decides.
func (m *SyntheticRows) Values(row int, cell int32) []policy.Value {
	at, rest := make([]int, len(m.Sizes)), int(cell)
	for i := len(m.Sizes) - 1; i >= 0; i-- {
		at[i], rest = rest%m.Sizes[i], rest/m.Sizes[i]
	}
	out := make([]policy.Value, len(m.Columns))
	for i, hidden := range m.Hidden {
		if at[i] == hidden {
			return nil
		}
	}
	for i, c := range m.Columns {
		if m.Of[i] == RowNumber {
			t, _ := c.DescribedType()
			out[i] = rowNumber(row, t)
		}
		if m.Of[i] < 0 {
			continue
		}
		from := m.From[m.Of[i]]
		first, end := from[at[m.Of[i]]], c.Domain.Size()
		if at[m.Of[i]]+1 < len(from) {
			end = from[at[m.Of[i]]+1]
		}
		spread := (uint64(row)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9) >> 33
		out[i] = c.Domain.Low(first + int(spread%uint64(end-first)))
	}
	return out
}
