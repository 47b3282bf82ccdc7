package mechanisms

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

var continualCosts = []privacy.Cost{{Epsilon: privacy.MicroEpsilon(1e6)}, {Rho: privacy.PicoRho(5e11)}}

// grown grows a release step by step.
func grown(t rapid.TB, s Spec, steps []Step, snapshot func(through int) []privacy.Group, random RandomSource) []int64 {
	begun, err := Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	observations := slices.Clone(begun.Value().Observations)
	for _, p := range steps {
		part, err := Grow(s, p, inOrder, privacy.Seal(snapshot(p.To)), random)
		if err != nil {
			t.Fatal(err)
		}
		if observations = append(observations, part.Value().Observations...); len(observations) != s.Known(p.To) {
			t.Fatalf("%d observations of %d cells, must be %d", len(observations), p.To, s.Known(p.To))
		}
	}
	return observations
}

func anySteps(t *rapid.T, cells int) (steps []Step) {
	for from := 0; from < cells; {
		to := min(cells, from+rapid.IntRange(1, 1+cells/3).Draw(t, "days"))
		steps, from = append(steps, Step{from, to}), to
	}
	return steps
}

// quietly is a Spec whose noise is 0 but once in e^1,000,000 draws: what is released is what is observed.
func quietly(s Spec) Spec {
	return s.scaled(func(Noise) Noise { return Noise{Kind: DiscreteLaplace, Num: 1, Den: 1_000_000} })
}

// TestGrowsAsReleased: however the steps are cut, all of them release what a single one would, and what is known in
// between is read as the strategy of fewer cells reads it.
func TestGrowsAsReleased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.IntRange(1, 60).Draw(t, "cells")
		s, err := Continual(cells, Contribution{Rows: 2, Neighbors: privacy.AddRemove}, rapid.SampledFrom(continualCosts).Draw(t, "cost"))
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int64, cells)
		var groups []privacy.Group
		for i := range counts {
			counts[i] = int64(rapid.IntRange(0, 1000).Draw(t, "count"))
			groups = append(groups, privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{counts[i]}})
		}
		steps := anySteps(t, cells)
		all := grown(t, quietly(s), steps, func(int) []privacy.Group { return groups }, seeded(1))
		if once := grown(t, quietly(s), []Step{{0, cells}}, func(int) []privacy.Group { return groups }, seeded(2)); !slices.Equal(all, once) {
			t.Fatalf("steps %v released %v, one step %v", steps, all, once)
		}
		at := rapid.SampledFrom(steps).Draw(t, "at").To
		e, err := NewEstimate(s.Through(at), privacy.Published(Noisy{Observations: all[:s.Known(at)]}))
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, at-1).Draw(t, "from")
		sum := int64(0)
		for _, n := range counts[from:at] {
			sum += n
		}
		if got := e.Sum(0, []Span{{from, at}}).Value(); got != sum {
			t.Fatalf("cells %d to %d are read as %d after %d, must be %d", from, at, got, at, sum)
		}
	})
}

// history is one unit's rows: the cell of each, and the cell that was complete when it was added. Rows of unit are
// counted by slots, as the SQL does: the first of them by cell, of those that are there.
type history []struct{ cell, added int }

func (h history) counted(through, rows int) []privacy.Group {
	var there []int
	for _, r := range h {
		if r.added < through && r.cell < through {
			there = append(there, r.cell)
		}
	}
	slices.Sort(there)
	var groups []privacy.Group
	for _, cell := range there[:min(rows, len(there))] {
		groups = append(groups, privacy.Group{Cells: []int32{int32(cell)}, Counts: []int64{1}})
	}
	return groups
}

// TestGrowthSensitivity: a unit that comes to a database moves all that is ever observed by no more than the Spec says,
// with rows in many cells and rows that are added late; and by more where its rows are not counted by slots.
func TestGrowthSensitivity(t *testing.T) {
	beyond := false
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.IntRange(1, 60).Draw(t, "cells")
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		c := Contribution{Rows: int64(rows), Neighbors: privacy.AddRemove}
		s, err := Continual(cells, c, rapid.SampledFrom(continualCosts).Draw(t, "cost"))
		if err != nil {
			t.Fatal(err)
		}
		var unit history
		for range rapid.IntRange(0, 3*rows).Draw(t, "all rows") {
			cell := rapid.IntRange(0, cells-1).Draw(t, "cell")
			unit = append(unit, struct{ cell, added int }{cell, cell + rapid.IntRange(0, 1+cells/4).Draw(t, "late")})
		}
		steps, limit := anySteps(t, cells), s.Sensitivity(c)
		norms := func(rows int) (l1, l2 int64) {
			for _, n := range grown(t, quietly(s), steps, func(through int) []privacy.Group { return unit.counted(through, rows) }, seeded(3)) {
				l1, l2 = l1+n, l2+n*n
			}
			return l1, l2
		}
		if l1, l2 := norms(rows); l1 > limit.L1 || l2 > limit.L2Squared {
			t.Fatalf("a unit of %d rows %v moves the observations by %d, %d, must be at most %v", rows, unit, l1, l2, limit)
		}
		if l1, _ := norms(3 * rows); l1 > limit.L1 { // the planted fault: no slots
			beyond = true
		}
	})
	if !beyond {
		t.Error("no unit whose rows are not bounded moved the observations by more: the test cannot fail")
	}
}

// TestGrowthAudit asks a black box that grows over two neighbouring histories, and finds the fault of one that draws
// each observation three times. The judged number is the logarithm of the likelihood ratio of all that is released.
func TestGrowthAudit(t *testing.T) {
	const cells, rows = 24, 2
	s, err := Continual(cells, Contribution{Rows: rows, Neighbors: privacy.AddRemove}, continualCosts[0])
	if err != nil {
		t.Fatal(err)
	}
	unit := history{{2, 2}, {2, 9}, {17, 17}, {20, 20}}
	var steps []Step
	for d := range cells {
		steps = append(steps, Step{d, d + 1})
	}
	quiet := grown(t, quietly(s), steps, func(through int) []privacy.Group { return unit.counted(through, rows) }, seeded(4))
	scale := float64(s.Counts().Noise.Num) / float64(s.Counts().Noise.Den)
	audit := func(times int) float64 {
		random := seeded(5)
		sample := func(snapshot func(int) []privacy.Group) []float64 {
			ratios := make([]float64, audits)
			for i := range ratios {
				for range times {
					for j, x := range grown(t, s, steps, snapshot, random) {
						ratios[i] += (math.Abs(float64(x-quiet[j])) - math.Abs(float64(x))) / scale
					}
				}
				ratios[i] = math.Round(ratios[i]*1e9) / 1e9
			}
			return ratios
		}
		one := sample(func(through int) []privacy.Group { return unit.counted(through, rows) })
		bound, err := stattest.Audit{One: one, Other: sample(func(int) []privacy.Group { return nil })}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		return bound
	}
	if got := audit(1); got > 1 || got < .4 {
		t.Errorf("the audit finds ε %.3f, must be from .4 to the claimed 1", got)
	}
	if got := audit(3); got <= 1 {
		t.Errorf("the audit of observations that are drawn three times finds ε %.3f, must be more than 1", got)
	}
}

func TestGrowRefuses(t *testing.T) {
	s, err := Continual(10, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, continualCosts[0])
	if err != nil {
		t.Fatal(err)
	}
	place := func([]int32, int) int { return 0 }
	truth := privacy.Seal([]privacy.Group{})
	for _, p := range []Step{{-1, 2}, {3, 3}, {4, 2}, {0, 11}} {
		if _, err := Grow(s, p, place, truth, seeded(6)); err == nil {
			t.Errorf("step %v was grown", p)
		}
	}
	if _, err := Grow(s, Step{0, 1}, nil, truth, seeded(6)); err == nil {
		t.Error("grown without a placement")
	}
	if _, err := Grow(s, Step{0, 1}, place, privacy.Sensitive[[]privacy.Group]{}, seeded(6)); err == nil {
		t.Error("grown from nothing sealed")
	}
	plain, err := Plain(1, 10, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, continualCosts[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Grow(plain, Step{0, 1}, place, truth, seeded(6)); err == nil {
		t.Error("a histogram was grown")
	}
	if _, err := Begin(plain); err == nil {
		t.Error("a histogram was begun")
	}
	if a, b := (Step{1, 2}).Digest([32]byte{1}), (Step{1, 3}).Digest([32]byte{1}); a == b {
		t.Error("two steps have one digest")
	}
}
