package pipeline

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// What a unit adds in all is clamped to a step of a ladder that is chosen from the release (package totals): so how far
// the answer is off is known once it is read.

// climbedRuns reads the clamps of a leaf's runs of totals.
func climbedRuns(plan *plans.Plan, leaf *plans.Leaf, readings []reading) map[*plans.Run]plans.Climbed {
	climbed := map[*plans.Run]plans.Climbed{}
	for c := range leaf.Counts {
		for r := range leaf.Counts[c].Runs {
			if run := &leaf.Counts[c].Runs[r]; run.Ladder != nil {
				climbed[run] = plan.Climb(run, func(t plans.Term) int64 {
					return readings[t.Measure].estimate.Sum(t.Counter, t.Spans).Value()
				})
			}
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

// climbed adds to the notices of an answer how far what was read of units' totals is off, and what is not in it.
func (r *reader) climbed(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, notices []Notice) []Notice {
	if len(notices) == 0 || !slices.ContainsFunc(plan.Leaves, func(l *plans.Leaf) bool {
		return slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool { return c.Climbs() })
	}) {
		return notices
	}
	readings, err := r.readings(ctx, s, plan, ids)
	if err != nil {
		return notices
	}
	out := slices.Clone(notices)
	for _, leaf := range plan.Leaves {
		all := climbedRuns(plan, leaf, readings)
		for i := range leaf.Counts {
			for r := range leaf.Counts[i].Runs {
				run := &leaf.Counts[i].Runs[r]
				if run.Ladder == nil {
					continue
				}
				text := climbedText(plan, leaf.Counts[i].Unit, run, all[run])
				if !strings.Contains(out[0].Message, text) {
					out[0].Message += "; " + text
				}
			}
		}
	}
	return out
}

// climbedText says how far a run of totals is off. What units have above the clamp is not in it, however much that is;
// about so many have any.
func climbedText(plan *plans.Plan, unit *big.Rat, run *plans.Run, c plans.Climbed) string {
	units := plan.Dataset.Unit.Name + "s"
	if unit == nil {
		unit = big.NewRat(1, 1)
	}
	in := func(n int64) string { return figure(new(big.Rat).Mul(unit, new(big.Rat).SetInt64(n))) }
	if c.Steps == 0 {
		return "NULL: too few " + units + " show at this ε to say what they come to; more ε may show them"
	}
	text := fmt.Sprintf("error ±%s a value at %s of what %s add up to %s each", in(c.Off), percent(plan.Confidence),
		units, in(c.Clamp))
	if c.Steps < len(run.Ladder.Steps) {
		text += fmt.Sprintf("; what they add above that is not in it: about %d do", c.Above)
	}
	return text
}
