package stattest

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestLeastEpsilon: ρ = 0.5 is (5.22, 1e-6)-DP, and what (1, 1e-6) buys is worth 1 again.
func TestLeastEpsilon(t *testing.T) {
	for pico, want := range map[int64]float64{500_000_000_000: 5.22, 24_360_000_000: 1} {
		if e := LeastEpsilon(privacy.PicoRho(pico), privacy.AttoDelta(1e12)); math.Abs(e.Float()-want) > .005 {
			t.Errorf("%d pico-ρ at δ 1e-6: ε %s, known %g", pico, e, want)
		}
	}
}
