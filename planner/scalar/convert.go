package scalar

import (
	"math"
	"math/big"
	"strconv"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

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
		return nil, errInfinite
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
