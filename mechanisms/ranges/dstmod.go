package ranges

import "math/bits"

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
