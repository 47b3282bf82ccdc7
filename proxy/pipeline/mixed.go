package pipeline

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// mixedValue reads a row from several releases: the weighted sum of what each says, exact, and then rounded, the half
// away from zero.
func mixedValue(row []plans.Term, readings []reading) int64 {
	sum := new(big.Rat)
	for _, t := range row {
		n := readings[t.Measure].estimate.Sum(t.Counter, t.Spans).Value()
		sum.Add(sum, new(big.Rat).Mul(big.NewRat(t.Num, t.Den), new(big.Rat).SetInt64(n)))
	}
	twice := new(big.Int).Lsh(sum.Num(), 1)
	if sum.Sign() < 0 {
		twice.Sub(twice, sum.Denom())
	} else {
		twice.Add(twice, sum.Denom())
	}
	n := twice.Quo(twice, new(big.Int).Lsh(sum.Denom(), 1))
	most := big.NewInt(mechanisms.MaxNoisy)
	switch {
	case n.Cmp(most) > 0:
		return mechanisms.MaxNoisy
	case n.Cmp(new(big.Int).Neg(most)) < 0:
		return -mechanisms.MaxNoisy
	}
	return n.Int64()
}

// runWidth is the largest half-width over the rows of a run.
func runWidth(plan *plans.Plan, run *plans.Run, confidence mechanisms.Confidence) int64 {
	if run.Mix == nil {
		return widestHalfWidth(plan.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, confidence)
	}
	return plan.WidestError(run, confidence).HalfWidth
}

// readsFrom reports whether a run is read from a measure.
func readsFrom(run *plans.Run, measure int) bool {
	if run.Mix == nil {
		return run.Measure == measure
	}
	for _, row := range run.Mix {
		for _, t := range row {
			if t.Measure == measure {
				return true
			}
		}
	}
	return false
}

// mixTexts say how a leaf's first row is read from several measures.
func mixTexts(plan *plans.Plan, leaf *plans.Leaf) (lines []string) {
	for _, c := range leaf.Counts {
		for _, run := range c.Runs {
			if len(run.Mix) == 0 {
				continue
			}
			text := c.Name + " = " + plan.MixText(run.Mix[0])
			if n := len(run.Mix); n > 1 {
				text += " in the first row, and likewise in the others"
			}
			lines = append(lines, text)
			break
		}
	}
	return lines
}
