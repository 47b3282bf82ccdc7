package scalar

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

const maxResultScale = 2000 // bounds the decimal weight of exponentials

var (
	errLogZero     = fail(stateLog, "cannot take logarithm of zero")
	errLogNegative = fail(stateLog, "cannot take logarithm of a negative number")
	errZeroPower   = fail(statePower, "zero raised to a negative power is undefined")
	errComplex     = fail(statePower, "a negative number raised to a non-integer power yields a complex result")
)

// numericPowers registers roots, logarithms and powers of numeric. Their values are rounded from enough digits; their
// scales follow PostgreSQL's estimates, which are made with the first digits in floating point.
func (r registry) numericPowers() {
	n := policy.NumericType
	r.one("sqrt", n, on1(sqrtNumeric))
	r.one("scale", n, on1(func(v numeric) (policy.Value, error) { return int64(v.Scale), nil }))
	r.one("min_scale", n, on1(func(v numeric) (policy.Value, error) { return int64(trimScale(v).Scale), nil }))
	r.one("trim_scale", n, on1(func(v numeric) (policy.Value, error) { return trimScale(v), nil }))
	r.one("ln", n, on1(lnNumeric))
	r.one("exp", n, on1(expNumeric))
	for _, name := range []string{"log", "log10"} {
		r.one(name, n, on1(func(v numeric) (policy.Value, error) { return logNumeric(numericOf(10), v) }))
	}
	r.two("log", n, n, on2(logNumeric))
	for _, name := range []string{"power", "pow", "^"} {
		r.two(name, n, n, on2(powerNumeric))
	}
}

// trimScale is v without the zeros at the end of its fraction.
func trimScale(v numeric) numeric {
	if v.Coefficient.Sign() == 0 {
		return numericOf(0)
	}
	c, digit := new(big.Int).Set(v.Coefficient), new(big.Int)
	for ; v.Scale > 0; v.Scale-- {
		q, _ := new(big.Int).QuoRem(c, pow10(1), digit)
		if digit.Sign() != 0 {
			break
		}
		c = q
	}
	return newNumeric(c, v.Scale)
}

// shown limits a scale that aims at sixteen significant digits.
func shown(scale int32, least ...int32) int32 {
	for _, s := range least {
		scale = max(scale, s)
	}
	return min(max(scale, 0), maxShownScale)
}

func sqrtNumeric(v numeric) (policy.Value, error) {
	if v.Coefficient.Sign() < 0 {
		return nil, fail(statePower, "cannot take square root of a negative number")
	}
	scale := shown(minSignificant-((weight(v)+1)*2-1), v.Scale)
	root := new(big.Int).Mul(v.Coefficient, pow10(2*scale+2-v.Scale))
	root.Sqrt(root)
	return roundNumeric(newNumeric(root, scale+1), scale), nil
}

// checkLog refuses what has no logarithm.
func checkLog(v numeric) error {
	switch v.Coefficient.Sign() {
	case 0:
		return errLogZero
	case -1:
		return errLogNegative
	}
	return nil
}

// firstDigits is n's first one or two base-10000 digits and the decimal exponent that goes with them.
func firstDigits(n numeric, count int32) (float64, int32) {
	w := weight(n)
	last := 4 * (w - count + 1)
	shift := n.Scale + last
	digits := new(big.Int).Abs(n.Coefficient)
	if shift >= 0 {
		digits.Quo(digits, pow10(shift))
	} else {
		digits.Mul(digits, pow10(-shift))
	}
	f, _ := new(big.Float).SetInt(digits).Float64()
	for f > 0 && math.Mod(f, 10000) == 0 { // trailing zero digits are not stored
		f /= 10000
		last += 4
	}
	return f, last
}

// lnWeight estimates the decimal exponent of ln v.
func lnWeight(v numeric) int32 {
	if compareNumeric(v, newNumeric(big.NewInt(9), 1)) >= 0 && compareNumeric(v, newNumeric(big.NewInt(11), 1)) <= 0 {
		x := newNumeric(new(big.Int).Sub(v.Coefficient, pow10(v.Scale)), v.Scale)
		if x.Coefficient.Sign() == 0 {
			return 0
		}
		w, first := firstDigit(x)
		return w*4 + int32(math.Log10(float64(first)))
	}
	digits, exponent := firstDigits(v, 2)
	ln := math.Log(digits) + float64(exponent)*2.302585092994046
	return int32(math.Log10(math.Abs(ln)))
}

func lnNumeric(v numeric) (policy.Value, error) {
	if err := checkLog(v); err != nil {
		return nil, err
	}
	scale := shown(minSignificant-lnWeight(v), v.Scale)
	bits := bitsOf(scale + 8)
	return numericOfBig(bigLn(bigOfNumeric(v, bits+uint(v.Coefficient.BitLen())), bits), scale), nil
}

func expNumeric(v numeric) (policy.Value, error) {
	at, _ := bigOfNumeric(v, 64).Float64()
	tens := math.Max(math.Min(at*0.434294481903252, maxResultScale), -maxResultScale)
	scale := shown(minSignificant-int32(tens), v.Scale)
	return expOf(bigOfNumeric(v, bitsOf(scale+max(int32(tens), 0)+8)), scale)
}

// expOf is e^x with that scale.
func expOf(x *big.Float, scale int32) (policy.Value, error) {
	at, _ := x.Float64()
	if math.Abs(at) >= maxResultScale*3 {
		if at > 0 {
			return nil, errNumeric
		}
		return newNumeric(new(big.Int), scale), nil
	}
	digits := scale + max(int32(at/2.3), 0) + 8
	return fits(numericOfBig(bigExp(x, bitsOf(digits)), scale))
}

func logNumeric(base, v numeric) (policy.Value, error) {
	if err := checkLog(base); err != nil {
		return nil, err
	}
	if err := checkLog(v); err != nil {
		return nil, err
	}
	weight := lnWeight(v) - lnWeight(base)
	scale := shown(minSignificant-weight, base.Scale, v.Scale)
	bits := bitsOf(scale + 2*max(weight, -weight) + 16)
	below := bigLn(bigOfNumeric(base, bits+uint(base.Coefficient.BitLen())), bits)
	if below.Sign() == 0 {
		return nil, errDivision
	}
	above := bigLn(bigOfNumeric(v, bits+uint(v.Coefficient.BitLen())), bits)
	return numericOfBig(bigFloat(bits).Quo(above, below), scale), nil
}

func powerNumeric(base, exponent numeric) (policy.Value, error) {
	whole := truncNumeric(exponent, 0)
	integral := compareNumeric(whole, exponent) == 0
	switch {
	case base.Coefficient.Sign() == 0 && exponent.Coefficient.Sign() < 0:
		return nil, errZeroPower
	case base.Coefficient.Sign() < 0 && !integral:
		return nil, errComplex
	}
	if integral && whole.Coefficient.IsInt64() {
		if n := whole.Coefficient.Int64(); n == int64(int32(n)) {
			return wholePower(base, n)
		}
	}
	if base.Coefficient.Sign() == 0 {
		return newNumeric(new(big.Int), minSignificant), nil
	}
	if base.Coefficient.Sign() < 0 {
		return nil, unsupported("a power this large of a negative number")
	}
	at := roughWeight(base, exponent)
	if math.Abs(at) > maxResultScale*3.01 {
		if at > 0 {
			return nil, errNumeric
		}
		return newNumeric(new(big.Int), maxShownScale), nil
	}
	tens := int32(at * 0.434294481903252)
	scale := shown(minSignificant-tens, base.Scale, exponent.Scale)
	bits := bitsOf(scale + max(tens, 0) + 16)
	ln := bigLn(bigOfNumeric(base, bits+uint(base.Coefficient.BitLen())), bits)
	return expOf(ln.Mul(ln, bigOfNumeric(exponent, bits)), scale)
}

// roughWeight estimates exponent·ln base from eight digits of the logarithm, because the result's scale follows from
// exactly that.
func roughWeight(base, exponent numeric) float64 {
	bits := 128 + uint(base.Coefficient.BitLen()+exponent.Coefficient.BitLen())
	digits := max(8-lnWeight(base), 0)
	ln := numericOfBig(bigLn(bigOfNumeric(base, bits), bits), digits)
	product := newNumeric(new(big.Int).Mul(ln.Coefficient, exponent.Coefficient), ln.Scale+exponent.Scale)
	at, _ := bigOfNumeric(roundNumeric(product, digits), 128).Float64()
	return at
}

// wholePower is base^n, with at least sixteen digits after the point.
func wholePower(base numeric, n int64) (policy.Value, error) {
	scale := shown(minSignificant, base.Scale)
	switch {
	case n == 0:
		return roundNumeric(numericOf(1), scale), nil
	case n == 1:
		return roundNumeric(base, scale), nil
	case n == 2:
		product, err := multiplyNumeric(base, base)
		if err != nil {
			return nil, err
		}
		return roundNumeric(product.(numeric), scale), nil
	case base.Coefficient.Sign() == 0:
		return newNumeric(new(big.Int), scale), nil
	}
	digits, exponent := firstDigits(base, 4)
	tens := float64(n) * (math.Log10(digits) + float64(exponent))
	switch {
	case tens > maxWholeDigits:
		return nil, errNumeric
	case tens > 20000:
		return nil, unsupported("a power of more than 20000 digits")
	case tens+1 < float64(-scale):
		return newNumeric(new(big.Int), scale), nil
	}
	bits := bitsOf(scale+int32(math.Abs(tens))+16) + 64
	power := bigPow(bigOfNumeric(base, bits), max(n, -n), bits)
	if n < 0 {
		power.Quo(bigFloat(bits).SetInt64(1), power)
	}
	return fits(numericOfBig(power, scale))
}

// Logarithms and exponentials to any precision. Each result is off by at most a few units of its last bit; callers ask
// for enough bits that rounding to what they show does not see it.

const guardBits = 64

func bigFloat(prec uint) *big.Float { return new(big.Float).SetPrec(prec) }

// bigAtanh is atanh x by its series; x is small.
func bigAtanh(x *big.Float, prec uint) *big.Float {
	square := bigFloat(prec).Mul(x, x)
	power, sum := bigFloat(prec).Set(x), bigFloat(prec).Set(x)
	for k := int64(3); ; k += 2 {
		power.Mul(power, square)
		term := bigFloat(prec).Quo(power, bigFloat(prec).SetInt64(k))
		if term.Sign() == 0 || sum.MantExp(nil)-term.MantExp(nil) > int(prec) {
			return sum
		}
		sum.Add(sum, term)
	}
}

// bigLn2 is ln 2 = 2·atanh(1/3).
func bigLn2(prec uint) *big.Float {
	third := bigFloat(prec).Quo(bigFloat(prec).SetInt64(1), bigFloat(prec).SetInt64(3))
	sum := bigAtanh(third, prec)
	return sum.Mul(sum, bigFloat(prec).SetInt64(2))
}

// bigLn is ln x for positive x: x = m·2^e, and ln m = 2^(k+1)·atanh((r−1)/(r+1)) where r is m's 2^k-th root.
func bigLn(x *big.Float, bits uint) *big.Float {
	const roots = 8
	near := bigFloat(x.Prec()+8).Sub(x, bigFloat(64).SetInt64(1))
	prec := bits + guardBits + roots
	if near.Sign() == 0 {
		return bigFloat(bits)
	}
	if lost := -near.MantExp(nil); lost > 0 {
		prec += uint(2 * lost) // digits that cancel near 1
	}
	m := bigFloat(prec)
	e := bigFloat(prec).Set(x).MantExp(m) // m in [1/2, 1)
	if m.Cmp(bigFloat(64).SetFloat64(0.7)) < 0 {
		m.Mul(m, bigFloat(prec).SetInt64(2))
		e--
	}
	for range roots {
		m.Sqrt(m)
	}
	one := bigFloat(prec).SetInt64(1)
	ratio := bigFloat(prec).Quo(bigFloat(prec).Sub(m, one), bigFloat(prec).Add(m, one))
	sum := bigAtanh(ratio, prec)
	if sum.Sign() != 0 {
		sum.SetMantExp(sum, roots+1)
	}
	if e != 0 {
		sum.Add(sum, bigFloat(prec).Mul(bigLn2(prec), bigFloat(prec).SetInt64(int64(e))))
	}
	return sum
}

// bigExp is e^x: the series at x/2^k, squared k times.
func bigExp(x *big.Float, bits uint) *big.Float {
	if x.Sign() == 0 {
		return bigFloat(bits).SetInt64(1)
	}
	k := max(x.MantExp(nil), 0) + 12
	prec := bits + guardBits + uint(2*k)
	r := bigFloat(prec).Set(x)
	r.SetMantExp(r, -k)
	sum, term := bigFloat(prec).SetInt64(1), bigFloat(prec).SetInt64(1)
	for n := int64(1); ; n++ {
		term.Mul(term, r)
		term.Quo(term, bigFloat(prec).SetInt64(n))
		if term.Sign() == 0 || -term.MantExp(nil) > int(prec) {
			break
		}
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigPow is x^n for n ≥ 0 by repeated squaring.
func bigPow(x *big.Float, n int64, prec uint) *big.Float {
	product, square := bigFloat(prec).SetInt64(1), bigFloat(prec).Set(x)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			product.Mul(product, square)
		}
		if n > 1 {
			square.Mul(square, square)
		}
	}
	return product
}

// bigOfNumeric is n with so many bits.
func bigOfNumeric(n numeric, prec uint) *big.Float {
	top := bigFloat(prec).SetInt(n.Coefficient)
	return top.Quo(top, bigFloat(prec).SetInt(pow10(n.Scale)))
}

// numericOfBig rounds f to that many digits after the point, half away from zero.
func numericOfBig(f *big.Float, scale int32) numeric {
	prec := f.Prec() + 16
	scaled := bigFloat(prec).Mul(f, bigFloat(prec).SetInt(pow10(scale)))
	half := bigFloat(64).SetFloat64(0.5)
	if f.Sign() < 0 {
		scaled.Sub(scaled, half)
	} else {
		scaled.Add(scaled, half)
	}
	whole, _ := scaled.Int(nil)
	return newNumeric(whole, scale)
}

// bitsOf is the precision for that many decimal digits, with room to round in.
func bitsOf(digits int32) uint { return uint(max(digits, 1)+20) * 10 / 3 }

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
