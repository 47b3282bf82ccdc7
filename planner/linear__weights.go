package planner

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// weightOf is how much the squared error of a measured counter matters.
func (s *solved) weightOf(counter int) float64 {
	if sums := s.summed(); sums != nil && sums[counter] != nil && sums[counter].Values == 0 {
		large := float64(max(-sums[counter].Bound.Low, sums[counter].Bound.High))
		return 1 / (large * large)
	}
	return countWeight
}

// cellsWhere is the number of cells in which a condition holds.
func (s *solved) cellsWhere(condition int) int {
	if condition < 0 {
		return s.cells
	}
	p, at := s.partOf(condition)
	if p == nil || p.classes == 0 {
		return 0
	}
	n := 0
	for _, values := range p.values {
		if values[at] == true {
			n++
		}
	}
	return s.cells / p.classes * n
}

// summand is what a counter of a question adds up: a sum of products of factors, or an expression by its columns' cells.
type summand struct {
	terms   []SumTerm
	over    int64            // see Sum
	bound   mechanisms.Bound // of terms, divided
	expr    *expr
	weights weights  // of expr, by combination of its columns' cells
	unit    *big.Rat // what one of the whole numbers is worth in the sum that the analyst sees
	canon   string
}

// weights are the values of an expression on combinations of cells, on one grid.
type weights struct {
	grid   grid
	values []int64
	bound  mechanisms.Bound
	pieces *part // whose combinations they are of
}

// weigh puts values (nil: nothing is added) on a grid.
func weigh(values []*big.Rat, least, most *big.Rat, centred bool, exponent int, largest int64) weights {
	w := weights{values: make([]int64, len(values))}
	var low, high int64
	w.grid, low, high = gridOf(least, most, exponent, centred, largest)
	w.bound = mechanisms.Bound{Low: low, High: high}
	for i, v := range values {
		if v != nil {
			w.values[i] = min(max(nearest10(v, w.grid.exponent)-w.grid.centre, low), high)
		}
	}
	return w
}

// squared are the weights' squares, divided.
func (w weights) squared(over int64) weights {
	most := max(-w.bound.Low, w.bound.High)
	out := weights{pieces: w.pieces, grid: w.grid, values: make([]int64, len(w.values)), bound: mechanisms.Bound{Low: 0, High: nearestOf(most*most, over)}}
	for i, v := range w.values {
		out.values[i] = nearestOf(v*v, over)
	}
	return out
}

// name tells summands from others; nil, which counts rows, has none.
func (s *summand) name() string {
	if s == nil {
		return ""
	}
	return s.canon
}
