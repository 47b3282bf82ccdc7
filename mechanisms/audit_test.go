package mechanisms

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: a release that keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// audited asks Release answers times on each side and returns the lower bound of ε. The judged number of an answer is
// the sum of its observations in the direction in which the neighbours differ, which under discrete Laplace noise with
// all differences ±1 and under discrete Gaussian noise says as much as the whole answer where it matters, in the tails.
func audited(t *testing.T, s Spec, one, other []privacy.Group, delta float64, answers int) float64 {
	t.Helper()
	silentSpec := s
	silentSpec.Noise = Noise{DiscreteLaplace, 1, 1_000_000}
	a, b := mustRelease(t, silentSpec, one, seeded(20)).Value().Observations, mustRelease(t, silentSpec, other, seeded(20)).Value().Observations
	random := seeded(21)
	sample := func(groups []privacy.Group) []float64 {
		sums := make([]float64, answers)
		for i := range sums {
			for j, x := range mustRelease(t, s, groups, random).Value().Observations {
				// Cut at one step beyond either neighbour, an answer's likelihood ratio is unchanged under Laplace noise.
				if s.Noise.Kind == DiscreteLaplace {
					x = min(max(x, min(a[j], b[j])), max(a[j], b[j]))
				}
				sums[i] += float64(x-a[j]) * float64(b[j]-a[j])
			}
		}
		return sums
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

type neighbors struct {
	name       string
	spec       func(cost privacy.Cost) (Spec, error)
	one, other []privacy.Group
}

func neighboring(kind privacy.Neighbors) []neighbors {
	c := Contribution{Rows: 2, Neighbors: kind}
	tree := func(cost privacy.Cost) (Spec, error) {
		return calibrated(Spec{Counters: 1, Cells: 7, Strategy: Strategy{Kind: Tree, Radices: []int{2, 2, 2}}}, c, cost)
	}
	plain := func(counters, cells int) func(privacy.Cost) (Spec, error) {
		return func(cost privacy.Cost) (Spec, error) { return Plain(counters, cells, c, cost) }
	}
	twice := func(groups []privacy.Group) []privacy.Group {
		for i := range groups {
			groups[i].Counts = append(groups[i].Counts, groups[i].Counts[0])
		}
		return groups
	}
	if kind == privacy.AddRemove {
		return []neighbors{
			{"count", plain(1, 1), groupsOf(10), groupsOf(12)},
			{"histogram", plain(2, 3), twice(groupsOf(5, 0, 3)), twice(groupsOf(6, 1, 3))},
			{"range", tree, groupsOf(1, 0, 2, 0, 0, 0, 4), groupsOf(1, 0, 2, 1, 1, 0, 4)},
		}
	}
	return []neighbors{
		{"count", plain(1, 1), groupsOf(10), groupsOf(12)},
		{"histogram", plain(2, 4), twice(groupsOf(7, 2, 3, 1)), twice(groupsOf(5, 2, 5, 1))},
		{"range", tree, groupsOf(2, 1, 2, 0, 0, 0, 4), groupsOf(0, 1, 2, 0, 0, 0, 6)},
	}
}

const audits = 30_000

func TestAuditsFindNoMoreThanIsPaid(t *testing.T) {
	one := privacy.MicroEpsilon(1_000_000)
	conversion, err := accounting.LargestRho(one, privacy.AttoDelta(1e16)) // δ = 0.01
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, n := range neighboring(kind) {
			pure, err := n.spec(privacy.Cost{Epsilon: one})
			if err != nil {
				t.Fatal(err)
			}
			concentrated, err := n.spec(privacy.Cost{Rho: conversion})
			if err != nil {
				t.Fatal(err)
			}
			bound, second := audited(t, pure, n.one, n.other, 0, audits), audited(t, concentrated, n.one, n.other, .01, audits)
			t.Logf("%-12s %-9s pure: epsilon at least %.3f of 1; zcdp: at least %.3f of (1, 0.01)", kind, n.name, bound, second)
			if bound > 1 || second > 1 {
				t.Errorf("seed %q: %s, %s: epsilon is at least %.3f (pure), %.3f (zcdp); paid: 1", seed, kind, n.name, bound, second)
			}
			if bound < .4 {
				t.Errorf("seed %q: %s, %s: the audit found only %.3f of 1: it is blind", seed, kind, n.name, bound)
			}
		}
	}
}

// TestAuditsCatchTooSmallASensitivity plants the fault: noise for half of the sensitivity, and for 1/1.2 of it.
func TestAuditsCatchTooSmallASensitivity(t *testing.T) {
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, n := range neighboring(kind) {
			s, err := n.spec(epsilon(1_000_000))
			if err != nil {
				t.Fatal(err)
			}
			s.Noise.Den *= 2
			if bound := audited(t, s, n.one, n.other, 0, audits); bound <= 1 {
				t.Errorf("seed %q: %s, %s: half of the noise passed: %.3f", seed, kind, n.name, bound)
			}
		}
		count, err := Plain(1, 1, Contribution{Rows: 2, Neighbors: kind}, epsilon(1_000_000))
		if err != nil {
			t.Fatal(err)
		}
		count.Noise.Num, count.Noise.Den = count.Noise.Num*10, count.Noise.Den*12
		if bound := audited(t, count, groupsOf(10), groupsOf(12), 0, 4*audits); bound <= 1 {
			t.Errorf("seed %q: %s: a sensitivity off by 1.2 passed: %.3f", seed, kind, bound)
		}
	}
}
