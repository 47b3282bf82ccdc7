package scalar

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// floatBits is a precision at which the value of an elementary function rounds to the nearest float.
const floatBits = 128

// transcendental registers the elementary functions of double precision, correctly rounded.
func (r registry) transcendental() {
	f := policy.Float8
	r.one("exp", f, on1(expFloat))
	r.one("ln", f, on1(func(v float64) (policy.Value, error) { return logFloat(v, nil) }))
	for _, name := range []string{"log", "log10"} {
		r.one(name, f, on1(func(v float64) (policy.Value, error) {
			return logFloat(v, bigLn(bigFloat(64).SetInt64(10), floatBits))
		}))
	}
	for _, name := range []string{"power", "pow", "^"} {
		r.two(name, f, f, on2(powerFloat))
	}
}

func expFloat(v float64) (policy.Value, error) {
	switch {
	case math.IsNaN(v), math.IsInf(v, 1):
		return v, nil
	case math.IsInf(v, -1):
		return 0.0, nil
	case v > 710:
		return nil, errOverflow
	case v < -746:
		return nil, errUnderflow
	}
	return nearest(bigExp(bigFloat(64).SetFloat64(v), floatBits))
}

// nearest rounds to a float, within its range.
func nearest(f *big.Float) (policy.Value, error) {
	v, _ := f.Float64()
	if math.IsInf(v, 0) {
		return nil, errOverflow
	}
	if v == 0 && f.Sign() != 0 {
		return nil, errUnderflow
	}
	return v, nil
}

// logFloat is ln v, over a divisor where there is one.
func logFloat(v float64, divisor *big.Float) (policy.Value, error) {
	switch {
	case v == 0:
		return nil, errLogZero
	case v < 0:
		return nil, errLogNegative
	case math.IsNaN(v), math.IsInf(v, 1):
		return v, nil
	}
	ln := bigLn(bigFloat(64).SetFloat64(v), floatBits)
	if divisor != nil {
		ln.Quo(ln, divisor)
	}
	return nearest(ln)
}

func powerFloat(x, y float64) (policy.Value, error) {
	whole := math.Floor(y) == y
	switch {
	case x == 1 || y == 0:
		return 1.0, nil
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN(), nil
	case x == 0 && y < 0:
		return nil, errZeroPower
	case x < 0 && !whole:
		return nil, errComplex
	case x == 0 || math.IsInf(x, 0) || math.IsInf(y, 0):
		return math.Pow(x, y), nil
	}
	if y == 1 {
		return x, nil
	}
	size := y * math.Log2(math.Abs(x))
	if size > 1100 {
		return nil, errOverflow
	}
	if size < -1200 {
		return nil, errUnderflow
	}
	if whole && y > 0 && y <= 64 {
		return nearest(bigPow(bigFloat(64).SetFloat64(x), int64(y), 64*64)) // exact, so ties round as they should
	}
	ln := bigLn(bigFloat(64).SetFloat64(math.Abs(x)), 2*floatBits)
	power := bigExp(ln.Mul(ln, bigFloat(64).SetFloat64(y)), 2*floatBits)
	if x < 0 && math.Mod(y, 2) != 0 {
		power.Neg(power)
	}
	return nearest(power)
}
