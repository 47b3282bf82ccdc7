package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Keys of columns whose values nobody declared are found first; then the statement is planned anew, with them.

// errPlanAnew says that something was bought which a statement is to be planned with.
var errPlanAnew = errors.New("keys were found, or sub-queries answered")

// findKeys buys the keys that a plan needs, and says so by errPlanAnew.
func (a *Answerer) findKeys(ctx context.Context, x *execution, plan *plans.Plan) error {
	first := plan.PlanOfFinds()
	queries, _, refusal := a.render(ctx, first)
	if refusal != nil {
		return refusal
	}
	bought, err := a.buyer.buy(ctx, x, first, queries)
	if err != nil {
		return err
	}
	x.prior.cost = bought.charged
	return errPlanAnew
}

// unanswered tells the cost of a statement that is not answered after all: keys were found for what does not fit the
// cap, or is too much for one answer, or something that was paid for was not drawn or saved.
func (a *Answerer) unanswered(ctx context.Context, x *execution) Result {
	charged := x.chargedSoFar()
	if charged.IsZero() {
		return Result{}
	}
	kept := "what was saved of it is yours, and free from now on"
	switch {
	case charged == x.prior.cost && x.prior.answers != nil:
		kept = "what was answered first is yours, and free from now on"
	case charged == x.prior.cost:
		kept = "the keys that were found are yours, and free from now on"
	}
	return Result{Notices: []Notice{{Message: "cost " + a.account.costText(ctx, x.Session, charged) + "; " + kept}}}
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

// asOf is a saved release as a plan reads it, and its Spec: of one that grows, what was known at the plan's time.
func asOf(r ledger.Release, through int) (mechanisms.Spec, privacy.Released[mechanisms.Noisy]) {
	if through == 0 {
		return specOf(r), r.Noisy
	}
	known := r.Item.Spec.Known(through)
	return r.Item.Spec.Through(through), privacy.PostProcess(r.Noisy, func(n mechanisms.Noisy) mechanisms.Noisy {
		return mechanisms.Noisy{Observations: n.Observations[:min(known, len(n.Observations))]}
	})
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
		sql, args := sent(queries[i])
		leaves = append(leaves, explainedLeaf{Name: "keys_" + fmt.Sprint(i+1), Table: m.Table.Schema + "." + m.Table.Name, Measure: m.Name, Kind: m.Kind, Source: "found first", Why: m.Why,
			Mechanism:   fmt.Sprintf("%s noise on each key's number of %ss, shown from about %d on (threshold %d)", m.Finding.Noise(), m.Table.Dataset.Unit.Name, m.Finding.Half(), m.Finding.Threshold()),
			Sensitivity: boundText(m.Table.ContributionTo(2)), Cost: m.Cost.String(), Errors: []string{"keys of fewer units are not shown"}, Query: sql, Arguments: args})
	}
	e.Leaves = append(leaves, e.Leaves...)
	return nil
}
