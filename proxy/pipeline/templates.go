package pipeline

import (
	"context"
	"slices"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A statement whose parameters alone change is planned from a template (ADR 86), which is kept with its answers.

// plan plans a statement that was looked up, from its template where there is one.
func (a *Answerer) plan(ctx context.Context, x *execution, stmt parse.Statement, params []policy.Value, l *lookup) (*plans.Plan, *refuse.Refusal) {
	if l.template != nil {
		if p := l.template.Plan(l.lifted); p != nil {
			return p, nil
		}
	}
	c := a.planContext(ctx, x.Session, x.prior)
	p, refusal := planner.Build(stmt, params, c)
	if refusal != nil || l.statement == nil || l.lifted.Empty() || !sameList(l.held, a.ledger.Holdings(x.User, x.Dataset.ID)) {
		return p, refusal
	}
	if t := planner.TemplateOf(stmt, params, p, c); t != nil && !slices.ContainsFunc(l.held, undescribed) {
		a.remembered.keepTemplate(x.Session, l, t)
	}
	return p, nil
}

// quickly is the plan of a statement that is read in microseconds from what is held already, asked before or not; nil: it takes a slot of
// its user's to plan it, or to read it. What it takes is bounded by the template: one row, of one sum of the cells of one release.
func (a *Answerer) quickly(l *lookup) *plans.Plan {
	if l.template == nil {
		return nil
	}
	p := l.template.Quick(l.lifted)
	if p == nil || p.WantsErrors() || !a.reader.estimates.kept(p.Measures[0].HeldID) {
		return nil
	}
	return p
}

// undescribed tells whether the planner finds a release by its digest alone, which a template does not look for.
func undescribed(r ledger.Release) bool {
	return len(r.Item.Described) == 0 || r.Item.Described[0] != plans.DescribedVersion
}
