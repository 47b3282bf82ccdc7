package ranges

import "math"

// kernel is a symmetric integer matrix Q that a sequence of integers determines, or its inverse in floating point:
//
//	sine    Q[i][j] = q(i−j) − q(i+j+2)  with q even and of period 2(D+1)
//	cosine  Q[i][j] = q(i−j) + q(i+j+1)  with q even and q(n+2D+1) = −q(n)
//
// The eigenvectors of the first are those of the Gram matrix of all ranges, of the second those of the prefixes'.
type kernel[T int64 | float64] struct {
	kind  Kind
	cells int
	q     []T // from 0 to D+1 (sine), D (cosine)
}

// at returns q(n) for n from −2D to 2D.
func (k kernel[T]) at(n int) T {
	switch n = max(n, -n); {
	case k.kind == KindSine:
		return k.q[min(n, 2*(k.cells+1)-n)]
	case n > k.cells:
		return -k.q[2*k.cells+1-n]
	}
	return k.q[n]
}

// mirrored returns the part of Q[i][j] that depends on i+j.
func (k kernel[T]) mirrored(sum int) T {
	if k.kind == KindSine {
		return -k.at(sum + 2)
	}
	return k.at(sum + 1)
}

// integerKernel returns the version-1 kernel with q(0) = 2^bits: to within rounding, Q is in proportion to the fourth
// root of the Gram matrix.
//
// Derivation: the eigenvalues wanted are f(θ) = |2 sin(θ/2)|^−½ at θ = 2πk/M. On the line, f has the Fourier
// coefficients c(n) with c(n+1)/c(n) = (n+¼)/(n+¾), which tend to κ·n^−½, κ = c(0)·Γ(¾)/Γ(¼). Sampling f at M
// frequencies adds the coefficients at distance M, 2M, … (Poisson), with signs (−1)^m where the frequencies are odd
// multiples of π/M. For sine a constant in q is of no account, so that each c(mM) is taken off and the sum converges.
// With t = n/M ≤ ½ the sum over m is 2κM^−½·Σ_j binom(−½, 2j)·t^2j·ζ(2j+½), and −η instead of ζ for cosine.
//
// The integers must be the same everywhere: only additions, multiplications, divisions and square roots are used, each
// rounded on its own (a conversion to float64 keeps a compiler from fusing two), which IEEE 754 makes exact functions.
// What Q is has no bearing on privacy, which counts with the integers; a good Q has a small error. That q never rises,
// as far as it is stored, and does not end below 0, is what makes all entries of Q non-negative: it holds before
// rounding and is enforced after.
func integerKernel(kind Kind, cells, bits int) kernel[int64] {
	k := kernel[int64]{kind: kind, cells: cells}
	one := float64(int64(1) << bits)
	const gammas = 0.3379891200336424 // Γ(¾)/Γ(¼)
	period, length, sums := 2*(cells+1), cells+2, zetas()
	if kind == KindCosine {
		period, length, sums = 2*cells+1, cells+1, etas()
	}
	scale := 2 * gammas / math.Sqrt(float64(period))
	k.q = make([]int64, length)
	c := 1.0
	for n := range k.q {
		t := float64(n) / float64(period)
		square, smooth := float64(t*t), 0.0
		for j := len(sums) - 1; j >= 0; j-- {
			smooth = float64(smooth*square) + sums[j]
		}
		k.q[n] = int64(math.Round(float64(one * (c + float64(scale*smooth)))))
		c = float64(c*(float64(n)+.25)) / (float64(n) + .75)
	}
	for n := 1; n < len(k.q); n++ {
		k.q[n] = min(k.q[n], k.q[n-1])
	}
	if last := len(k.q) - 1; kind == KindCosine {
		k.q[last] = max(k.q[last], 0)
	}
	return k
}

// smoothTerms is the number of terms of the sums over j: the last is below 4^−24.
const smoothTerms = 24

// zetas returns binom(−½, 2j)·ζ(2j+½) for j from 0, the first as 0.
func zetas() []float64 {
	sums := make([]float64, smoothTerms)
	binomial := 1.0
	for j := range sums {
		if j > 0 {
			binomial = nextBinomial(binomial, j)
			sums[j] = float64(binomial * zeta(j))
		}
	}
	return sums
}

// etas returns −binom(−½, 2j)·η(2j+½) for j from 0, where η(s) = (1 − 2^(1−s))·ζ(s).
func etas() []float64 {
	sums := make([]float64, smoothTerms)
	sums[0] = -0.6048986434216304 // −η(½)
	power := math.Sqrt(2)         // 2^(1−s)
	for j, z := range zetas() {
		if j > 0 {
			power = float64(power / 4)
			sums[j] = -float64(z * (1 - power))
		}
	}
	return sums
}

// nextBinomial returns binom(−½, 2j) from binom(−½, 2j−2).
func nextBinomial(b float64, j int) float64 {
	return float64(b*float64((4*j-3)*(4*j-1))) / float64((4*j-2)*(4*j))
}

// zeta returns ζ(2j+½), j ≥ 1: 31 terms, then the integral of the rest with three terms of Euler and Maclaurin.
func zeta(j int) float64 {
	const first = 32
	term := func(m int) float64 { // m^−(2j+½)
		p, x := 1/math.Sqrt(float64(m)), float64(m)
		for range 2 * j {
			p /= x
		}
		return p
	}
	s, m, last := float64(2*j)+.5, float64(first), term(first)
	sum := float64(last*m)/(s-1) + float64(last/2) + float64(last*s)/(12*m)
	for i := first - 1; i > 0; i-- {
		sum += term(i)
	}
	return sum - float64(float64(last*s)*float64((s+1)*(s+2)))/(720*float64(m*float64(m*m)))
}
