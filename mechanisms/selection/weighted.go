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
		l, h := noise.ExpBounds(w.exponent.Num(), w.exponent.Denom(), digits+extra)
		l.Mul(l, w.count).Rsh(l, extra)
		h.Mul(h, w.count).Rsh(h, extra).Add(h, big.NewInt(1))
		below, above = new(big.Int).Add(below, l), new(big.Int).Add(above, h)
		low[j], high[j] = below, above
	}
	return low, high
}
