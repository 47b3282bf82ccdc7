package scalar

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

var integerTypes = []policy.Type{policy.Int2, policy.Int4, policy.Int8}

type int64Func = func(a, b int64) (policy.Value, error)

func (r registry) integers() {
	for _, a := range integerTypes {
		for _, b := range integerTypes {
			t := wider(a, b)
			r.two("+", a, b, on2(fitting(t, addInt64)))
			r.two("-", a, b, on2(fitting(t, subInt64)))
			r.two("*", a, b, on2(fitting(t, mulInt64)))
			r.two("/", a, b, on2(divideInteger(t)))
		}
		r.two("%", a, a, on2(moduloInteger))
		r.two("mod", a, a, on2(moduloInteger))
		r.bits(a)
		r.one("+", a, on1(func(v int64) (policy.Value, error) { return v, nil }))
		r.one("-", a, on1(func(v int64) (policy.Value, error) { return inRange(a, -v, v == math.MinInt64) }))
		for _, name := range []string{"abs", "@"} {
			r.one(name, a, on1(func(v int64) (policy.Value, error) {
				if v < 0 {
					return inRange(a, -v, v == math.MinInt64)
				}
				return v, nil
			}))
		}
	}
	for _, t := range []policy.Type{policy.Int4, policy.Int8} {
		r.two("gcd", t, t, on2(gcdInteger(t)))
		r.two("lcm", t, t, on2(lcmInteger(t)))
	}
}

// bits are the operators on the bits of an integer. None of them fails: a bit that is shifted out is lost, and of how
// far a shift goes so many bits are read as the type of the number needs, so that 1 << 33 is 2, as on the processors
// that PostgreSQL mostly runs on. A smallint is shifted as an integer.
func (r registry) bits(t policy.Type) {
	both := func(of func(a, b int64) int64) func(a, b int64) (policy.Value, error) {
		return func(a, b int64) (policy.Value, error) { return of(a, b), nil }
	}
	r.two("&", t, t, on2(both(func(a, b int64) int64 { return a & b })))
	r.two("|", t, t, on2(both(func(a, b int64) int64 { return a | b })))
	r.two("#", t, t, on2(both(func(a, b int64) int64 { return a ^ b })))
	r.one("~", t, on1(func(a int64) (policy.Value, error) { return ^a, nil }))
	far := int64(31)
	if t == policy.Int8 {
		far = 63
	}
	r.two("<<", t, policy.Int4, on2(both(func(a, n int64) int64 { return cutTo(t, a<<(n&far)) })))
	r.two(">>", t, policy.Int4, on2(both(func(a, n int64) int64 { return a >> (n & far) })))
}

// cutTo is what the lowest bits of a number are as a value of a type.
func cutTo(t policy.Type, v int64) int64 {
	switch t {
	case policy.Int2:
		return int64(int16(v))
	case policy.Int4:
		return int64(int32(v))
	}
	return v
}

// wider is the wider of two integer types, the type of their sum.
func wider(a, b policy.Type) policy.Type {
	if a == policy.Int8 || b == policy.Int8 {
		return policy.Int8
	}
	if a == policy.Int4 || b == policy.Int4 {
		return policy.Int4
	}
	return policy.Int2
}

// inRange is v as a value of type t, unless it does not fit or the computation overflowed.
func inRange(t policy.Type, v int64, overflow bool) (policy.Value, error) {
	if overflow || t == policy.Int4 && v != int64(int32(v)) || t == policy.Int2 && v != int64(int16(v)) {
		return nil, outOfRange(t)
	}
	return v, nil
}

// fitting is what f comes to as a value of type t; f returns false where it overflows.
func fitting(t policy.Type, f func(a, b int64) (int64, bool)) int64Func {
	return func(a, b int64) (policy.Value, error) {
		n, ok := f(a, b)
		return inRange(t, n, !ok)
	}
}

func divideInteger(t policy.Type) int64Func {
	return func(a, b int64) (policy.Value, error) {
		if b == 0 {
			return nil, errDivision
		}
		if b == -1 {
			return inRange(t, -a, a == math.MinInt64)
		}
		return a / b, nil
	}
}

func moduloInteger(a, b int64) (policy.Value, error) {
	switch b {
	case 0:
		return nil, errDivision
	case -1:
		return int64(0), nil
	}
	return a % b, nil
}

func gcdInteger(t policy.Type) int64Func {
	return func(a, b int64) (policy.Value, error) {
		for b != 0 && b != -1 {
			a, b = b, a%b
		}
		if b == -1 {
			a = 1
		}
		if a < 0 {
			return inRange(t, -a, a == math.MinInt64)
		}
		return a, nil
	}
}

func lcmInteger(t policy.Type) int64Func {
	return func(a, b int64) (policy.Value, error) {
		if a == 0 || b == 0 {
			return int64(0), nil
		}
		x, y := big.NewInt(a), big.NewInt(b)
		gcd := new(big.Int).GCD(nil, nil, new(big.Int).Abs(x), new(big.Int).Abs(y))
		x.Quo(x, gcd).Mul(x, y).Abs(x)
		return inRange(t, x.Int64(), !x.IsInt64())
	}
}

func addInt64(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (b >= 0) == (sum >= a)
}

func subInt64(a, b int64) (int64, bool) {
	difference := a - b
	return difference, (b > 0) == (difference < a) || b == 0
}

func mulInt64(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	product := a * b
	ok := product/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	return product, ok
}
