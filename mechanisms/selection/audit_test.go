package selection

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// Neighbours on which the losses are near the claims: many equal candidates, of which a unit raises one and lowers the
// others as far as it may.
var (
	few      = []int64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}
	raised   = []int64{6, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}
	replaced = []int64{6, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
	several  = []int64{6, 6, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}
)

// audited asks a black box on both sides.
func audited(t *testing.T, answers int, one, other func(random *noise.Reader) int) float64 {
	t.Helper()
	c := stattest.Choices{One: make([]int, answers), Other: make([]int, answers)}
	random := reader(40)
	for i := range answers {
		c.One[i], c.Other[i] = one(random), other(random)
	}
	bound, err := c.Epsilon(alarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// rules audits a rule at a rate on two vectors of scores.
func rules(t *testing.T, answers int, rule Rule, rate Rate, one, other []int64) float64 {
	t.Helper()
	ask := func(scores []int64) func(*noise.Reader) int {
		losses := Losses(scores)
		return func(random *noise.Reader) int { return mustOf(Draw(rule, losses, rate, random))(t) }
	}
	return audited(t, answers, ask(one), ask(other))
}

func TestAuditsOfRules(t *testing.T) {
	answers := stattest.Length(60_000, 2_000_000)
	for rule := Exponential; rule <= PermuteAndFlip; rule++ {
		for _, c := range []struct {
			neighbors privacy.Neighbors
			other     []int64
		}{{privacy.AddRemove, raised}, {privacy.ReplaceOne, replaced}} {
			m := mustOf(New(rule, mustOf(Columns(len(few)))(t), privacy.Contribution{Rows: 1, Neighbors: c.neighbors}, epsilon(1_000_000)))(t)
			bound := rules(t, answers, rule, m.Rate(), few, c.other)
			t.Logf("%v, %v: epsilon at least %.3f of 1", rule, c.neighbors, bound)
			if bound > 1 || bound < .35 {
				t.Errorf("%v, %v: epsilon at least %.3f, paid 1 (below 0.35 the audit is blind)", rule, c.neighbors, bound)
			}
		}
	}
}

// TestAuditsOfRulesCatch plants two faults: a spread smaller by 1.2 than it is, among many candidates, and the lecture
// notes' noise, Lap(1/ε) on scores that a unit may move apart by two, taken for ε.
func TestAuditsOfRulesCatch(t *testing.T) {
	many, above := make([]int64, 60), make([]int64, 60)
	above[7] = 1
	answers := stattest.Length(600_000, 2_000_000)
	if bound := rules(t, answers, Exponential, mustOf(NewRate(12, 10))(t), many, above); bound <= 1 {
		t.Errorf("a spread too small by 1.2 passed: %.3f", bound)
	}
	for rule := Exponential; rule <= PermuteAndFlip; rule++ {
		if bound := rules(t, stattest.Length(60_000, 500_000), rule, mustOf(NewRate(1, 1))(t), few, replaced); bound <= 1 {
			t.Errorf("%v: half of the noise passed: %.3f", rule, bound)
		}
	}
}

func TestAuditsOfTops(t *testing.T) {
	answers := stattest.Length(25_000, 1_000_000)
	for method := Gumbel; method <= Bins; method++ {
		scores, other := mustOf(Columns(6))(t), several
		if method == Bins {
			scores, other = mustOf(Counts(6))(t), raised
		}
		top := mustOf(NewTop(method, 2, scores, one, epsilon(1_000_000)))(t)
		ask := func(cells []int64) func(*noise.Reader) int {
			losses := Losses(scores.of(cells))
			return func(random *noise.Reader) int {
				chosen := []int(nil)
				switch method {
				case Gumbel:
					chosen = peelExponential(losses, 2, top.rate, fewCandidates, random)
				case Peeling:
					chosen = peelFlip(losses, 2, top.rate, random)
				case Bins:
					chosen = top.largest(losses, random)
				}
				return chosen[0]*6 + chosen[1]
			}
		}
		bound := audited(t, answers, ask(few[:6]), ask(other[:6]))
		t.Logf("%v: epsilon at least %.3f of 1", method, bound)
		if bound > 1 || bound < .2 {
			t.Errorf("%v: epsilon at least %.3f, paid 1 (below 0.2 the audit is blind)", method, bound)
		}
	}
}

// TestAuditsOfTopsCatch plants a forgotten factor k in the Gumbel noise, and in noise on bins that are not disjoint.
func TestAuditsOfTopsCatch(t *testing.T) {
	answers := stattest.Length(100_000, 1_000_000)
	rate := mustOf(NewRate(1, 1))(t)
	for _, method := range []Method{Gumbel, Bins} {
		bins := mustOf(NewTop(Bins, 2, mustOf(Counts(6))(t), one, epsilon(1_000_000)))(t)
		ask := func(cells []int64) func(*noise.Reader) int {
			losses := Losses(cells)
			return func(random *noise.Reader) int {
				chosen := []int(nil)
				if method == Bins {
					chosen = bins.largest(losses, random)
				} else {
					chosen = peelExponential(losses, 2, rate, fewCandidates, random)
				}
				return chosen[0]*6 + chosen[1]
			}
		}
		far := append([]int64{6, 6}, 4, 4, 4, 4)
		if bound := audited(t, answers, ask(few[:6]), ask(far)); bound <= 1 {
			t.Errorf("%v: a forgotten factor passed: %.3f", method, bound)
		}
	}
}
