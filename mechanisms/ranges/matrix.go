package ranges

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// matrix is the strategy of a given integer matrix B of full column rank, so that every sum of cells can be read.
//
// Claim: one row moves the observations by at most the greatest column of B (add-remove), or the greatest difference of
// two columns (replace-one), in L1 and in L2. Neighbours: add-remove, replace-one. Sensitivity: exact, by going through
// all columns, or all pairs of columns. Theorem: the matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi 2015):
// answers that are linear in noisy observations of B·x cost what the observations cost. Proof: a row adds a unit vector
// to x, hence a column to B·x; exchanging a row adds one and takes another away. Limits: MaxMatrixCells columns and
// MaxMatrixRows rows, entries up to 2^MaxMatrixBits, so that squared norms stay below 2^61. A matrix whose columns are,
// to working precision, dependent is refused.
type matrix struct {
	rows, cells int
	entries     []int64 // row by row
	one         privacy.Sensitivity
	two         func() privacy.Sensitivity // of two columns
	gram        mat.Cholesky               // of B'B/scale²
	scale       float64
}

// Bounds of a given matrix.
const (
	MaxMatrixCells = 1 << 11
	MaxMatrixRows  = 1 << 12
	MaxMatrixBits  = 24
)

// maxCondition bounds the condition number of B'B.
const maxCondition = 1e13

func newMatrix(cells int, entries []int64) (*matrix, error) {
	if cells < 1 || cells > MaxMatrixCells {
		return nil, fmt.Errorf("cells of a matrix is %d, must be from 1 to %d", cells, MaxMatrixCells)
	}
	m := &matrix{rows: len(entries) / cells, cells: cells, entries: slices.Clone(entries)}
	if len(entries)%cells != 0 || m.rows < cells || m.rows > MaxMatrixRows {
		return nil, fmt.Errorf("entries of a matrix is %d, must be %d times from %d to %d", len(entries), cells, cells, MaxMatrixRows)
	}
	for i, e := range entries {
		if e > 1<<MaxMatrixBits || e < -1<<MaxMatrixBits {
			return nil, fmt.Errorf("entry %d of a matrix is %d, must be within ±%d", i+1, e, 1<<MaxMatrixBits)
		}
	}
	m.one = m.columns()
	m.two = sync.OnceValue(m.pairs)
	return m, m.factorise()
}

func (m *matrix) row(j int) []int64 { return m.entries[j*m.cells : (j+1)*m.cells] }

// columns returns the greatest norms of columns.
func (m *matrix) columns() privacy.Sensitivity {
	l1, l2 := make([]int64, m.cells), make([]int64, m.cells)
	for j := range m.rows {
		for i, e := range m.row(j) {
			l1[i] += max(e, -e)
			l2[i] += e * e
		}
	}
	return greatest(l1, l2)
}

func greatest(l1, l2 []int64) privacy.Sensitivity {
	var s privacy.Sensitivity
	for i := range l1 {
		s.L1, s.L2Squared = max(s.L1, l1[i]), max(s.L2Squared, l2[i])
	}
	return s
}

// pairs returns the greatest norms of columns and of differences of two columns.
func (m *matrix) pairs() privacy.Sensitivity {
	s := m.one
	l1, l2 := make([]int64, m.cells), make([]int64, m.cells)
	for k := range m.cells {
		clear(l1)
		clear(l2)
		for j := range m.rows {
			row := m.row(j)
			for i, e := range row[:k] {
				d := e - row[k]
				l1[i] += max(d, -d)
				l2[i] += d * d
			}
		}
		pair := greatest(l1[:k], l2[:k])
		s.L1, s.L2Squared = max(s.L1, pair.L1), max(s.L2Squared, pair.L2Squared)
	}
	return s
}

// factorise prepares least squares.
func (m *matrix) factorise() error {
	largest := int64(1)
	for _, e := range m.entries {
		largest = max(largest, e, -e)
	}
	m.scale = float64(largest)
	values := make([]float64, len(m.entries))
	for i, e := range m.entries {
		values[i] = float64(e) / m.scale
	}
	b := mat.NewDense(m.rows, m.cells, values)
	var gram mat.SymDense
	gram.SymOuterK(1, b.T())
	if !m.gram.Factorize(&gram) || m.gram.Cond() > maxCondition {
		return fmt.Errorf("columns of the matrix of %d rows are dependent, must be independent", m.rows)
	}
	return nil
}

// Cells returns the number of columns.
func (m *matrix) Cells() int { return m.cells }

// Observations returns the number of rows.
func (m *matrix) Observations() int { return m.rows }

// Sensitivity returns the norms of the change of the observations by one row.
func (m *matrix) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	if neighbors == privacy.ReplaceOne {
		return m.two()
	}
	return m.one
}

// Observe returns B·x. Positive and negative products are summed apart, in 128 bits: a sum is below 2^12·2^24·2^61.
func (m *matrix) Observe(cells []int64) []int64 {
	observed := make([]int64, m.rows)
	for j := range observed {
		var positive, negative wide
		for i, e := range m.row(j) {
			x := uint64(min(max(cells[i], 0), MaxObserved))
			if e >= 0 {
				positive.add(uint64(e), x)
			} else {
				negative.add(uint64(-e), x)
			}
		}
		if n := positive.above(negative); n > 0 {
			observed[j] = n
		} else {
			observed[j] = -negative.above(positive)
		}
	}
	return observed
}

// wide is an unsigned integer of 128 bits.
type wide struct{ high, low uint64 }

// add adds a·b.
func (w *wide) add(a, b uint64) {
	high, low := bits.Mul64(a, b)
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high += high + carry
}

// above returns w−v, cut to [0, MaxObserved].
func (w wide) above(v wide) int64 {
	low, borrow := bits.Sub64(w.low, v.low, 0)
	high, borrow := bits.Sub64(w.high, v.high, borrow)
	switch {
	case borrow != 0:
		return 0
	case high != 0:
		return MaxObserved
	}
	return int64(min(low, MaxObserved))
}

// transposed returns B'·y/scale.
func (m *matrix) transposed(y []float64) []float64 {
	x := make([]float64, m.cells)
	for j, v := range y {
		v /= m.scale
		for i, e := range m.row(j) {
			x[i] += float64(e) * v
		}
	}
	return x
}

// solve returns (B'B/scale²)⁻¹·x.
func (m *matrix) solve(x []float64) []float64 {
	solved := mat.NewVecDense(m.cells, nil)
	_ = m.gram.SolveVecTo(solved, mat.NewVecDense(m.cells, x)) // the condition is bounded
	return solved.RawVector().Data
}

// product returns B·x/scale.
func (m *matrix) product(x []float64) []float64 {
	y := make([]float64, m.rows)
	for j := range y {
		for i, e := range m.row(j) {
			y[j] += float64(e) * x[i]
		}
		y[j] /= m.scale
	}
	return y
}

// Fit returns the least-squares reading of the cells: the normal equations, and once more for what they leave.
func (m *matrix) Fit(observations []int64) []float64 {
	rest := make([]float64, m.rows)
	for j, o := range observations {
		rest[j] = float64(o) / m.scale
	}
	x := make([]float64, m.cells)
	for range 2 {
		step := m.solve(m.transposed(rest))
		for i, v := range step {
			x[i] += v
		}
		for j, v := range m.product(step) {
			rest[j] -= v
		}
	}
	return x
}

// weights returns how the reading of Σ wanted[i]·x[i] weighs the observations.
func (m *matrix) weights(wanted []float64) []float64 {
	w := m.product(m.solve(wanted))
	for j := range w {
		w[j] /= m.scale
	}
	return w
}

// Variance returns the variance of the reading of the sum of the cells in spans.
func (m *matrix) Variance(spans []Span) float64 {
	return m.LinearVariance(indicator(m.cells, spans))
}

// LinearVariance returns the variance of the reading of Σ query[i]·x[i].
func (m *matrix) LinearVariance(query []float64) float64 {
	l := length(m.weights(query))
	return l * l
}

// Terms returns that reading as a sum of one term an observation.
func (m *matrix) Terms(spans []Span) []noise.Term {
	return eachOnce(m.weights(indicator(m.cells, spans)))
}

// MeanVariance returns the mean variance over a workload: with C = (B'B)⁻¹ the prefix errors E have E Σ E² = Σ_ij
// C_ij·(D − max(i, j)) and E (Σ E)² = Σ_ij C_ij·(D − i)(D − j).
func (m *matrix) MeanVariance(workload Workload) float64 {
	var c mat.SymDense
	_ = m.gram.InverseTo(&c) // the condition is bounded
	squares, sum := 0.0, 0.0
	for i := range m.cells {
		for j := range m.cells {
			squares += c.At(i, j) * float64(m.cells-max(i, j))
			sum += c.At(i, j) * float64(m.cells-i) * float64(m.cells-j)
		}
	}
	return workload.mean(m.cells, squares, sum) / (m.scale * m.scale)
}

// indicator returns 1 for the cells in spans, else 0.
func indicator(cells int, spans []Span) []float64 {
	wanted := make([]float64, cells)
	for _, span := range spans {
		for i := span.From; i < span.To; i++ {
			wanted[i] = 1
		}
	}
	return wanted
}

// eachOnce returns a term for each weight that is not 0.
func eachOnce(weights []float64) []noise.Term {
	terms := make([]noise.Term, 0, len(weights))
	for _, w := range weights {
		if w != 0 {
			terms = append(terms, noise.Term{Weight: w, Count: 1})
		}
	}
	return terms
}
