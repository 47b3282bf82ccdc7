package scalar

import (
	"math"

	"github.com/dpproxy/dpproxy/policy"
)

func (r registry) floats() {
	types := []policy.Type{policy.Float4, policy.Float8}
	for _, a := range types {
		for _, b := range types {
			single := a == policy.Float4 && b == policy.Float4
			r.two("+", a, b, on2(floatSum(single, 1)))
			r.two("-", a, b, on2(floatSum(single, -1)))
			r.two("*", a, b, on2(floatProduct(single)))
			r.two("/", a, b, on2(floatQuotient(single)))
		}
		r.one("+", a, on1(func(v float64) (policy.Value, error) { return v, nil }))
		r.one("-", a, on1(func(v float64) (policy.Value, error) { return -v, nil }))
		r.one("abs", a, on1(func(v float64) (policy.Value, error) { return math.Abs(v), nil }))
		r.one("@", a, on1(func(v float64) (policy.Value, error) { return math.Abs(v), nil }))
	}
	for name, f := range map[string]func(float64) float64{
		"ceil": math.Ceil, "ceiling": math.Ceil, "floor": math.Floor, "round": math.RoundToEven,
		"trunc": math.Trunc, "sign": floatSign,
	} {
		r.one(name, policy.Float8, on1(func(v float64) (policy.Value, error) { return f(v), nil }))
	}
	for _, name := range []string{"sqrt", "|/"} {
		r.one(name, policy.Float8, on1(func(v float64) (policy.Value, error) {
			if v < 0 {
				return nil, fail(statePower, "cannot take square root of a negative number")
			}
			return math.Sqrt(v), nil
		}))
	}
	const degree = 0.0174532925199432957692 // in radians
	r.one("radians", policy.Float8, on1(func(v float64) (policy.Value, error) { return floatProduct(false)(v, degree) }))
	r.one("degrees", policy.Float8, on1(func(v float64) (policy.Value, error) { return floatQuotient(false)(v, degree) }))
	r[keyOf("pi", nil)] = &body{none: func(*Env) (policy.Value, error) { return math.Pi, nil }}
	r.transcendental()
}

func floatSign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0 // also of NaN
}

// checked refuses results that left the type's range: infinite from finite operands.
func checked(single bool, v float64, infinite bool) (policy.Value, error) {
	if single {
		v = float64(float32(v))
	}
	if math.IsInf(v, 0) && !infinite {
		return nil, errOverflow
	}
	return v, nil
}

type floatFunc = func(a, b float64) (policy.Value, error)

func floatSum(single bool, sign float64) floatFunc {
	return func(a, b float64) (policy.Value, error) {
		return checked(single, a+sign*b, math.IsInf(a, 0) || math.IsInf(b, 0))
	}
}

func floatProduct(single bool) floatFunc {
	return func(a, b float64) (policy.Value, error) {
		v, err := checked(single, a*b, math.IsInf(a, 0) || math.IsInf(b, 0))
		if v == 0.0 && a != 0 && b != 0 {
			return nil, errUnderflow
		}
		return v, err
	}
}

func floatQuotient(single bool) floatFunc {
	return func(a, b float64) (policy.Value, error) {
		if b == 0 && !math.IsNaN(a) {
			return nil, errDivision
		}
		v, err := checked(single, a/b, math.IsInf(a, 0))
		if v == 0.0 && a != 0 && !math.IsInf(b, 0) {
			return nil, errUnderflow
		}
		return v, err
	}
}

// compareFloat orders floats as PostgreSQL's indexes do: NaN equals NaN and is above everything.
func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	}
	return -1
}
