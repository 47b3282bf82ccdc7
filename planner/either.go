package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Of a dataset of the accountant either a statement is planned twice: for ε, with Laplace noise, and for ρ, with
// Gaussian noise. Of
//
//	SET dp.max_error = 10; SELECT count(*) FROM people
//
// the first costs ε 0.28, of which (1, 1e-6) holds 3, the other ρ 0.019, of which it holds 1: it is the first. Of one
// within ±100 it holds 33 and 127: the other. So a choice is made as if all that is asked from now on were such
// statements, by what is left of either at equal error: whoever asks the like of what she has asked gets as many
// answers as from the better of the two accountants (docs/adr/0111). Costs, errors and what is left are public, or her
// own.

// buildEither plans a statement in the unit that is better for it.
func buildEither(s parse.Statement, params []policy.Value, c reuse.Context) (*plans.Plan, *refuse.Refusal) {
	if c.Dataset == nil || c.Dataset.Accountant != privacy.Either || c.Priced != 0 {
		return planWithin(s, params, c, 0)
	}
	c.Priced = privacy.Pure
	pure, refusal := planWithin(s, params, c, 0)
	if refusal == nil && beginsFree(pure) {
		return pure, nil
	}
	c.Priced = privacy.ZCDP
	concentrated, other := planWithin(s, params, c, 0)
	switch {
	case other != nil:
		return pure, refusal
	case refusal != nil || beginsFree(concentrated):
		return concentrated, nil
	}
	// A declared release is bought once for all that it answers from then on.
	if some := declares(pure); some != declares(concentrated) {
		only := concentrated
		if some {
			only = pure
		}
		if c.Holds(only.Charge()) {
			return only, nil
		}
	}
	times := 1.
	if c.Settings.MaxError == 0 { // else both are as exact as asked
		times = timesTheError(pure, concentrated)
	}
	chosen, why := c.Better(pure.Charge(), concentrated.Charge(), times)
	plan := pure
	if chosen == privacy.ZCDP {
		plan = concentrated
	}
	plan.Priced = why
	return plan, nil
}

// beginsFree reports whether a plan costs nothing, or all that is answered first of it is held: what is left of it to
// buy is known, and compared, once it is answered.
func beginsFree(p *plans.Plan) bool {
	if p.Cost.IsZero() {
		return true
	}
	first := p.Inmost()
	dear := func(in *plans.Inner) bool { return !in.Plan.Cost.IsZero() }
	return slices.ContainsFunc(first, func(in *plans.Inner) bool { return in.Plan.Private() }) && !slices.ContainsFunc(first, dear)
}

// declares reports whether a plan buys a release that the policy declares.
func declares(p *plans.Plan) bool {
	return slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { return m.Declared != nil && !m.Held })
}

// timesTheError is how many times the squared error of one plan of a statement is that of another, in the geometric
// mean of what its leaves tell: counts and sums by their largest variance, what is chosen by its rank.
func timesTheError(some, others *plans.Plan) float64 {
	sum, n := 0., 0
	for i := range min(len(some.Leaves), len(others.Leaves)) {
		for k := range min(len(some.Leaves[i].Counts), len(others.Leaves[i].Counts)) {
			a, b := some.Leaves[i].Counts[k].Runs, others.Leaves[i].Counts[k].Runs
			for r := range min(len(a), len(b)) {
				if x, y := squaredError(some, &a[r]), squaredError(others, &b[r]); x > 0 && y > 0 {
					sum, n = sum+math.Log(x/y), n+1
				}
			}
		}
	}
	if n == 0 {
		return 1
	}
	return math.Exp(sum / float64(n))
}

func squaredError(p *plans.Plan, run *plans.Run) float64 {
	switch {
	case run.Selected != nil:
		return run.Selected.Rank * run.Selected.Rank
	case run.Measure < 0 || run.Threshold != nil:
		return 0
	case run.Mix != nil:
		return p.WidestError(run, p.Confidence).Variance
	}
	_, variance := plans.WorstRow(p.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, p.Confidence)
	return variance
}
