package pipeline

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// What a unit adds in all is clamped to a step of a ladder that is chosen from the release (package totals): so how far
// the answer is off is known once it is read.

// climbedRuns reads the clamps of a leaf's runs of totals.
func climbedRuns(plan *plans.Plan, leaf *plans.Leaf, readings []reading) map[*plans.Run]plans.Climbed {
	climbed := map[*plans.Run]plans.Climbed{}
	sum := func(t plans.Term) int64 { return readings[t.Measure].estimate.Sum(t.Counter, t.Spans).Value() }
	for _, runs := range leaf.Climbs() {
		for i, c := range plan.Climb(runs, sum) {
			climbed[runs[i]] = c
		}
	}
	return climbed
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
	climbed := map[*plans.Run]plans.Climbed{}
	for _, leaf := range plan.Leaves {
		maps.Copy(climbed, climbedRuns(plan, leaf, readings))
	}
	out, told := slices.Clone(notices), false
	for i, c := range plan.Columns {
		if len(c.Climbs) == 0 || !isShown(c) {
			continue
		}
		name := columnName(plan, i)
		if shownColumns(plan) == 1 {
			name = "error"
		}
		text := climbedText(plan, c.Climbs, climbed)
		told = told || strings.HasPrefix(text, "NULL")
		out[0].Message += "; " + name + " " + text
	}
	for _, c := range climbed {
		if c.Steps == 0 && !told {
			told = true
			out[0].Message += "; in what some values are made of, " + fewText(plan, c)
		}
	}
	return out
}

// climbedText says how far a sum of totals is off. What units have above the clamp is not in it, however much that is;
// about so many have any.
func climbedText(plan *plans.Plan, list []plans.Climbing, climbed map[*plans.Run]plans.Climbed) string {
	units, off := plan.Dataset.Unit.Name+"s", new(big.Rat)
	clamps, above, upTo := []string{}, int64(0), new(big.Rat)
	for _, c := range list {
		most := int64(0)
		for i := range c.Of.Runs {
			run := &c.Of.Runs[i]
			if run.Ladder == nil {
				continue
			}
			own := climbed[run]
			if own.Steps == 0 {
				return fewText(plan, own)
			}
			most, above = max(most, own.Off), max(above, own.Above)
			if end := new(big.Rat).Mul(c.Worth, new(big.Rat).SetInt64(own.UpTo)); end.Cmp(upTo) > 0 {
				upTo = end
			}
			clamp := figure(new(big.Rat).Mul(c.Worth, new(big.Rat).SetInt64(own.Clamp)))
			if !slices.Contains(clamps, clamp) {
				clamps = append(clamps, clamp)
			}
		}
		off.Add(off, new(big.Rat).Mul(c.Worth, new(big.Rat).SetInt64(most)))
	}
	if upTo.Sign() > 0 {
		return fmt.Sprintf("±%s a value at %s of all that %s add up to, but for those who add more than %s, if any do",
			figure(off), percent(plan.Confidence), units, figure(upTo))
	}
	text := fmt.Sprintf("±%s a value at %s of what %s add up to %s each", figure(off), percent(plan.Confidence), units,
		strings.Join(clamps, " and "))
	return text + fmt.Sprintf(", which about %d exceed", above)
}

// fewText says why a sum of totals is NULL: how many units of about the same total show at this cost, and at which
// multiple of it ten do.
func fewText(plan *plans.Plan, c plans.Climbed) string {
	times, units := c.Least/totals.Parts/10, plan.Dataset.Unit.Name+"s"
	text := fmt.Sprintf("NULL: too few %s show: at this cost it takes about %.0f with a like total", units,
		math.Ceil(10*times))
	if plan.Dataset.Accountant != privacy.Pure {
		times *= times
	}
	if times <= 1 {
		return text
	}
	return text + fmt.Sprintf(", and ten at %.0f times it", math.Ceil(times))
}
