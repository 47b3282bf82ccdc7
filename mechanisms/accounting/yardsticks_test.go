package accounting

import (
	"math"
	"sort"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The yardsticks: what other ways of adding up would allow. None of them is a filter for the releases that are sold,
// whose costs are chosen after earlier answers, or they hold for one kind of release alone.

// most returns the largest n that fits; fits must be monotone.
func most(fits func(n int64) bool) int64 {
	return int64(sort.Search(1<<20, func(n int) bool { return !fits(int64(n) + 1) }))
}

// TestQueriesOfOneBudget: how many releases of ε_i fit into (1, 1e-6), by each composition, against the known figures.
func TestQueriesOfOneBudget(t *testing.T) {
	one, d := privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e12)
	logDelta := math.Log(1e6)
	rho, err := LargestRho(one, d)
	if err != nil {
		t.Fatal(err)
	}
	sigma2 := normalVariance(1, 1e-6)
	simple := math.Pow(math.Sqrt(logDelta+1)-math.Sqrt(logDelta), 2)
	if math.Abs(simple-.01747) > 5e-6 {
		t.Errorf("simple rho is %.6f, known .01747", simple)
	}
	for _, c := range []struct {
		micro                                              int64
		basic, advanced, simple, tight, renyi, kov, normal int64
	}{
		{500_000, 2, 0, 0, 0, 2, 2, 0}, {200_000, 5, 0, 0, 1, 5, 5, 2}, {100_000, 10, 3, 3, 4, 10, 10, 11}, {50_000, 20, 13, 13, 19, 23, 26, 44},
		{20_000, 50, 84, 87, 121, 126, 142, 280}, {10_000, 100, 337, 349, 487, 492, 562, 1120}, {5_000, 200, 1351, 1397, 1948, 1955, 2244, 4482},
		{2_000, 500, 8446, 8734, 12177, 12189, 14010, 28014}, {1_000, 1000, 33785, 34937, 48711, 48731, 56032, 112057},
	} {
		e := float64(c.micro) / 1e6
		basic := one.Micro() / c.micro
		advanced := most(func(n int64) bool {
			return math.Sqrt(2*float64(n)*logDelta)*e+float64(n)*e*math.Expm1(e) <= 1
		})
		tight := rho.Pico() / privacy.MicroEpsilon(c.micro).Rho().Pico()
		renyi := most(func(n int64) bool { return n <= basic || laplaceDelta(float64(n), e) <= 1e-6 })
		kov := most(func(n int64) bool { return responses(float64(n), e, 1)*(1+0x1p-40) <= 1e-6 })
		normal := int64(2 / (sigma2 * e * e))   // sd √2/ε_i each: the squared shifts add up
		adaptive := int64(simple / (e * e / 2)) // Whitehouse et al. 2023: √(2 ln(1/δ) Σε²) + Σε²/2 ≤ ε
		t.Logf("epsilon_i %.3f: basic %d, advanced %d, adaptive filter %d, zCDP %d, Renyi Laplace %d, optimal %d, Gaussian of the same deviation %d", e, basic, advanced, adaptive, tight, renyi, kov, normal)
		if basic != c.basic || advanced != c.advanced || adaptive != c.simple || tight != c.tight || renyi != c.renyi || kov != c.kov || normal != c.normal {
			t.Errorf("epsilon_i %g: %d %d %d %d %d %d, known %+v", e, basic, advanced, tight, renyi, kov, normal, c)
		}
	}
}

// laplaceDelta is the δ at ε = 1 of n Laplace releases by Rényi DP: the loss at each order, converted as LargestRho
// does.
func laplaceDelta(n, e float64) float64 {
	return math.Exp(-highest(func(u float64) float64 {
		over := math.Exp(u)
		a := 1 + over
		if over*e > 600 {
			return math.Inf(-1)
		}
		divergence := math.Log(a/(2*a-1)*math.Exp(over*e)+over/(2*a-1)*math.Exp(-a*e)) / over
		return -(over*(n*divergence-1) - u - a*(math.Log1p(over)-u))
	}))
}

// responses bounds δ_g. The outcome with l truths has the loss (2l−n)ε, so its term is P(l)·(1 − exp(e − (2l−n)ε)),
// positive from l = ⌊(e/ε + n)/2⌋ + 1 on. Terms fall from the mode on by the ratio (n−l)/(l+1)·e^ε; ln P(l) loses at
// most some 2^-52 of the largest factorial's logarithm, which is added.
func responses(n, epsilon, e float64) float64 {
	logTotal := n * (epsilon + math.Log1p(math.Exp(-epsilon))) // ln (1+e^ε)^n
	factorial := func(x float64) float64 {
		v, _ := math.Lgamma(x + 1)
		return v
	}
	least := factorial(n)
	slack := (e + n*epsilon) * 0x1p-51 // of the loss
	sum := 0.0
	mode := n / (1 + math.Exp(-epsilon))
	for l := max(0, math.Floor((e/epsilon+n)/2)); l <= n; l++ {
		gain := -math.Expm1(e - (2*l-n)*epsilon - slack)
		if gain <= 0 {
			continue
		}
		term := math.Exp(least-factorial(l)-factorial(n-l)+l*epsilon-logTotal) * gain
		sum += term
		if l > mode && term < sum*1e-17 {
			sum += term * n // those left out
			break
		}
	}
	return sum * math.Exp(4*(least+logTotal)*0x1p-52)
}

// TestResponsesAgainstAllOutcomes: every outcome of n randomised responses, one by one.
func TestResponsesAgainstAllOutcomes(t *testing.T) {
	for _, e := range []float64{.001, .1, 1, 4} {
		for n := range 12 {
			for _, at := range []float64{0, .05, .5, 1, 3} {
				truth, want := math.Exp(e)/(1+math.Exp(e)), 0.0
				for outcome := range 1 << (n + 1) {
					p, q := 1.0, 1.0
					for i := range n + 1 {
						if outcome>>i&1 == 1 {
							p, q = p*truth, q*(1-truth)
						} else {
							p, q = p*(1-truth), q*truth
						}
					}
					want += max(0, p-math.Exp(at)*q)
				}
				if got := responses(float64(n+1), e, at); got < want*(1-1e-12)-1e-15 || got > want*(1+1e-11)+1e-14 {
					t.Errorf("%d releases of %g at %g: %g, outcome by outcome %g", n+1, e, at, got, want)
				}
			}
		}
	}
}

// normalVariance is the smallest σ² for which real-valued normal noise on a number that moves by at most 1 is (ε,
// δ)-DP, exactly when (Balle and Wang 2018, Theorem 8) δ ≥ Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ).
func normalVariance(epsilon, delta float64) float64 {
	low, high := 0x1p-20, 0x1p40
	for high/low > 1+1e-13 {
		if middle := math.Sqrt(low * high); normalDelta(epsilon, middle) <= delta {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// normalDelta bounds Balle and Wang's δ at Δ = 1 from above. With x = εσ − 1/(2σ) and y = εσ + 1/(2σ), y² − x² = 2ε, so
// that e^ε Φ(−y) = φ(x)·M(y) with Mills' ratio M: nothing overflows. The error of either term is its relative one,
// amplified by its argument's.
func normalDelta(epsilon, sigma2 float64) float64 {
	sigma := math.Sqrt(sigma2)
	x, y := epsilon*sigma-1/(2*sigma), epsilon*sigma+1/(2*sigma)
	first, second := math.Erfc(x/math.Sqrt2)/2, math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)*mills(y)
	return first - second + (first+second)*(1+math.Abs(x)*y)*0x1p-48
}

// mills returns Φ(−y)/φ(y) for y ≥ 0: directly, or by its continued fraction.
func mills(y float64) float64 {
	if y < 6 {
		return math.Erfc(y/math.Sqrt2) / 2 * math.Sqrt(2*math.Pi) * math.Exp(y*y/2)
	}
	f := y
	for k := 60.; k > 0; k-- {
		f = y + k/f
	}
	return 1 / f
}

// TestGaussianKnownFigures: σ at (1, 1e-6), classic, by zCDP's conversion, and analytic.
func TestGaussianKnownFigures(t *testing.T) {
	rho, err := LargestRho(privacy.MicroEpsilon(1e6), privacy.AttoDelta(1e12))
	if err != nil {
		t.Fatal(err)
	}
	classic, cks, analytic := math.Sqrt(2*math.Log(1.25e6)), 1/math.Sqrt(2*rho.Float()), math.Sqrt(normalVariance(1, 1e-6))
	if math.Abs(classic-5.30) > .005 || math.Abs(cks-4.53) > .005 || math.Abs(analytic-4.2247) > 5e-5 {
		t.Errorf("classic %.4f, known 5.30; by zCDP %.4f, known 4.53; analytic %.5f, known 4.2247", classic, cks, analytic)
	}
}
