package marginals

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Release opens the cells, row by row, observes them and adds noise. Missing cells count as 0, further ones are ignored.
// Claim, neighbours, sensitivity and proof: NewGrid. The noise is drawn before the cells are opened.
func (g Grid) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	if g.rows == nil {
		return none, errors.New("grid is the zero value, must be made by NewGrid")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	noisy := make([]int64, g.rows.Observations()*g.columns.Observations())
	for i := range noisy {
		noisy[i] = g.noise.Sample(reader)
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	cells := make([]int64, g.shape.Rows*g.shape.Columns)
	copy(cells, sealed.Open(truth))
	for i, n := range g.observe(cells) {
		noisy[i] = addNoise(n, noisy[i])
	}
	return sealed.Release(Noisy{Observations: noisy}), nil
}

// observe returns A·x·Bᵀ.
func (g *Grid) observe(cells []int64) []int64 {
	shape := []int{g.shape.Rows, g.shape.Columns}
	seen := along(cells, shape, 1, g.columns.Observations(), func(line, to []int64) { copy(to, g.columns.Observe(line)) })
	shape[1] = g.columns.Observations()
	return along(seen, shape, 0, g.rows.Observations(), func(line, to []int64) { copy(to, g.rows.Observe(line)) })
}

// GridEstimate is the least-squares reading of a grid: that of a Kronecker product is the reading of each column, one after
// the other. It is post-processing, and safe for concurrent use.
type GridEstimate struct {
	grid   Grid
	before [][]float64 // before[i][j]: the count of the first i rows and j columns
}

// Estimate reads a release of the grid.
func (g Grid) Estimate(released privacy.Released[Noisy]) (*GridEstimate, error) {
	if g.rows == nil || !released.Valid() {
		return nil, errors.New("grid or release is the zero value, must be made by NewGrid and Release")
	}
	noisy := released.Value().Observations
	shape := []int{g.rows.Observations(), g.columns.Observations()}
	if len(noisy) != shape[0]*shape[1] {
		return nil, fmt.Errorf("number of observations is %d, must be the %d of the grid", len(noisy), shape[0]*shape[1])
	}
	cells := make([]float64, len(noisy))
	for i, n := range noisy {
		cells[i] = float64(n)
	}
	cells = along(cells, shape, 1, g.shape.Columns, func(line, to []float64) { fit(g.columns, line, to) })
	shape[1] = g.shape.Columns
	cells = along(cells, shape, 0, g.shape.Rows, func(line, to []float64) { fit(g.rows, line, to) })
	e := &GridEstimate{grid: g, before: make([][]float64, g.shape.Rows+1)}
	e.before[0] = make([]float64, g.shape.Columns+1)
	for i := range g.shape.Rows {
		sums := ranges.Prefixes(cells[i*g.shape.Columns : (i+1)*g.shape.Columns])
		for j, n := range e.before[i] {
			sums[j] += n
		}
		e.before[i+1] = sums
	}
	return e, nil
}

// fit reads a line of real observations by a strategy that takes integers: scaled by a power of two to 60 bits, of which
// the rounding is far below a float's own.
func fit(s ranges.Strategy, line, to []float64) {
	most := 0.0
	for _, x := range line {
		most = math.Max(most, math.Abs(x))
	}
	if most == 0 {
		clear(to)
		return
	}
	_, exponent := math.Frexp(most)
	scaled := make([]int64, len(line))
	for i, x := range line {
		scaled[i] = int64(math.Ldexp(x, 60-exponent))
	}
	for i, x := range s.Fit(scaled) {
		to[i] = math.Ldexp(x, exponent-60)
	}
}

// Sum returns the estimated count in a rectangle. It is unbiased, so it may be negative.
func (e *GridEstimate) Sum(r Rectangle) (privacy.Released[float64], error) {
	if err := e.grid.check(r); err != nil {
		return privacy.Released[float64]{}, err
	}
	b := e.before
	return sealed.Release(b[r.Rows.To][r.Columns.To] - b[r.Rows.From][r.Columns.To] - b[r.Rows.To][r.Columns.From] + b[r.Rows.From][r.Columns.From]), nil
}
