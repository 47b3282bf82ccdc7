package noise

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
)

// fixed draws from a distribution with work that does not depend on what is drawn: neither the words taken, nor the
// branches, nor the addresses read. Sample and Fill draw by it from a source of FixedWork.
//
// Claim: the result has exactly the distribution's probabilities, clipped to int64 as Sample's. A Laplace takes the
// same number of words every time, and so does a Gaussian of a variance up to 256. A wider Gaussian is drawn by
// rejection: every attempt takes three words, and how many attempts there are is independent of what comes out. With
// probability below 2^−45 a sample needs more digits than that to be exact, and then takes longer, which may depend on
// the value. That is the whole leak: for an observer who sees time, add 2^−45 a sample to δ (the samples where nothing
// further is needed are, by coupling, those of a sampler that never takes longer). Limits: this holds for the program's
// own steps as compiled today, with multiplications and additions that take the processor the same time for all values;
// nobody promises it for a compiler to come. Not for the reading of a source.
type fixed struct {
	digits []place   // Laplace: from the lowest
	scan   threshold // Laplace: the probability of a negative number. Gaussian: |noise|, or what the attempts propose
	law    law       // what scan belongs to
	wide   *wide     // Gaussian of more than 256
	d      Distribution
}

// threshold are P(K ≤ 0), P(K ≤ 1), … in units of 2^−64 or 2^−63, rounded down: less than two units too low.
type threshold []uint64

// place is one digit of a geometric: its thresholds, and the exponent of its lowest bit.
type place struct {
	scan  threshold
	shift uint
}

const (
	digitBits = 4
	base      = 1 << digitBits
	narrowest = 256 // the largest variance that is drawn by looking at all values
)

// prepared keeps what fixedOf has prepared: each is a function of a public parameter alone, of some kilobytes.
var prepared = memo.Map[law, *fixed]{Most: 1 << 10}

// fixedOf returns what draws from d in fixed work, which takes milliseconds to prepare.
func fixedOf(d Distribution) *fixed {
	return prepared.Of(d.law(), 1, func() *fixed { return newFixed(d) })
}

// newFixed prepares d.
func newFixed(d Distribution) *fixed {
	f := &fixed{d: d}
	switch {
	case d.kind == Laplace:
		f.addDigits()
	case d.num/d.den < narrowest:
		f.law = d.law()
		f.scan = build(f.law).digits
	default:
		s := shapeOf(d.num, d.den, wideLevel)
		f.law = s.law()
		f.scan = build(f.law).digits
		f.wide = newWide(d, s, len(f.scan))
	}
	return f
}

// sample draws once. The caller must look at r.Err() after the last draw and before it uses any.
func (f *fixed) sample(r *Reader) int64 {
	switch {
	case f.digits != nil:
		return f.laplace(r)
	case f.wide != nil:
		return f.wide.sample(r, f.scan, f.law)
	}
	w := r.word()
	k, tied := f.scan.find(w >> 1)
	if tied != 0 {
		k = uint64(refine(r, whole(w>>1), 63, 0, f.law.bounds))
	}
	sign := w & 1
	return int64(k^-sign) + int64(sign)
}

// find counts the thresholds that u has reached; tied is not 0 where u is within a unit of one, or of 0.
func (t threshold) find(u uint64) (k, tied uint64) {
	for _, least := range t {
		over, borrow := bits.Sub64(u, least, 0)
		k += 1 - borrow
		_, near := bits.Sub64(over, 2, 0)
		tied |= near
	}
	return k, tied
}

// addDigits: the digits to base 16 of a geometric K with ratio q are independent, the digit of 16^i geometric with
// ratio q^(16^i) cut below 16, since q^K is a product over them. There are as many as leave P(K ≥ 16^n) below 2^−62;
// the last is not cut, and "16 or more" is its seventeenth value. A negative number is −1−K, with probability q/(1+q);
// K otherwise: then P(k) = q^k·(1−q)/(1+q) and P(−1−k) = q·q^k·(1−q)/(1+q), the two-sided law.
func (f *fixed) addDigits() {
	f.law = law{kind: Laplace, num: f.d.num, den: f.d.den}
	reach := 62 * math.Ln2 * f.d.parameter() // public; an error in the last digit is harmless
	for shift := uint(0); ; shift += digitBits {
		top := math.Ldexp(base, int(shift)) > reach
		p := place{shift: shift}
		for v := range base {
			if v == base-1 && !top {
				break
			}
			low, _ := f.digitBounds(shift, top)(v, 64)
			p.scan = append(p.scan, low.Uint64())
		}
		f.digits = append(f.digits, p)
		if top {
			break
		}
	}
	low, _ := f.negativeBounds(0, 64)
	f.scan = threshold{low.Uint64()}
}

// digitBounds bounds P(digit ≤ v): (1 − q^(16^i·(v+1)))/(1 − q^(16^(i+1))), or the numerator of the last digit.
func (f *fixed) digitBounds(shift uint, top bool) func(v int, bits uint) (low, high *big.Int) {
	num, den := whole(f.d.num), new(big.Int).Lsh(whole(f.d.den), shift)
	return func(v int, bits uint) (low, high *big.Int) {
		guarded := bits + 192 // a q near 1 costs up to 2·63 bits of 1−q
		below := func(n int64) (low, high *big.Int) {
			one := new(big.Int).Lsh(big.NewInt(1), guarded)
			least, most := ExpBounds(new(big.Int).Mul(den, big.NewInt(n)), num, guarded)
			return new(big.Int).Sub(one, most), one.Sub(one, least)
		}
		low, high = below(int64(v) + 1)
		if top {
			return low.Rsh(low, guarded-bits), high.Rsh(high, guarded-bits).Add(high, big.NewInt(1))
		}
		least, most := below(base)
		return quotient(low, most, bits, 0), quotient(high, least, bits, 1)
	}
}

// negativeBounds bounds q/(1+q).
func (f *fixed) negativeBounds(_ int, bits uint) (low, high *big.Int) {
	guarded := bits + 64
	one := new(big.Int).Lsh(big.NewInt(1), guarded)
	least, most := ExpBounds(whole(f.d.den), whole(f.d.num), guarded)
	low = quotient(least, new(big.Int).Add(one, least), bits, 0)
	return low, quotient(most, new(big.Int).Add(one, most), bits, 1)
}

func (f *fixed) laplace(r *Reader) int64 {
	u := r.word()
	positive, tied := f.scan.find(u)
	if tied != 0 {
		positive = uint64(refine(r, whole(u), 64, 0, upTo(1, f.negativeBounds)))
	}
	k := uint64(0)
	for i, p := range f.digits {
		u := r.word()
		digit, tied := p.scan.find(u)
		if tied != 0 {
			digit = uint64(refine(r, whole(u), 64, 0, upTo(len(p.scan), f.digitBounds(p.shift, i == len(f.digits)-1))))
		}
		if digit == base {
			return f.beyond(r, positive, p.shift) // with probability below 2^−62
		}
		k |= digit << p.shift
	}
	return int64(k ^ (positive - 1))
}

// upTo continues bounds by certainty.
func upTo(n int, bounds func(k int, bits uint) (low, high *big.Int)) func(k int, bits uint) (low, high *big.Int) {
	return func(k int, bits uint) (low, high *big.Int) {
		if k < n {
			return bounds(k, bits)
		}
		one := new(big.Int).Lsh(big.NewInt(1), bits)
		return one, one
	}
}

// beyond: a geometric that has reached 16^n starts anew there.
func (f *fixed) beyond(r *Reader, positive uint64, shift uint) int64 {
	k, _ := geometric(r, f.d.num, f.d.den)
	k, carry := bits.Add64(k, base<<shift, 0)
	if k |= -carry; positive == 0 {
		return ^int64(min(k, math.MaxInt64))
	}
	return int64(min(k, math.MaxInt64))
}
