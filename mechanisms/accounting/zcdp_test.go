package accounting

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// conversion is the δ of ρ-zCDP at ε by the published formula, minimised over a fine grid of orders.
func conversion(rho privacy.Rho, e privacy.Epsilon) float64 {
	best := 1.0
	for u := -12.0; u < 40; u += 1e-4 {
		a := 1 + math.Exp(u)
		best = min(best, math.Exp((a-1)*(a*rho.Float()-e.Float()))/(a-1)*math.Pow(1-1/a, a))
	}
	return best
}

func TestLargestRhoAgainstTheFormula(t *testing.T) {
	for _, c := range []struct{ epsilon, delta string }{
		{"1", "1e-6"}, {"1", "1e-9"}, {"0.1", "1e-7"}, {"3", "1e-7"}, {"20", "1e-6"}, {"10", "0.01"}, {"100", "1e-12"}, {"1", "0.5"},
	} {
		e, _ := privacy.ParseEpsilon(c.epsilon)
		d, _ := privacy.ParseDelta(c.delta)
		rho, err := LargestRho(e, d)
		if err != nil {
			t.Fatal(err)
		}
		if got := conversion(rho, e); got > d.Float()*(1+1e-7) {
			t.Errorf("(%s, %s): rho %s has delta %g", c.epsilon, c.delta, rho, got)
		}
		more := privacy.PicoRho(rho.Pico() + rho.Pico()/100000 + 2)
		if got := conversion(more, e); got <= d.Float() {
			t.Errorf("(%s, %s): rho %s would do as well as %s", c.epsilon, c.delta, more, rho)
		}
	}
}

func TestLargestRhoKnownFigures(t *testing.T) {
	e, _ := privacy.ParseEpsilon("1")
	for _, c := range []struct {
		delta string
		want  float64
	}{{"1e-6", .02436}, {"1e-9", .01497}} {
		d, _ := privacy.ParseDelta(c.delta)
		rho, err := LargestRho(e, d)
		if err != nil || math.Abs(rho.Float()-c.want) > 5e-6 {
			t.Errorf("delta %s: rho %s, want %g (%v)", c.delta, rho, c.want, err)
		}
	}
}

// TestLargestRhoIsRoundedDown compares with the best of a dense grid of orders: near the optimum the slope vanishes, so
// a grid of 1e-6 is exact to 1e-12 relative.
func TestLargestRhoIsRoundedDown(t *testing.T) {
	e, d := privacy.MicroEpsilon(1_000_000), privacy.AttoDelta(1e12)
	rho, err := LargestRho(e, d)
	if err != nil {
		t.Fatal(err)
	}
	best := 0.0
	for u := 3.0; u < 3.6; u += 1e-6 {
		best = max(best, provedRho(u, e, d))
	}
	if rho.Float() > best+1e-13 || rho.Float() < best-2e-12 {
		t.Errorf("rho %s, the grid proves %.15f", rho, best)
	}
}

func TestLargestRhoRefuses(t *testing.T) {
	ok, okDelta := privacy.MicroEpsilon(1), privacy.AttoDelta(1)
	for _, c := range []struct {
		e    privacy.Epsilon
		d    privacy.Delta
		want string
	}{
		{privacy.MicroEpsilon(0), okDelta, "epsilon is 0, must be greater than 0"},
		{privacy.MicroEpsilon(-5), okDelta, "epsilon is -0.000005, must be greater than 0"},
		{ok, privacy.AttoDelta(0), "delta is 0, must be greater than 0 and below 1"},
		{ok, privacy.AttoDelta(1e18), "delta is 1, must be greater than 0 and below 1"},
		{ok, okDelta, "epsilon 0.000001 with delta 1e-18 is worth less than the smallest rho, 0.000000000001"},
	} {
		if _, err := LargestRho(c.e, c.d); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestLargestRhoGrowsWithBoth(t *testing.T) {
	last := int64(0)
	for e := int64(10_000); e < 1_000_000_000_000; e *= 3 {
		rho, err := LargestRho(privacy.MicroEpsilon(e), privacy.AttoDelta(1e11))
		if err != nil || rho.Pico() <= last {
			t.Fatalf("epsilon %d micro: rho %s after %d pico (%v)", e, rho, last, err)
		}
		last = rho.Pico()
	}
	last = 0
	for d := int64(1); d < 1e17; d *= 10 {
		rho, err := LargestRho(privacy.MicroEpsilon(1_000_000), privacy.AttoDelta(d))
		if err != nil || rho.Pico() <= last {
			t.Fatalf("delta %d atto: rho %s after %d pico (%v)", d, rho, last, err)
		}
		last = rho.Pico()
	}
}
