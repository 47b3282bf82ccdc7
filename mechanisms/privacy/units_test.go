package privacy

import (
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // −1: refused
	}{
		{"1", 1_000_000}, {"0.1", 100_000}, {"0.000001", 1}, {" 2.5 ", 2_500_000}, {"1e-3", 1000}, {"1000000", 1e12},
		{"0", -1}, {"-1", -1}, {"0.0000001", -1}, {"1000000.1", -1}, {"NaN", -1}, {"Inf", -1}, {"+Inf", -1}, {"0x10", -1}, {"1/3", -1},
		{"1e-320", -1}, {"1e400", -1}, {"1e99999999", -1}, {"", -1}, {"e", -1}, {"1 0", -1}, {"1_0", -1}, {strings.Repeat("9", 1000), -1},
	} {
		e, err := ParseEpsilon(c.text)
		if (err != nil) != (c.want < 0) || err == nil && e.Micro() != c.want {
			t.Errorf("%.20q: %d (%v), want %d", c.text, e.Micro(), err, c.want)
		}
	}
	if d, err := ParseDelta("1e-18"); err != nil || d.Atto() != 1 {
		t.Error(d, err)
	}
	for _, text := range []string{"1", "1e-19", "-1e-6"} {
		if _, err := ParseDelta(text); err == nil {
			t.Errorf("delta %s passed", text)
		}
	}
	if r, err := ParseRho("0.000000000001"); err != nil || r.Pico() != 1 {
		t.Error(r, err)
	}
}

// TestRhoOfEpsilonIsRoundedUp: ρ = ε²/2, and half a pico-unit more where that is no whole number of them.
func TestRhoOfEpsilonIsRoundedUp(t *testing.T) {
	for _, c := range []struct{ micro, pico int64 }{{1, 1}, {2, 2}, {3, 5}, {1_000_000, 500_000_000_000}, {100_001, 5_000_100_001}, {1e12, math.MaxInt64}} {
		if got := MicroEpsilon(c.micro).Rho().Pico(); got != c.pico {
			t.Errorf("%d micro: %d pico, want %d", c.micro, got, c.pico)
		}
	}
}

func TestCosts(t *testing.T) {
	a := Cost{Epsilon: MicroEpsilon(300_000), Delta: AttoDelta(5)}
	b := a.Plus(a).Plus(Cost{})
	if b.Epsilon.Micro() != 600_000 || b.Delta.Atto() != 10 || !a.Fits(b) || b.Fits(a) || a.IsZero() || !(Cost{}).IsZero() {
		t.Error(b)
	}
	if b.Fits(Cost{Epsilon: b.Epsilon}) {
		t.Error("delta was not compared")
	}
	for text, c := range map[string]Cost{"ε 0.3, δ 5e-18": a, "ρ 0.5": {Rho: PicoRho(5e11)}, "ε 0": {}} {
		if c.String() != text {
			t.Errorf("%q, want %q", c, text)
		}
	}
	most := Cost{Epsilon: MicroEpsilon(math.MaxInt64), Rho: MicroEpsilon(50_000_000_000).Rho()}
	if got := most.Plus(a).Plus(most); got.Epsilon != most.Epsilon || got.Rho != most.Rho || got.Delta != a.Delta {
		t.Errorf("%+v is not the most that can be written", got)
	}
}
