package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Purchase buys the measures of a plan for a user ahead of her questions, as buy does for a statement: one charge for
// all of them, each drawn and saved. What others have had drawn already is joined at its cost, and what she has paid
// for is free.
func (a *Answerer) Purchase(ctx context.Context, p *policy.Policy, user string, plan *plans.Plan) (privacy.Cost, error) {
	bought, err := a.buyAhead(ctx, p, user, plan)
	return bought.charged, err
}

// Drawn is what was drawn for a measure, and how. It is valid where Noisy is.
type Drawn struct {
	Spec  mechanisms.Spec
	Noisy privacy.Released[mechanisms.Noisy]
	AsOf  time.Time // of the snapshot that it is of; zero: its rows were read live
}

// Measured buys the measures of a plan as Purchase does, and hands out what was drawn for each. With an error those
// that were drawn all the same, and paid for, are there too.
func (a *Answerer) Measured(ctx context.Context, p *policy.Policy, user string, plan *plans.Plan) ([]Drawn, privacy.Cost, error) {
	bought, err := a.buyAhead(ctx, p, user, plan)
	list := make([]Drawn, len(plan.Measures))
	for i := range min(len(bought.ids), len(list)) {
		if bought.ids[i] == 0 {
			continue
		}
		r, failed := a.releases.load(ctx, &Session{User: user}, bought.ids[i])
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		list[i] = Drawn{Spec: r.Item.Spec, Noisy: r.Noisy}
		if r.Item.AsOf != 0 {
			list[i].AsOf = time.Unix(0, r.Item.AsOf).UTC()
		}
	}
	return list, bought.charged, err
}

func (a *Answerer) buyAhead(ctx context.Context, p *policy.Policy, user string, plan *plans.Plan) (purchase, error) {
	queries, _, refusal := a.render(ctx, plan)
	if refusal != nil {
		return purchase{}, refusal
	}
	s := &Session{User: user, Database: plan.Dataset.ID, Policy: p, Dataset: plan.Dataset}
	x := newExecution(s, "")
	defer x.admitted.done()
	x.token = true // it is no statement's
	return a.buyer.buy(ctx, x, plan, queries)
}

// buyer has measures charged for and their releases drawn.
type buyer struct {
	releases   *releases
	charges    Charges
	statements Statements     // nil: none is kept
	paid       sync.WaitGroup // purchases under way; they outlive their clients
}

// purchase is what buy returns: the saved release of each measure, and what this statement was charged.
type purchase struct {
	ids     []int64
	charged privacy.Cost
	err     error
}

// buy pays for the measures that are not held and has them drawn and saved. The work goes on to its end even when the
// client stops waiting: what is paid is answered, and saved, so that asking again is free (privacy rule 5).
func (b *buyer) buy(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query) (purchase, error) {
	defer admission.Renew(ctx) // privacy rule 29: what is paid for is answered
	p := purchase{ids: make([]int64, len(plan.Measures)), charged: x.prior.cost}
	var wanted []int
	for i, m := range plan.Measures {
		p.ids[i] = m.HeldID
		if !m.Held {
			wanted = append(wanted, i)
		}
	}
	wanted = scans(queries, wanted)
	if len(wanted) == 0 && !b.releases.behind(plan) {
		return p, nil
	}
	if len(wanted) > 0 && !b.releases.database.takeToken(x) {
		return p, &pgerror.Failure{SQLState: "53400", Message: "too many statements that cost something; nothing was charged", Hint: "Ask again a second later. What you have paid for is answered meanwhile."}
	}
	if err := b.await(ctx, x, plan, queries, wanted); err != nil {
		return p, err
	}
	x.admitted.join()
	done := make(chan purchase, 1)
	b.paid.Add(1)
	go func() {
		defer b.paid.Done()
		defer x.admitted.leave()
		done <- b.drawAll(context.WithoutCancel(ctx), x, plan, queries, wanted, p)
	}()
	select {
	case p = <-done:
		return p, p.err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}

// await waits until a statement that buys has one of its user's slots, and where private rows are read one of the
// database's.
func (b *buyer) await(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int) error {
	defer spans.Begin(ctx, spans.Wait)()
	if err := b.releases.database.awaitUser(ctx, x); err != nil || !b.releases.runs(plan, wanted) {
		return err
	}
	kept := "nothing was charged"
	if !x.prior.cost.IsZero() {
		kept = "nothing more was charged"
	}
	if err := b.releases.database.admit(ctx, x, queriesToPlan(plan, queries, wanted), kept); err != nil {
		return err
	}
	b.releases.database.admitBeside(ctx, x, plan, queries, wanted)
	return nil
}

// requested returns what is charged for the wanted measures, and what each refines.
func (b *buyer) requested(ctx context.Context, x *execution, plan *plans.Plan, wanted []int) (
	request ledger.Request, held []*mechanisms.Held, err error,
) {
	request = ledger.Request{User: x.User, Dataset: x.Dataset.ID, Statement: ledger.Digest(plan.Statement), PolicyDigest: x.Policy.Digest, Since: x.since}
	held = make([]*mechanisms.Held, len(plan.Measures))
	for _, i := range wanted {
		it := Item(plan.Measures[i])
		if held[i], it.AsOf, err = b.releases.loadHeld(ctx, x.Session, plan.Measures[i]); err != nil {
			return request, nil, err
		}
		if it.Levels, err = reuse.LevelsOf(plan.Measures[i]); err != nil {
			b.releases.log.ErrorContext(ctx, "levels of a release were not found", "kind", plan.Measures[i].Kind, "table", plan.Measures[i].Table.Name, "error", err)
			return request, nil, errInternal
		}
		if plan.Measures[i].Reads() == plans.Once {
			it.AsOf = x.admitted.rows()
		}
		request.Items = append(request.Items, it)
	}
	return request, held, nil
}

// drawAll charges for the wanted measures in one step, then draws and saves each, whatever becomes of the others.
func (b *buyer) drawAll(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int, p purchase) (out purchase) {
	defer b.releases.database.recovered(ctx, &out.err)
	request, held, err := b.requested(ctx, x, plan, wanted)
	if err != nil {
		p.err = err
		return p
	}
	var outcomes []ledger.Outcome
	if len(wanted) > 0 {
		charged := spans.Begin(ctx, spans.Charge)
		outcomes, err = b.releases.ledger.Charge(ctx, request)
		charged()
	}
	if err != nil {
		p.err = b.chargeFailure(ctx, x.Session, plan, err)
		return p
	}
	defer b.abandonUnsaved(outcomes)
	for k, i := range wanted {
		p.charged = p.charged.Plus(outcomes[k].Charged)
		p.ids[i] = outcomes[k].ID
		if !outcomes[k].Charged.IsZero() {
			b.charges.Charged(x.Dataset.ID, plan.Measures[i].Kind)
		}
	}
	if !p.charged.IsZero() {
		b.audit(ctx, x.Session, plan, wanted, p)
		if b.statements != nil && x.text != "" {
			b.statements.Keep(request.Statement, x.text)
		}
	}
	x.wasCharged(p.charged)
	rows := b.releases.database.readBeside(ctx, x, plan, queries, wanted, outcomes)
	for k, i := range wanted {
		if outcomes[k].Receipt == nil {
			continue
		}
		id, err := b.releases.draw(ctx, x, plan.Measures[i], rows(k), held[i], outcomes[k].Receipt)
		if p.ids[i] = id; err != nil && p.err == nil {
			p.err = err
		}
	}
	if p.err == nil {
		p.err = b.releases.growAll(ctx, x, plan, p.ids)
	}
	return p
}

// audit tells the operator's log what was charged, to whom, for what kind of thing over which tables: nothing of the
// statement, whose words are hers, and nothing that depends on rows. The ledger has the same for good; the log is for
// who follows it as it happens.
func (b *buyer) audit(ctx context.Context, s *Session, plan *plans.Plan, wanted []int, p purchase) {
	var kinds, tables []string
	var releases []int64
	for _, i := range wanted {
		kinds = append(kinds, plan.Measures[i].Kind)
		if id := p.ids[i]; id != 0 { // drawn before, for another who paid; what is to be drawn now has no number yet
			releases = append(releases, id)
		}
		if name := plan.Measures[i].Table.Name; !slices.Contains(tables, name) {
			tables = append(tables, name)
		}
	}
	b.releases.log.InfoContext(ctx, "charged", "user", s.User, "dataset", s.Dataset.ID, "pid", s.PID, "cost", p.charged.String(), "kinds", kinds, "tables", tables, "releases", releases)
}

// abandonUnsaved lets others ask again for what was charged and not saved, whatever the reason. A saved receipt is
// closed.
func (b *buyer) abandonUnsaved(outcomes []ledger.Outcome) {
	for _, o := range outcomes {
		if o.Receipt != nil {
			b.releases.ledger.Abandon(o.Receipt)
		}
	}
}

// chargeFailure says why nothing was charged. An analyst learns her own balance, and of the dataset's cap only that it
// is spent (privacy rule 1).
func (b *buyer) chargeFailure(ctx context.Context, s *Session, plan *plans.Plan, err error) error {
	switch {
	case errors.Is(err, ledger.ErrRefined):
		return err // for answerRetrying
	case errors.Is(err, ledger.ErrExhausted):
		f := &pgerror.Failure{SQLState: "DP001", Message: "your privacy budget does not hold this query"}
		if has, e := b.releases.ledger.Balance(ctx, s.User, s.Dataset.ID); e == nil {
			f.Detail = fmt.Sprintf("It costs %s; you have spent %s of %s.", plan.Cost.In(has.Limit), has.Spent.In(has.Limit), has.Limit)
		}
		f.Hint = "What you have paid for stays free: SELECT * FROM dp.releases. A smaller SET dp.epsilon costs less and is less exact."
		if s.Settings.MaxError > 0 {
			f.Hint = "What you have paid for stays free: SELECT * FROM dp.releases. A larger SET dp.max_error costs less."
		}
		return f
	case errors.Is(err, ledger.ErrCap):
		return &pgerror.Failure{SQLState: "DP001", Message: ledger.ErrCap.Error(), Hint: "What you have paid for stays free: SELECT * FROM dp.releases."}
	}
	if errors.Is(err, ledger.ErrPolicy) {
		return ErrPolicy
	}
	b.releases.log.ErrorContext(ctx, "charge failed", "user", s.User, "dataset", s.Dataset.ID, "error", err)
	return errLedger
}

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
			Sensitivity: fmt.Sprintf("%d key%s a unit", m.Finding.KeysEach(), plural(int(m.Finding.KeysEach()))), Cost: m.Cost.String(), Errors: []string{"keys of fewer units are not shown"}, Query: sql, Arguments: args})
	}
	e.Leaves = append(leaves, e.Leaves...)
	return nil
}
