package semantics

import (
	"math"
	"math/big"
	"testing"
)

// TestOpenDigits makes each number of small domains, and the ends of the types, from the digits that are open.
func TestOpenDigits(t *testing.T) {
	check := func(least, most, x int64) {
		common, open := OpenDigits(least, most)
		made := new(big.Int).Set(common)
		for _, d := range open {
			rest := new(big.Int).Sub(big.NewInt(x), d.from)
			if rest.Sign() < 0 {
				t.Fatalf("[%d, %d]: %d is below %s", least, most, x, d.from)
			}
			if (rest.Rem(rest, d.modulus).Cmp(d.half) >= 0) != d.sign {
				made.Add(made, d.Worth)
			}
		}
		if made.Cmp(big.NewInt(x)) != 0 {
			t.Fatalf("[%d, %d]: %d became %s", least, most, x, made)
		}
	}
	for least := int64(-20); least <= 20; least++ {
		for most := least; most <= 20; most++ {
			for x := least; x <= most; x++ {
				check(least, most, x)
			}
		}
	}
	for _, ends := range [][2]int64{{math.MinInt64, math.MaxInt64}, {math.MinInt32, 0}, {math.MaxInt64 - 5, math.MaxInt64}, {math.MinInt64, math.MinInt64 + 9}} {
		check(ends[0], ends[1], ends[0])
		check(ends[0], ends[1], ends[1])
	}
}
