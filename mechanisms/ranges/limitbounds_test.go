package ranges

import "math"

// Limits from below, for all matrix mechanisms: with noise of variance 1 and a matrix of sensitivity 1, in L2 and hence
// in L1 (a column's L1 norm is no less), the mean variance over a workload is at least these. For Laplace noise at ε =
// 1, whose variance is 2, the RMSE is at least √(2·limit). They say nothing of mechanisms that are not linear.

// SpectralLimit returns (Σ singular values of the workload)²/(cells·queries), the bound of Li and Miklau (2013).
//
// The singular values are known: of all ranges √(D+1)/(2·sin(πj/(2(D+1)))), of prefixes 1/(2·sin((2j−1)π/(4D+2))), for
// j from 1 to D.
func SpectralLimit(workload Workload, cells int) float64 {
	d, sum := float64(cells), 0.0
	for j := 1.0; j <= d; j++ {
		if workload == AllPrefixes {
			sum += 1 / (2 * math.Sin((2*j-1)*math.Pi/(4*d+2)))
		} else {
			sum += math.Sqrt(d+1) / (2 * math.Sin(math.Pi*j/(2*(d+1))))
		}
	}
	return sum * sum / d / workload.queries(cells)
}

// Limit returns the dual bound, which is attained for L2.
//
// Claim: at most the least mean variance of any matrix, and less than it by what a fixed number of steps leaves (1e-5
// of it for up to 4096 cells) and by 1e-9 for rounding. Proof: let G be the Gram matrix of the workload, X = A'A with
// diagonal at most 1, v > 0, V = diag(v) and S = (V^½GV^½)^½. By Cauchy and Schwarz (tr S)² = (tr
// S(V^½XV^½)^-½(V^½XV^½)^½)² ≤ tr S²(V^½XV^½)⁻¹ · tr V^½XV^½, where the first factor is tr GX⁻¹ and the second at most
// Σv. So tr GX⁻¹ ≥ (tr S)²/Σv for every v; at the best v, v = diag S.
//
// G⁻¹ is tridiagonal, so T = V^-½G⁻¹V^-½ = S⁻² is, and with λ^-½ = (2/π)∫ e^x/(λ+e^2x) dx the diagonal of S is an
// integral of diagonals of inverses of tridiagonal matrices, each found in O(D). As the integrand for each eigenvalue
// is a shifted 1/cosh, the trapezoid rule with step h errs by a share of 2·exp(−π²/h), and the ends of the range by
// exp(−28) each.
func Limit(workload Workload, cells int) float64 {
	s := newSquareRoot(workload, cells)
	best := 0.0
	for range limitSteps {
		s.update()
		trace, total := 0.0, 0.0
		for i, v := range s.v {
			trace += s.diagonal[i]
			total += v
		}
		best = max(best, trace*trace/total)
		copy(s.v, s.diagonal)
	}
	return best / workload.queries(cells) * (1 - 1e-9)
}

const limitSteps = 20

// squareRoot finds the diagonal of S for v.
type squareRoot struct {
	main         []float64 // of G⁻¹; the entries beside it are −beside
	beside       float64
	v, diagonal  []float64
	a, off, down []float64 // T's diagonal, the squares beside it, pivots from the top
}

func newSquareRoot(workload Workload, cells int) *squareRoot {
	s := &squareRoot{beside: 1}
	for _, x := range []*[]float64{&s.main, &s.v, &s.diagonal, &s.a, &s.off, &s.down} {
		*x = make([]float64, cells)
	}
	for i := range s.main {
		s.main[i], s.v[i] = 2, 1
	}
	if workload == AllPrefixes {
		s.main[0] = 1
		return s
	}
	s.beside = 1 / float64(cells+1)
	for i := range s.main {
		s.main[i] = 2 * s.beside
	}
	return s
}

// update sets diagonal to that of S.
func (s *squareRoot) update() {
	const h, beyond = .34, 28
	n := len(s.v)
	largest, trace := 0.0, 0.0 // T's eigenvalues are from 1/tr T⁻¹ to, by Gershgorin, twice the greatest of the diagonal
	for i, v := range s.v {
		s.a[i] = s.main[i] / v
		if i+1 < n {
			s.off[i] = s.beside * s.beside / (v * s.v[i+1])
		}
		largest = max(largest, 2*s.a[i])
		gram := float64(n - i)
		if s.beside != 1 {
			gram *= float64(i + 1)
		}
		trace += v * gram
	}
	clear(s.diagonal)
	for x := -.5*math.Log(trace) - beyond; x < .5*math.Log(largest)+beyond; x += h {
		s.inverse(math.Exp(2*x), 2/math.Pi*h*math.Exp(x))
	}
}

// inverse adds weight times the diagonal of (T + shift)⁻¹ to diagonal: with pivots from the top and from the bottom, an
// entry is the reciprocal of their sum less T's.
func (s *squareRoot) inverse(shift, weight float64) {
	n := len(s.a)
	pivot := s.a[0] + shift
	s.down[0] = pivot
	for i := 1; i < n; i++ {
		pivot = s.a[i] + shift - s.off[i-1]/pivot
		s.down[i] = pivot
	}
	pivot = s.a[n-1] + shift
	s.diagonal[n-1] += weight / s.down[n-1]
	for i := n - 2; i >= 0; i-- {
		below := s.off[i] / pivot
		s.diagonal[i] += weight / (s.down[i] - below)
		pivot = s.a[i] + shift - below
	}
}
