package rewrite

import (
	"encoding/binary"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// Decimals as PostgreSQL sends them in binary, from which a snapshot takes whole numbers of their last digit: of 12.5
// at scale 2 it takes 1250.
//
// Claim. floor is ⌊value·10^scale⌋ where int64 holds it, and long is where it does not. Proof. A value is ± the sum of
// digits dᵢ·10000^(weight−i) with 0 ≤ dᵢ < 10000, so that value·10^scale is that of dᵢ·10^(4(weight−i)+scale): a whole
// number where the power is at least 0; from −3 on its whole part and a rest; further down less than 1. The powers fall
// by four, so that at most one digit has both a whole part and a rest, and all that is left out together is less than
// 1: of a positive value the sum of whole parts is the floor, of a negative one that is less than minus this sum by one
// where something is left out. TestStoredValuesAreTheirCells and TestDecimalsAreFloored hold both against other
// arithmetic.

// numericValue is a numeric as PostgreSQL sends it in binary: digits to the base 10,000, the power of the first, and
// the sign.
type numericValue struct {
	digits        []byte // two bytes each
	weight        int
	negative, nan bool
	infinite      int  // −1 or 1 of an infinity
	cut           bool // something has been left out
}

func numericOf(v []byte) (d numericValue, ok bool) {
	if len(v) < 8 {
		return d, false
	}
	d.weight, d.digits = int(int16(binary.BigEndian.Uint16(v[2:]))), v[8:]
	switch binary.BigEndian.Uint16(v[4:]) {
	case 0:
	case 0x4000:
		d.negative = true
	case 0xC000:
		d.nan = true
	case 0xD000:
		d.infinite = 1
	case 0xF000:
		d.infinite = -1
	default:
		return d, false
	}
	return d, len(d.digits) == 2*int(binary.BigEndian.Uint16(v))
}

// part is what the i-th digit adds to ⌊|value|·10^scale⌋, whole·10^power.
func (d *numericValue) part(i, scale int) (whole uint64, power int) {
	digit := uint64(binary.BigEndian.Uint16(d.digits[2*i:]))
	switch power = 4*(d.weight-i) + scale; {
	case digit == 0:
		return 0, 0
	case power >= 0:
		return digit, power
	case power > -4:
		whole = digit / powersOfTen[-power]
		d.cut = d.cut || whole*powersOfTen[-power] != digit
		return whole, 0
	}
	d.cut = true
	return 0, 0
}

// floor is ⌊value·10^scale⌋ of a value that is not NaN; beyond is −1 or 1 where that is none of int64.
func (d *numericValue) floor(scale int) (n int64, beyond int) {
	if d.infinite != 0 {
		return 0, d.infinite
	}
	beyond = 1
	if d.negative {
		beyond = -1
	}
	const most = 1 << 63 // the distance from 0 of the least int64
	size := uint64(0)
	for i := range len(d.digits) / 2 {
		whole, power := d.part(i, scale)
		if power >= len(powersOfTen) {
			return 0, beyond
		}
		factor := powersOfTen[power]
		if whole > (most-size)/factor {
			return 0, beyond
		}
		size += whole * factor
	}
	if d.negative && d.cut {
		if size == most {
			return 0, beyond
		}
		size++
	}
	switch {
	case d.negative:
		return -int64(size), 0 // of 2^63 as well, which wraps twice
	case size == most:
		return 0, beyond
	}
	return int64(size), 0
}

// maxPower bounds the powers of ten of a Long field, whose domain has at most 38 digits.
const maxPower = 100

// Decimal is the text of ⌊value·10^scale⌋ / 10^scale of a Long field, as PostgreSQL sends it in binary; not ok: it is
// no finite value, or a far larger one than the field holds.
func (f *Field) Decimal(v []byte) (text string, ok bool) {
	d, ok := numericOf(v)
	if scale := int(f.Scale); !ok || d.nan || d.infinite != 0 || scale < 0 || 4*d.weight+scale > maxPower {
		return "", false
	}
	return policy.Numeric{Coefficient: d.long(int(f.Scale)), Scale: f.Scale}.String(), true
}

// long is floor of whatever size.
func (d *numericValue) long(scale int) *big.Int {
	n, ten := new(big.Int), big.NewInt(10)
	for i := range len(d.digits) / 2 {
		whole, power := d.part(i, scale)
		if whole > 0 {
			factor := new(big.Int).Exp(ten, big.NewInt(int64(power)), nil)
			n.Add(n, factor.Mul(factor, new(big.Int).SetUint64(whole)))
		}
	}
	if d.negative {
		if n.Neg(n); d.cut {
			n.Sub(n, big.NewInt(1))
		}
	}
	return n
}

// powersOfTen are 10^0 to 10^18.
var powersOfTen = func() (list [19]uint64) {
	list[0] = 1
	for i := range list[1:] {
		list[i+1] = 10 * list[i]
	}
	return list
}()
