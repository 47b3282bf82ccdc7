package scalar

import (
	"math"
	"math/big"
	"strconv"
	"sync"

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

type castTable map[[2]policy.Type]*body

// castBodies are the casts that compute something. Casts through text go by ParseText and FormatText.
var castBodies = sync.OnceValue(func() castTable {
	c := castTable{}
	c.numbers()
	c.truth()
	c.times()
	c.dayTimes()
	return c
})

func (c castTable) put(from, to policy.Type, f func(*Env, policy.Value) (policy.Value, error)) {
	c[[2]policy.Type{from, to}] = &body{one: f}
}

func (c castTable) numbers() {
	for _, i := range integerTypes {
		for _, j := range integerTypes {
			c.put(i, j, on1(func(v int64) (policy.Value, error) { return inRange(j, v, false) }))
		}
		for _, f := range []policy.Type{policy.Float4, policy.Float8} {
			c.put(i, f, on1(func(v int64) (policy.Value, error) {
				if f == policy.Float4 {
					return float64(float32(v)), nil
				}
				return float64(v), nil
			}))
			c.put(f, i, on1(func(v float64) (policy.Value, error) { return floatToInt(v, i) }))
		}
		c.put(i, policy.NumericType, on1(func(v int64) (policy.Value, error) { return numericOf(v), nil }))
		c.put(policy.NumericType, i, on1(func(v numeric) (policy.Value, error) { return numericToInt(v, i) }))
	}
	c.put(policy.Float4, policy.Float8, on1(func(v float64) (policy.Value, error) { return v, nil }))
	c.put(policy.Float8, policy.Float4, on1(func(v float64) (policy.Value, error) {
		narrow, err := checked(true, v, math.IsInf(v, 0))
		if narrow == 0.0 && v != 0 {
			return nil, errUnderflow
		}
		return narrow, err
	}))
	for t, digits := range map[policy.Type]int{policy.Float4: 6, policy.Float8: 15} {
		c.put(t, policy.NumericType, on1(func(v float64) (policy.Value, error) { return floatToNumeric(v, digits) }))
		c.put(policy.NumericType, t, on1(func(v numeric) (policy.Value, error) { return numericToFloat(v, t) }))
	}
}

// floatToInt rounds half to even.
func floatToInt(v float64, t policy.Type) (policy.Value, error) {
	v = math.RoundToEven(v)
	if !(v >= math.MinInt64 && v < math.MaxInt64) {
		return nil, outOfRange(t)
	}
	return inRange(t, int64(v), false)
}

// floatToNumeric keeps the type's guaranteed decimal digits, as PostgreSQL does.
func floatToNumeric(v float64, digits int) (policy.Value, error) {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil, ErrInfinite
	}
	return parseNumeric(strconv.FormatFloat(v, 'g', digits, 64))
}

func numericToFloat(v numeric, t policy.Type) (policy.Value, error) {
	bits := 64
	if t == policy.Float4 {
		bits = 32
	}
	f, err := strconv.ParseFloat(v.String(), bits)
	if err != nil {
		return nil, failf(stateRange, "number is out of range for type %s", t.Name())
	}
	if f == 0 && v.Coefficient.Sign() != 0 {
		return nil, failf(stateRange, "number is out of range for type %s", t.Name())
	}
	return f, nil
}

func (c castTable) truth() {
	c.put(policy.Bool, policy.Int4, on1(func(v bool) (policy.Value, error) {
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	}))
	c.put(policy.Int4, policy.Bool, on1(func(v int64) (policy.Value, error) { return v != 0, nil }))
	for _, t := range []policy.Type{policy.Text, policy.Varchar} {
		c.put(policy.Bool, t, on1(func(v bool) (policy.Value, error) { return strconv.FormatBool(v), nil }))
	}
}

func (c castTable) times() {
	d, ts, tz := policy.DateType, policy.TimestampT, policy.TimestampTZ
	c.put(d, ts, on1(func(v policy.Date) (policy.Value, error) { return valued(dateToTimestamp(v)) }))
	c.put(ts, d, on1(func(v policy.Timestamp) (policy.Value, error) { return timestampToDate(v), nil }))
	c.put(d, tz, func(env *Env, v policy.Value) (policy.Value, error) {
		local, err := dateToTimestamp(v.(policy.Date))
		if err != nil {
			return nil, err
		}
		return valued(env.toZoned(local))
	})
	c.put(ts, tz, func(env *Env, v policy.Value) (policy.Value, error) { return valued(env.toZoned(v.(policy.Timestamp))) })
	c.put(tz, ts, func(env *Env, v policy.Value) (policy.Value, error) {
		return valued(env.toLocal(v.(policy.Timestamptz)))
	})
	c.put(tz, d, func(env *Env, v policy.Value) (policy.Value, error) {
		local, err := env.toLocal(v.(policy.Timestamptz))
		if err != nil {
			return nil, err
		}
		return timestampToDate(local), nil
	})
	for _, pair := range [][2]policy.Type{{d, tz}, {ts, tz}, {tz, ts}, {tz, d}} {
		c[pair].stable = true
	}
}

// valued turns a typed result into a Value, nil where it failed.
func valued[T policy.Value](v T, err error) (policy.Value, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// bigOf reads digits that are known to be digits.
func bigOf(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// castFunctions registers the functions that are named after their result: int4(x), date(x).
func (r registry) castFunctions() {
	c := loadCatalog()
	for name, target := range c.names {
		for _, s := range c.functions[name] {
			if len(s.args) != 1 {
				continue
			}
			if b, ok := castBodies()[[2]policy.Type{s.args[0], target}]; ok {
				r[keyOf(name, s.args)] = b
			}
		}
	}
}
