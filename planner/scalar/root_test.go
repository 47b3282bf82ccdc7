package scalar

import (
	"math/big"
	"math/rand"
	"testing"
)

// TestWholeRoots: the root of a number is that of math/big, beside squares and at the ends of what is calculated in 64
// bits too.
func TestWholeRoots(t *testing.T) {
	const seed, draws = 5, 100_000
	r := rand.New(rand.NewSource(seed))
	for range draws {
		n := new(big.Int).Rand(r, new(big.Int).Lsh(big.NewInt(1), uint(1+r.Intn(130))))
		if r.Intn(2) == 0 { // beside a square
			n.Sqrt(n)
			n.Mul(n, n).Add(n, big.NewInt(int64(r.Intn(3)-1)))
			n.Abs(n)
		}
		want := new(big.Int).Sqrt(n)
		if got := wholeRoot(new(big.Int).Set(n)); got.Cmp(want) != 0 {
			t.Fatalf("the root of %v is %v, want %v", n, got, want)
		}
	}
}
