package selection

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// weight is count·exp(−exponent).
type weight struct {
	count    *big.Int
	exponent *big.Rat
}

// weighted draws j with probability exactly ∝ weights[j].
//
// A uniform u in [0, 1) is drawn digit by digit and u·Σ located among the partial sums, all of them known as intervals
// of integers; where the intervals leave a doubt, both get more digits. 64 digits are enough but for a chance of some
// 2^−40.
func weighted(weights []weight, random *noise.Reader) int {
	u := new(big.Int)
	for digits := uint(64); ; digits += 64 {
		u.Lsh(u, 64).Or(u, random.BelowBig(new(big.Int).Lsh(big.NewInt(1), 64)))
		low, high := partialSums(weights, digits+32)
		last := len(weights) - 1
		least := new(big.Int).Mul(u, low[last])
		most := new(big.Int).Mul(new(big.Int).Add(u, big.NewInt(1)), high[last])
		scaled := new(big.Int)
		for j := range weights {
			if most.Cmp(scaled.Lsh(low[j], digits)) > 0 {
				continue
			}
			if j == 0 || least.Cmp(scaled.Lsh(high[j-1], digits)) >= 0 {
				return j
			}
			break
		}
		if random.Err() != nil {
			return 0
		}
	}
}

// partialSums bounds Σ_{i≤j} weights[i]·2^digits from both sides.
func partialSums(weights []weight, digits uint) (low, high []*big.Int) {
	low, high = make([]*big.Int, len(weights)), make([]*big.Int, len(weights))
	below, above := new(big.Int), new(big.Int)
	for j, w := range weights {
		extra := uint(w.count.BitLen())
		l, h := expBounds(w.exponent, digits+extra)
		l.Mul(l, w.count).Rsh(l, extra)
		h.Mul(h, w.count).Rsh(h, extra).Add(h, big.NewInt(1))
		below, above = new(big.Int).Add(below, l), new(big.Int).Add(above, h)
		low[j], high[j] = below, above
	}
	return low, high
}

// expBounds returns integers around exp(−x)·2^digits, at most 6 apart; x ≥ 0.
//
// With y = x/2^s below 1, exp(−y) is summed as Σ (−y)^k/k! and squared s times. In units of the last of the guarded
// digits, y is off by less than 1, so each term by less than 3 (y^k/k! has derivative at most 1, a product and a
// quotient are cut), the sum by 3 a term, what is left out of the series by less than its first term, which is 0 there.
// Squaring a number at most 1 doubles the error and adds less than 2 by its own cut and square. So 2^s·(3·terms+4)
// bounds the error, less than a unit after the guard digits are cut.
func expBounds(x *big.Rat, digits uint) (low, high *big.Int) {
	floor := new(big.Int).Quo(x.Num(), x.Denom())
	if floor.Cmp(new(big.Int).SetUint64(uint64(digits))) > 0 {
		return new(big.Int), big.NewInt(1) // exp(−digits) < 2^−digits
	}
	squarings := uint(floor.BitLen())
	guard := squarings + 20
	scale := digits + guard
	y := new(big.Int).Lsh(x.Num(), scale)
	y.Quo(y, new(big.Int).Lsh(x.Denom(), squarings))
	sum := new(big.Int).Lsh(big.NewInt(1), scale)
	term := new(big.Int).Set(sum)
	for k := int64(1); term.Sign() != 0; k++ {
		term.Mul(term, y).Rsh(term, scale).Quo(term, big.NewInt(k))
		if k%2 == 1 {
			sum.Sub(sum, term)
		} else {
			sum.Add(sum, term)
		}
	}
	for range squarings {
		sum.Mul(sum, sum).Rsh(sum, scale)
	}
	sum.Rsh(sum, guard)
	low = new(big.Int).Sub(sum, big.NewInt(2))
	if low.Sign() < 0 {
		low.SetInt64(0)
	}
	return low, new(big.Int).Add(sum, big.NewInt(3))
}
