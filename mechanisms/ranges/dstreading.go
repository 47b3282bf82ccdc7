package ranges

import (
	"math"
	"math/bits"
	"math/cmplx"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"
)

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
