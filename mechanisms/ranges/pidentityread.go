package ranges

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
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
