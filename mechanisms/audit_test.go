package mechanisms

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: a release that keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// The answers of an audit a side, and of one that must find a small fault.
var (
	audits     = stattest.Length(20_000, 1_000_000)
	longAudits = stattest.Length(120_000, 1_000_000)
)

// audited asks Release answers times on each side and returns the lower bound of ε. The judged number of an answer is
// the logarithm of its likelihood ratio, which says as much as the answer itself.
func audited(t *testing.T, s Spec, one, other []privacy.Group, delta float64, answers int) float64 {
	t.Helper()
	silentSpec := s.scaled(func(Noise) Noise { return Noise{Kind: DiscreteLaplace, Num: 1, Den: 1_000_000} })
	a, b := mustRelease(t, silentSpec, one, seeded(20)).Value().Observations, mustRelease(t, silentSpec, other, seeded(20)).Value().Observations
	random, width := seeded(21), s.observed()
	sample := func(groups []privacy.Group) []float64 {
		ratios := make([]float64, answers)
		for i := range ratios {
			for j, x := range mustRelease(t, s, groups, random).Value().Observations {
				n := s.noise(j / width)
				p, toA, toB := float64(n.Num)/float64(n.Den), float64(x-a[j]), float64(x-b[j])
				if n.Kind == DiscreteLaplace {
					ratios[i] += (math.Abs(toA) - math.Abs(toB)) / p
				} else {
					ratios[i] += (toA*toA - toB*toB) / (2 * p)
				}
			}
			ratios[i] = math.Round(ratios[i]*1e9) / 1e9 // what rounding makes of equal ones is one
		}
		return ratios
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// neighbors are two databases that differ by what one unit may put in, as far as it can move the spec's observations.
type neighbors struct {
	name       string
	spec       func(c Contribution, cost privacy.Cost) (Spec, error)
	c          Contribution
	one, other []privacy.Group
}

func fixed(cells int, y Strategy) func(Contribution, privacy.Cost) (Spec, error) {
	return func(c Contribution, cost privacy.Cost) (Spec, error) {
		return OfStrategy(1, cells, y, c, cost)
	}
}

func plain(counters, cells int) func(Contribution, privacy.Cost) (Spec, error) {
	return func(c Contribution, cost privacy.Cost) (Spec, error) { return Plain(counters, cells, c, cost) }
}

func sums(cells int, bounds ...Bound) func(Contribution, privacy.Cost) (Spec, error) {
	counters := []Counter{}
	for _, b := range bounds {
		counters = append(counters, Counter{Bound: b})
	}
	return func(c Contribution, cost privacy.Cost) (Spec, error) { return Sums(counters, cells, c, cost) }
}

// different counts the values of each cell, of so many.
func different(cells, values int) func(Contribution, privacy.Cost) (Spec, error) {
	return func(c Contribution, cost privacy.Cost) (Spec, error) {
		return Sums([]Counter{{Bound: counted, Values: values}}, cells, c, cost)
	}
}

// twice lets a second counter count the same.
func twice(groups []privacy.Group) []privacy.Group {
	for i := range groups {
		groups[i].Counts = append(groups[i].Counts, groups[i].Counts[0])
	}
	return groups
}

// beside gives each group a second counter.
func beside(groups []privacy.Group, second ...int64) []privacy.Group {
	for i := range groups {
		groups[i].Counts = append(groups[i].Counts, second[i])
	}
	return groups
}

var (
	binary3  = Strategy{Kind: Tree, Radices: []int{2, 2, 2}}
	weighed3 = Strategy{Kind: Tree, Radices: []int{2, 2, 2}, Weights: []int64{3, 4, 5}}
	sine8    = Strategy{Kind: Sine, Bits: 20, Version: 1}
	income   = Bound{-40, 100}

	pIdentity16 = fixed(16, Strategy{Kind: PIdentity, Version: 1})
)

// neighboring lists the audits: an addition or removal, and a replacement.
func neighboring(kind privacy.Neighbors) []neighbors {
	two, spread := Contribution{Rows: 2, Neighbors: kind}, Contribution{Rows: 2, Groups: 2, PerGroup: 1, Neighbors: kind}
	if kind == privacy.AddRemove {
		return []neighbors{
			{"count", plain(1, 1), two, groupsOf(10), groupsOf(12)},
			{"histogram", plain(2, 3), two, twice(groupsOf(5, 0, 3)), twice(groupsOf(6, 1, 3))},
			{"groups", plain(1, 3), spread, groupsOf(5, 0, 3), groupsOf(6, 1, 3)},
			{"tree", fixed(7, binary3), two, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 2, 1, 1, 0, 4)},
			{"weighted tree", fixed(7, weighed3), two, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 2, 2, 0, 0, 4)},
			{"tree of groups", fixed(7, binary3), spread, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 3, 1, 0, 0, 4)},
			{"sine", fixed(8, sine8), two, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 2, 2, 0, 0, 4)},
			{"p-identity", pIdentity16, two, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 2, 2, 0, 0, 4)},
			{"sum", sums(1, income), two, groupsOf(1000), groupsOf(1200)},
			{"average", sums(2, counted, income), two, beside(groupsOf(10, 4), 300, -20), beside(groupsOf(11, 5), 400, 80)},
			{"values", different(2, 3), two, groupsOf(4, 0, 0, 1, 1, 0), groupsOf(4, 1, 0, 1, 1, 1)},
			{"few values", different(2, 1), two, groupsOf(0, 0), groupsOf(1, 1)},
		}
	}
	return []neighbors{
		{"count", plain(1, 1), two, groupsOf(10), groupsOf(12)},
		{"histogram", plain(2, 4), two, twice(groupsOf(7, 2, 3, 1)), twice(groupsOf(5, 2, 5, 1))},
		{"groups", plain(1, 4), spread, groupsOf(7, 2, 3, 1), groupsOf(6, 1, 4, 2)},
		{"tree", fixed(7, binary3), two, groupsOf(2, 1, 2, 0, 0, 0, 4), groupsOf(0, 1, 2, 0, 0, 0, 6)},
		{"weighted tree", fixed(7, weighed3), two, groupsOf(2, 1, 2, 0, 0, 0, 4), groupsOf(0, 1, 2, 0, 0, 0, 6)},
		{"sine", fixed(8, sine8), two, groupsOf(2, 1, 2, 0, 0, 0, 4), groupsOf(0, 1, 2, 0, 0, 0, 6)},
		{"p-identity", pIdentity16, two, groupsOf(2, 1, 2, 0, 0, 0, 4), groupsOf(0, 1, 2, 0, 0, 0, 6)},
		{"sum", sums(1, income), two, groupsOf(1000), groupsOf(1280)},
		{"average", sums(2, counted, income), two, beside(groupsOf(10, 4), 300, -20), beside(groupsOf(8, 6), 100, 180)},
		{"values", different(2, 3), two, groupsOf(4, 1, 1, 1, 0, 0), groupsOf(4, 0, 0, 1, 1, 1)},
	}
}

// TestAuditsFindNoMoreThanIsPaid: at (1, 0) by Laplace noise and (1, 0.01) by Gaussian.
func TestAuditsFindNoMoreThanIsPaid(t *testing.T) {
	one := privacy.MicroEpsilon(1_000_000)
	conversion, err := accounting.LargestRho(one, privacy.AttoDelta(1e16)) // δ = 0.01
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, n := range neighboring(kind) {
			pure, err := n.spec(n.c, privacy.Cost{Epsilon: one})
			if err != nil {
				t.Fatal(err)
			}
			concentrated, err := n.spec(n.c, privacy.Cost{Rho: conversion})
			if err != nil {
				t.Fatal(err)
			}
			bound, second := audited(t, pure, n.one, n.other, 0, audits), audited(t, concentrated, n.one, n.other, .01, audits)
			t.Logf("%-12s %-14s pure: epsilon at least %.3f of 1; zcdp: at least %.3f of (1, 0.01)", kind, n.name, bound, second)
			if bound > 1 || second > 1 {
				t.Errorf("seed %q: %s, %s: epsilon is at least %.3f (pure), %.3f (zcdp); paid: 1", seed, kind, n.name, bound, second)
			}
			if bound < .4 && n.name != "sine" { // many small observations: a loss of ε is too rare to be seen
				t.Errorf("seed %q: %s, %s: the audit found only %.3f of 1: it is blind", seed, kind, n.name, bound)
			}
		}
	}
}

// TestAuditsCatchPlantedFaults: the same audit accuses each fault that a mistake in the accounting would be.
func TestAuditsCatchPlantedFaults(t *testing.T) {
	accused := func(name string, s Spec, one, other []privacy.Group, answers int) {
		t.Helper()
		bound := audited(t, s, one, other, 0, answers)
		t.Logf("%-48s epsilon at least %.3f of 1", name, bound)
		if bound <= 1 {
			t.Errorf("seed %q: %s passed: %.3f", seed, name, bound)
		}
	}
	must := func(s Spec, err error) Spec {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	e := epsilon(1_000_000)
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, n := range neighboring(kind) {
			s := must(n.spec(n.c, e))
			if n.name == "sine" || len(s.Counts().Sums) > 0 {
				continue
			}
			s = s.scaled(func(n Noise) Noise { n.Den *= 2; return n })
			accused(fmt.Sprintf("half of the noise, %s, %s", kind, n.name), s, n.one, n.other, audits)
		}
	}
	two := Contribution{Rows: 2, Neighbors: privacy.AddRemove}
	count := must(Plain(1, 1, two, e))
	count = count.scaled(func(n Noise) Noise { n.Num, n.Den = n.Num*10, n.Den*12; return n })
	accused("a sensitivity off by 1.2", count, groupsOf(10), groupsOf(12), longAudits)

	level := must(fixed(7, weighed3)(two, e))
	level = level.scaled(func(n Noise) Noise { n.Num = n.Num * (3 + 4) / (3 + 4 + 5); return n })
	accused("a level charged too few", level, groupsOf(1, 0, 2, 0), groupsOf(1, 0, 2, 2), audits)

	clamped := must(sums(1, income)(two, e))
	accused("a dropped clamp: a row of 150 within ±100", clamped, groupsOf(1000), groupsOf(1250), audits)
	signs := must(sums(1, Bound{-100, 100})(Contribution{Rows: 2, Neighbors: privacy.AddRemove}, e))
	accused("a replacement charged as an addition", signs, groupsOf(1200), groupsOf(800), audits)

	shared := must(sums(2, counted, income)(two, e))
	shared = shared.scaled(func(n Noise) Noise { n.Den *= 2; return n }) // each counter pays with the whole cost
	accused("two counters, the cost paid once for each", shared, beside(groupsOf(10, 4), 300, -20), beside(groupsOf(11, 5), 400, 80), audits)

	fewer := must(different(1, 1)(Contribution{Rows: 2, Neighbors: privacy.AddRemove}, e))
	fewer.Counts().Sums[0].Values = 3 // planned for one value, of which a unit can bring one
	accused("more values than were planned for", fewer, groupsOf(4, 0, 0), groupsOf(4, 1, 1), audits)

	spread := must(plain(1, 3)(Contribution{Rows: 2, Groups: 2, PerGroup: 1, Neighbors: privacy.AddRemove}, e))
	accused("one group too many", spread, groupsOf(5, 0, 3), groupsOf(6, 1, 4), audits)
}
