package scalar

import "math/big"

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
