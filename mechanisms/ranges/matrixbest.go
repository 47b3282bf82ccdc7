package ranges

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Optimised is a strategy for given queries, with its expected error and the least that any strategy can have.
type Optimised struct {
	Description Description
	// Error is the mean variance of the queries, with noise of variance sensitivity² (L1 or L2, as asked; add-remove,
	// one row a unit), that of the integer matrix. Limit is a bound from below for all strategies.
	Error, Limit float64
}

// Optimise finds a strategy for the given linear queries, each a row of coefficients, of which the mean variance
// counts.
//
// Cells that have the same coefficient in every query are observed as one. That loses nothing: with x̄ the cells of a
// group replaced by their mean, a strategy A and its average over all exchanges within the groups have the same error,
// and A'A is convex in it.
//
// For L2 the strategy is optimal: with G = Σ q q' the error of A is tr(G·(A'A)⁻¹)/queries, its columns being at most 1
// long. For every v > 0, S = (V^½GV^½)^½ has tr G·X⁻¹ ≥ (tr S)²/Σv for all X with diagonal at most 1: the dual bound.
// The fixed point v ← diag S makes X = V^−½SV^−½ attain it. Iteration stops when the two are within a thousandth, or
// after maxRounds. The bound also holds for L1, since a column's L2 norm is at most its L1 norm.
//
// For L1 it is the best of the identity, the queries themselves, the optimum for L2, and the p-identity strategy to
// which the optimiser comes from several starts.
//
// All sums of cells stay readable, but those that no query needs only badly: leastShare of what there is goes to them.
// It takes a few seconds for 512 groups of cells and minutes for 2048.
func Optimise(queries [][]float64, norm Norm) (Optimised, error) {
	if norm != L1 && norm != L2 {
		return Optimised{}, fmt.Errorf("norm is %d, must be L1 or L2", norm)
	}
	if err := checkQueries(queries); err != nil {
		return Optimised{}, err
	}
	w := group(queries)
	g := w.gram()
	x, limit, err := optimalGram(g)
	if err != nil {
		return Optimised{}, err
	}
	candidates := []*mat.Dense{rootOfGram(x)}
	if norm == L1 {
		candidates = append(candidates, unit(len(w.width)), w.themselves())
		candidates = append(candidates, pIdentitiesFor(g)...)
	}
	best := Optimised{Limit: limit / float64(len(queries))}
	for _, a := range candidates {
		m, err := w.integers(a, norm)
		if err != nil {
			continue
		}
		if e := m.errorOf(queries, norm); best.Error == 0 || e < best.Error {
			best.Error = e
			best.Description = Description{Kind: KindMatrix, Cells: len(w.of), Matrix: m.entries}
		}
	}
	if best.Error == 0 {
		return Optimised{}, fmt.Errorf("queries of %d cells have no strategy of %d bits", len(w.of), matrixBits)
	}
	return best, nil
}

// maxQueries bounds the number of queries.
const maxQueries = 1 << 20

func checkQueries(queries [][]float64) error {
	if len(queries) == 0 || len(queries) > maxQueries {
		return fmt.Errorf("number of queries is %d, must be from 1 to %d", len(queries), maxQueries)
	}
	cells := len(queries[0])
	if cells < 1 || cells > MaxMatrixCells {
		return fmt.Errorf("cells of query 1 is %d, must be from 1 to %d", cells, MaxMatrixCells)
	}
	some := false
	for i, q := range queries {
		if len(q) != cells {
			return fmt.Errorf("cells of query %d is %d, must be the %d of query 1", i+1, len(q), cells)
		}
		for j, c := range q {
			if !(math.Abs(c) <= 1e9) {
				return fmt.Errorf("coefficient %d of query %d is %g, must be within ±1e9", j+1, i+1, c)
			}
			some = some || math.Abs(c) >= 1e-9
		}
	}
	if !some {
		return fmt.Errorf("queries are all 0, must have a coefficient of at least 1e-9")
	}
	return nil
}

// grouped are queries over groups of cells, within which their coefficients are equal.
type grouped struct {
	of      []int       // the group of each cell; −1: in no query
	width   []int       // the number of cells of each group
	queries [][]float64 // over the groups
}

func group(queries [][]float64) grouped {
	cells := len(queries[0])
	ids := make([]int, cells)
	for _, q := range queries { // cells stay together as long as they had equal coefficients
		type key struct {
			id          int
			coefficient float64
		}
		next := map[key]int{}
		for i, c := range q {
			k := key{ids[i], c}
			if _, ok := next[k]; !ok {
				next[k] = len(next)
			}
			ids[i] = next[k]
		}
	}
	w := grouped{of: make([]int, cells), queries: make([][]float64, len(queries))}
	known := map[int]int{}
	for i, id := range ids {
		at, ok := known[id]
		if !ok {
			at = -1
			for _, q := range queries {
				if q[i] != 0 {
					at = len(w.width)
					w.width = append(w.width, 0)
					for j := range queries {
						w.queries[j] = append(w.queries[j], queries[j][i])
					}
					break
				}
			}
			known[id] = at
		}
		w.of[i] = at
		if at >= 0 {
			w.width[at]++
		}
	}
	return w
}

// gram returns Σ q q' over the groups.
func (w grouped) gram() *mat.SymDense {
	rows := make([]float64, 0, len(w.queries)*len(w.width))
	for _, q := range w.queries {
		rows = append(rows, q...)
	}
	g := mat.NewSymDense(len(w.width), nil)
	g.SymOuterK(1, mat.NewDense(len(w.queries), len(w.width), rows).T())
	return g
}

// unit returns the identity.
func unit(n int) *mat.Dense {
	a := mat.NewDense(n, n, nil)
	for i := range n {
		a.Set(i, i, 1)
	}
	return a
}

// themselves returns the queries.
func (w grouped) themselves() *mat.Dense {
	a := mat.NewDense(len(w.queries), len(w.width), nil)
	for j, q := range w.queries {
		a.SetRow(j, q)
	}
	return a
}

// matrixBits is the length of a column of an optimised integer matrix, as a power of two.
const matrixBits = 20

// integers rounds A, a strategy for the groups whose greatest column is brought to 2^matrixBits in the norm. Where that
// leaves a cell apart from nothing, or groups of several cells or dependent columns leave cells that cannot be
// distinguished, rows for single cells follow: with what the cell's column has left, at least a thousandth (L1; L2 a
// hundredth).
func (w grouped) integers(a *mat.Dense, norm Norm) (*matrix, error) {
	rows, groups := a.Dims()
	lengths, most := make([]float64, groups), 0.0
	for i := range lengths {
		lengths[i] = normOf(mat.Col(nil, i, a), norm)
		most = max(most, lengths[i])
	}
	cells := len(w.of)
	entries := make([]int64, 0, (rows+cells)*cells)
	for j := range rows {
		for _, g := range w.of {
			e := 0.0
			if g >= 0 {
				e = a.At(j, g) / most
			}
			entries = append(entries, int64(math.Round(e*(1<<matrixBits))))
		}
	}
	if rows >= cells && groups == cells {
		if m, err := newMatrix(cells, entries); err == nil {
			return m, nil
		}
	}
	for i, g := range w.of {
		rest := 1.0
		if g >= 0 && norm == L1 {
			rest = max(1-lengths[g]/most, 1e-3)
		} else if g >= 0 {
			rest = max(math.Sqrt(max(0, 1-lengths[g]*lengths[g]/(most*most))), 1e-2)
		}
		row := make([]int64, cells)
		row[i] = int64(math.Round(rest * (1 << matrixBits)))
		entries = append(entries, row...)
	}
	return newMatrix(cells, entries)
}

func normOf(column []float64, norm Norm) float64 {
	if norm == L2 {
		return length(column)
	}
	sum := 0.0
	for _, v := range column {
		sum += math.Abs(v)
	}
	return sum
}

// errorOf returns the mean variance of the queries with noise of variance sensitivity².
func (m *matrix) errorOf(queries [][]float64, norm Norm) float64 {
	square := float64(m.one.L2Squared)
	if norm == L1 {
		square = float64(m.one.L1) * float64(m.one.L1)
	}
	if len(queries) <= m.cells {
		sum := 0.0
		for _, q := range queries {
			sum += m.LinearVariance(q)
		}
		return sum * square / float64(len(queries))
	}
	g := mat.NewSymDense(m.cells, nil)
	for _, q := range queries {
		g.SymRankOne(g, 1, mat.NewVecDense(m.cells, q))
	}
	var solved mat.Dense
	_ = m.gram.SolveTo(&solved, g) // the condition is bounded
	return mat.Trace(&solved) / (m.scale * m.scale) * square / float64(len(queries))
}

// The share of the mean of G's diagonal that is added to it, and the bounds of the iteration.
const (
	leastShare = 1e-6
	maxRounds  = 60
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
	for range maxRounds {
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

// rootOfGram returns the upper triangular A with A'A = X.
func rootOfGram(x *mat.SymDense) *mat.Dense {
	var c mat.Cholesky
	c.Factorize(x)
	var u mat.TriDense
	c.UTo(&u)
	return mat.DenseCopyOf(&u)
}

// pIdentitiesFor returns the p-identity strategies that the optimiser finds for the queries with Gram matrix G: from
// hats, which suit sums of neighbouring cells, and from rows without any order.
func pIdentitiesFor(g *mat.SymDense) []*mat.Dense {
	cells := g.SymmetricDim()
	if cells < 4 || cells > maxPIdentityGroups {
		return nil
	}
	diagonal := make([]float64, cells)
	for i := range diagonal {
		diagonal[i] = g.At(i, i)
	}
	apply := func(dst, v []float64) {
		product := mat.NewVecDense(cells, dst)
		product.MulVec(g, mat.NewVecDense(cells, v))
	}
	var starts [][]float64
	all := layouts(AllPrefixes, cells)
	for i := 0; i < len(all); i += max(1, len(all)/6) {
		x, _ := all[i].start(cells, false)
		starts = append(starts, x)
	}
	for _, rows := range []int{2, max(3, cells/16), max(4, cells/6)} {
		x := make([]float64, rows*cells)
		for i := range x {
			_, part := math.Modf(0.6180339887498949 * float64(i+1))
			x[i] = part * part / 2
		}
		starts = append(starts, x)
	}
	best := math.Inf(1)
	var found []float64
	var template *template
	for _, x := range starts {
		t := templateOf(cells, len(x)/cells, newSubspace(len(x)/cells, diagonal, apply))
		if e := t.minimise(x, triedMoves); e < best {
			best, found, template = e, x, t
		}
	}
	template.minimise(found, lastMoves)
	template.theta(found)
	a := mat.NewDense(cells+template.rows, cells, nil)
	for j := range cells {
		a.Set(j, j, 1/template.u[j])
		for i := range template.rows {
			a.Set(cells+i, j, found[i*cells+j]/template.u[j])
		}
	}
	return []*mat.Dense{a}
}

// The effort of pIdentitiesFor, and the largest number of groups of cells for which it is made.
const (
	triedMoves         = 60
	lastMoves          = 500
	maxPIdentityGroups = 600
)
