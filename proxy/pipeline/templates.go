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

// mostTemplates bounds the plans that are kept of statements whose parameters alone change (ADR 86), some kilobytes each. Everything that a template depends on beside
// the policy and what is held, but the parameters, is its key.
const mostTemplates = 1 << 14

// plan plans a statement, from its template where there is one.
func (a *Answerer) plan(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (*plans.Plan, *refuse.Refusal) {
	lifted := parse.Lift(stmt, params)
	if s.Dataset == nil || lifted.Empty() {
		return planner.Build(stmt, params, a.planContext(ctx, s))
	}
	key, held := a.templateKey(s, stmt, lifted), a.ledger.Holdings(s.User, s.Dataset.ID)
	if t, ok := a.templates.find(s, key, held); ok {
		if p := t.Plan(lifted); p != nil {
			return p, nil
		}
	}
	c := a.planContext(ctx, s)
	p, refusal := planner.Build(stmt, params, c)
	if refusal != nil || !sameList(held, a.ledger.Holdings(s.User, s.Dataset.ID)) || slices.ContainsFunc(held, undescribed) {
		return p, refusal
	}
	if t := planner.TemplateOf(stmt, params, p, c); t != nil {
		a.templates.keep(s, key, t, 1, held)
	}
	return p, nil
}

// quickly is the plan of a statement that is read in microseconds from what is held already, asked before or not; nil: it takes a place of
// its user's to plan it, or to read it. What it takes is bounded by the template: one row, of one sum of the cells of one release.
func (a *Answerer) quickly(s *Session, stmt parse.Statement, params []policy.Value) *plans.Plan {
	lifted := parse.Lift(stmt, params)
	if s.Dataset == nil || lifted.Empty() {
		return nil
	}
	t, ok := a.templates.find(s, a.templateKey(s, stmt, lifted), a.ledger.Holdings(s.User, s.Dataset.ID))
	if !ok {
		return nil
	}
	p := t.Quick(lifted)
	if p == nil || p.WantsErrors() || !a.estimates.kept(p.Measures[0].HeldID) {
		return nil
	}
	return p
}

// templateKey is all that a template depends on beside the policy and the holdings.
func (a *Answerer) templateKey(s *Session, stmt parse.Statement, lifted parse.Lifted) string {
	stmt.Text = lifted.Text
	return string(statementKey(s, stmt, a.public.version()))
}

// undescribed tells whether the planner finds a release by its digest alone, which a template does not look for.
func undescribed(r ledger.Release) bool {
	return len(r.Item.Described) == 0 || r.Item.Described[0] != plans.DescribedVersion
}
