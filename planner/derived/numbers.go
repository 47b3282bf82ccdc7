package derived

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// MaxMagnitude is the largest whole number on the way to a sum of columns.
const MaxMagnitude = 1 << 60

// RatOf is a number as a fraction; false for what is none.
func RatOf(v policy.Value) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case policy.Date: // days, of which differences are added up
		return new(big.Rat).SetInt64(int64(v)), true
	case policy.Numeric:
		if v.Scale >= 0 {
			return new(big.Rat).SetFrac(v.At(v.Scale), Tens(v.Scale)), true
		}
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return new(big.Rat).SetFloat64(v), true
		}
	}
	return nil, false
}

// SpanOf are the least and the largest product of numbers of two ranges.
func SpanOf(a, b, c, d *big.Int) (least, most *big.Int) {
	least, most = new(big.Int).Mul(a, c), new(big.Int).Mul(a, c)
	for _, p := range []*big.Int{new(big.Int).Mul(a, d), new(big.Int).Mul(b, c), new(big.Int).Mul(b, d)} {
		if p.Cmp(least) < 0 {
			least = p
		}
		if p.Cmp(most) > 0 {
			most = p
		}
	}
	return least, most
}

// UnitsOf is a value in units of 10^−scale, of numbers, days or microseconds.
func UnitsOf(v policy.Value, scale int32) (*big.Int, bool) {
	switch v := v.(type) {
	case policy.Timestamp:
		return new(big.Int).Mul(big.NewInt(int64(v)), Tens(scale)), true
	case policy.Timestamptz:
		return new(big.Int).Mul(big.NewInt(int64(v)), Tens(scale)), true
	case float64:
		return nil, false
	}
	x, ok := RatOf(v)
	if !ok {
		return nil, false
	}
	x.Mul(x, new(big.Rat).SetInt(Tens(scale)))
	return x.Num(), x.IsInt()
}

// lowTens are the powers of ten that are asked for most.
var lowTens = func() (table [40]*big.Int) {
	for i := range table {
		table[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return table
}()

// Tens is 10^scale.
func Tens(scale int32) *big.Int {
	if int(scale) < len(lowTens) {
		return new(big.Int).Set(lowTens[scale])
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
}

// MaxAbs is the larger size of two numbers.
func MaxAbs(a, b *big.Int) *big.Int {
	if a.CmpAbs(b) < 0 {
		a = b
	}
	return new(big.Int).Abs(a)
}

// DomainDigits is how many digits after the point the ends of a domain, its step and its values have, but for values of
// a column without a number of digits of its own.
func DomainDigits(d *policy.Domain) int32 {
	least, _ := d.Min.(policy.Numeric)
	most, _ := d.Max.(policy.Numeric)
	return max(d.Scale, least.Scale, most.Scale, d.Step.Decimal.Scale, 0)
}
