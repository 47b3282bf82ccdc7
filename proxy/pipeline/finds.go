package pipeline

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Keys of columns whose values nobody declared are found first; then the statement is planned anew, with them.

// ready plans a statement, writes all its SQL, and has the sandbox try the outer query: what cannot be answered is refused
// for free, also where keys stand in for those to be found.
func (a *Answerer) ready(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (r readied, refusal *refuse.Refusal) {
	refusal = a.worked(ctx, s, func(ctx context.Context) (refusal *refuse.Refusal) {
		if r.plan, refusal = planner.Build(stmt, params, a.planContext(ctx, s)); refusal != nil {
			return refusal
		}
		if most := s.Policy.Server.Limits.StatementMemory / 2; most > 0 && leafBytes(r.plan) > most {
			return refuse.Invalid("54000", "the released tables of this statement need more than "+policy.SizeText(most)+" (half of server.limits.statement_memory)",
				"Group by fewer or coarser keys.")
		}
		if r.queries, r.outer, refusal = a.render(ctx, r.plan); refusal != nil {
			return refusal
		}
		if r.errors = errorParts(r.plan); ctx.Err() != nil {
			return reuse.RefuseEnded(context.Cause(ctx))
		}
		return a.tryOuter(ctx, s, r.plan, r.outer)
	})
	return r, refusal
}

// readied is a statement that is planned, and may be paid for.
type readied struct {
	plan    *plans.Plan
	queries []rewrite.Query
	outer   outer.Query
	errors  []string // how exact it will be
}

// leafBytes is about how much memory the released tables of a plan take, from their numbers of rows and columns.
func leafBytes(plan *plans.Plan) (bytes int64) {
	for _, leaf := range plan.Leaves {
		bytes += int64(leaf.Rows) * int64(sandbox.RowSize(len(leaf.Keys)+len(leaf.Counts)))
	}
	return bytes
}

// find buys the keys that a plan needs, if the budget holds the whole of it.
func (a *Answerer) find(ctx context.Context, s *Session, plan *plans.Plan) (privacy.Cost, error) {
	first := plan.PlanOfFinds()
	queries, _, refusal := a.render(ctx, first)
	if refusal != nil {
		return privacy.Cost{}, refusal
	}
	if b, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID); err == nil && !b.Spent.Plus(plan.Cost).Fits(b.Limit) {
		return privacy.Cost{}, a.chargeFailure(ctx, s, plan, ledger.ErrExhausted)
	}
	bought, err := a.buy(ctx, s, first, queries, true)
	return bought.charged, err
}

// foundNotices are the notices of an answer whose keys were found first.
func (a *Answerer) foundNotices(ctx context.Context, s *Session, plan *plans.Plan, found privacy.Cost, notices []Notice) []Notice {
	if found.IsZero() || len(plan.Measures) > 0 {
		return notices
	}
	return []Notice{{Message: "cost " + a.costText(ctx, s, found) + "; no key was found that enough " + s.Dataset.Unit.Name + "s have"}}
}

// foundAlone tells the cost of keys that were found for a statement that is not answered after all: what they were found for
// does not fit the cap, or is too much for one answer.
func (a *Answerer) foundAlone(ctx context.Context, s *Session, found privacy.Cost) Result {
	if found.IsZero() {
		return Result{}
	}
	return Result{Notices: []Notice{{Message: "cost " + a.costText(ctx, s, found) + "; the keys that were found are yours, and free from now on"}}}
}

// keysHeld reads the keys of a release.
func (a *Answerer) keysHeld(s *Session) func(id int64) (mechanisms.Noisy, bool) {
	return func(id int64) (mechanisms.Noisy, bool) {
		r, err := a.ledger.Load(context.Background(), s.User, id)
		if err != nil {
			return mechanisms.Noisy{}, false
		}
		n := r.Noisy.Value()
		return n, len(n.Keys) == len(n.Observations)
	}
}

// specOf is the spec of a saved release: of keys it has as many cells as were found.
func specOf(r ledger.Release) mechanisms.Spec {
	spec := r.Item.Spec
	if n := r.Noisy.Value(); len(n.Keys) > 0 {
		spec.Cells = len(n.Keys)
	}
	return spec
}

// explainFinds describes what is found first.
func (a *Answerer) explainFinds(ctx context.Context, plan *plans.Plan, e *explanation) *refuse.Refusal {
	first := plan.PlanOfFinds()
	queries, _, refusal := a.render(ctx, first)
	if refusal != nil {
		return refusal
	}
	var leaves []explainedLeaf
	for i, m := range first.Measures {
		leaves = append(leaves, explainedLeaf{Name: "keys_" + fmt.Sprint(i+1), Table: m.Table.Schema + "." + m.Table.Name, Measure: m.Name, Kind: m.Kind, Source: "found first", Why: m.Why,
			Mechanism:   fmt.Sprintf("%s noise on each key's number of %ss, shown from about %d on (threshold %d)", m.Finding.Noise(), m.Table.Dataset.Unit.Name, m.Finding.Half(), m.Finding.Threshold()),
			Sensitivity: boundText(m.Table.ContributionTo(2)), Cost: m.Cost.String(), Errors: []string{"keys of fewer units are not shown"}, Query: queries[i].SQL(), Arguments: queries[i].Args()})
	}
	e.Leaves = append(leaves, e.Leaves...)
	return nil
}
