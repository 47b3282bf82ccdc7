package mechanisms

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// choiceAudit is two databases that one unit's rows tell apart, in several groups where a choice has them. Several
// quantiles are audited in package quantiles: a draw takes milliseconds.
type choiceAudit struct {
	name       string
	choice     Choice
	c          Contribution
	one, other []privacy.Group
}

var median = []Share{{1, 2}}

func choiceAudits(kind privacy.Neighbors) []choiceAudit {
	c := Contribution{Rows: 4, Neighbors: kind}
	two, alone := []Block{{2, 3}}, []Block{{1, 4}}
	if kind == privacy.AddRemove {
		return []choiceAudit{
			{"median", Choice{Kind: Quantiles, Blocks: alone, Shares: median}, c, groupsOf(6, 0, 0, 6), groupsOf(10, 0, 0, 6)},
			{"median in groups", Choice{Kind: Quantiles, Blocks: two, Shares: median}, c, groupsOf(6, 0, 6, 6, 0, 6), groupsOf(8, 0, 6, 8, 0, 6)},
			{"mode", Choice{Kind: Largest, Blocks: alone, Most: 1}, c, groupsOf(3, 5, 4, 1), groupsOf(7, 5, 4, 1)},
			{"mode in groups", Choice{Kind: Largest, Blocks: two, Most: 1}, c, groupsOf(3, 3, 3, 4, 4, 4), groupsOf(5, 3, 3, 6, 4, 4)},
			{"top", Choice{Kind: Largest, Blocks: alone, Most: 2}, c, groupsOf(3, 5, 4, 1), groupsOf(5, 5, 4, 3)},
			{"dearest", Choice{Kind: Dearest, Blocks: alone, Most: 1, Weights: []int64{1, 3, 4}, From: []int64{0, 1, 3}}, c, groupsOf(3, 5, 0, 3), groupsOf(3, 5, 0, 7)},
		}
	}
	return []choiceAudit{
		{"median", Choice{Kind: Quantiles, Blocks: alone, Shares: median}, c, groupsOf(10, 0, 0, 6), groupsOf(6, 0, 0, 10)},
		{"median in groups", Choice{Kind: Quantiles, Blocks: two, Shares: median}, c, groupsOf(8, 0, 4, 3, 0, 6), groupsOf(4, 0, 4, 7, 0, 6)},
		{"mode", Choice{Kind: Largest, Blocks: alone, Most: 1}, c, groupsOf(7, 5, 4, 1), groupsOf(3, 9, 4, 1)},
		{"mode in groups", Choice{Kind: Largest, Blocks: two, Most: 1}, c, groupsOf(7, 4, 4, 3, 3, 3), groupsOf(3, 4, 4, 7, 3, 3)},
	}
}

// chosenOften asks for a choice answers times on each side and returns the lower bound of ε.
func chosenOften(t *testing.T, s Spec, one, other []privacy.Group, answers int) float64 {
	t.Helper()
	random := seeded(31)
	sample := func(groups []privacy.Group) []int {
		out := make([]int, answers)
		for i := range out {
			for _, cell := range mustRelease(t, s, groups, random).Value().Observations {
				out[i] = out[i]*s.Cells*s.Counters + int(cell)
			}
		}
		return out
	}
	bound, err := stattest.Choices{One: sample(one), Other: sample(other)}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// TestChoicesKeepTheirClaim: whatever groups a unit's rows are in, at ε = 1 and at a ρ whose exponential mechanism has
// that range. Each audit accuses a right mechanism with probability at most 1e-6.
func TestChoicesKeepTheirClaim(t *testing.T) {
	costs := map[string]privacy.Cost{"pure": {Epsilon: privacy.MicroEpsilon(1_000_000)}, "zcdp": {Rho: privacy.PicoRho(125_000_000_000)}}
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, audit := range choiceAudits(kind) {
			for accountant, cost := range costs {
				name := fmt.Sprintf("%v %s %s", kind, audit.name, accountant)
				s, err := NewChoice(audit.choice, audit.c, cost)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				limit := 1.0
				if accountant == "zcdp" && audit.choice.Most > 1 { // two draws of half the ρ
					limit = math.Sqrt2
				}
				if bound := chosenOften(t, s, audit.one, audit.other, audits); bound > limit {
					t.Errorf("%s: ε is at least %.3f, must be at most %.3f", name, bound, limit)
				}
			}
		}
	}
}

// TestChoiceAuditsFindPlantedFaults: each group calibrated for one row of the unit's four, two of which are in it.
func TestChoiceAuditsFindPlantedFaults(t *testing.T) {
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}
	for _, name := range []string{"median in groups", "mode in groups"} {
		for _, audit := range choiceAudits(privacy.AddRemove) {
			if audit.name != name {
				continue
			}
			s, err := NewChoice(audit.choice, audit.c, cost)
			if err != nil {
				t.Fatal(err)
			}
			s.Kind.(*Choice).Each.Rows = 1
			if bound := chosenOften(t, s, audit.one, audit.other, audits); bound <= 1 {
				t.Errorf("%s: no more than %.3f was found", name, bound)
			}
		}
	}
}

// TestPopularWeighsItsColumns: a unit's rows move the heaviest score by all that is claimed, the lightest by a third of
// it; a choice that forgot the weights is found out.
func TestPopularWeighsItsColumns(t *testing.T) {
	rows := func(counts ...int64) []privacy.Group { return []privacy.Group{{Cells: []int32{0}, Counts: counts}} }
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		s, err := NewChoice(Choice{Kind: Popular, Blocks: []Block{{1, 3}}, Most: 1, Weights: []int64{1, 3, 1}}, Contribution{Rows: 2, Neighbors: kind}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[privacy.Neighbors]int64{privacy.AddRemove: 6, privacy.ReplaceOne: 8}[kind]; s.Spread() != want {
			t.Errorf("%v: spread %d, want %d", kind, s.Spread(), want)
		}
		one, other := rows(6, 2, 6), rows(6, 4, 6)
		if kind == privacy.ReplaceOne {
			other = rows(4, 4, 4)
		}
		if bound := chosenOften(t, s, one, other, audits); bound > 1 || bound < .2 {
			t.Errorf("%v: ε is at least %.3f, must be at most 1 and not far below", kind, bound)
		}
		s.Kind.(*Choice).Each.Rows = 1 // as if a unit had one row
		if bound := chosenOften(t, s, one, other, audits); kind == privacy.AddRemove && bound <= 1 {
			t.Errorf("%v: no more than %.3f was found", kind, bound)
		}
	}
	if _, err := NewChoice(Choice{Kind: Popular, Blocks: []Block{{1, 3}}, Most: 1, Weights: []int64{1, 3}}, Contribution{Rows: 2, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}); err == nil {
		t.Error("two weights of three counters are taken")
	}
}

// TestPopularCountsOverlappingColumns: a row in every column moves none of them past another, and a row in one does.
func TestPopularCountsOverlappingColumns(t *testing.T) {
	s, err := NewChoice(Choice{Kind: Popular, Blocks: []Block{{1, 3}}, Most: 1}, Contribution{Rows: 2, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	if err != nil || s.Counters != 3 || s.Cells != 1 {
		t.Fatal(s, err)
	}
	rows := func(counts ...int64) []privacy.Group { return []privacy.Group{{Cells: []int32{0}, Counts: counts}} }
	if bound := chosenOften(t, s, rows(4, 5, 4), rows(6, 5, 4), audits); bound > 1 || bound < .3 {
		t.Errorf("ε is at least %.3f, must be at most 1 and not far below", bound)
	}
	if bound := chosenOften(t, s, rows(4, 5, 4), rows(6, 7, 6), audits); bound > .05 {
		t.Errorf("rows in every column were told, by %.3f", bound)
	}
}

// TestChoicesAreExactAtLargeCosts: the chosen are the true ones.
func TestChoicesAreExactAtLargeCosts(t *testing.T) {
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e11)}
	c := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	for _, test := range []struct {
		choice Choice
		want   string
	}{
		{Choice{Kind: Quantiles, Blocks: []Block{{2, 3}}, Shares: []Share{{3, 4}, {1, 4}, {1, 2}}}, "[2 0 1 2 0 2]"},
		{Choice{Kind: Largest, Blocks: []Block{{2, 3}}, Most: 1}, "[1 2]"},
		{Choice{Kind: Largest, Blocks: []Block{{1, 6}}, Most: 3}, "[5 3 1]"},
		{Choice{Kind: Dearest, Blocks: []Block{{1, 6}}, Most: 1, Weights: []int64{10, 9, 30}, From: []int64{0, 4, 5}}, "[0]"},
	} {
		s, err := NewChoice(test.choice, c, cost)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(mustRelease(t, s, groupsOf(4, 5, 4, 6, 1, 9), seeded(1)).Value().Observations); got != test.want {
			t.Errorf("kind %d chose %s, want %s", test.choice.Kind, got, test.want)
		}
	}
}

// TestGroupsAreCalibratedForAllOfAUnitsRows: whichever groups they are in.
func TestGroupsAreCalibratedForAllOfAUnitsRows(t *testing.T) {
	for _, test := range []struct {
		blocks []Block
		c      Contribution
		want   Contribution
	}{
		{[]Block{{1, 5}}, Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}, Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}},
		{[]Block{{2, 5}}, Contribution{Rows: 3, Neighbors: privacy.AddRemove}, Contribution{Rows: 3, Neighbors: privacy.AddRemove}},
		{[]Block{{1, 5}, {1, 4}}, Contribution{Rows: 3, Neighbors: privacy.ReplaceOne}, Contribution{Rows: 6, Neighbors: privacy.AddRemove}},
	} {
		s, err := NewChoice(Choice{Kind: Quantiles, Blocks: test.blocks, Shares: []Share{{1, 4}, {3, 4}}}, test.c, epsilon(1_000_000))
		if err != nil || s.Kind.(*Choice).Each != test.want || s.Kind.(*Choice).Cost != epsilon(1_000_000) {
			t.Errorf("%v: %+v (%v), want %+v", test.blocks, s.Kind.(*Choice), err, test.want)
		}
	}
}

func TestChoicesRefused(t *testing.T) {
	c, cost := Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}
	for want, ch := range map[string]Choice{
		"choice is 0":                {Blocks: []Block{{1, 2}}},
		"no groups":                  {Kind: Quantiles, Shares: median},
		"at least 1 and together":    {Kind: Quantiles, Shares: median, Blocks: []Block{{1 << 20, 2}}},
		"quantiles is 0":             {Kind: Quantiles, Blocks: []Block{{1, 2}}},
		"quantile is 3/2":            {Kind: Quantiles, Blocks: []Block{{1, 2}}, Shares: []Share{{3, 2}}},
		"number of the chosen is 0":  {Kind: Largest, Blocks: []Block{{1, 2}}},
		"of each of several groups":  {Kind: Largest, Blocks: []Block{{2, 2}}, Most: 2},
		"k is 3":                     {Kind: Largest, Blocks: []Block{{1, 2}}, Most: 3},
		"first cell of score 0 is 2": {Kind: Dearest, Blocks: []Block{{1, 2}}, Most: 1, Weights: []int64{1}, From: []int64{2}},
	} {
		if _, err := NewChoice(ch, c, cost); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", ch, err, want)
		}
	}
	s, err := NewChoice(Choice{Kind: Quantiles, Blocks: []Block{{1, 2}}, Shares: median}, c, cost)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewEstimate(s, mustRelease(t, s, groupsOf(1, 2), seeded(1))); err == nil {
		t.Error("chosen cells were read as counts")
	}
}
