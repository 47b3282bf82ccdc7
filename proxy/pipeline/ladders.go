package pipeline

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// What a unit adds in all is clamped to a step of a ladder that is chosen from the release (package totals): so how far
// the answer is off is known once it is read.

// clamps are those of a plan's runs of totals.
type clamps map[*plans.Run]plans.Climbed

// clampsOf reads the clamps of a plan from what was released.
func clampsOf(plan *plans.Plan, readings []reading) clamps {
	climbed := clamps{}
	sum := func(t plans.Term) int64 { return readings[t.Measure].estimate.Sum(t.Counter, t.Spans).Value() }
	for _, leaf := range plan.Leaves {
		for _, runs := range leaf.Climbs() {
			for i, c := range plan.Climb(runs, sum) {
				climbed[runs[i]] = c
			}
		}
	}
	return climbed
}

// sumOfTotals is what is known of a sum of totals: how far it is off at most, in each row, its clamps, and the largest
// of what its runs say.
type sumOfTotals struct {
	off, upTo *big.Rat
	clamps    []string
	above     int64
	root      bool
	few       *plans.Climbed // of which too few units show, so that the sum is NULL and off nil; nil means there is none
}

func (climbed clamps) of(list []plans.Climbing) (sum sumOfTotals) {
	sum.off, sum.upTo = new(big.Rat), new(big.Rat)
	for _, c := range list {
		worth := func(n int64) *big.Rat { return new(big.Rat).Mul(c.Worth, new(big.Rat).SetInt64(n)) }
		most := int64(0)
		for i := range c.Of.Runs {
			own, is := climbed[&c.Of.Runs[i]]
			switch {
			case !is:
				continue
			case own.Steps == 0:
				return sumOfTotals{few: &own}
			}
			most, sum.above, sum.root = max(most, own.Off+own.Unseen), max(sum.above, own.Above), sum.root || own.Root
			if end := worth(own.UpTo); end.Cmp(sum.upTo) > 0 {
				sum.upTo = end
			}
			if clamp := figure(worth(own.Clamp)); !slices.Contains(sum.clamps, clamp) {
				sum.clamps = append(sum.clamps, clamp)
			}
		}
		sum.off.Add(sum.off, worth(most))
	}
	return sum
}

// climbedValue is the sum of a row of a run of totals; NULL where too few units show for a clamp.
func climbedValue(run *plans.Run, row int, c plans.Climbed, readings []reading) policy.Value {
	if c.Steps == 0 {
		return nil
	}
	return mixedValue(run.Read(row, c), readings) + int64(math.Round(c.Add))
}

// climbed adds to the notices of an answer how far what was read of units' totals is off, and what is not in it, for
// each of its columns that is a sum of such; and that others are NULL where too few units show in what they are of.
func (r *reader) climbed(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, notices []Notice) []Notice {
	ofTotals := func(leaf *plans.Leaf) bool {
		return slices.ContainsFunc(leaf.Counts, func(c plans.CountColumn) bool { return c.Climbs() })
	}
	if len(notices) == 0 || !slices.ContainsFunc(plan.Leaves, ofTotals) {
		return notices
	}
	readings, err := r.readings(ctx, s, plan, ids)
	if err != nil {
		return notices
	}
	climbed := clampsOf(plan, readings)
	out, told := slices.Clone(notices), false
	for i, c := range plan.Columns {
		if len(c.Climbs) == 0 || !isShown(c) {
			continue
		}
		name := columnName(plan, i)
		if shownColumns(plan) == 1 {
			name = "error"
		}
		text := climbedText(plan, climbed.of(c.Climbs))
		told = told || strings.HasPrefix(text, "NULL")
		out[0].Message += "; " + name + " " + text
	}
	for _, leaf := range plan.Leaves {
		for _, run := range slices.Concat(leaf.Climbs()...) {
			if c := climbed[run]; c.Steps == 0 && !told {
				told = true
				out[0].Message += "; in what some values are made of, " + fewText(plan, c)
			}
		}
	}
	return out
}

// climbedText says how far a sum of totals is off. What units have above the clamp is not in it, however much that is;
// about so many have any.
func climbedText(plan *plans.Plan, sum sumOfTotals) string {
	if sum.few != nil {
		return fewText(plan, *sum.few)
	}
	units, upTo, clamp := plan.Dataset.Unit.Name+"s", figure(sum.upTo), strings.Join(sum.clamps, " and ")
	within := fmt.Sprintf("±%s a value at %s of ", figure(sum.off), percent(plan.Confidence))
	switch all := sum.upTo.Sign() > 0; {
	case all && sum.root:
		return within + fmt.Sprintf("all that %s add up to, but for those whose groups' squares come to more than %s², "+
			"if any do", units, upTo)
	case all:
		return within + fmt.Sprintf("all that %s add up to, but for those who add more than %s, if any do", units, upTo)
	case sum.root: // of a unit in several groups above counts each
		return within + fmt.Sprintf("what %s add up to, whose groups' squares come to %s² each", units, clamp)
	}
	return within + fmt.Sprintf("what %s add up to %s each, which about %d exceed", units, clamp, sum.above)
}

// fewText says why a sum of totals is NULL: how many units of about the same total show at this cost, and at which
// multiple of it ten do.
func fewText(plan *plans.Plan, c plans.Climbed) string {
	times, units := c.Least/totals.Parts/10, plan.Dataset.Unit.Name+"s"
	text := fmt.Sprintf("NULL: too few %s show: at this cost it takes about %.0f with a like total other than 0", units,
		math.Ceil(10*times))
	if c.Kind == mechanisms.DiscreteGaussian {
		times *= times
	}
	if times <= 1 {
		return text
	}
	return text + fmt.Sprintf(", and ten at %.0f times it", math.Ceil(times))
}
