package ranges

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Reading by the structure. With U = diag(u), u = 1/b, and Θ = T·U: B'B = U⁻¹(I+Θ'Θ)U⁻¹, and with M = (I+ΘΘ')⁻¹, of as
// many rows as T, Woodbury's identity gives (B'B)⁻¹ = U(I − Θ'MΘ)U and ΘU⁻¹(B'B)⁻¹ = MΘU. So nothing as large as the
// cells squared is ever made: the preparation takes O(p·weights + p³), and Θ is as sparse as T.

// prepare factorises I + ΘΘ' and sums the weights up.
func (s *pIdentity) prepare() error {
	s.squares = make([]float64, s.cells+1)
	for i, b := range s.own {
		u := 1 / float64(b)
		s.inverse[i], s.squares[i+1] = u, s.squares[i]+u*u
	}
	all := 0
	for k := range s.rows {
		all += len(s.rows[k].weights) + 1
	}
	sums := make([]float64, all) // of all of them side by side: a range reads two of each
	for k := range s.rows {
		r := &s.rows[k]
		n := len(r.weights) + 1
		r.sums, sums = sums[:n:n], sums[n:]
		for i, w := range r.weights {
			u := s.inverse[r.from+i]
			r.sums[i+1] = r.sums[i] + float64(w)*u*u
		}
	}
	p := len(s.rows)
	if p == 0 {
		return nil
	}
	gram := mat.NewSymDense(p, nil)
	row := make([]float64, s.cells)
	for k, r := range s.rows {
		for i, w := range r.weights {
			u := s.inverse[r.from+i]
			row[r.from+i] = float64(w) * u * u
		}
		for j := range k + 1 {
			gram.SetSym(k, j, s.rows[j].dot(row))
		}
		clear(row[r.from : r.from+len(r.weights)])
		gram.SetSym(k, k, 1+gram.At(k, k))
	}
	if !s.factor.Factorize(gram) {
		return fmt.Errorf("p-identity strategy of %d cells and %d rows cannot be read to working precision", s.cells, p)
	}
	return nil
}

// dot returns Σ weights·x.
func (r *band) dot(x []float64) float64 {
	sum := 0.0
	for i, w := range r.weights {
		sum += float64(w) * x[r.from+i]
	}
	return sum
}

// over returns Σ weights·u² over the cells of the spans.
func (r *band) over(spans []Span) float64 {
	sum, end := 0.0, len(r.weights)
	for _, s := range spans {
		sum += r.sums[min(max(s.To-r.from, 0), end)] - r.sums[min(max(s.From-r.from, 0), end)]
	}
	return sum
}

// explained returns Σ m·(Θv) for v = U·wanted: what the weighted sums take of |v|².
func (s *pIdentity) explained(spans []Span, m []float64) (sum float64) {
	for k := range m {
		r := &s.rows[k]
		end := r.from + len(r.weights)
		for _, span := range spans {
			if span.From < end && span.To > r.from {
				sum += m[k] * (r.sums[min(span.To, end)-r.from] - r.sums[max(span.From, r.from)-r.from])
			}
		}
	}
	return sum
}

// solve returns M·x.
func (s *pIdentity) solve(x []float64) []float64 {
	if len(x) == 0 {
		return x
	}
	solved := mat.NewVecDense(len(x), nil)
	_ = s.factor.SolveVecTo(solved, mat.NewVecDense(len(x), x)) // I + ΘΘ' is at least I
	return solved.RawVector().Data
}

// Fit returns the least-squares reading: the cells' own observations, corrected by what the weighted sums say beyond
// them, x = U·y₁ + U·Θ'M(y₂ − Θ·y₁).
func (s *pIdentity) Fit(observations []int64) []float64 {
	x := make([]float64, s.cells)
	for i, u := range s.inverse {
		x[i] = u * float64(observations[i])
	}
	beyond := make([]float64, len(s.rows))
	for k := range s.rows {
		beyond[k] = float64(observations[s.cells+k]) - s.rows[k].dot(x)
	}
	for k, m := range s.solve(beyond) {
		r := &s.rows[k]
		for i, w := range r.weights {
			u := s.inverse[r.from+i]
			x[r.from+i] += u * u * float64(w) * m
		}
	}
	return x
}

// Variance returns |v|² − v'Θ'MΘv for v = U·wanted.
func (s *pIdentity) Variance(spans []Span) float64 {
	if s.prefixed(spans) {
		weights := make([]float64, len(s.rows))
		return s.combined(spans, weights) - s.explained(spans, weights)
	}
	sums := make([]float64, len(s.rows))
	for k := range s.rows {
		sums[k] = s.rows[k].over(spans)
	}
	variance := 0.0
	for _, span := range spans {
		for _, u := range s.inverse[span.From:span.To] {
			variance += u * u
		}
	}
	for k, m := range s.solve(sums) {
		variance -= m * sums[k]
	}
	return variance
}

// Terms returns the reading of the sum of the cells in spans as a sum of one term an observation.
func (s *pIdentity) Terms(spans []Span) []noise.Term {
	wanted := indicator(s.cells, spans)
	if s.prefixed(spans) {
		m := make([]float64, len(s.rows))
		s.combined(spans, m)
		return eachOnce(append(s.weightsOf(wanted, m), m...))
	}
	return eachOnce(s.weights(wanted))
}

// weights returns B(B'B)⁻¹·wanted: v − Θ'm for the cells and m for the weighted sums, v = U·wanted, m = MΘv.
func (s *pIdentity) weights(wanted []float64) []float64 {
	m := s.solvedFor(wanted)
	return append(s.weightsOf(wanted, m), m...)
}

// solvedFor returns m.
func (s *pIdentity) solvedFor(wanted []float64) []float64 {
	scaled := make([]float64, s.cells)
	for i, u := range s.inverse {
		scaled[i] = u * u * wanted[i]
	}
	sums := make([]float64, len(s.rows))
	for k := range s.rows {
		sums[k] = s.rows[k].dot(scaled)
	}
	return s.solve(sums)
}

// weightsOf returns v − Θ'm.
func (s *pIdentity) weightsOf(wanted, m []float64) []float64 {
	weights := make([]float64, s.cells, s.Observations())
	for k := range s.rows {
		r, own := &s.rows[k], m[k]
		cells := weights[r.from : r.from+len(r.weights)]
		for i, w := range r.weights {
			cells[i] -= float64(w) * own
		}
	}
	for i, u := range s.inverse {
		weights[i] = u * (wanted[i] + weights[i])
	}
	return weights
}

// MeanVariance returns tr((B'B)⁻¹G)/queries = (Σ u²·G_jj − tr(M·K))/queries, K = ΘU·G·UΘ' (see template).
func (s *pIdentity) MeanVariance(workload Workload) float64 {
	gram := gramRanges
	if workload == AllPrefixes {
		gram = gramPrefixes
	}
	total := 0.0
	for i, u := range s.inverse {
		holding := float64(s.cells - i) // queries with the cell
		if workload == AllRanges {
			holding *= float64(i + 1)
		}
		total += u * u * holding
	}
	p := len(s.rows)
	if p == 0 {
		return total / workload.queries(s.cells)
	}
	scaled := make([][]float64, p) // T·U²
	k := mat.NewDense(p, p, nil)
	row, applied := make([]float64, s.cells), make([]float64, s.cells)
	for i := range s.rows {
		r := &s.rows[i]
		scaled[i] = make([]float64, len(r.weights))
		for j, w := range r.weights {
			u := s.inverse[r.from+j]
			scaled[i][j] = float64(w) * u * u
		}
		copy(row[r.from:], scaled[i])
		gram(applied, row)
		clear(row)
		for j := range i + 1 {
			sum := 0.0
			for c, v := range scaled[j] {
				sum += v * applied[s.rows[j].from+c]
			}
			k.Set(i, j, sum)
			k.Set(j, i, sum)
		}
	}
	var solved mat.Dense
	_ = s.factor.SolveTo(&solved, k)
	return (total - mat.Trace(&solved)) / workload.queries(s.cells)
}

// pIdentity is the strategy B = [diag(b); T] of McKenna, Miklau, Hay and Machanavajjhala (HDMM, 2018): each cell by
// itself, b times, and p weighted sums of cells with weights T ≥ 0, chosen so that every column of B adds up to
// pIdentityScale.
//
// Claim: one row moves the observations by exactly pIdentityScale in L1 and by at most the greatest column in L2
// (add-remove); by at most twice that in L1 and in L2² (replace-one); a unit of R rows by R and R² times as much.
// Neighbours: add-remove, replace-one. Sensitivity: computed by newPIdentity from the integers of B, in integers.
// Theorem: the matrix mechanism; the mechanism is the root package's Release, this file only makes what it adds noise
// to. Proof: a row adds a column of B to B·x. All entries are ≥ 0, so a column's L1 norm is its sum, which b was chosen
// to complete, and for two columns a, c: |a−c|₁ ≤ |a|₁+|c|₁ and |a−c|₂² = |a|₂²+|c|₂²−2a·c ≤ |a|₂²+|c|₂². For a unit of
// R rows see Strategy. The real-valued optimum that T was rounded from plays no part. Limits: b ≥ 1, so that B has full
// column rank and every sum can be read. Weights are sparse: a row of T is kept from its first to its last positive
// entry.
type pIdentity struct {
	cells int
	own   []int64 // b
	rows  []band  // of T
	norms privacy.Sensitivity
	// For reading, with u = 1/b and Θ = T·diag(u): the Cholesky factor of I + ΘΘ'.
	inverse []float64 // u
	factor  mat.Cholesky
	// For the errors of ranges: prefixes of u², and what is known of the prefixes that were asked (pidentityprefix.go).
	squares  []float64
	prefixes []atomic.Pointer[prefix]
	tabling  sync.Once
	table    []float64 // the weights of the sums of every prefix; nil means each is solved for
	columns  *columns  // beside it: T by its columns
}

// band is a row of weights that are 0 outside of from to from+len(weights).
type band struct {
	from    int
	weights []int64
	// prefixes of weights·u², for sums over spans.
	sums []float64
}

// pIdentityScale is what every column adds up to.
const pIdentityScale = 1 << 16

// maxPIdentityRows bounds p: Reading takes O(p³) once and O(p²) a query.
const maxPIdentityRows = 1 << 11

// newPIdentity checks the weights and completes the columns.
func newPIdentity(cells int, rows []band) (*pIdentity, error) {
	if cells < 1 || cells > MaxPIdentity {
		return nil, fmt.Errorf("cells of a p-identity strategy is %d, must be from 1 to %d", cells, MaxPIdentity)
	}
	if len(rows) > maxPIdentityRows {
		return nil, fmt.Errorf("rows of a p-identity strategy is %d, must be at most %d", len(rows), maxPIdentityRows)
	}
	s := &pIdentity{cells: cells, own: make([]int64, cells), inverse: make([]float64, cells)}
	squares := make([]int64, cells)
	for i := range s.own {
		s.own[i] = pIdentityScale
	}
	for k, r := range rows {
		if r.from < 0 || r.from+len(r.weights) > cells {
			return nil, fmt.Errorf("row %d covers cells %d to %d, must be within the %d", k+1, r.from, r.from+len(r.weights), cells)
		}
		for i, w := range r.weights {
			if w < 0 || w >= pIdentityScale {
				return nil, fmt.Errorf("row %d has a weight of %d, must be from 0 to %d", k+1, w, pIdentityScale-1)
			}
			s.own[r.from+i] -= w
			squares[r.from+i] += w * w
		}
		s.rows = append(s.rows, band{from: r.from, weights: r.weights})
	}
	sums := make([]int64, cells)
	for i, b := range s.own {
		if b < 1 {
			return nil, fmt.Errorf("weights of cell %d add up to %d, must be below %d", i+1, pIdentityScale-b, pIdentityScale)
		}
		sums[i], squares[i] = b, squares[i]+b*b
	}
	for _, r := range rows {
		for i, w := range r.weights {
			sums[r.from+i] += w
		}
	}
	s.norms = greatest(sums, squares)
	s.prefixes = make([]atomic.Pointer[prefix], cells+1)
	return s, s.prepare()
}

// Cells returns the number of cells.
func (s *pIdentity) Cells() int { return s.cells }

// Observations returns the number of cells and weighted sums.
func (s *pIdentity) Observations() int { return s.cells + len(s.rows) }

// Sensitivity returns the norms of the change of the observations by one row.
func (s *pIdentity) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	if neighbors == privacy.ReplaceOne {
		return privacy.Sensitivity{L1: 2 * s.norms.L1, L2Squared: 2 * s.norms.L2Squared}
	}
	return s.norms
}

// Observe returns first every cell, b times, then the weighted sums, each summed in 128 bits before it is cut: at most
// MaxPIdentity products below 2^16·2^61.
func (s *pIdentity) Observe(cells []int64) []int64 {
	observed := make([]int64, 0, s.Observations())
	for i, b := range s.own {
		var sum wide
		sum.add(uint64(b), counted(cells[i]))
		observed = append(observed, sum.above(wide{}))
	}
	for _, r := range s.rows {
		var sum wide
		for i, w := range r.weights {
			sum.add(uint64(w), counted(cells[r.from+i]))
		}
		observed = append(observed, sum.above(wide{}))
	}
	return observed
}

// counted returns a cell as Strategy.Observe takes it.
func counted(cell int64) uint64 { return uint64(min(max(cell, 0), MaxObserved)) }
