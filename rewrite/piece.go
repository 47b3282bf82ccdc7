package rewrite

import (
	"errors"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Of a column with more cells than a plan looks at, a measure's SQL tells pieces of neighbouring cells apart. The piece
// of a normalised value is a total function of it: comparisons with the least values of the pieces, by halves, and,
// where many are of one length, the cell's number divided by that length.

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
func (w cells) piece(m *plans.Measure, i int, n string) string {
	c := m.Grain[i]
	if m.Cuts == nil || m.Cuts[i] == nil {
		return w.cell(c, n)
	}
	starts, null := m.Cuts[i], c.Domain.Null >= 0
	if null {
		starts = starts[:len(starts)-1]
	}
	runs := plans.EvenRuns(starts, c.Domain.Regular)
	number := w.compared(c, n, starts, runs, func(r plans.EvenRun) string { return w.pieceIn(c, n, starts, r) })
	if !null {
		return number
	}
	return "CASE WHEN " + n + " IS NULL THEN " + strconv.Itoa(len(starts)) + " ELSE " + number + " END"
}

// compared finds the run that a value that is not NULL lies in, by halves, and says what of says there.
func (w cells) compared(
	c *policy.Column, n string, starts []int, runs []plans.EvenRun, of func(plans.EvenRun) string,
) string {
	half := len(runs) / 2
	if half == 0 {
		return of(runs[0])
	}
	return "CASE WHEN " + w.operate(n, "<", w.constant(c, c.Domain.Low(starts[runs[half].From]))) +
		" THEN " + w.compared(c, n, starts, runs[:half], of) + " ELSE " + w.compared(c, n, starts, runs[half:], of) + " END"
}

// pieceIn is the number of the piece of a value that lies in a run.
//
// Claim: nothing can fail, whichever branches an engine evaluates. A cell's number, a piece's first cell, how many
// pieces there are, and a length, which is above 0, are at most 2^30 (policy.MaxDomain),
// so that sums and differences of two of them lie within an int4.
func (w cells) pieceIn(c *policy.Column, n string, starts []int, r plans.EvenRun) string {
	if r.Length == 0 {
		return strconv.Itoa(r.From)
	}
	number := w.operate(w.cellsPast(c, n, starts[r.From]), "/", w.int4(r.Length))
	if r.From > 0 {
		number = w.operate(number, "+", w.int4(r.From))
	}
	return number
}

// cellsPast is how many cells the one of a value lies behind another.
func (w cells) cellsPast(c *policy.Column, n string, from int) string {
	number := w.cast(w.number(c, n), "int4")
	if from > 0 {
		number = w.operate(number, "-", w.int4(from))
	}
	return number
}
