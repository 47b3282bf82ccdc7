package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Purchase buys the measures of a plan for a user ahead of her questions, as buy does for a statement: one charge for all of
// them, each drawn and saved. What others have had drawn already is joined at its cost, and what she has paid for is free.
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

// Measured buys the measures of a plan as Purchase does, and hands out what was drawn for each. With an error those that were drawn all the same,
// and paid for, are there too.
func (a *Answerer) Measured(ctx context.Context, p *policy.Policy, user string, plan *plans.Plan) ([]Drawn, privacy.Cost, error) {
	bought, err := a.buyAhead(ctx, p, user, plan)
	list := make([]Drawn, len(plan.Measures))
	for i := range min(len(bought.ids), len(list)) {
		if bought.ids[i] == 0 {
			continue
		}
		r, failed := a.load(ctx, &Session{User: user}, bought.ids[i])
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
	return a.buy(ctx, x, plan, queries)
}

// purchase is what buy brings home: the saved release of each measure, and what this statement was charged.
type purchase struct {
	ids     []int64
	charged privacy.Cost
	err     error
}

// buy pays for the measures that are not held and has them drawn and saved. The work goes on to its end even when the
// client stops waiting: what is paid is answered, and saved, so that asking again is free (privacy rule 5).
func (a *Answerer) buy(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query) (purchase, error) {
	p := purchase{ids: make([]int64, len(plan.Measures)), charged: x.prior.cost}
	var wanted []int
	for i, m := range plan.Measures {
		p.ids[i] = m.HeldID
		if !m.Held {
			wanted = append(wanted, i)
		}
	}
	wanted = scans(queries, wanted)
	if len(wanted) == 0 && !a.behind(plan) {
		return p, nil
	}
	if len(wanted) > 0 && !a.takeToken(x) {
		return p, &pgerror.Failure{SQLState: "53400", Message: "too many statements that cost something; nothing was charged", Hint: "Ask again a second later. What you have paid for is answered meanwhile."}
	}
	if err := a.await(ctx, x, plan, queries, wanted); err != nil {
		return p, err
	}
	x.admitted.join()
	done := make(chan purchase, 1)
	a.paid.Add(1)
	go func() {
		defer a.paid.Done()
		defer x.admitted.leave()
		done <- a.drawAll(context.WithoutCancel(ctx), x, plan, queries, wanted, p)
	}()
	select {
	case p = <-done:
		return p, p.err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}

// await waits until a statement that buys has one of its user's slots, and where private rows are read one of the database's.
func (a *Answerer) await(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int) error {
	defer spans.Begin(ctx, spans.Wait)()
	if err := a.awaitUser(ctx, x); err != nil || !a.runs(plan, wanted) {
		return err
	}
	kept := "nothing was charged"
	if !x.prior.cost.IsZero() {
		kept = "nothing more was charged"
	}
	if err := a.admit(ctx, x, queriesToPlan(plan, queries, wanted), kept); err != nil {
		return err
	}
	a.admitBeside(ctx, x, plan, queries, wanted)
	return nil
}

// drawAll charges for the wanted measures in one step, then draws and saves each, whatever becomes of the others.
func (a *Answerer) drawAll(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int, p purchase) (out purchase) {
	defer a.recovered(ctx, &out.err)
	request := ledger.Request{User: x.User, Dataset: x.Dataset.ID, Statement: ledger.Digest(plan.Statement), PolicyDigest: x.Policy.Digest, Since: x.since}
	lower := make([]heldLevel, len(plan.Measures))
	for _, i := range wanted {
		if lower[i], p.err = a.loadHeld(ctx, x.Session, plan.Measures[i]); p.err != nil {
			return p
		}
		it, err := Item(plan.Measures[i]), error(nil)
		if it.Levels, err = reuse.LevelsOf(plan.Measures[i]); err != nil {
			a.log.ErrorContext(ctx, "levels of a release were not found", "kind", plan.Measures[i].Kind, "table", plan.Measures[i].Table.Name, "error", err)
			p.err = errInternal
			return p
		}
		it.AsOf = lower[i].asOf
		if readsOnce(plan.Measures[i]) {
			it.AsOf = x.admitted.rows()
		}
		request.Items = append(request.Items, it)
	}
	var outcomes []ledger.Outcome
	var err error
	if len(wanted) > 0 {
		charged := spans.Begin(ctx, spans.Charge)
		outcomes, err = a.ledger.Charge(ctx, request)
		charged()
	}
	if err != nil {
		p.err = a.chargeFailure(ctx, x.Session, plan, err)
		return p
	}
	defer a.abandonUnsaved(outcomes)
	for k, i := range wanted {
		p.charged = p.charged.Plus(outcomes[k].Charged)
		p.ids[i] = outcomes[k].ID
		if !outcomes[k].Charged.IsZero() {
			a.charges.Charged(x.Dataset.ID, plan.Measures[i].Kind)
		}
	}
	if !p.charged.IsZero() {
		a.audit(ctx, x.Session, plan, wanted, p)
		if a.statements != nil && x.text != "" {
			a.statements.Keep(request.Statement, x.text)
		}
	}
	x.wasCharged(p.charged)
	rows := a.readBeside(ctx, x, plan, queries, wanted, outcomes)
	for k, i := range wanted {
		if outcomes[k].Receipt == nil {
			continue
		}
		id, err := a.drawOne(ctx, x, plan.Measures[i], queries[i], rows(k), lower[i], outcomes[k].Receipt)
		if p.ids[i] = id; err != nil && p.err == nil {
			p.err = err
		}
	}
	if p.err == nil {
		p.err = a.growAll(ctx, x, plan, p.ids)
	}
	return p
}

// audit tells the operator's log what was charged, to whom, for what kind of thing over which tables: nothing of the statement, whose words
// are hers, and nothing that hangs on rows. The ledger has the same for good; the log is for who follows it as it happens.
func (a *Answerer) audit(ctx context.Context, s *Session, plan *plans.Plan, wanted []int, p purchase) {
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
	a.log.InfoContext(ctx, "charged", "user", s.User, "dataset", s.Dataset.ID, "pid", s.PID, "cost", p.charged.String(), "kinds", kinds, "tables", tables, "releases", releases)
}

// recovered turns a panic into an error. Its text may hold values and is not logged.
func (a *Answerer) recovered(ctx context.Context, err *error) {
	if r := recover(); r != nil {
		a.log.ErrorContext(ctx, "panic while drawing a release", "panic", fmt.Sprintf("%T", r))
		*err = errInternal
	}
}

// drawOne draws and saves one measure: a fault in it is no reason not to answer the others, which are paid for too (privacy rule 5).
func (a *Answerer) drawOne(ctx context.Context, x *execution, m *plans.Measure, query rewrite.Query, rows trueCounts, lower heldLevel, receipt *ledger.Receipt) (id int64, err error) {
	defer rows.over()
	defer a.recovered(ctx, &err)
	return a.draw(ctx, x, m, query, rows, lower, receipt)
}

// abandonUnsaved lets others ask again for what was charged and not saved, whatever the reason. A saved receipt is closed.
func (a *Answerer) abandonUnsaved(outcomes []ledger.Outcome) {
	for _, o := range outcomes {
		if o.Receipt != nil {
			a.ledger.Abandon(o.Receipt)
		}
	}
}

// randomness is what a session's releases are drawn from, marked where its policy wants them drawn in fixed work.
func (a *Answerer) randomness(s *Session) io.Reader {
	if s.Policy.Server.FixedWork {
		return mechanisms.FixedWork(a.random)
	}
	return a.random
}

// draw runs one paid measure, adds its noise and saves the release.
func (a *Answerer) draw(ctx context.Context, x *execution, m *plans.Measure, query rewrite.Query, rows trueCounts, lower heldLevel, receipt *ledger.Receipt) (int64, error) {
	if mechanisms.Is[*mechanisms.Alarm](m.Spec) {
		return a.openWatch(ctx, x, m, receipt)
	}
	if m.Continual != nil {
		return a.beginGrowing(ctx, x, m, receipt)
	}
	if mechanisms.Is[*mechanisms.Online](m.Spec) {
		return a.openSession(ctx, x, m, query, receipt)
	}
	var d drawn
	var err error
	if m.Refines() {
		drawn := spans.Begin(ctx, spans.Noise, spans.Table(m.Table.Name), spans.Kind(m.Kind))
		a.workers.Draw(x.User, func() { d, err = lower.refine(m, receipt, a.randomness(x.Session)) })
		drawn()
	} else {
		truth, failed := rows.groups()
		if failed != nil {
			a.log.ErrorContext(ctx, "paid measure was not run", "kind", m.Kind, "table", m.Table.Name, "error", failed)
			return 0, errInternal
		}
		drawn := spans.Begin(ctx, spans.Noise, spans.Table(m.Table.Name), spans.Kind(m.Kind))
		a.workers.Draw(x.User, func() {
			d, err = released(m, receipt.Levels(), truth, a.randomness(x.Session), x.Policy.Server.Timing.Fresh)
		})
		drawn()
	}
	if err != nil {
		a.log.ErrorContext(ctx, "no release was drawn", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	return a.saved(ctx, x, m, receipt, d)
}

// saved saves what was drawn for a measure.
func (a *Answerer) saved(ctx context.Context, x *execution, m *plans.Measure, receipt *ledger.Receipt, d drawn) (int64, error) {
	id, err := a.save(ctx, x, receipt, d)
	if err != nil {
		a.log.ErrorContext(ctx, "release was not saved", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errLedger
	}
	return id, nil
}

// savePatience is how long the drawn releases of a statement wait together for a ledger that is away: as long as a standby takes to be
// promoted. The charge is durable by then, so what is given up here is paid and lost.
const (
	savePatience = time.Minute
	savePause    = 2 * time.Second // at most, between two tries
)

// save saves what was drawn. Saving again stores the same draw, never another one.
func (a *Answerer) save(ctx context.Context, x *execution, receipt *ledger.Receipt, d drawn) (id int64, err error) {
	defer spans.Begin(ctx, spans.Save)()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, savePause) {
		switch {
		case d.levels != nil:
			id, err = a.ledger.SaveLevels(ctx, receipt, d.levels)
		case d.finest.Valid():
			id, err = a.ledger.SaveFirst(ctx, receipt, d.noisy, d.finest)
		default:
			id, err = a.ledger.Save(ctx, receipt, d.noisy)
		}
		if err == nil {
			x.failing = time.Time{}
			return id, nil
		}
		if !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrFull) {
			return 0, err
		}
		if x.failing.IsZero() {
			x.failing = time.Now()
		}
		if time.Since(x.failing) > savePatience {
			return 0, err
		}
		time.Sleep(pause)
	}
}

// readsOnce tells whether all that is released of a measure comes from rows that are read when it is bought.
func readsOnce(m *plans.Measure) bool {
	return !m.Refines() && m.Continual == nil && !mechanisms.Is[*mechanisms.Online](m.Spec) && !mechanisms.Is[*mechanisms.Alarm](m.Spec)
}

// Item is a measure as the ledger is asked for it.
func Item(m *plans.Measure) ledger.Item {
	it := ledger.Item{Digest: ledger.Digest(m.Digest), Kind: m.Kind, Name: m.Name, Table: m.Table.Schema + "." + m.Table.Name,
		Shared: m.Shared, Cost: m.Cost, Spec: m.Spec, Described: m.Describe(), Ladder: ladderOf(m)}
	if m.Continual != nil {
		it.Spec = m.Continual.Spec
	}
	if m.Declared != nil {
		it.Refresh = m.Declared.Refresh
	}
	return it
}

// chargeFailure says why nothing was charged. An analyst learns her own balance, and of the dataset's cap only that it is
// spent (privacy rule 1).
func (a *Answerer) chargeFailure(ctx context.Context, s *Session, plan *plans.Plan, err error) error {
	switch {
	case errors.Is(err, ledger.ErrRefined):
		return err // for answerRetrying
	case errors.Is(err, ledger.ErrExhausted):
		f := &pgerror.Failure{SQLState: "DP001", Message: "your privacy budget does not hold this query"}
		if b, e := a.ledger.Balance(ctx, s.User, s.Dataset.ID); e == nil {
			f.Detail = fmt.Sprintf("It costs %s; you have spent %s of %s.", plan.Cost.In(b.Limit), b.Spent.In(b.Limit), b.Limit)
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
	a.log.ErrorContext(ctx, "charge failed", "user", s.User, "dataset", s.Dataset.ID, "error", err)
	return errLedger
}
