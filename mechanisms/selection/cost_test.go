package selection

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestCosts: each rule's own conversion, never above what was paid, and as near to it as whole units allow.
func TestCosts(t *testing.T) {
	scores := mustOf(Counts(50))(t)
	for _, c := range []struct {
		cost      privacy.Cost
		pure, rho int64 // micro ε, pico ρ of the exponential mechanism
	}{{epsilon(1_000_000), 1_000_000, 125_000_000_000}, {epsilon(100_001), 100_001, 1_250_025_001}, {epsilon(1), 1, 1}, {rho(125_000_000_000), 1_000_000, 125_000_000_000}, {rho(1), 3, 1}} {
		m := mustOf(New(Exponential, scores, one, c.cost))(t)
		s := scores.strength(t, m.rate)
		if pure, z := mustOf(s.take(privacy.Pure, 1, boundedRange))(t), mustOf(s.take(privacy.ZCDP, 1, boundedRange))(t); pure.Epsilon.Micro() != c.pure || z.Rho.Pico() != c.rho {
			t.Errorf("exponential mechanism for %v costs %v and %v, want ε %d micro, ρ %d pico", c.cost, pure, z, c.pure, c.rho)
		}
		if c.cost.Epsilon.Micro() > 0 {
			s := scores.strength(t, mustOf(New(PermuteAndFlip, scores, one, c.cost))(t).rate)
			if flip := mustOf(s.take(privacy.ZCDP, 1, pureOnly))(t); flip.Rho != c.cost.Epsilon.Rho() {
				t.Errorf("permute-and-flip for %v costs %v", c.cost, flip)
			}
		}
	}
	for method := Gumbel; method <= Peeling; method++ {
		for k := 1; k <= 50; k += 7 {
			for _, cost := range []privacy.Cost{epsilon(777_777), rho(123_456_789)} {
				top := mustOf(NewTop(method, k, scores, one, cost))(t)
				accountant := privacy.Pure
				if cost.Rho.Pico() > 0 {
					accountant = privacy.ZCDP
				}
				took := mustOf(scores.strength(t, top.rate).take(accountant, int64(k), top.divisor()))(t)
				if !took.Fits(cost) || took.Epsilon.Micro() < cost.Epsilon.Micro()-1 || took.Rho.Pico() < cost.Rho.Pico()*9999/10000 {
					t.Errorf("%v, k = %d, for %v takes %v", method, k, cost, took)
				}
			}
		}
	}
}

// TestChoosers: permute-and-flip for ε, the exponential mechanism for ρ; one top bin is a selection, several are noise
// on every bin, in columns that overlap they are Gumbel under zCDP.
func TestChoosers(t *testing.T) {
	bins, overlapping := mustOf(Counts(4096))(t), mustOf(Columns(4096))(t)
	if a, b := RuleFor(epsilon(1e6)), RuleFor(rho(1e12)); a != PermuteAndFlip || b != Exponential {
		t.Errorf("chose %v and %v", a, b)
	}
	for _, c := range []struct {
		k      int
		scores Scores
		cost   privacy.Cost
		want   Method
	}{
		{1, bins, rho(1e12), Gumbel}, {2, bins, rho(1e12), Bins}, {10, bins, rho(1e12), Bins}, {10, overlapping, rho(1e12), Gumbel},
		{2, bins, epsilon(1e6), Bins}, {10, bins, epsilon(1e6), Bins}, {10, overlapping, epsilon(1e6), Peeling},
	} {
		top := mustOf(ChooseTop(c.k, c.scores, one, c.cost))(t)
		if top.Method() != c.want {
			t.Errorf("top %d at %v: chose %v, want %v", c.k, c.cost, top.Method(), c.want)
		}
	}
	if _, err := ChooseTop(0, bins, one, epsilon(1)); err == nil {
		t.Error("k = 0 passed")
	}
}

// TestBinsTakeWhatTheyCost: the noise on all counts, for rows that leave P to a cell and come P to another.
func TestBinsTakeWhatTheyCost(t *testing.T) {
	for _, c := range []privacy.Contribution{one, {Rows: 6, PerGroup: 2, Neighbors: privacy.AddRemove}, {Rows: 6, PerGroup: 2, Neighbors: privacy.ReplaceOne}, {Rows: 6, Groups: 2, PerGroup: 2, Neighbors: privacy.ReplaceOne}} {
		rows, each, times := c.Rows, max(1, c.PerGroup), int64(1)
		if c.Groups > 0 {
			rows = c.Groups * c.PerGroup
		}
		if c.Neighbors == privacy.ReplaceOne {
			times = 2
		}
		pure := mustOf(NewTop(Bins, 2, mustOf(Counts(5))(t), c, epsilon(1e6)))(t)
		if lost := float64(rows*times) * math.Log(float64(pure.noise.Mass(0)/pure.noise.Mass(1))); math.Abs(lost-1) > 1e-9 {
			t.Errorf("%+v: lost %g of ε 1", c, lost)
		}
		concentrated := mustOf(NewTop(Bins, 2, mustOf(Counts(5))(t), c, rho(1e11)))(t)
		if lost := float64(rows*each*times) / (2 * concentrated.noise.Variance()); math.Abs(lost-.1) > 1e-9 {
			t.Errorf("%+v: lost %g of ρ 0.1", c, lost)
		}
	}
}
