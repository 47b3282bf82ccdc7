package noise

import (
	"math"
	"math/big"
	"math/bits"
)

// wide draws a Gaussian of a variance above 256 as Distribution.gaussian does, by rejection from a small discrete
// Gaussian spread over width integers a value, with an attempt's work fixed: the small one by comparing with all of its
// thresholds, exp(−x) by a fixed-point polynomial.
//
// That attempts fail tells nothing: an attempt succeeds with the same probability whatever came before, and what it
// gives, given that it succeeds, has the target's probabilities. So the number of attempts and the result are
// independent.
type wide struct {
	shape shape
	d     Distribution
	scale uint64 // 1/(2σ²), in units of 2^−unit
	shift uint   // y² is taken in units of 2^(64−shift), so that the largest fills 64 bits
	down  uint   // from the product's high word to units of 2^−56
}

const (
	wideLevel = 9  // the largest level of proposals: 75 thresholds, and 95 % of attempts or so succeed
	pointBits = 54 // after the point of an exponent
	// margin is by how much, in units of 2^−64, a computed exp(−x) is off at most. x is off by less than 8 units of
	// 2^−54, the exponential by less than 64 units of 2^−64 besides.
	margin = 1 << 14
)

// newWide prepares for j up to n.
func newWide(d Distribution, shape shape, n int) *wide {
	w := &wide{d: d, shape: shape}
	most := new(big.Int).Mul(whole(w.shape.width), whole(uint64(n)+1)) // above every y
	w.shift = 128 - uint(most.Mul(most, most).BitLen())
	// scale is den/(2·num)·2^top with its leading bit at 2^63.
	twice := new(big.Int).Lsh(whole(d.num), 1)
	top := uint(new(big.Int).Quo(twice, whole(d.den)).BitLen()) + 64
	scale := quotient(whole(d.den), twice, top, 0)
	for scale.BitLen() > 64 {
		scale.Rsh(scale, 1)
		top--
	}
	w.scale = scale.Uint64()
	// y²·2^(shift−64) · scale·2^−64 is y²/(2σ²) in units of 2^−(top+shift−128), which is finer than 2^−54: y²/(2σ²) is
	// below 2^9, as y < 80·width and width² < 2·σ²/16.
	w.down = top + w.shift - 128 - pointBits
	return w
}

func (w *wide) sample(r *Reader, scan threshold, law law) int64 {
	for {
		u := r.word()
		j, tied := scan.find(u >> 1)
		if tied != 0 {
			j = uint64(refine(r, whole(u>>1), 63, 0, law.bounds))
		}
		y := w.shape.width*j + r.belowWord(w.shape.width)
		kept := w.keep(r, y, j, tied)
		if r.err != nil {
			return 0
		}
		sign := u & 1
		_, zero := bits.Sub64(y, 1, 0)
		if kept&^(zero&sign) == 1 {
			return int64(y^-sign) + int64(sign)
		}
	}
}

// keep is 1 with probability exp(−(y²/σ² − j²/v)/2), else 0. A j that was tied may be too large for the exponent.
func (w *wide) keep(r *Reader, y, j, tied uint64) uint64 {
	v := r.word()
	over, borrow := bits.Sub64(v, expMinusFixed(w.exponent(y, j)), 0)
	_, near := bits.Sub64(over+margin, 2*margin, 0)
	if near|tied != 0 { // once in 2^48
		a, b := w.shape.ratio(w.d, y, j)
		return uint64(1 - refine(r, whole(v), 64, 0, upTo(1, func(_ int, bits uint) (low, high *big.Int) { return ExpBounds(a, b, bits) })))
	}
	return borrow
}

// exponent returns y²/(2σ²) − j²/(2v) in units of 2^−54, off by less than 8 of them, and not below 0.
func (w *wide) exponent(y, j uint64) uint64 {
	high, low := bits.Mul64(y, y)
	if w.shift >= 64 { // the same for all values
		high = low << (w.shift - 64)
	} else {
		high = high<<w.shift | low>>(64-w.shift)
	}
	x, _ := bits.Mul64(high, w.scale)
	x >>= w.down
	x, borrow := bits.Sub64(x, eighth*j*j<<(pointBits-w.shape.level-1), 0)
	return x &^ -borrow
}

// belowWord is below with a word in every case, for n below 2^31: again with probability below 2^−33, and then not
// depending on the result.
func (r *Reader) belowWord(n uint64) uint64 {
	for {
		high, low := bits.Mul64(r.word(), n)
		if low >= n || low >= -n%n || r.err != nil {
			return high
		}
	}
}

// powers are exp(−2^i) for i = −3 to 5, in units of 2^−64.
var powers = func() (all [9]uint64) {
	for i := range all {
		low, _ := ExpBounds(new(big.Int).Lsh(big.NewInt(1), uint(i)), big.NewInt(8), 64)
		all[i] = low.Uint64()
	}
	return all
}()

// series are 1/k! in units of 2^−64, of which 1 is the largest number.
var series = func() (all [13]uint64) {
	factor := new(big.Int).Lsh(big.NewInt(1), 64)
	for k := range all {
		if k > 0 {
			factor.Quo(factor, big.NewInt(int64(k)))
		}
		all[k] = math.MaxUint64
		if factor.IsUint64() {
			all[k] = factor.Uint64()
		}
	}
	return all
}()

// expMinusFixed returns 2^64·exp(−x/2^54), off by less than 64, cut to [0, 2^64): Taylor's series of the part of x
// below 1/8, whose thirteenth term is below 2^−70, times the powers for the bits of the rest.
func expMinusFixed(x uint64) uint64 {
	const low = pointBits - 3
	rest := x & (1<<low - 1) << (64 - pointBits)
	value := series[12]
	for k := 11; k >= 0; k-- {
		term, _ := bits.Mul64(rest, value)
		value = series[k] - term
	}
	for i, power := range powers {
		with, _ := bits.Mul64(value, power)
		chosen := -(x >> (low + i) & 1)
		value = value&^chosen | with&chosen
	}
	_, small := bits.Sub64(x, 64<<pointBits, 0)
	return value & -small
}
