package pipeline

import (
	"context"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Purchase buys the measures of a plan for a user ahead of her questions, as buy does for a statement: one charge for all of
// them, each drawn and saved. What others have had drawn already is joined at its cost, and what she has paid for is free.
func (a *Answerer) Purchase(ctx context.Context, p *policy.Policy, user string, plan *plans.Plan) (privacy.Cost, error) {
	queries, _, refusal := a.render(ctx, plan)
	if refusal != nil {
		return privacy.Cost{}, refusal
	}
	s := &Session{User: user, Database: plan.Dataset.ID, Policy: p, Dataset: plan.Dataset}
	ctx, done := inLine(ctx)
	defer done()
	bought, err := a.buy(ctx, s, plan, queries, false)
	return bought.charged, err
}

// MechanismText describes how a measure is taken, for people.
func MechanismText(m *plans.Measure) string {
	if m.Growth != nil {
		return growthText(m)
	}
	price := m.Cost
	if m.Refines() {
		price.Epsilon = m.Ladder.Level
	}
	if m.Spec.Counts().Strategy.Kind == mechanisms.Marginals {
		return marginalsText(m)
	}
	return mechanismText(m.Spec, price, m.Contribution())
}
