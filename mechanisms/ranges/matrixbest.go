package ranges

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Optimised is a strategy for given queries, with its expected error and the least that any strategy can have.
type Optimised struct {
	Description Description
	// Error is the mean variance of the queries, with noise of variance sensitivity² (L1 or L2, as asked; add-remove, one
	// row a unit), that of the integer matrix. Limit is a bound from below for all strategies.
	Error, Limit float64
}

// Optimise finds a strategy for the given linear queries, each a row of coefficients, of which the mean variance counts.
//
// For L2 it is optimal: with G = Σ q q' the error of a strategy A is tr(G·(A'A)⁻¹)/queries, its columns being at most 1
// long. For every v > 0, S = (V^½GV^½)^½ has tr G·X⁻¹ ≥ (tr S)²/Σv for all X with diagonal at most 1: the dual bound. The
// fixed point v ← diag S makes X = V^−½SV^−½ attain it. Iteration stops when the two are within a thousandth, or after
// mostRounds. The bound also holds for L1, since a column's L2 norm is at most its L1 norm.
//
// For L1 it is the best of the identity, the p-identity that the optimiser finds, and the queries themselves or the
// optimum for L2 with columns normalised.
//
// Queries that say nothing about some direction leave it to a small share of the error: every sum stays readable. It takes
// a few seconds for 512 cells and minutes for 2048.
func Optimise(queries [][]float64, norm Norm) (Optimised, error) {
	g, cells, err := gramOf(queries)
	if err != nil {
		return Optimised{}, err
	}
	if norm != L1 && norm != L2 {
		return Optimised{}, fmt.Errorf("norm is %d, must be L1 or L2", norm)
	}
	x, limit, err := optimalGram(g)
	if err != nil {
		return Optimised{}, err
	}
	candidates := []*mat.Dense{rootOfGram(x)}
	if norm == L1 {
		candidates = append(candidates, besides(queries, cells, 1e-3), besides(queries, cells, .1), besides(queries, cells, 1))
		candidates = append(candidates, besides(nil, cells, 1))
	}
	best := Optimised{Limit: limit / float64(len(queries))}
	for _, a := range candidates {
		m, err := integerMatrix(a, norm)
		if err != nil {
			continue
		}
		if e := m.errorOf(g, norm) / float64(len(queries)); best.Error == 0 || e < best.Error {
			best.Error = e
			best.Description = Description{Kind: KindMatrix, Cells: cells, Matrix: m.entries}
		}
	}
	if best.Error == 0 {
		return Optimised{}, fmt.Errorf("queries of %d cells have no strategy of %d bits", cells, matrixBits)
	}
	return best, nil
}

// mostQueries bounds the number of queries.
const mostQueries = 1 << 20

// gramOf returns Σ q q'.
func gramOf(queries [][]float64) (*mat.SymDense, int, error) {
	if len(queries) == 0 || len(queries) > mostQueries {
		return nil, 0, fmt.Errorf("number of queries is %d, must be from 1 to %d", len(queries), mostQueries)
	}
	cells := len(queries[0])
	if cells < 1 || cells > MostMatrixCells {
		return nil, 0, fmt.Errorf("cells of query 1 is %d, must be from 1 to %d", cells, MostMatrixCells)
	}
	rows := make([]float64, 0, len(queries)*cells)
	for i, q := range queries {
		if len(q) != cells {
			return nil, 0, fmt.Errorf("cells of query %d is %d, must be the %d of query 1", i+1, len(q), cells)
		}
		for j, c := range q {
			if !(math.Abs(c) <= 1e9) {
				return nil, 0, fmt.Errorf("coefficient %d of query %d is %g, must be within ±1e9", j+1, i+1, c)
			}
		}
		rows = append(rows, q...)
	}
	g := mat.NewSymDense(cells, nil)
	g.SymOuterK(1, mat.NewDense(len(queries), cells, rows).T())
	if trace := mat.Trace(g); !(trace > 0) {
		return nil, 0, fmt.Errorf("queries are all 0, must have a coefficient that is not")
	}
	return g, cells, nil
}

// The share of the mean of G's diagonal that is added to it, and the bounds of the iteration.
const (
	leastShare = 1e-5
	mostRounds = 40
	enough     = 1e-3
)

// optimalGram returns X with diagonal 1 that all but minimises tr(G·X⁻¹), and a bound of that from below.
func optimalGram(g *mat.SymDense) (*mat.SymDense, float64, error) {
	n := g.SymmetricDim()
	share := leastShare * mat.Trace(g) / float64(n)
	whole := mat.NewSymDense(n, nil)
	whole.CopySym(g)
	v, last := make([]float64, n), make([]float64, n)
	for i := range n {
		whole.SetSym(i, i, g.At(i, i)+share)
		v[i] = 1
	}
	var x *mat.SymDense
	best := math.Inf(1)
	for range mostRounds {
		s, err := newScaledRoot(whole, v)
		if err != nil {
			return nil, 0, err
		}
		if e := s.normalisedError(whole); e < best {
			best, x = e, s.normalised()
		}
		sum := 0.0
		for i := range v {
			sum += v[i]
			last[i], v[i] = v[i], s.root.At(i, i)
		}
		if best < s.trace*s.trace/sum*(1+enough) {
			break
		}
	}
	s, err := newScaledRoot(g, last)
	if err != nil {
		return nil, 0, err
	}
	sum := 0.0
	for _, v := range last {
		sum += v
	}
	return x, s.trace * s.trace / sum, nil
}

// scaledRoot is S = (V^½GV^½)^½.
type scaledRoot struct {
	root, inverse *mat.SymDense
	trace         float64
}

func newScaledRoot(g *mat.SymDense, v []float64) (scaledRoot, error) {
	n := g.SymmetricDim()
	scaled := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			scaled.SetSym(i, j, g.At(i, j)*math.Sqrt(v[i]*v[j]))
		}
	}
	values, vectors, err := spectrum(scaled)
	if err != nil {
		return scaledRoot{}, err
	}
	s := scaledRoot{}
	for k, value := range values {
		values[k] = math.Sqrt(max(value, 0))
		s.trace += values[k]
	}
	s.root = recomposed(values, vectors)
	for k, value := range values {
		values[k] = 1 / max(value, s.trace*1e-15)
	}
	s.inverse = recomposed(values, vectors)
	return s, nil
}

func spectrum(s *mat.SymDense) ([]float64, *mat.Dense, error) {
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		return nil, nil, fmt.Errorf("queries of %d cells have no spectrum in floating point", s.SymmetricDim())
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	return e.Values(nil), &vectors, nil
}

// recomposed returns Σ value·vector·vector'.
func recomposed(values []float64, vectors *mat.Dense) *mat.SymDense {
	n := len(values)
	half := mat.NewDense(n, n, nil)
	for i := range n {
		for k, value := range values {
			half.Set(i, k, vectors.At(i, k)*math.Sqrt(value))
		}
	}
	s := mat.NewSymDense(n, nil)
	s.SymOuterK(1, half)
	return s
}

// normalised returns S with its diagonal brought to 1, which is V^−½SV^−½ so brought.
func (s scaledRoot) normalised() *mat.SymDense {
	n := s.root.SymmetricDim()
	x := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			x.SetSym(i, j, s.root.At(i, j)/math.Sqrt(s.root.At(i, i)*s.root.At(j, j)))
		}
	}
	return x
}

// normalisedError returns tr(G·normalised⁻¹).
func (s scaledRoot) normalisedError(g *mat.SymDense) float64 {
	n, sum := g.SymmetricDim(), 0.0
	for i := range n {
		for j := range n {
			sum += g.At(i, j) * s.inverse.At(i, j) * math.Sqrt(s.root.At(i, i)*s.root.At(j, j))
		}
	}
	return sum
}

// matrixBits is the length of a column of an optimised integer matrix, as a power of two.
const matrixBits = 20

// integerMatrix rounds A, its columns first brought to the length of 2^matrixBits in the norm.
func integerMatrix(a *mat.Dense, norm Norm) (*matrix, error) {
	rows, cells := a.Dims()
	entries := make([]int64, rows*cells)
	for i := range cells {
		column := mat.Col(nil, i, a)
		size := length(column)
		if norm == L1 {
			size = 0
			for _, v := range column {
				size += math.Abs(v)
			}
		}
		for j, v := range column {
			entries[j*cells+i] = int64(math.Round(v / size * (1 << matrixBits)))
		}
	}
	return newMatrix(cells, entries)
}

// errorOf returns tr(G·(B'B)⁻¹) times the squared sensitivity.
func (m *matrix) errorOf(g *mat.SymDense, norm Norm) float64 {
	var solved mat.Dense
	_ = m.gram.SolveTo(&solved, g) // the condition is bounded
	square := float64(m.one.L2Squared)
	if norm == L1 {
		square = float64(m.one.L1) * float64(m.one.L1)
	}
	return mat.Trace(&solved) / (m.scale * m.scale) * square
}

// rootOfGram returns the upper triangular A with A'A = X.
func rootOfGram(x *mat.SymDense) *mat.Dense {
	var c mat.Cholesky
	c.Factorize(x)
	var u mat.TriDense
	c.UTo(&u)
	return mat.DenseCopyOf(&u)
}

// besides returns the queries and, so that all sums can be read, each cell times weight.
func besides(queries [][]float64, cells int, weight float64) *mat.Dense {
	a := mat.NewDense(len(queries)+cells, cells, nil)
	for j, q := range queries {
		a.SetRow(j, q)
	}
	for i := range cells {
		a.Set(len(queries)+i, i, weight)
	}
	return a
}
