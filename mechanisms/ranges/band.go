package ranges

import (
	"fmt"
	"math"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// banded is the strategy of a lower triangular Toeplitz matrix of a band: observation t of the cells x is Σ q(k)·x(t−k)
// over k from 0 to the band's length, q the integers nearest to 2^bits times the coefficients of (1−z)^−½, which those
// of the square root of the prefix sums' matrix are. It is a Continual strategy.
//
// Claim: one row moves the observations by at most Σq (L1) and Σq² (L2²), add-remove; by twice as much, replace-one.
// Neighbours: add-remove, replace-one. Sensitivity: exact for add-remove where there are as many cells as the band is
// long; a bound from above otherwise. Theorem: the matrix mechanism, for a square matrix, so that the reading is B⁻¹·y.
// Proof: column s holds q(0), q(1), … from row s on, cut at the last row. Of two columns u, v ≥ 0, |u−v|₁ ≤ |u|₁+|v|₁
// and
// |u−v|₂² ≤ |u|₂²+|v|₂².
// Limits: an observation of more than 2^(61−bits) rows may saturate.
type banded struct {
	cells   int
	q       []int64
	one     privacy.Sensitivity
	inverse func() []float64 // the running sums of the first column of B⁻¹: of a range's reading
}

// MaxBand is the longest band; continualBits the bits that are chosen.
const (
	MaxBand       = 1 << 12
	continualBits = 20
)

func newBand(cells int, radices []int, bits int) (*banded, error) {
	switch {
	case cells < 1 || cells > MaxContinual:
		return nil, fmt.Errorf("cells of a continual strategy is %d, must be from 1 to %d", cells, MaxContinual)
	case len(radices) != 1 || radices[0] < 1 || radices[0] > MaxBand:
		return nil, fmt.Errorf("radices of a band are %v, must be its length, from 1 to %d", radices, MaxBand)
	case bits < leastBits || bits > maxBits:
		return nil, fmt.Errorf("bits of a band is %d, must be from %d to %d", bits, leastBits, maxBits)
	}
	s := &banded{cells: cells, q: make([]int64, radices[0])}
	c := float64(int64(1) << bits)
	for n := range s.q {
		q := int64(math.Round(c))
		c = float64(c*float64(2*n+1)) / float64(2*n+2) // rounded step by step, the same on every machine
		s.q[n] = q
		s.one.L1 += q
		s.one.L2Squared += q * q
	}
	s.inverse = sync.OnceValue(s.invert)
	return s, nil
}

// Cells returns the number of cells.
func (s *banded) Cells() int { return s.cells }

// Observations returns the number of observations, one a cell.
func (s *banded) Observations() int { return s.cells }

// Known returns the number of observations of the first cells.
func (s *banded) Known(cells int) int { return cells }

// Reach returns the first cell of the observations from that cell on.
func (s *banded) Reach(from, _ int) int { return max(0, from-len(s.q)+1) }

// Sensitivity returns the norms of the change of the observations by one row.
func (s *banded) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	n := s.one
	if neighbors == privacy.ReplaceOne {
		n.L1, n.L2Squared = 2*n.L1, 2*n.L2Squared
	}
	return n
}

// Observe returns B·x.
func (s *banded) Observe(cells []int64) []int64 {
	observed := make([]int64, s.cells)
	for t := range observed {
		var sum wide
		for k, q := range s.q[:min(len(s.q), t+1)] {
			sum.add(uint64(q), uint64(min(max(cells[t-k], 0), MaxObserved)))
		}
		observed[t] = sum.above(wide{})
	}
	return observed
}

// Fit returns B⁻¹·y, by substitution.
func (s *banded) Fit(observations []int64) []float64 {
	x := make([]float64, s.cells)
	for t := range x {
		rest := float64(observations[t])
		for k := 1; k < min(len(s.q), t+1); k++ {
			rest -= float64(s.q[k]) * x[t-k]
		}
		x[t] = rest / float64(s.q[0])
	}
	return x
}

// invert returns the running sums of the first column of B⁻¹, which is Toeplitz too.
func (s *banded) invert() []float64 {
	first := make([]int64, s.cells)
	first[0] = 1
	return Prefixes(s.Fit(first))[1:]
}

// weights returns how the reading of the sum of the cells in spans weighs the observations: those up to a span's end by
// the running sums of B⁻¹.
func (s *banded) weights(spans []Span) []float64 {
	sums, w := s.inverse(), make([]float64, s.cells)
	for _, span := range spans {
		for t := range span.To {
			w[t] += sums[span.To-1-t]
			if t < span.From {
				w[t] -= sums[span.From-1-t]
			}
		}
	}
	return w
}

// Variance returns the variance of the reading of the sum of the cells in spans.
func (s *banded) Variance(spans []Span) float64 {
	l := length(s.weights(spans))
	return l * l
}

// Terms returns that reading as a sum of one term an observation.
func (s *banded) Terms(spans []Span) []noise.Term { return eachOnce(s.weights(spans)) }

// MeanVariance returns the mean variance over a workload: prefix i weighs observation t by g(i−t), g the running sums
// of B⁻¹, and the sum of all prefixes by the running sums of g.
func (s *banded) MeanVariance(workload Workload) float64 {
	squares, sum, one, all := 0.0, 0.0, 0.0, 0.0
	for _, g := range s.inverse() {
		one += g * g
		squares += one
		all += g
		sum += all * all
	}
	return workload.mean(s.cells, squares, sum)
}
