package ranges

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// convolution is the strategy B = Q·diag(b), Q an integer kernel and b positive integers that make the columns of B
// equally long: observation j of the cells x is Σ_i Q[j][i]·b[i]·x[i].
//
// Claim: one row moves the observations by at most the greatest column of B, in L1 and in L2; see Sensitivity.
// Neighbours: add-remove; replace-one, where two columns' difference counts. Sensitivity: exact for add-remove; for
// replace-one at most twice that, L1 and L2². Theorem (of the error; privacy needs none of it): for a workload with
// Gram matrix G every Gaussian strategy A with columns at most 1 long has tr G·(A'A)⁻¹ ≥ (tr S)²/Σv, S = (V^½GV^½)^½,
// for each v > 0 (duality; the optimal strategy is V^−½SV^−½ at the fixed point v = diag S). At v = 1 this suggests A'A
// = N^−½·G^½·N^−½ with N the diagonal of G^½, which the tests find within 3e-4 of the bound for all ranges and 1.4 %
// for prefixes. Of all A with this A'A, G^¼·N^−½ is taken, because G^¼ is Toeplitz plus Hankel and stays so when
// rounded, which rows of sines would not. Proof of the sensitivity, in the letters of the code: the stored q never
// rises. Sine: Q[i][j] = q(|i−j|) − q(m) with m = i+j+2 or, by the period, 2(D+1)−(i+j+2), whichever is in the stored
// half; |i−j| ≤ m in both cases, hence Q ≥ 0. Cosine: the second part is q(i+j+1) ≥ 0, or −q(2D−i−j) with 2D−i−j ≥
// |i−j| as max(i, j) ≤ D−1, hence Q ≥ 0. So the L1 norms of columns are their sums, which are Q'·1 times
// b. Of two columns u, v ≥ 0, |u−v|₂² ≤ |u|₂²+|v|₂². The L2 norms: sine and cosine are symmetric and Q² is of the same
// form, from r = q*q: |Q e_i|² = r(0) − r(2i+2), or r(0) + r(2i+1). The first column of Q² tells r(n) − r(n+2), or
// r(n) + r(n+1), which add up to them; where n passes the middle, the symmetry of the columns (sine: i and D−1−i are
// equally long) or of r (cosine: r(2D+1−n) = −r(n)) takes over. All of it in integers. Limits:
// MaxConvolved cells. A cell counts at most MaxObserved and so does an observation; B magnifies by up to 2^Bits, so
// that a cell of more than 2^(61−Bits) rows may saturate.
type convolution struct {
	kernel  kernel[int64]
	scales  []int64 // b
	norms   privacy.Sensitivity
	exact   exactTransform
	toward  []uint64 // spectrum of the part of Q that depends on i−j
	across  []uint64 // of the part that depends on i+j
	reading func() *reading
	squares func() float64 // prefixSquares
}

// MaxConvolved is the largest number of cells of the sine and cosine strategies.
const MaxConvolved = 1 << 17

// leastBits and maxBits are the range of Description.Bits.
const (
	leastBits = 8
	maxBits   = 24
)

// newConvolution makes a version-1 strategy.
func newConvolution(kind Kind, cells, bits int) (*convolution, error) {
	if cells < 2 || cells > MaxConvolved {
		return nil, fmt.Errorf("cells of strategy %s is %d, must be from 2 to %d", kind, cells, MaxConvolved)
	}
	if bits < leastBits || bits > maxBits {
		return nil, fmt.Errorf("bits of strategy %s is %d, must be from %d to %d", kind, bits, leastBits, maxBits)
	}
	s := &convolution{kernel: integerKernel(kind, cells, (bits+1)/2)}
	s.transform()
	if err := s.normalise(bits); err != nil {
		return nil, err
	}
	s.reading = sync.OnceValue(func() *reading { return newReading(s.kernel, s.scales) })
	s.squares = sync.OnceValue(s.prefixSquares)
	return s, nil
}

// transform prepares products with Q.
func (s *convolution) transform() {
	d := s.kernel.cells
	size := 1 << bits.Len(uint(2*d-2))
	s.exact = newExactTransform(size)
	s.toward = make([]uint64, size)
	for n := 1 - d; n < d; n++ {
		s.toward[n&(size-1)] = residue(s.kernel.at(n))
	}
	s.exact.forward(s.toward)
	s.across = make([]uint64, size)
	for n := range 2*d - 1 {
		s.across[n] = residue(s.kernel.mirrored(n))
	}
	s.exact.forward(s.across)
}

// residue returns n modulo the field.
func residue(n int64) uint64 {
	if n < 0 {
		return field - uint64(-n)
	}
	return uint64(n)
}

// product returns Q·x, which must be known to be below the field. Σ_i q(j−i)·x[i] has the product of both spectra,
// place by place; Σ_i q(i+j)·x[i] has q's at a frequency times that of x at the opposite frequency, whose place is
// opposite's.
func (s *convolution) product(x []uint64) []uint64 {
	spectrum, sum := make([]uint64, s.exact.size), make([]uint64, s.exact.size)
	copy(spectrum, x)
	s.exact.forward(spectrum)
	for i, t := range s.toward {
		sum[i] = mulMod(spectrum[i], t)
	}
	for i, t := range s.across {
		sum[i] = addMod(sum[i], mulMod(spectrum[opposite(i)], t))
	}
	s.exact.backward(sum)
	return sum[:len(x)]
}

// squaredColumns returns the squared L2 norms of the columns of Q.
func (s *convolution) squaredColumns() []int64 {
	d := s.kernel.cells
	squares := make([]int64, d)
	column := make([]uint64, d)
	for i := range column {
		column[i] = uint64(s.kernel.at(i) + s.kernel.mirrored(i))
	}
	twice := s.product(column) // the first column of Q²
	sum := int64(0)
	if s.kernel.kind == KindSine {
		for i := range (d + 1) / 2 {
			sum += int64(twice[2*i])
			squares[i], squares[d-1-i] = sum, sum
		}
		return squares
	}
	at := func(n int) int64 { // r(n) + r(n+1)
		if n > d {
			return -int64(twice[2*d-n])
		}
		if n == d {
			return 0
		}
		return int64(twice[n])
	}
	for i := range d {
		if i > 0 {
			sum -= at(2*i - 1)
		}
		sum += at(2 * i)
		squares[i] = sum
	}
	return squares
}

// normalise chooses the scales: the largest integers for which no column of B is longer than 2^bits. The norms follow.
func (s *convolution) normalise(bits int) error {
	squares := s.squaredColumns()
	s.scales = make([]int64, len(squares))
	for i, square := range squares {
		root := rootOf(int64(1) << (2 * bits) / square)
		if root < 1 {
			return fmt.Errorf("bits of strategy %s is %d, too few for %d cells", s.kernel.kind, bits, s.kernel.cells)
		}
		s.scales[i] = root
		s.norms.L2Squared = max(s.norms.L2Squared, root*root*square)
	}
	for i, sum := range s.columnSums() {
		s.norms.L1 = max(s.norms.L1, sum*s.scales[i])
	}
	rows := uint64(0)
	for _, sum := range s.product(unsigned(s.scales)) {
		rows = max(rows, sum)
	}
	if rows >= 1<<33 {
		return errors.New("rows of the strategy add up to more than 2^33")
	}
	return nil
}

// rootOf returns ⌊√n⌋ for n below 2^52.
func rootOf(n int64) int64 {
	root := int64(math.Sqrt(float64(n)))
	for root*root > n {
		root--
	}
	return root
}

func unsigned(x []int64) []uint64 {
	u := make([]uint64, len(x))
	for i, v := range x {
		u[i] = uint64(v)
	}
	return u
}

// columnSums returns Q'·1.
func (s *convolution) columnSums() []int64 {
	d := s.kernel.cells
	sums := make([]int64, d)
	ones := make([]uint64, d)
	for i := range ones {
		ones[i] = 1
	}
	for i, sum := range s.product(ones) {
		sums[i] = int64(sum)
	}
	return sums
}

// Cells returns the number of cells.
func (s *convolution) Cells() int { return s.kernel.cells }

// Observations returns the number of observations, one a cell.
func (s *convolution) Observations() int { return s.kernel.cells }

// Sensitivity returns the norms of the change of the observations by one row.
func (s *convolution) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	n := s.norms
	if neighbors == privacy.ReplaceOne {
		n.L1, n.L2Squared = 2*n.L1, 2*n.L2Squared
	}
	return n
}

// Observe returns B·x. A cell below 2^62 is high·2^31 + low; rows of B add up to less than 2^33, so that B·low and
// B·high are below 2^64 − 2^32, and the field gives them exactly.
func (s *convolution) Observe(cells []int64) []int64 {
	low, high := make([]uint64, len(cells)), make([]uint64, len(cells))
	for i, c := range cells {
		c = min(max(c, 0), MaxObserved)
		b := uint64(s.scales[i])
		low[i], high[i] = mulMod(uint64(c)&(1<<31-1), b), mulMod(uint64(c)>>31, b)
	}
	low, high = s.product(low), s.product(high)
	observed := make([]int64, len(cells))
	for j := range observed {
		observed[j] = MaxObserved
		if high[j] < MaxObserved>>31 {
			if sum, carry := bits.Add64(high[j]<<31, low[j], 0); carry == 0 {
				observed[j] = int64(min(sum, MaxObserved))
			}
		}
	}
	return observed
}

// Fit returns the least-squares reading of the cells; B is square, so that it is B⁻¹·y.
func (s *convolution) Fit(observations []int64) []float64 {
	y := make([]float64, len(observations))
	for i, o := range observations {
		y[i] = float64(o)
	}
	x := s.reading().inverse.product(y)
	for i := range x {
		x[i] /= float64(s.scales[i])
	}
	return x
}

// length returns the Euclidean norm of a vector.
func length(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// reading is what least squares needs of a convolution: Q⁻¹, which is a kernel of the same kind, and 1/b. All of it is
// floating point after the release.
type reading struct {
	kind    Kind
	values  kernel[float64] // Q⁻¹
	squares kernel[float64] // Q⁻²
	inverse filter
	shares  []float64 // 1/b
}

func newReading(q kernel[int64], scales []int64) *reading {
	r := &reading{kind: q.kind, shares: make([]float64, len(scales))}
	for i, b := range scales {
		r.shares[i] = 1 / float64(b)
	}
	r.values, r.squares = inverseKernels(q)
	r.inverse = newFilter(r.values)
	return r
}

// inverseKernels returns the kernels of Q⁻¹ and Q⁻². With M = 2(D+1), the eigenvalues of a sine kernel are μ(k) = Σ_n
// q(n)·cos(2πkn/M) over a period, k from 1 to D, and q(n) = (2/M)·Σ_k μ(k)·cos(2πkn/M); other k are lost in the odd
// vectors. For cosine M = 4D+2 is twice the anti-period, the frequencies are 2k−1, and the first sum runs over half a
// period, half of which the whole gives.
func inverseKernels(q kernel[int64]) (values, squares kernel[float64]) {
	d := q.cells
	period, first, step, factor := 2*(d+1), 1, 1, 1.0
	if q.kind == KindCosine {
		period, step, factor = 4*d+2, 2, .5
	}
	t := newPeriodic(period)
	scale := float64(q.q[0]) // brings Q⁻² to the size of Q⁻¹
	sequence := make([]complex128, period)
	for n := range sequence {
		m := min(n, period-n)
		if q.kind == KindCosine {
			sequence[n] = complex(float64(q.at(m)), 0)
		} else {
			sequence[n] = complex(float64(q.q[m]), 0)
		}
	}
	spectrum := t.transform(sequence)
	both := make([]complex128, period) // even and real sequences have real spectra: two at once
	for k := range d {
		at := first + step*k
		mu := factor * real(spectrum[at])
		weight := 1 / (float64(period) * factor)
		both[at] = complex(weight/mu, weight/(mu*mu)*scale)
		both[period-at] = both[at]
	}
	values = kernel[float64]{q.kind, d, make([]float64, len(q.q))}
	squares = kernel[float64]{q.kind, d, make([]float64, len(q.q))}
	for n, v := range t.transform(both)[:len(q.q)] {
		values.q[n], squares.q[n] = real(v), imag(v)/scale
	}
	return values, squares
}

// periodic is the Fourier transform of any length, by Bluestein's identity kn = (k² + n² − (k−n)²)/2.
type periodic struct {
	length int
	chirp  []complex128 // exp(−πi·n²/length)
	kernel []complex128 // spectrum of the conjugate chirp
	fast   *fourier.CmplxFFT
}

func newPeriodic(length int) periodic {
	size := 1 << bits.Len(uint(2*length-2))
	t := periodic{length: length, chirp: make([]complex128, length), kernel: make([]complex128, size), fast: fourier.NewCmplxFFT(size)}
	for n := range t.chirp {
		square := uint64(n) * uint64(n) % uint64(2*length)
		t.chirp[n] = cmplx.Rect(1, -math.Pi*float64(square)/float64(length))
		t.kernel[n] = cmplx.Conj(t.chirp[n])
		if n > 0 {
			t.kernel[size-n] = t.kernel[n]
		}
	}
	t.fast.Coefficients(t.kernel, t.kernel)
	return t
}

// transform returns the spectrum of a sequence.
func (t periodic) transform(sequence []complex128) []complex128 {
	work := make([]complex128, len(t.kernel))
	for n, v := range sequence {
		work[n] = t.chirp[n] * v
	}
	t.fast.Coefficients(work, work)
	for i, v := range t.kernel {
		work[i] *= v
	}
	t.fast.Sequence(work, work)
	for k := range sequence {
		work[k] *= t.chirp[k] / complex(float64(len(work)), 0)
	}
	return work[:len(sequence)]
}

// filter is a matrix that a kernel determines, ready for products. It is safe for concurrent use.
type filter struct {
	cells, size    int
	toward, across []complex128
	transforms     *sync.Pool
}

func newFilter(k kernel[float64]) filter {
	d := k.cells
	f := filter{cells: d, size: 1 << bits.Len(uint(2*d-2))}
	f.transforms = &sync.Pool{New: func() any { return fourier.NewFFT(f.size) }}
	sequence := make([]float64, f.size)
	for n := 1 - d; n < d; n++ {
		sequence[n&(f.size-1)] = k.at(n)
	}
	fast := f.transforms.Get().(*fourier.FFT)
	defer f.transforms.Put(fast)
	f.toward = fast.Coefficients(nil, sequence)
	for n := 1 - d; n < d; n++ {
		sequence[n&(f.size-1)] = k.mirrored(n + d - 1)
	}
	f.across = fast.Coefficients(nil, sequence)
	return f
}

// product returns the matrix times x.
func (f filter) product(x []float64) []float64 {
	fast := f.transforms.Get().(*fourier.FFT)
	defer f.transforms.Put(fast)
	sequence := make([]float64, f.size)
	copy(sequence, x)
	spectrum := fast.Coefficients(nil, sequence)
	for i, t := range f.toward {
		spectrum[i] *= t
	}
	clear(sequence)
	for i, v := range x {
		sequence[len(x)-1-i] = v
	}
	for i, v := range fast.Coefficients(nil, sequence) {
		spectrum[i] += v * f.across[i]
	}
	fast.Sequence(sequence, spectrum)
	for i := range x {
		sequence[i] /= float64(f.size)
	}
	return sequence[:len(x)]
}
