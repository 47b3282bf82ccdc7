package ranges

import "math/bits"

// field is the prime 2^64 − 2^32 + 1, in which 7 generates all units, so that there are roots of unity of every order up
// to 2^32 that is a power of two: sums of products of integers become three transforms, exact as long as the result is
// known to be in [0, field).
const (
	field     = 1<<64 - 1<<32 + 1
	generator = 7
)

func addMod(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 || sum >= field {
		sum -= field
	}
	return sum
}

func subMod(a, b uint64) uint64 {
	d, borrow := bits.Sub64(a, b, 0)
	if borrow != 0 {
		d += field
	}
	return d
}

// mulMod uses 2^64 = 2^32 − 1 and 2^96 = −1 (mod field).
func mulMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	x, borrow := bits.Sub64(low, high>>32, 0)
	if borrow != 0 {
		x += field
	}
	middle := high & (1<<32 - 1)
	sum, carry := bits.Add64(x, middle<<32-middle, 0)
	if carry != 0 || sum >= field {
		sum -= field
	}
	return sum
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

// exactTransform is the Fourier transform of a length that is a power of two, in the field. Its spectra are in the order
// of reversed bits.
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
