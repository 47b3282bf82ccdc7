package keys

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// gaussianRule halves δ between the noise and the threshold, as the figures do.
func gaussianRule(t testing.TB, k, micro, delta int64) Rule {
	t.Helper()
	const den = 1 << 20
	variance := normalVariance(float64(micro)/1e6, float64(delta/2)/1e18, k)
	r, err := Rule{kind: Gaussian, moved: k, delta: privacy.AttoDelta(delta - delta/2), num: int64(math.Ceil(variance * den)), den: den}.finish(k)
	return must(t, r, err)
}

// normalVariance is the smallest σ² for which real-valued normal noise on k numbers that move by at most 1 each is
// (ε, δ)-DP, exactly when (Balle and Wang 2018, Theorem 8) δ ≥ Φ(√k/(2σ) − εσ/√k) − e^ε Φ(−√k/(2σ) − εσ/√k).
func normalVariance(epsilon, delta float64, k int64) float64 {
	low, high := 0x1p-20, 0x1p40
	for high/low > 1+1e-13 {
		middle := math.Sqrt(low * high)
		half, far := math.Sqrt(float64(k)/middle)/2, epsilon*math.Sqrt(middle/float64(k))
		if distuv.UnitNormal.CDF(half-far)-math.Exp(epsilon)*distuv.UnitNormal.CDF(-half-far) <= delta {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// continuous returns the published thresholds: of real-valued Laplace noise with δ/k a key, and of real-valued normal
// noise, calibrated analytically to half of δ.
func continuous(t testing.TB, k, micro, delta int64) (laplace, gaussian float64) {
	t.Helper()
	e, d := float64(micro)/1e6, float64(delta)/1e18
	each := -math.Expm1(math.Log1p(-d) / float64(k))
	half := -math.Expm1(math.Log1p(-d/2) / float64(k))
	return 1 + float64(k)/e*math.Log(1/(2*each)), 1 - math.Sqrt(normalVariance(e, d/2, k))*distuv.UnitNormal.Quantile(half)
}

// TestPublishedThresholds: the two tables of the literature, to their printed digits, and ours beside them. An integer
// threshold is less than 1½ above the real-valued one (rounding up, and integer noise reaches half a unit further); the
// optimal rule's 50 % point is equal, and where it is certain equal or one later, where less than δ was missing.
func TestPublishedThresholds(t *testing.T) {
	for _, c := range []struct {
		k, micro, delta   int64
		laplace, gaussian float64
		half, certain     int64
		digit             float64
	}{
		{1, 100_000, 1e12, 132, 186, 109, 218, 1}, {1, 500_000, 1e12, 27.2, 41.8, 26, 51, .1}, {1, 1e6, 1e12, 14.1, 22.4, 14, 28, .1},
		{1, 1e6, 1e8, 23.3, 39.6, 23, 46, .1}, {1, 2e6, 1e12, 7.6, 12.2, 8, 15, .1},
		{3, 1e6, 1e12, 44, 40, 40, 0, 1}, {10, 1e6, 1e12, 155, 75, 132, 0, 1}, {30, 1e6, 1e12, 497, 133, 395, 0, 1}, {100, 1e6, 1e12, 1774, 251, 1313, 0, 1},
	} {
		laplace, gaussian := continuous(t, c.k, c.micro, c.delta)
		g, o := gaussianRule(t, c.k, c.micro, c.delta), made(t, Truncated, has(c.k), pure(c.micro, c.delta))
		t.Logf("k %3d epsilon %4g delta %g: Laplace %.1f (published %g), Gaussian %d (%g), optimal 50 %% at %d (%d), certain from %d (%d)", c.k, float64(c.micro)/1e6,
			float64(c.delta)/1e18, laplace, c.laplace, g.Threshold(), c.gaussian, o.Half(), c.half, certain(o), c.certain)
		if math.Abs(laplace-c.laplace) > c.digit || math.Abs(gaussian-c.gaussian) > c.digit {
			t.Errorf("k %d: real-valued thresholds are %.2f and %.2f, published %g and %g", c.k, laplace, gaussian, c.laplace, c.gaussian)
		}
		if x := float64(g.Threshold()); x < gaussian-.6 || x >= gaussian+1.5 {
			t.Errorf("k %d: Gaussian threshold is %d, the real-valued one %.2f", c.k, g.Threshold(), gaussian)
		}
		if math.Abs(float64(o.Half()-c.half)) > 1e-3*float64(c.half) || c.certain != 0 && certain(o) != c.certain && certain(o) != c.certain+1 {
			t.Errorf("k %d: optimal 50 %% at %d, certain from %d; published %d, %d", c.k, o.Half(), certain(o), c.half, c.certain)
		}
	}
}

// certain returns where the probability is 1 to within what δ is worth.
func certain(r Rule) int64 {
	n := r.Half()
	for float64(1-r.Chance(n)) > 1e-15 {
		n++
	}
	return n
}
