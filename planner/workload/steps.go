package workload

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// StepChoice is what a step of a discretised column costs: a finer one has more cells, so that ranges are further off;
// a coarser one moves bounds further. Nothing of it is read from data.
type StepChoice struct {
	Step     string
	Declared bool
	Cells    int
	RMSE     float64 // of all ranges over the column at the price, in rows
	Rounding string  // the most that a bound between two steps moves, in the column's unit, in words
	Rows     float64 // the same in rows where the policy's expected ones are spread evenly; 0 means none, or it expects none
	Not      string  // why there is no such step
}

// maxSteps bounds the cells of a step that is considered.
const maxSteps = 1 << 17

// StepChoices tells of a column's declared step, a tenth and ten times of it, for a range release at a cost.
func StepChoices(c *policy.Column, cost privacy.Cost) []StepChoice {
	var list []StepChoice
	for _, tenths := range []int64{1, 10, 100} {
		list = append(list, stepChoice(c, tenths, cost))
	}
	return list
}

func stepChoice(c *policy.Column, tenths int64, cost privacy.Cost) StepChoice {
	d, cells := c.Domain, int64(c.Domain.Regular)
	out := StepChoice{Declared: tenths == 10}
	scaled := *d
	switch {
	case tenths == 10:
	case d.Step.Decimal.Coefficient != nil && tenths == 1:
		scaled.Step.Decimal.Scale++
	case d.Step.Decimal.Coefficient != nil:
		scaled.Step.Decimal.Coefficient = new(big.Int).Mul(d.Step.Decimal.Coefficient, big.NewInt(10))
	case tenths == 1 && d.Step.Whole%10 != 0:
		out.Step, out.Not = "a tenth of "+semantics.StepText(d), "the column has no values between"
		return out
	default:
		scaled.Step.Whole = d.Step.Whole * tenths / 10
	}
	cells = (cells*10 + tenths - 1) / tenths
	extra := int64(c.Domain.Size() - c.Domain.Regular)
	out.Step, out.Cells = semantics.StepText(&scaled), int(cells+extra)
	out.Rounding, out.Rows = WorstRounding(&scaled, float64(c.Table.ExpectedRows)/float64(cells))
	if out.Cells > maxSteps {
		out.Not = "more cells than a release has"
		return out
	}
	spec, err := mechanisms.Ranges(out.Cells, c.Table.ContributionTo(out.Cells), cost)
	if err != nil {
		out.Not = err.Error()
		return out
	}
	out.RMSE = spec.RMSE(mechanisms.AllRanges)
	return out
}

// WorstRounding is the most that a bound within a step moves when it snaps, to the step's start: as many rows are
// counted on the wrong side of it where each step has so many. Whole numbers and dates have values between two steps
// only where a step is of several.
func WorstRounding(d *policy.Domain, rows float64) (string, float64) {
	step := d.Step.Whole
	if d.Step.Decimal.Coefficient != nil || step < 1 {
		return "less than " + semantics.StepText(d), rows
	}
	within := *d
	within.Step.Whole = step - 1
	switch d.Min.(type) {
	case int64, policy.Date:
		if step == 1 {
			return "nothing", 0
		}
		return "at most " + semantics.StepText(&within), rows * float64(step-1) / float64(step)
	}
	return "less than " + semantics.StepText(d), rows
}
