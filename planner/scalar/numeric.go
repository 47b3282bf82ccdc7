package scalar

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

type numeric = policy.Numeric

// PostgreSQL's limits of numeric.
const (
	maxWholeDigits = 131072
	maxScale       = 16383
	minSignificant = 16   // digits that a quotient or a root shows at least
	maxShownScale  = 1000 // and the most digits after the point that they get for it
)

var pow10Table = func() (table [64]*big.Int) {
	table[0] = big.NewInt(1)
	for i := 1; i < len(table); i++ {
		table[i] = new(big.Int).Mul(table[i-1], big.NewInt(10))
	}
	return table
}()

// pow10 is 10^n; the result is shared and not to be changed.
func pow10(n int32) *big.Int {
	if n < 0 {
		n = 0
	}
	if int(n) < len(pow10Table) {
		return pow10Table[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func newNumeric(c *big.Int, scale int32) numeric { return numeric{Coefficient: c, Scale: scale} }

func numericOf(n int64) numeric { return numeric{Coefficient: big.NewInt(n)} }

// atScale is n's coefficient at a scale not below its own.
func atScale(n numeric, scale int32) *big.Int {
	if scale == n.Scale {
		return n.Coefficient
	}
	return new(big.Int).Mul(n.Coefficient, pow10(scale-n.Scale))
}

func compareNumeric(a, b numeric) int {
	scale := max(a.Scale, b.Scale)
	return atScale(a, scale).Cmp(atScale(b, scale))
}

// divideRounded is x/y with one added to its magnitude when the remainder is half of y or more.
func divideRounded(x, y *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	r.Lsh(r, 1)
	if r.CmpAbs(y) >= 0 {
		if x.Sign()*y.Sign() < 0 {
			q.Sub(q, pow10(0))
		} else {
			q.Add(q, pow10(0))
		}
	}
	return q
}

// roundNumeric gives n that scale (which may be negative), half away from zero.
func roundNumeric(n numeric, scale int32) numeric {
	if scale >= n.Scale {
		return newNumeric(atScale(n, scale), scale)
	}
	q := divideRounded(n.Coefficient, pow10(n.Scale-scale))
	return zeroScale(q, scale)
}

// truncNumeric gives n that scale, towards zero.
func truncNumeric(n numeric, scale int32) numeric {
	if scale >= n.Scale {
		return newNumeric(atScale(n, scale), scale)
	}
	return zeroScale(new(big.Int).Quo(n.Coefficient, pow10(n.Scale-scale)), scale)
}

// zeroScale writes a number whose scale is negative with scale 0.
func zeroScale(c *big.Int, scale int32) numeric {
	if scale < 0 {
		return newNumeric(c.Mul(c, pow10(-scale)), 0)
	}
	return newNumeric(c, scale)
}

// floorNumeric and ceilNumeric are whole numbers of scale 0.
func floorNumeric(n numeric) numeric { return wholeNumeric(n, -1) }
func ceilNumeric(n numeric) numeric  { return wholeNumeric(n, 1) }

// wholeNumeric is n, or the whole number next to it on one side.
func wholeNumeric(n numeric, side int) numeric {
	q, m := new(big.Int).QuoRem(n.Coefficient, pow10(n.Scale), new(big.Int))
	if m.Sign() == side {
		q.Add(q, big.NewInt(int64(side)))
	}
	return newNumeric(q, 0)
}

// fits refuses numbers beyond numeric's limits.
func fits(n numeric) (policy.Value, error) {
	if n.Scale > maxScale {
		n = roundNumeric(n, maxScale)
	}
	if n.Coefficient.BitLen() > 400000 && weight(n) >= maxWholeDigits/4 {
		return nil, errNumeric
	}
	return n, nil
}

func addNumeric(a, b numeric) (policy.Value, error) {
	scale := max(a.Scale, b.Scale)
	return fits(newNumeric(new(big.Int).Add(atScale(a, scale), atScale(b, scale)), scale))
}

func subtractNumeric(a, b numeric) (policy.Value, error) {
	scale := max(a.Scale, b.Scale)
	return fits(newNumeric(new(big.Int).Sub(atScale(a, scale), atScale(b, scale)), scale))
}

func multiplyNumeric(a, b numeric) (policy.Value, error) {
	return fits(newNumeric(new(big.Int).Mul(a.Coefficient, b.Coefficient), a.Scale+b.Scale))
}

// weight and firstDigit describe n in PostgreSQL's base 10000: the exponent of its first digit, and that digit. They
// decide how many decimal digits a quotient gets.
func weight(n numeric) int32 {
	w, _ := firstDigit(n)
	return w
}

func firstDigit(n numeric) (int32, int64) {
	if n.Coefficient.Sign() == 0 {
		return 0, 0
	}
	digits := decimalDigits(n.Coefficient)
	exponent := digits - 1 - n.Scale // of the first decimal digit
	w := FloorDiv(exponent, 4)
	// The base-10000 digit at w holds the decimal digits with exponents 4w … 4w+3.
	shift := n.Scale + 4*w
	first := new(big.Int).Abs(n.Coefficient)
	if shift >= 0 {
		first.Quo(first, pow10(shift))
	} else {
		first.Mul(first, pow10(-shift))
	}
	return w, first.Int64()
}

// decimalDigits counts the digits of |c|, at least 1.
func decimalDigits(c *big.Int) int32 {
	guess := int32(float64(c.BitLen()) * 0.30102999566398120)
	if c.CmpAbs(pow10(guess)) >= 0 {
		guess++
	}
	return max(guess, 1)
}

// quotientScale is the scale of a/b: at least sixteen significant digits, and no fewer than either side's.
func quotientScale(a, b numeric) int32 {
	w1, first1 := firstDigit(a)
	w2, first2 := firstDigit(b)
	w := w1 - w2
	if first1 <= first2 {
		w--
	}
	scale := max(minSignificant-4*w, a.Scale, b.Scale, 0)
	return min(scale, maxShownScale)
}

func divideNumeric(a, b numeric) (policy.Value, error) {
	if b.Coefficient.Sign() == 0 {
		return nil, errDivision
	}
	scale := quotientScale(a, b)
	// a/b = (ca/cb)·10^(sb−sa), wanted at 10^scale.
	x, y := a.Coefficient, b.Coefficient
	if shift := scale + b.Scale - a.Scale; shift >= 0 {
		x = new(big.Int).Mul(x, pow10(shift))
	} else {
		y = new(big.Int).Mul(y, pow10(-shift))
	}
	return fits(newNumeric(divideRounded(x, y), scale))
}

// wholeQuotient is div(a, b), the quotient towards zero; moduloNumeric is the rest.
func wholeQuotient(a, b numeric) (policy.Value, error) {
	if b.Coefficient.Sign() == 0 {
		return nil, errDivision
	}
	scale := max(a.Scale, b.Scale)
	return newNumeric(new(big.Int).Quo(atScale(a, scale), atScale(b, scale)), 0), nil
}

func moduloNumeric(a, b numeric) (policy.Value, error) {
	if b.Coefficient.Sign() == 0 {
		return nil, errDivision
	}
	scale := max(a.Scale, b.Scale)
	return newNumeric(new(big.Int).Rem(atScale(a, scale), atScale(b, scale)), scale), nil
}

// numericToInt rounds half away from zero, as the casts to integers do.
func numericToInt(n numeric, t policy.Type) (policy.Value, error) {
	whole := roundNumeric(n, 0).Coefficient
	return inRange(t, whole.Int64(), !whole.IsInt64())
}

// applyNumericTypmod rounds to the scale of numeric(precision, scale) and checks the precision.
func applyNumericTypmod(n numeric, typmod int32) (policy.Value, error) {
	if typmod < 4 {
		return n, nil
	}
	precision, scale := policy.NumericTypmod(typmod)
	rounded := roundNumeric(n, scale)
	digits := decimalDigits(rounded.Coefficient)
	if rounded.Coefficient.Sign() != 0 && digits-rounded.Scale > precision-scale {
		return nil, fail(stateRange, "numeric field overflow")
	}
	return rounded, nil
}

func (r registry) numerics() {
	n := policy.NumericType
	binary := map[string]func(a, b numeric) (policy.Value, error){
		"+": addNumeric, "-": subtractNumeric, "*": multiplyNumeric, "/": divideNumeric, "%": moduloNumeric,
		"mod": moduloNumeric, "div": wholeQuotient, "gcd": gcdNumeric, "lcm": lcmNumeric,
	}
	for name, f := range binary {
		r.two(name, n, n, on2(f))
	}
	unary := map[string]func(numeric) numeric{
		"+": func(v numeric) numeric { return v }, "-": negateNumeric, "abs": absNumeric, "@": absNumeric,
		"sign":  func(v numeric) numeric { return numericOf(int64(v.Coefficient.Sign())) },
		"floor": floorNumeric, "ceil": ceilNumeric, "ceiling": ceilNumeric,
		"round": func(v numeric) numeric { return roundNumeric(v, 0) },
		"trunc": func(v numeric) numeric { return truncNumeric(v, 0) },
	}
	for name, f := range unary {
		r.one(name, n, on1(func(v numeric) (policy.Value, error) { return f(v), nil }))
	}
	r.two("round", n, policy.Int4, on2(func(v numeric, scale int64) (policy.Value, error) {
		return roundNumeric(v, int32(max(-2000, min(scale, 2000)))), nil
	}))
	r.two("trunc", n, policy.Int4, on2(func(v numeric, scale int64) (policy.Value, error) {
		return truncNumeric(v, int32(max(-2000, min(scale, 2000)))), nil
	}))
	r.numericPowers()
	r.buckets()
}

func negateNumeric(v numeric) numeric { return newNumeric(new(big.Int).Neg(v.Coefficient), v.Scale) }

func absNumeric(v numeric) numeric { return newNumeric(new(big.Int).Abs(v.Coefficient), v.Scale) }

func gcdNumeric(a, b numeric) (policy.Value, error) {
	scale := max(a.Scale, b.Scale)
	x, y := new(big.Int).Abs(atScale(a, scale)), new(big.Int).Abs(atScale(b, scale))
	return newNumeric(x.GCD(nil, nil, x, y), scale), nil
}

func lcmNumeric(a, b numeric) (policy.Value, error) {
	scale := max(a.Scale, b.Scale)
	x, y := new(big.Int).Abs(atScale(a, scale)), new(big.Int).Abs(atScale(b, scale))
	if x.Sign() == 0 || y.Sign() == 0 {
		return newNumeric(new(big.Int), scale), nil
	}
	gcd := new(big.Int).GCD(nil, nil, x, y)
	return fits(newNumeric(x.Mul(x.Quo(x, gcd), y), scale))
}

// buckets registers width_bucket(value, low, high, count).
func (r registry) buckets() {
	n, f := policy.NumericType, policy.Float8
	r.many("width_bucket", []policy.Type{n, n, n, policy.Int4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return numericBucket([3]numeric{a[0].(numeric), a[1].(numeric), a[2].(numeric)}, a[3].(int64))
	})
	r.many("width_bucket", []policy.Type{f, f, f, policy.Int4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return floatBucket([3]float64{a[0].(float64), a[1].(float64), a[2].(float64)}, a[3].(int64))
	})
}

var (
	errBucketCount  = fail(stateWidthBucket, "count must be greater than zero")
	errBucketBounds = fail(stateWidthBucket, "lower bound cannot equal upper bound")
)

// WidthBucketOf names, for Call, width_bucket(operand, ARRAY[…]) over the operand and the array's elements: no
// statement can call a function of this name.
const WidthBucketOf = "[]width_bucket"

// Elements are those of an ARRAY[…], which are texts where none of them has a type: no number is among ARRAY['1', '3'].
func (env Env) Elements(list []Expr) []Expr {
	if slices.ContainsFunc(list, func(e Expr) bool { return e.Type() != policy.Unknown }) {
		return list
	}
	out := slices.Clone(list)
	for i, e := range out {
		if text, err := env.Coerce(e, policy.Text); err == nil {
			out[i] = text
		}
	}
	return out
}

// thresholds is how many of the thresholds, which are in order, are not above the operand. Where they are in none, it
// is what PostgreSQL's search by halves comes to.
func (env Env) thresholds(args []Expr) (Expr, error) {
	common, ok := args[0].Type(), true // which an array without types, '{18,30,65}', has
	if slices.ContainsFunc(args[1:], func(e Expr) bool { return e.Type() != policy.Unknown }) {
		elements, t, err := env.unify("ARRAY", args[1:])
		if err != nil {
			return nil, err
		}
		args = append([]Expr{args[0]}, elements...)
		common, ok = env.Common(common, t)
	} else if common == policy.Unknown {
		common = policy.Text
	}
	if !ok || !supported(common) {
		return nil, failf(stateUndefined, "function width_bucket(%s, %s[]) does not exist", args[0].Type().Name(), args[len(args)-1].Type().Name())
	}
	typed := make([]Expr, len(args))
	for i, e := range args {
		var err error
		if typed[i], err = env.Coerce(e, common); err != nil {
			return nil, err
		}
	}
	b := &body{loose: true, many: func(_ *Env, values []policy.Value) (policy.Value, error) {
		operand, list := values[0], values[1:]
		if operand == nil {
			return nil, nil
		}
		if slices.Contains(list, nil) {
			return nil, fail(stateNull, "thresholds array must not contain NULLs")
		}
		low, high := 0, len(list)
		for low < high {
			if middle := (low + high) / 2; Compare(common, operand, list[middle]) < 0 {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return int64(low), nil
	}}
	return &call{node{typed, policy.Int4, -1}, WidthBucketOf, b, &env}, nil
}

// numericBucket finds the bucket of v[0] among count equal ones between v[1] and v[2]. The
// share is a rounded quotient, as in PostgreSQL: a value just below the upper bound may get bucket count+1.
func numericBucket(v [3]numeric, count int64) (policy.Value, error) {
	if count <= 0 {
		return nil, errBucketCount
	}
	scale := max(v[0].Scale, v[1].Scale, v[2].Scale)
	at, low, high := atScale(v[0], scale), atScale(v[1], scale), atScale(v[2], scale)
	direction := low.Cmp(high)
	switch {
	case direction == 0:
		return nil, errBucketBounds
	case direction < 0 && at.Cmp(low) < 0, direction > 0 && at.Cmp(low) > 0:
		return int64(0), nil
	case direction < 0 && at.Cmp(high) >= 0, direction > 0 && at.Cmp(high) <= 0:
		return inRange(policy.Int4, count+1, false)
	}
	top := new(big.Int).Sub(at, low)
	top.Mul(top.Abs(top), big.NewInt(count))
	width := new(big.Int).Sub(high, low)
	share, err := divideNumeric(newNumeric(top, scale), newNumeric(width.Abs(width), scale))
	if err != nil {
		return nil, err
	}
	return numericToInt(floorPlusOne(share.(numeric)), policy.Int4)
}

func floorPlusOne(n numeric) numeric {
	n = floorNumeric(n)
	n.Coefficient.Add(n.Coefficient, pow10(0))
	return n
}

// floatBucket is numericBucket on floats, with the same roundings as PostgreSQL's.
func floatBucket(v [3]float64, count int64) (policy.Value, error) {
	at, low, high := v[0], v[1], v[2]
	if count <= 0 {
		return nil, errBucketCount
	}
	if math.IsNaN(at) || math.IsNaN(low) || math.IsNaN(high) {
		return nil, fail(stateWidthBucket, "operand, lower bound, and upper bound cannot be NaN")
	}
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		return nil, fail(stateWidthBucket, "lower and upper bounds must be finite")
	}
	if low == high {
		return nil, errBucketBounds
	}
	sign := 1.0
	if low > high {
		sign = -1
	}
	switch {
	case at*sign < low*sign:
		return int64(0), nil
	case at*sign >= high*sign:
		return inRange(policy.Int4, count+1, false)
	}
	bucket := float64(count)*((at-low)*sign)/((high-low)*sign) + 1
	if !(bucket >= 0 && bucket <= math.MaxInt32) {
		return nil, unsupported("a bucket this wide")
	}
	return int64(bucket), nil
}
