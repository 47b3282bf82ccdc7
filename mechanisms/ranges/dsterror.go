package ranges

import (
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// weights returns how the reading of Σ wanted[i]·x[i] weighs the observations: (B⁻¹)'·wanted.
func (s *convolution) weights(wanted []float64) []float64 {
	r := s.reading()
	scaled := make([]float64, len(wanted))
	for i, w := range wanted {
		scaled[i] = w * r.shares[i]
	}
	return r.inverse.product(scaled)
}

// Variance returns the variance of the reading of the sum of the cells in spans.
func (s *convolution) Variance(spans []Span) float64 {
	return s.LinearVariance(indicator(s.kernel.cells, spans))
}

// LinearVariance returns the variance of the reading of Σ query[i]·x[i].
func (s *convolution) LinearVariance(query []float64) float64 {
	l := length(s.weights(query))
	return l * l
}

// Terms returns that reading as a sum of one term an observation.
func (s *convolution) Terms(spans []Span) []noise.Term {
	return eachOnce(s.weights(indicator(s.kernel.cells, spans)))
}

// MeanVariance returns the mean variance over a workload.
//
// With C = (B'B)⁻¹ the prefix errors E have E Σ E² = Σ_ij C_ij·(D − max(i, j)), and the error of Σ_t E_t, in which cell
// i counts D−i times, is one reading. The first is a sum over i < j, twice, and the diagonal.
func (s *convolution) MeanVariance(workload Workload) float64 {
	d := s.kernel.cells
	wanted := make([]float64, d)
	for i := range wanted {
		wanted[i] = float64(d - i)
	}
	l := length(s.weights(wanted))
	return workload.mean(d, s.squares(), l*l)
}

// prefixSquares returns E Σ prefix² over the errors of all prefixes.
func (s *convolution) prefixSquares() float64 {
	r := s.reading()
	d := s.kernel.cells
	sum := 0.0
	weighted := make([]float64, d)
	for i, u := range r.shares {
		weighted[i] = u * float64(d-i)
		sum += u * weighted[i] * (r.squares.at(0) + r.squares.mirrored(2*i))
	}
	return sum + 2*r.crossing(weighted, 0, d)
}

// crossing returns Σ over from ≤ i < j < to of shares[i]·Q⁻²[i][j]·weighted[j]: pairs within each half, and across by
// correlation, so that it takes O(n log² n).
func (r *reading) crossing(weighted []float64, from, to int) float64 {
	sum := 0.0
	if to-from <= 128 {
		for j := from; j < to; j++ {
			for i := from; i < j; i++ {
				sum += r.shares[i] * weighted[j] * (r.squares.at(j-i) + r.squares.mirrored(i+j))
			}
		}
		return sum
	}
	middle := from + (to-from)/2
	left, right := r.shares[from:middle], weighted[middle:to]
	n := to - from
	fast := fourier.NewFFT(1 << bits.Len(uint(n-1)))
	one, other, back := make([]float64, fast.Len()), make([]float64, fast.Len()), make([]float64, fast.Len())
	copy(one, right)
	for i, v := range left {
		other[i], back[len(left)-1-i] = v, v
	}
	a := fast.Coefficients(nil, one)
	straight, reversed := fast.Coefficients(nil, other), fast.Coefficients(nil, back)
	for i, v := range a {
		straight[i] *= v
		reversed[i] *= v
	}
	// one·other by i+j, less from+middle; one·back by j−i, less 1, as the left half's last is next to the right's
	// first.
	fast.Sequence(one, straight)
	fast.Sequence(back, reversed)
	for k := range n - 1 {
		sum += one[k]*r.squares.mirrored(from+middle+k) + back[k]*r.squares.at(k+1)
	}
	sum /= float64(fast.Len())
	return sum + r.crossing(weighted, from, middle) + r.crossing(weighted, middle, to)
}
