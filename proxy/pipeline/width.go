package pipeline

import (
	"cmp"
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/plans"
)

// width is how far a value may be off, in its column's own units: a whole number of rows for a count (±37), and what is computed of counts and sums by constants
// a fraction of anything (±12.5 of avg(income)).
type width struct {
	rows int64
	off  *big.Rat // nil: rows
}

// widthOf is a column's half-width; false: it is computed otherwise than by constants.
func widthOf(c plans.OutColumn) (w width, ok bool) {
	if c.Error != nil {
		return width{rows: c.Error.HalfWidth}, true
	}
	return width{off: c.Off}, c.Off != nil
}

func (w width) rat() *big.Rat {
	if w.off != nil {
		return w.off
	}
	return new(big.Rat).SetInt64(w.rows)
}

func (w width) cmp(other width) int {
	if w.off == nil && other.off == nil {
		return cmp.Compare(w.rows, other.rows)
	}
	return w.rat().Cmp(other.rat())
}

// String writes it rounded up: whole numbers as they are, others with as many digits as matter.
func (w width) String() string {
	if w.off == nil {
		return strconv.FormatInt(w.rows, 10)
	}
	return figure(w.off)
}
