package noise

import "math/big"

// Below returns a uniform integer in [0, n); n must be at least 1.
func (r *Reader) Below(n uint64) uint64 {
	if n == 0 {
		panic("noise: uniform integer below 0")
	}
	return r.below(n)
}

// BelowBig returns a uniform integer in [0, n); n must be at least 1.
func (r *Reader) BelowBig(n *big.Int) *big.Int {
	if n.Sign() <= 0 {
		panic("noise: uniform integer below a number that is not positive")
	}
	return r.belowBig(n)
}

// Coin returns a fair bit.
func (r *Reader) Coin() bool { return r.coin() }

// ExpMinus is true with probability exp(−x) exactly, for a rational x ≥ 0: the choice behind the exponential mechanism,
// permute-and-flip and exact comparisons. Its time depends on x.
func (r *Reader) ExpMinus(x *big.Rat) bool {
	if x.Sign() < 0 {
		panic("noise: exp of a positive number is no probability")
	}
	if x.Num().IsUint64() && x.Denom().IsUint64() {
		return expMinus128(r, uint128{0, x.Num().Uint64()}, uint128{0, x.Denom().Uint64()})
	}
	return expMinusBig(r, new(big.Int).Set(x.Num()), x.Denom())
}

// ExpMinusRatio is ExpMinus of a/b; b must be at least 1.
func (r *Reader) ExpMinusRatio(a, b uint64) bool {
	if b == 0 {
		panic("noise: ratio with denominator 0")
	}
	return expMinus128(r, uint128{0, a}, uint128{0, b})
}
