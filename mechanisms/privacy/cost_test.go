package privacy

import "testing"

// TestCostInTheAccountsUnit: nothing spent is said in the unit of the account, and shares are plain figures.
func TestCostInTheAccountsUnit(t *testing.T) {
	limit := Cost{Rho: PicoRho(1_306_670_353_472), Delta: AttoDelta(50_000_000_000)}
	if got := (Cost{}).In(limit); got != "ρ 0" {
		t.Errorf("nothing spent of %s is %q", limit, got)
	}
	if got := (Cost{}).In(Cost{Epsilon: MicroEpsilon(1_000_000)}); got != "ε 0" {
		t.Errorf("nothing spent is %q", got)
	}
	for share, want := range map[float64]string{1: "100", 38e-12: "0.0000000038", 0.707: "71", 12.345: "1200"} {
		if got := Percent(share, 2); got != want {
			t.Errorf("Percent(%v) = %s, want %s", share, got, want)
		}
	}
}
