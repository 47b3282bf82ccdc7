package keys

import (
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const atto = 1_000_000_000_000_000_000

// PerKey returns the largest δ_p in whole atto-units with 1 − (1−δ_p)^k ≤ δ: what each of k independent keys may take
// of a δ that all of them share.
//
// Claim: the returned δ_p satisfies the inequality; one atto-unit more is not proved to, at 256 bits.
// Proof: the inequality is decided by shared; ⌊δ/k⌋, from where the search starts, satisfies it by Bernoulli's.
func PerKey(d privacy.Delta, k int64) (privacy.Delta, error) {
	if d.Atto() <= 0 || d.Atto() >= atto {
		return privacy.Delta{}, fmt.Errorf("delta is %s, must be greater than 0 and below 1", d)
	}
	if k < 1 || k > 2*MaxKeys {
		return privacy.Delta{}, fmt.Errorf("keys of a unit is %d, must be from 1 to %d", k, 2*MaxKeys)
	}
	low, high := d.Atto()/k, int64(atto)
	for high-low > 1 {
		if middle := low + (high-low)/2; shared(middle, k, d.Atto()) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 {
		return privacy.Delta{}, fmt.Errorf("delta %s over %d keys is less than the smallest delta, 1e-18", d, k)
	}
	return privacy.AttoDelta(low), nil
}

// shared reports whether (1−each)^k ≥ 1−all is certain, all in atto-units: (10^18−each)^k, rounded down, is compared
// with (10^18−all)·10^(18(k−1)), rounded up.
func shared(each, k, all int64) bool {
	left := power(atto-each, k, big.ToNegativeInf)
	right := power(atto, k-1, big.ToPositiveInf)
	right.Mul(right, whole(atto-all, big.ToPositiveInf))
	return left.Cmp(right) >= 0
}

// power returns n^k with every product rounded in one direction.
func power(n, k int64, mode big.RoundingMode) *big.Float {
	result, base := whole(1, mode), whole(n, mode)
	for ; k > 0; k >>= 1 {
		if k&1 == 1 {
			result.Mul(result, base)
		}
		base.Mul(base, base)
	}
	return result
}

func whole(n int64, mode big.RoundingMode) *big.Float {
	return new(big.Float).SetPrec(256).SetMode(mode).SetInt64(n)
}
