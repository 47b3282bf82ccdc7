package semantics

import (
	"math"
	"math/big"
	"math/rand"
	"testing"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// nearestByFractions and decimalsByFractions are Nearest10 and DecimalsOf as they are defined, the twins of what is
// calculated.
func nearestByFractions(x *big.Rat, exponent int) int64 {
	q := new(big.Rat).Quo(x, Power10(exponent, 1))
	half := big.NewRat(1, 2)
	if q.Sign() < 0 {
		half.Neg(half)
	}
	q.Add(q, half)
	n := new(big.Int).Quo(q.Num(), q.Denom())
	if !n.IsInt64() {
		if n.Sign() < 0 {
			return math.MinInt64 / 2
		}
		return math.MaxInt64 / 2
	}
	return min(max(n.Int64(), math.MinInt64/2), math.MaxInt64/2)
}

func decimalsByFractions(x *big.Rat) int {
	scaled, ten := new(big.Rat).Set(x), big.NewRat(10, 1)
	for n := range MaxDecimals {
		if scaled.IsInt() {
			return n
		}
		scaled.Mul(scaled, ten)
	}
	return MaxDecimals
}

// drawnValue is a number as columns and expressions have them: short and long, whole and broken, at halves of what is
// rounded and at the ends of what has room.
func drawnValue(r *rand.Rand) policy.Value {
	n := r.Int63() >> r.Intn(63)
	switch r.Intn(8) {
	case 0:
		n = []int64{0, 1, 5, 50, 500, math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64/2 + 1,
			4611686018427387905}[r.Intn(9)]
	case 1:
		n = (n/1000)*1000 + []int64{0, 499, 500, 501, 50, 5}[r.Intn(6)]
	}
	if r.Intn(2) == 0 {
		n = -n
	}
	switch r.Intn(5) {
	case 0:
		return n
	case 1:
		long := new(big.Int).Mul(big.NewInt(n), big.NewInt(r.Int63()))
		return policy.Numeric{Coefficient: long, Scale: int32(r.Intn(36))}
	case 2:
		return math.Ldexp(float64(n>>10), r.Intn(140)-120)
	case 3:
		return []float64{0, math.Copysign(0, -1), 0.5, 2.5, -0.5, 1e-320, 1e300, 0.1, 1e15 + 0.5,
			4503599627370495.5}[r.Intn(10)]
	}
	return policy.NewNumeric(n, int32(r.Intn(22)))
}

// TestNumbersAreFractions: what is said of a number is what is said of its fraction, to the last digit.
func TestNumbersAreFractions(t *testing.T) {
	const seed, draws = 7, 200_000
	r := rand.New(rand.NewSource(seed))
	kinds := map[numberKind]int{}
	for range draws {
		v, w := drawnValue(r), drawnValue(r)
		x, _ := numberOf(v)
		y, _ := numberOf(w)
		a, _ := derived.RatOf(v)
		b, _ := derived.RatOf(w)
		kinds[x.kind]++
		exponent := r.Intn(44) - 22
		mean := new(big.Rat).Add(a, b)
		mean.Mul(mean, big.NewRat(1, 2))
		switch m := between(x, y); {
		case x.Rat().Cmp(a) != 0:
			t.Fatalf("%v is %v", v, x.Rat())
		case x.Decimals() != decimalsByFractions(a), DecimalsOf(a) != decimalsByFractions(a):
			t.Fatalf("%v has %d and %d digits, want %d", v, x.Decimals(), DecimalsOf(a), decimalsByFractions(a))
		case x.Nearest10(exponent) != nearestByFractions(a, exponent), Nearest10(a, exponent) != nearestByFractions(a,
			exponent):
			t.Fatalf("%v in 10^%d is %d and %d, want %d", v, exponent, x.Nearest10(exponent), Nearest10(a, exponent),
				nearestByFractions(a, exponent))
		case x.Cmp(y) != a.Cmp(b):
			t.Fatalf("%v beside %v is %d, want %d", v, w, x.Cmp(y), a.Cmp(b))
		case m.Rat().Cmp(mean) != 0 || m.Nearest10(exponent) != nearestByFractions(mean, exponent):
			t.Fatalf("between %v and %v is %v, want %v", v, w, m.Rat(), mean)
		}
	}
	if kinds[decimalNumber] < draws/4 || kinds[floatNumber] < draws/10 {
		t.Errorf("drawn kinds: %v", kinds)
	}
}
