package linear

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// WeightOf is how much the squared error of a measured counter matters.
func (s *Query) WeightOf(counter int) float64 {
	if sums := s.Summed(); sums != nil && sums[counter] != nil && !sums[counter].IsNumberOfValues() {
		large := float64(max(-sums[counter].Bound.Low, sums[counter].Bound.High))
		return 1 / (large * large)
	}
	return countWeight
}

// CellsWhere is the number of cells in which a condition holds.
func (s *Query) CellsWhere(condition int) int {
	if condition < 0 {
		return s.Cells
	}
	p, at := s.factorOf(condition)
	if p == nil || p.Classes == 0 {
		return 0
	}
	n := 0
	for _, values := range p.Values {
		if values[at] == true {
			n++
		}
	}
	return s.Cells / p.Classes * n
}

// Summand is what a counter of a question adds up: a sum of products of factors, or an expression by its columns'
// cells.
type Summand struct {
	Terms   []plans.SumTerm
	Over    int64            // see Sum
	Bound   mechanisms.Bound // of terms, divided
	Expr    *semantics.Expr
	Weights Weights  // of expr, by combination of its columns' cells
	Unit    *big.Rat // what one of the whole numbers is worth in the sum that the analyst sees
	canon   string
}

// Weights are the values of an expression on combinations of cells, on one grid.
type Weights struct {
	grid   semantics.Grid
	values []int64
	Bound  mechanisms.Bound
	pieces *Factor // whose combinations they are of
}

// weigh puts values (of NULL nothing is added) on a grid.
func weigh(values []semantics.Number, least, most *big.Rat, centred bool, exponent int, largest int64) Weights {
	w := Weights{values: make([]int64, len(values))}
	var low, high int64
	w.grid, low, high = semantics.GridOf(least, most, exponent, centred, largest)
	w.Bound = mechanisms.Bound{Low: low, High: high}
	for i, v := range values {
		if !v.IsNull() {
			w.values[i] = min(max(v.Nearest10(w.grid.Exponent)-w.grid.Centre, low), high)
		}
	}
	return w
}

// squared are the weights' squares, divided.
func (w Weights) squared(over int64) Weights {
	most := max(-w.Bound.Low, w.Bound.High)
	out := Weights{pieces: w.pieces, grid: w.grid, values: make([]int64, len(w.values)), Bound: mechanisms.Bound{Low: 0, High: semantics.NearestOf(most*most, over)}}
	for i, v := range w.values {
		out.values[i] = semantics.NearestOf(v*v, over)
	}
	return out
}

// columns are those that a sum's argument reads.
func (s *Summand) columns() []int {
	if s == nil || s.Expr == nil {
		return nil
	}
	return s.Expr.Cols
}

// Name tells summands from others; nil, which counts rows, has none.
func (s *Summand) Name() string {
	if s == nil {
		return ""
	}
	return s.canon
}
