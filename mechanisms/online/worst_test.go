package online

import (
	"math"
	"math/big"
	"testing"
)

// vector is a sparse vector of small numbers in which every probability is a fraction: P(z = k) ∝ ρᵏ and P(y = k) ∝ σᵏ
// for k ≥ 0, where a query moves by at most 1. In the letters of instance, s = 1, ρ = exp(−ε₁), σ = exp(−ε₂/2).
type vector struct {
	rho, sigma *big.Rat
	hards      int
	anew       bool // a threshold's noise of its own for each query, as no proof allows
}

// probability of bits for gaps against the threshold above. Given the threshold's noise z, with t = above + z, a query
// is easy with 1 − σ^max(0, t−gap). Up to z = far the sum is taken term by term; from there all exponents are positive,
// so that the product of the factors is a sum of terms w·(σⁿ)ᶻ, and the rest of the sum is w·(ρσⁿ)^far/(1 − ρσⁿ) each.
func (v vector) probability(above int64, gaps []int64, bits []bool) *big.Rat {
	if v.anew {
		p := big.NewRat(1, 1)
		for i := range gaps {
			one := v
			one.anew = false
			p.Mul(p, one.probability(above, gaps[i:i+1], bits[i:i+1]))
		}
		return p
	}
	far := int64(0)
	for _, g := range gaps {
		far = max(far, g-above)
	}
	one, total, weight := big.NewRat(1, 1), new(big.Rat), big.NewRat(1, 1)
	for z := int64(0); z < far; z++ {
		product := new(big.Rat).Set(weight)
		for i, g := range gaps {
			p := power(v.sigma, max(0, above+z-g))
			if !bits[i] {
				p = new(big.Rat).Sub(one, p)
			}
			product.Mul(product, p)
		}
		total.Add(total, product)
		weight.Mul(weight, v.rho)
	}
	terms := map[int64]*big.Rat{0: big.NewRat(1, 1)} // n → w
	for i, g := range gaps {
		next := map[int64]*big.Rat{}
		put := func(n int64, w *big.Rat) {
			if next[n] == nil {
				next[n] = new(big.Rat)
			}
			next[n].Add(next[n], w)
		}
		for n, w := range terms {
			hard := new(big.Rat).Mul(w, signedPower(v.sigma, above-g))
			if bits[i] {
				put(n+1, hard)
				continue
			}
			put(n, w)
			put(n+1, hard.Neg(hard))
		}
		terms = next
	}
	for n, w := range terms {
		ratio := new(big.Rat).Mul(v.rho, power(v.sigma, n))
		rest := new(big.Rat).Mul(w, power(ratio, far))
		total.Add(total, rest.Quo(rest, new(big.Rat).Sub(one, ratio)))
	}
	return total.Mul(total, new(big.Rat).Sub(one, v.rho))
}

func power(x *big.Rat, n int64) *big.Rat {
	out := big.NewRat(1, 1)
	for range n {
		out.Mul(out, x)
	}
	return out
}

func signedPower(x *big.Rat, n int64) *big.Rat {
	if n < 0 {
		return power(new(big.Rat).Inv(x), -n)
	}
	return power(x, n)
}

// worst is the largest ratio of the probabilities of one transcript on two neighbours, over all gaps in 0..span of so
// many queries, all ways in which a unit moves each by −1, 0 or 1, and all transcripts that end at the hards-th hard
// one.
func (v vector) worst(queries int, above, span int64) *big.Rat {
	worst := new(big.Rat)
	gaps, others := make([]int64, queries), make([]int64, queries)
	memo := map[[2]string]*big.Rat{}
	key := func(gaps []int64, bits []bool) [2]string {
		a, b := make([]byte, len(gaps)), make([]byte, len(bits))
		for i := range gaps {
			a[i] = byte(gaps[i])
			if bits[i] {
				b[i] = 1
			}
		}
		return [2]string{string(a), string(b)}
	}
	of := func(gaps []int64, bits []bool) *big.Rat {
		k := key(gaps, bits)
		if memo[k] == nil {
			memo[k] = v.probability(above, gaps, bits)
		}
		return memo[k]
	}
	var walk func(i int)
	walk = func(i int) {
		if i < queries {
			for gaps[i] = 0; gaps[i] <= span; gaps[i]++ {
				for others[i] = max(0, gaps[i]-1); others[i] <= gaps[i]+1; others[i]++ {
					walk(i + 1)
				}
			}
			return
		}
		patterns(queries, v.hards, func(bits []bool) {
			a, b := of(gaps[:len(bits)], bits), of(others[:len(bits)], bits)
			switch {
			case b.Sign() == 0 && a.Sign() != 0:
				worst = big.NewRat(math.MaxInt64, 1)
			case b.Sign() != 0:
				if ratio := new(big.Rat).Quo(a, b); ratio.Cmp(worst) > 0 {
					worst = ratio
				}
			}
		})
	}
	walk(0)
	return worst
}

// claimed is exp(ε₁ + c·ε₂) = 1/(ρ·σ^2c).
func (v vector) claimed() *big.Rat {
	x := new(big.Rat).Mul(v.rho, power(v.sigma, int64(2*v.hards)))
	return x.Inv(x)
}

// TestWorstLossOfSmallInstances enumerates all small inputs, without rounding: no ratio is above the claim, and but
// where more hard answers are asked for than the inputs have room for, the claim is reached exactly.
func TestWorstLossOfSmallInstances(t *testing.T) {
	for _, c := range []struct {
		rho, sigma  *big.Rat
		queries     int
		above, span int64
		hards       int
		reached     bool
	}{
		{big.NewRat(1, 2), big.NewRat(2, 3), 3, 1, 3, 1, true},
		{big.NewRat(1, 2), big.NewRat(2, 3), 3, 1, 3, 2, true},
		{big.NewRat(3, 4), big.NewRat(1, 3), 3, 2, 3, 1, true},
		{big.NewRat(1, 5), big.NewRat(4, 5), 3, 0, 3, 2, true},
		{big.NewRat(9, 10), big.NewRat(9, 10), 3, 3, 4, 3, false},
		{big.NewRat(1, 3), big.NewRat(1, 2), 4, 1, 2, 2, true},
	} {
		v := vector{rho: c.rho, sigma: c.sigma, hards: c.hards}
		worst, claim := v.worst(c.queries, c.above, c.span), v.claimed()
		t.Logf("ρ %s, σ %s, %d hard of %d, threshold %d: exp(loss) %s, claimed %s", c.rho, c.sigma, c.hards, c.queries, c.above, worst, claim)
		if order := worst.Cmp(claim); order > 0 || c.reached != (order == 0) {
			t.Errorf("ρ %s, σ %s, %d hard: exp(loss) is %s, claimed %s", c.rho, c.sigma, c.hards, worst, claim)
		}
	}
}

// TestWorstLossCatchesFaults plants those of the literature (Lyu, Su, Li 2017), with noise of one side: the search
// finds a loss above what each is said to cost.
func TestWorstLossCatchesFaults(t *testing.T) {
	claimed := vector{rho: big.NewRat(1, 2), sigma: big.NewRat(2, 3), hards: 2}
	for name, fault := range map[string]vector{
		"comparisons' noise half as wide":              {rho: claimed.rho, sigma: power(claimed.sigma, 2), hards: 2},
		"a threshold with hardly any noise":            {rho: big.NewRat(1, 1_000_000), sigma: claimed.sigma, hards: 2},
		"fresh noise of the threshold for each query":  {rho: claimed.rho, sigma: claimed.sigma, hards: 2, anew: true},
		"one more hard answer than is paid":            {rho: claimed.rho, sigma: claimed.sigma, hards: 3},
		"queries that move by two, with noise for one": {rho: power(claimed.rho, 2), sigma: power(claimed.sigma, 2), hards: 2},
	} {
		if worst, claim := fault.worst(4, 1, 2), claimed.claimed(); worst.Cmp(claim) <= 0 {
			t.Errorf("%s: exp(loss) is %s, which is not above %s", name, worst, claim)
		}
	}
}

// TestVectorIsTheInstance holds the fractions against the sums of the noise that sessions draw.
func TestVectorIsTheInstance(t *testing.T) {
	x := tailsOf(t, handmade(t, 2, 1, 13, micros(693_147, 810_930, 1))) // ln 2, and 2·ln(3/2)
	v := vector{rho: big.NewRat(1, 2), sigma: big.NewRat(2, 3), hards: 2}
	for _, gaps := range [][]int64{{0, 1, 2, 3}, {3, 0, 3, 1}, {2, 2, 2, 2}} {
		patterns(len(gaps), 2, func(bits []bool) {
			want, _ := v.probability(1, gaps[:len(bits)], bits).Float64()
			if got := x.probability(1, gaps[:len(bits)], bits); math.Abs(got-want) > 1e-5 {
				t.Errorf("%v of %v: %.7f, want %.7f", bits, gaps, got, want)
			}
		})
	}
}
