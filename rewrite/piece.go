package rewrite

import (
	"errors"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Of a column with more cells than a plan looks at, a measure's SQL tells pieces of neighbouring cells apart. The piece of a
// normalised value is a total function of it: comparisons with the least values of the pieces, by halves, or, where they are
// many and of one length, the cell's number divided by that length.

// maxCompared is how many pieces of one length are still found by comparisons, which read no cell.
const maxCompared = 64

// checkCuts holds the pieces against their columns.
func checkCuts(m *plans.Measure) error {
	if m.Cuts != nil && len(m.Cuts) != len(m.Grain) {
		return errors.New("rewrite: pieces of other columns than the grain's")
	}
	for i, starts := range m.Cuts {
		if starts == nil {
			continue
		}
		d := m.Grain[i].Domain
		if d == nil || !d.Ordered() || m.Grain[i].Open != nil || len(starts) == 0 || starts[0] != 0 || starts[len(starts)-1] >= d.Size() ||
			d.Null >= 0 && starts[len(starts)-1] != d.Null {
			return errors.New("rewrite: pieces of other cells than their column's")
		}
		for n := 1; n < len(starts); n++ {
			if starts[n] <= starts[n-1] {
				return errors.New("rewrite: pieces that are not in order")
			}
		}
	}
	return nil
}

// piece writes the number of the cell, or of the piece, of a normalised value n of the i-th column of the grain.
func (w *writer) piece(m *plans.Measure, i int, n string) string {
	c := m.Grain[i]
	if m.Cuts == nil || m.Cuts[i] == nil {
		return w.cell(c, n)
	}
	starts, null := m.Cuts[i], c.Domain.Null >= 0
	if null {
		starts = starts[:len(starts)-1]
	}
	number := ""
	if length, before := evenly(starts, c.Domain.Regular); length > 0 && len(starts) > maxCompared {
		number = w.cast(w.number(c, n), "int4")
		if before > 0 {
			number = w.operate(number, "+", w.int4(before))
		}
		number = w.operate(number, "/", w.int4(length))
	} else {
		number = w.compared(c, n, starts, 0)
	}
	if !null {
		return number
	}
	return "CASE WHEN " + n + " IS NULL THEN " + strconv.Itoa(len(starts)) + " ELSE " + number + " END"
}

// evenly is the length of pieces of so many cells that are all of one, but for the first, which may be shorter by before, and
// the last, which may be shorter too; 0: they are not. The cells of a longer last one would be given numbers behind its own.
func evenly(starts []int, regular int) (length, before int) {
	if len(starts) < 3 {
		return 0, 0
	}
	if length = starts[2] - starts[1]; regular-starts[len(starts)-1] > length {
		return 0, 0
	}
	for n := 2; n < len(starts); n++ {
		if starts[n]-starts[n-1] != length {
			return 0, 0
		}
	}
	if before = length - starts[1]; before < 0 {
		return 0, 0
	}
	return length, before
}

// compared finds the piece of a value that is not NULL by halves; from is the number of the first of the pieces.
func (w *writer) compared(c *policy.Column, n string, starts []int, from int) string {
	if len(starts) == 1 {
		return strconv.Itoa(from)
	}
	half := len(starts) / 2
	return "CASE WHEN " + w.operate(n, "<", w.constant(c, c.Domain.Low(starts[half]))) + " THEN " + w.compared(c, n, starts[:half], from) +
		" ELSE " + w.compared(c, n, starts[half:], from+half) + " END"
}
