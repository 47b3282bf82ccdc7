package stattest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// seed is printed with every failure; the draws here come from a textbook sampler of their own, not from package noise.
const seed = 20240607

// twoSided draws a discrete Laplace of scale t as the difference of two geometrics.
func twoSided(r *rand.Rand, t float64) int64 {
	one := func() int64 { return int64(math.Floor(-t * math.Log(1-r.Float64()))) }
	up, down := one(), one()
	return up - down
}

func massOf(t float64) func(int64) float64 {
	q := math.Exp(-1 / t)
	return func(k int64) float64 { return (1 - q) / (1 + q) * math.Exp(-math.Abs(float64(k))/t) }
}

func draw(t float64, n int) (whole []int64, real []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(t*1e6)))
	for range n {
		k := twoSided(r, t)
		whole, real = append(whole, k), append(real, float64(k))
	}
	return whole, real
}

func TestTheRightNoisePasses(t *testing.T) {
	whole, real := draw(10, 400_000)
	claim := MomentsOf(massOf(10), 1000)
	if math.Abs(claim.Variance-199.83341) > 1e-4 {
		t.Errorf("variance %g", claim.Variance)
	}
	for _, err := range []error{Mean(real, claim, Usual), Variance(real, claim, Usual), ChiSquare(whole, massOf(10), Usual)} {
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestThreePercentTooLittleNoiseIsRejected(t *testing.T) {
	whole, real := draw(9.7, 400_000)
	if Variance(real, MomentsOf(massOf(10), 1000), Usual) == nil {
		t.Errorf("seed %d: the variance of 3 %% too little noise passed", seed)
	}
	if ChiSquare(whole, massOf(10), Usual) == nil {
		t.Errorf("seed %d: the distribution of 3 %% too little noise passed", seed)
	}
}

func TestShiftedNoiseIsRejected(t *testing.T) {
	whole, real := draw(10, 400_000)
	for i := range whole {
		whole[i] += int64(i) % 3 / 2 // a third of them by one
		real[i] = float64(whole[i])
	}
	if Mean(real, MomentsOf(massOf(10), 1000), Usual) == nil {
		t.Errorf("seed %d: a mean off by a third passed", seed)
	}
	if ChiSquare(whole, massOf(10), Usual) == nil {
		t.Errorf("seed %d: shifted noise passed", seed)
	}
}

func TestAuditFindsSensitivityOffBy1Point2(t *testing.T) {
	// The claim is ε = 1. The fault: a unit moves the count by 1.2 times what the noise was made for.
	for _, c := range []struct {
		scale  float64
		caught bool
	}{{1, false}, {1 / 1.2, true}, {1 / 1.5, true}} {
		r := rand.New(rand.NewPCG(seed, 5))
		audit := Audit{}
		for range 100_000 {
			audit.One = append(audit.One, float64(twoSided(r, c.scale)))
			audit.Other = append(audit.Other, float64(1+twoSided(r, c.scale)))
		}
		bound, err := audit.Epsilon(1e-5)
		if err != nil || bound > 1 != c.caught || bound < .85 {
			t.Errorf("seed %d: scale %.3f: epsilon at least %.4f, caught must be %t (%v)", seed, c.scale, bound, c.caught, err)
		}
	}
}

func TestAuditSeesDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 6))
	audit := Audit{Delta: .01}
	for range 20_000 {
		leak := 0.0
		if r.Float64() < .009 { // within δ
			leak = 1e9
		}
		audit.One = append(audit.One, float64(twoSided(r, 1))+leak)
		audit.Other = append(audit.Other, float64(1+twoSided(r, 1)))
	}
	if bound, err := audit.Epsilon(1e-5); err != nil || bound > 1 {
		t.Errorf("seed %d: epsilon at least %.4f (%v)", seed, bound, err)
	}
	audit.Delta = 1e-6
	if bound, err := audit.Epsilon(1e-5); err != nil || bound < 1 {
		t.Errorf("seed %d: a leak of .9 %% was not seen: %.4f (%v)", seed, bound, err)
	}
}

func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		hits             int
		exactly, atLeast bool
	}{{1900, true, true}, {1870, true, true}, {1840, false, false}, {1960, false, true}} {
		judged := Coverage{Hits: c.hits, Trials: 2000, Claim: .95}
		if (judged.Exactly(1e-6) == nil) != c.exactly || (judged.AtLeast(1e-6) == nil) != c.atLeast {
			t.Errorf("%d of 2000: %v, %v", c.hits, judged.Exactly(1e-6), judged.AtLeast(1e-6))
		}
	}
}

// TestFewHitsProveLittle: no hits are no coverage, which the inverse of a library once took for one; with small alarms
// and few hits or misses, the tails at the interval's ends are summed term by term.
func TestFewHitsProveLittle(t *testing.T) {
	if (Coverage{Hits: 0, Trials: 1000, Claim: .95}).AtLeast(1e-6) == nil || (Coverage{Hits: 4, Trials: 100_000, Claim: .04}).Exactly(1e-6) == nil {
		t.Error("a coverage of next to nothing passed")
	}
	for _, n := range []int{1000, 100_000} {
		for _, hits := range []int{0, 1, 3, 4, 10} {
			for _, a := range []float64{1e-7, 5e-7, .45} {
				_, high := interval(hits, n, Alarm(a))
				low, all := interval(n-hits, n, Alarm(a))
				tail, mirrored := 0.0, 0.0
				for k := range hits + 1 {
					tail += binomial(n, k, high)
					mirrored += binomial(n, n-k, low)
				}
				if math.Abs(tail/a-1) > 1e-5 || math.Abs(mirrored/a-1) > 1e-5 || hits == 0 && all != 1 {
					t.Errorf("%d of %d at %g: [%g, %g] has tails %g, %g", hits, n, a, low, high, tail, mirrored)
				}
			}
		}
	}
}

// TestClopperPearson compares with the definition: at the ends of the interval the tails have exactly the probability.
func TestClopperPearson(t *testing.T) {
	const n, a = 50, .01
	for _, hits := range []int{0, 1, 7, 25, 49, 50} {
		low, high := interval(hits, n, a)
		above, below := 0.0, 0.0
		for k := range n + 1 {
			if k >= hits {
				above += binomial(n, k, low)
			}
			if k <= hits {
				below += binomial(n, k, high)
			}
		}
		if hits > 0 && math.Abs(above-a) > 1e-9 || hits < n && math.Abs(below-a) > 1e-9 {
			t.Errorf("%d of %d: [%g, %g] has tails %g and %g", hits, n, low, high, above, below)
		}
	}
}

// TestTailsOfManyTrials: tails of up to maxExact trials are sums of the binomial distribution, which is added up with
// the terms of the largest first; of more they are probabilities, and no smaller than these.
func TestTailsOfManyTrials(t *testing.T) {
	for _, n := range []int{1000, 100_000, maxExact, 10_000_000, 100_000_000, 1_000_000_000} {
		for _, p := range []float64{0.5, 0.05, 0.001} {
			mean, deviation := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
			for _, z := range []float64{0.01, 0.5, 3, 5.3} { // near the mean the library exceeds 1
				k := int(mean + z*deviation)
				want := 0.0
				for j := k; j <= n && j < k+int(40*deviation)+100; j++ {
					m := binomial(n, j, p)
					if want += m; m < want*1e-12 {
						break
					}
				}
				got := atLeast(k, n, p)
				// What Lgamma loses grows with n: its values are near n·log n, of which it has sixteen digits.
				lost := 1e-6 + 4e-16*float64(n)*math.Log(float64(n))
				if exact := math.Abs(got-want) <= lost*want; !(got >= want*(1-lost) && got <= 1) || n <= maxExact && !exact {
					t.Errorf("P(Binomial(%d, %v) ≥ %d) is %.9g, by sums %.9g", n, p, k, got, want)
				}
			}
		}
	}
}

func binomial(n, k int, p float64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	if p == 0 || p == 1 {
		return map[bool]float64{true: 1}[float64(k) == p*float64(n)]
	}
	return math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func TestTooFewSamplesAreRefused(t *testing.T) {
	whole, real := draw(10, 100)
	_, err := Audit{One: real, Other: real}.Epsilon(Usual)
	for _, err := range []error{Mean(real, Moments{}, Usual), Variance(real, Moments{}, Usual), ChiSquare(whole, massOf(10), Usual), err} {
		if err == nil {
			t.Error("100 samples were judged")
		}
	}
}
