package pipeline

import (
	"context"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// templateCache keeps the plans of statements whose parameters alone change (ADR 86). As with answerCache, an entry lives as long as
// the policy and her holdings are the very ones that it was made from; everything else that it depends on, but the parameters, is its
// key. What a template does not answer is planned, so that nothing but time depends on what is kept.
type templateCache struct {
	mu    sync.RWMutex
	known map[string]keptTemplate
}

type keptTemplate struct {
	template *planner.Template
	policy   *policy.Policy
	held     []ledger.Release
}

// mostTemplates bounds the templates kept, some kilobytes each; beyond it they are forgotten, all at once.
const mostTemplates = 1 << 12

func (c *templateCache) find(key string, p *policy.Policy, held []ledger.Release) *planner.Template {
	c.mu.RLock()
	kept, ok := c.known[key]
	c.mu.RUnlock()
	if !ok || kept.policy != p || !sameList(kept.held, held) {
		return nil
	}
	return kept.template
}

func (c *templateCache) keep(key string, t *planner.Template, p *policy.Policy, held []ledger.Release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= mostTemplates {
		c.known = map[string]keptTemplate{}
	}
	c.known[key] = keptTemplate{t, p, held}
}

// plan plans a statement, from its template where there is one.
func (a *Answerer) plan(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (*plans.Plan, *refuse.Refusal) {
	lifted := parse.Lift(stmt, params)
	if s.Dataset == nil || lifted.Empty() {
		return planner.Build(stmt, params, a.planContext(ctx, s))
	}
	key, held := a.templateKey(s, stmt, lifted), a.ledger.Holdings(s.User, s.Dataset.ID)
	if t := a.templates.find(key, s.Policy, held); t != nil {
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
		a.templates.keep(key, t, s.Policy, held)
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
	t := a.templates.find(a.templateKey(s, stmt, lifted), s.Policy, a.ledger.Holdings(s.User, s.Dataset.ID))
	if t == nil {
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
