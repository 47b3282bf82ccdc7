package ranges

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

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

// field is the prime 2^64 − 2^32 + 1, in which 7 generates all units, so that there are roots of unity of every order
// up to 2^32 that is a power of two: sums of products of integers become three transforms, exact as long as the result
// is known to be in [0, field).
const (
	field     = 1<<64 - 1<<32 + 1
	generator = 7
)

// What is added or taken away again is chosen by a mask, not by a branch: sums pass the field about every other time,
// which no processor foresees, and how long a product takes then says nothing of what is multiplied. All of them take
// and return residues, in [0, field).

// addMod is a − (field − b).
func addMod(a, b uint64) uint64 { return subMod(a, field-b) }

// subMod takes field itself as b, too.
func subMod(a, b uint64) uint64 {
	d, borrow := bits.Sub64(a, b, 0)
	return d + field&-borrow
}

// mulMod uses 2^64 = 2^32 − 1 and 2^96 = −1 (mod field). The last sum is below 2·2^64 − 2^33: where it passes 2^64,
// taking the field away once leaves less than the field, and where it does not, subMod says whether it is to be taken
// away.
func mulMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	low, borrow := bits.Sub64(low, high>>32, 0)
	sum, carry := bits.Add64(low+field&-borrow, high<<32-high&(1<<32-1), 0)
	sum, borrow = bits.Sub64(sum-field&-carry, field, 0)
	return sum + field&-borrow
}

func powerMod(a, n uint64) uint64 {
	p := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = mulMod(p, a)
		}
		a = mulMod(a, a)
	}
	return p
}

// exactTransform is the Fourier transform of a length that is a power of two, in the field. Its spectra are in the
// order of reversed bits.
type exactTransform struct {
	size    int
	roots   []uint64 // powers of a root of unity of order size, size/2 of them
	inverse []uint64
}

func newExactTransform(size int) exactTransform {
	t := exactTransform{size: size, roots: make([]uint64, max(1, size/2)), inverse: make([]uint64, max(1, size/2))}
	root := powerMod(generator, (field-1)/uint64(size))
	back := powerMod(root, field-2)
	r, b := uint64(1), uint64(1)
	for i := range t.roots {
		t.roots[i], t.inverse[i] = r, b
		r, b = mulMod(r, root), mulMod(b, back)
	}
	return t
}

// forward transforms x in place: butterflies from the longest.
func (t exactTransform) forward(x []uint64) {
	for half, step := t.size/2, 1; half > 0; half, step = half/2, step*2 {
		for from := 0; from < t.size; from += 2 * half {
			a, b := x[from:from+half], x[from+half:from+2*half]
			for i := range a {
				u, v := a[i], b[i]
				a[i] = addMod(u, v)
				b[i] = mulMod(subMod(u, v), t.roots[i*step])
			}
		}
	}
}

// opposite is where a spectrum holds frequency −k, for the place of k. Bits below the lowest one that is set in k are 0
// in −k too, that one is set, and all above it are turned: in reversed order, all below the highest.
func opposite(place int) int {
	return place ^ (1<<max(bits.Len(uint(place))-1, 0) - 1)
}

// backward inverts forward: butterflies from the shortest, then division by the size.
func (t exactTransform) backward(x []uint64) {
	for half, step := 1, t.size/2; half < t.size; half, step = half*2, step/2 {
		for from := 0; from < t.size; from += 2 * half {
			a, b := x[from:from+half], x[from+half:from+2*half]
			for i := range a {
				u, v := a[i], mulMod(b[i], t.inverse[i*step])
				a[i], b[i] = addMod(u, v), subMod(u, v)
			}
		}
	}
	n := powerMod(uint64(t.size), field-2)
	for i := range x {
		x[i] = mulMod(x[i], n)
	}
}

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
