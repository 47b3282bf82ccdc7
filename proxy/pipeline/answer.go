// Package pipeline answers one statement: it plans, prices, charges, reads, draws, saves and post-processes, and says in notices
// and EXPLAIN what that cost and how exact it is. It is where the packages meet, and knows nothing of the wire: a Session tells
// it who asks, a Result is what the session encodes.
//
// An example: SELECT count(*) FROM people comes to Answerer.Answer, which finds no kept answer (answercache.go). answer plans
// and renders it (ready), waits for its turn and the database's (admit.go), charges, draws and saves (drawAll, draw),
// estimates the leaf's cells from the saved release (read.go), runs the outer query over them, and adds the notice
// "cost: ε 0.1; left: ε 0.9; ±37 at 95 %" (notices.go). Asked again it is read from what is held, for free.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Answerer is the Pipeline of a running proxy: the one place where the packages meet. answer shows the way of a query.
type Answerer struct {
	backend   backend.Backend
	ledger    ledger.Ledger
	engine    sandbox.Engine
	random    io.Reader
	log       *slog.Logger
	charges   Charges
	holdings  holdingsIndex
	estimates estimateCache
	answers   answerCache
	sessions  live[*mechanisms.Session]
	watches   live[*mechanisms.Watch]
	turns     *admission.Turns // of those who buy
	workers   *admission.Workers
	public    *PublicRows
	paid      sync.WaitGroup // purchases under way; they outlive their clients
}

// Charges counts what was charged, for the operator.
type Charges interface {
	Charged(dataset, kind string)
}

// NewAnswerer wires a pipeline. random is crypto/rand (buffered) in production.
func NewAnswerer(b backend.Backend, l ledger.Ledger, e sandbox.Engine, random io.Reader, log *slog.Logger, charges Charges) *Answerer {
	return &Answerer{backend: b, ledger: l, engine: e, random: random, log: log, charges: charges, public: &PublicRows{}, turns: admission.NewTurns(purchaseBurst), workers: admission.NewWorkers(places(e), queriesOf(b)),
		sessions: live[*mechanisms.Session]{what: "online release", lost: "steps of an online release cannot be read: it is taken for stopped", byID: map[int64]*instance[*mechanisms.Session]{}},
		watches:  live[*mechanisms.Watch]{what: "run of alarms", lost: "steps of a run of alarms cannot be read: it is taken for ended", byID: map[int64]*instance[*mechanisms.Watch]{}}}
}

// places is how many queries a sandbox runs at a time; without one there are none to bound.
func places(e sandbox.Engine) int {
	if e == nil {
		return 0
	}
	return e.Places()
}

// queriesOf is how many queries a private database runs at a time.
func queriesOf(b backend.Backend) int {
	if b == nil {
		return 0
	}
	return b.Places()
}

// Workers are those that admit what the pipeline works on; a Server that shares them admits what it parses and encodes.
func (a *Answerer) Workers() *admission.Workers { return a.workers }

// Drain waits until every purchase under way is saved.
func (a *Answerer) Drain() { a.paid.Wait() }

// answer is the way of one SELECT: plan, render, charge, execute, release, save, read, post-process.
func (a *Answerer) answer(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value, again func(*plans.Plan, purchase, Result)) (Result, error) {
	p, refusal := a.ready(ctx, s, stmt, params)
	if refusal != nil {
		return Result{}, refusal
	}
	ctx, done := inLine(ctx)
	defer done()
	if a.reads(p.plan) {
		if ReadsRows(ctx); !a.inForce(s) {
			return Result{}, errPolicy
		}
	}
	found := privacy.Cost{}
	if len(p.plan.Finds) > 0 {
		var err error
		if found, err = a.find(ctx, s, p.plan); err != nil {
			return Result{}, err
		}
		if p, refusal = a.ready(ctx, s, stmt, params); refusal != nil {
			return a.foundAlone(ctx, s, found), refusal
		}
	}
	bought, err := a.buy(ctx, s, p.plan, p.queries, found.IsZero())
	for try := 0; errors.Is(err, ledger.ErrRefined) && try < mostPlans; try++ { // by another session, since this was planned
		if p, refusal = a.ready(ctx, s, stmt, params); refusal != nil {
			return a.foundAlone(ctx, s, found), refusal
		}
		bought, err = a.buy(ctx, s, p.plan, p.queries, false)
	}
	if errors.Is(err, ledger.ErrRefined) {
		err = errRefined
	}
	if err != nil {
		return a.foundAlone(ctx, s, found), err
	}
	bought.charged = bought.charged.Plus(found)
	result := Result{Tag: "SELECT", Notices: a.foundNotices(ctx, s, p.plan, found, a.notices(ctx, s, p, bought))} // the cost is told even if what follows fails
	in, err := a.read(ctx, s, p.plan, bought.ids)
	done()
	if err != nil {
		return result, err
	}
	result.Notices = toldToo(result.Notices, in.told)
	err = a.workers.Run(ctx, s.User, s.Policy.Server.Limits, func(ctx context.Context) (err error) {
		readings, err := a.readings(s, p.plan, bought.ids)
		if err != nil {
			return err
		}
		leaves, err := leafTables(ctx, p.plan, readings, in.answers)
		if err == nil {
			result.Rows, err = a.postProcess(ctx, s, p.plan, p.outer, leaves)
		}
		if err == nil && p.plan.ErrorColumns && len(p.plan.Leaves) > 0 {
			result.Rows, err = a.withErrors(ctx, s, p.plan, p.outer, bought.ids, result.Rows)
		}
		return err
	})
	if err != nil {
		return result, err
	}
	result.Columns = result.Rows.Value().Columns
	again(p.plan, bought, result)
	return result, nil
}

// reads tells whether private rows are read for a plan, or what was kept of them: a function of the policy, her own history
// and what she was told.
func (a *Answerer) reads(plan *plans.Plan) bool {
	return len(plan.Finds) > 0 || isOnline(plan) || a.behind(plan) || slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool { return !m.Held })
}

// inForce tells whether the session's policy is still the ledger's. Another proxy may have put another one in force: under
// this one nothing is charged any more, and what was paid before reads no rows.
func (a *Answerer) inForce(s *Session) bool {
	digest, ruled := a.ledger.Policy()
	return ruled && digest == s.Policy.Digest
}

// purchaseBurst is the time over which a user's purchases a second are counted.
const purchaseBurst = 10 * time.Second

// mostPlans bounds how often a statement is planned anew because what it would refine was refined meanwhile.
const mostPlans = 8

// planContext is what the plan may depend on: the policy, her settings, her holdings; and what ends it.
func (a *Answerer) planContext(ctx context.Context, s *Session) reuse.Context {
	c := reuse.Context{Work: reuse.NewWork(ctx, planningLimits(s.Policy)), Policy: s.Policy, Dataset: s.Dataset, User: s.User, Settings: s.Settings.Settings, Public: a.public, Now: a.ledger.Now()}
	if s.Dataset != nil {
		c.Found, c.Left, c.AlarmsLeft = a.keysHeld(s), a.sessions.left(a, s), a.watches.left(a, s)
		c.Holdings = a.holdings.of(a.ledger.Holdings(s.User, s.Dataset.ID), s.User, s.Dataset.ID)
	}
	return c
}

// planningLimits are what planning one statement may take by the policy: its bytes, and so many steps as a core does in its
// processor time, which are counted and not measured, so that what is refused does not depend on the machine's load.
func planningLimits(p *policy.Policy) reuse.Limits {
	l := reuse.DefaultLimits
	if p != nil && p.Server.Limits.StatementCPU > 0 {
		l.Steps = int64(p.Server.Limits.StatementCPU.Seconds() * stepsPerSecond)
	}
	if p != nil && p.Server.Limits.StatementMemory > 0 {
		l.Bytes = p.Server.Limits.StatementMemory
	}
	return l
}

// stepsPerSecond is how many steps of planning stand for a second of processor time.
const stepsPerSecond = 20e6

// render writes all SQL of the plan before anything is charged, so that what cannot be written is refused for free.
func (a *Answerer) render(ctx context.Context, plan *plans.Plan) ([]rewrite.Query, outer.Query, *refuse.Refusal) {
	return render(ctx, plan, a.backend.Dialect(), a.engine.Dialect(), a.log)
}

// render writes a plan's SQL for a private database and a sandbox.
func render(ctx context.Context, plan *plans.Plan, private, sandboxed dialect.Dialect, log *slog.Logger) ([]rewrite.Query, outer.Query, *refuse.Refusal) {
	queries := make([]rewrite.Query, len(plan.Measures))
	for i, m := range plan.Measures {
		if ctx.Err() != nil {
			return nil, outer.Query{}, reuse.RefuseEnded(context.Cause(ctx))
		}
		if m.Refines() || m.Held && !mechanisms.Is[*mechanisms.Alarm](m.Spec) {
			continue
		}
		run, err := counted(m)
		switch {
		case mechanisms.Is[*mechanisms.Alarm](m.Spec):
			queries[i], err = renderAlarms(plan, i, private)
		case err == nil:
			queries[i], err = rewrite.Render(run, private)
		}
		if err != nil {
			log.Error("measure cannot be rendered", "measure", m.Name, "error", err)
			return nil, outer.Query{}, refuse.Unrendered()
		}
	}
	if plan.Outer.Direct != nil || plan.Outer.Tree == nil {
		return queries, outer.Query{}, nil
	}
	above, refusal := outer.Render(plan, sandboxed)
	return queries, above, refusal
}

// tryOuter has the sandbox bind the outer query over leaves without rows before anything is charged, so that what the
// engine cannot run is refused for free.
func (a *Answerer) tryOuter(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query) *refuse.Refusal {
	if plan.Outer.Direct != nil || plan.Cost.IsZero() {
		return nil
	}
	_, refusal := a.outerColumns(ctx, s, plan, above)
	return refusal
}

// purchase is what buy brings home: the saved release of each measure, and what this statement was charged.
type purchase struct {
	ids     []int64
	charged privacy.Cost
	err     error
}

// buy pays for the measures that are not held and has them drawn and saved. The work goes on to its end even when the
// client stops waiting: what is paid is answered, and saved, so that asking again is free (privacy rule 5). The first
// purchase of a statement counts against the user's rate.
func (a *Answerer) buy(ctx context.Context, s *Session, plan *plans.Plan, queries []rewrite.Query, first bool) (purchase, error) {
	p := purchase{ids: make([]int64, len(plan.Measures))}
	var wanted []int
	for i, m := range plan.Measures {
		p.ids[i] = m.HeldID
		if !m.Held {
			wanted = append(wanted, i)
		}
	}
	if len(wanted) == 0 && !a.behind(plan) {
		return p, nil
	}
	limits := s.Policy.Server.Limits
	if first && len(wanted) > 0 && !a.turns.Ticket(s.User, limits.PurchasesPerSecond, time.Now()) {
		return p, &pgerror.Failure{SQLState: "53400", Message: "too many statements that cost something; nothing was charged", Hint: "Ask again a second later. What you have paid for is answered meanwhile."}
	}
	if err := a.turn(ctx, s); err != nil {
		return p, err
	}
	if a.runs(plan, wanted) {
		if err := a.admit(ctx, s, planned(plan, queries, wanted), "nothing was charged"); err != nil {
			return p, err
		}
	}
	held := placeOf(ctx)
	held.hold()
	done := make(chan purchase, 1)
	a.paid.Add(1)
	go func() {
		defer a.paid.Done()
		defer held.release()
		done <- a.drawAll(context.WithoutCancel(ctx), s, plan, queries, wanted, p)
	}()
	select {
	case p = <-done:
		return p, p.err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}

// drawAll charges for the wanted measures in one step, then draws and saves each.
func (a *Answerer) drawAll(ctx context.Context, s *Session, plan *plans.Plan, queries []rewrite.Query, wanted []int, p purchase) (out purchase) {
	defer func() {
		if r := recover(); r != nil {
			a.log.Error("panic while drawing a release", "panic", fmt.Sprintf("%T", r))
			out.err = errInternal
		}
	}()
	request := ledger.Request{User: s.User, Dataset: s.Dataset.ID, Statement: ledger.Digest(plan.Statement), PolicyDigest: s.Policy.Digest}
	lower := make([]below, len(plan.Measures))
	for _, i := range wanted {
		if lower[i], p.err = a.below(ctx, s, plan.Measures[i]); p.err != nil {
			return p
		}
		it, err := Item(plan.Measures[i]), error(nil)
		if it.Levels, err = reuse.LevelsOf(plan.Measures[i]); err != nil {
			a.log.Error("levels of a release were not found", "measure", plan.Measures[i].Name, "error", err)
			p.err = errInternal
			return p
		}
		request.Items = append(request.Items, it)
	}
	var outcomes []ledger.Outcome
	var err error
	if len(wanted) > 0 {
		outcomes, err = a.ledger.Charge(ctx, request)
	}
	if err != nil {
		p.err = a.chargeFailure(ctx, s, plan, err)
		return p
	}
	defer a.abandonUnsaved(outcomes)
	for k, i := range wanted {
		p.charged = p.charged.Plus(outcomes[k].Charged)
		p.ids[i] = outcomes[k].ID
		if !outcomes[k].Charged.IsZero() {
			a.charges.Charged(s.Dataset.ID, plan.Measures[i].Kind)
		}
	}
	for k, i := range wanted {
		if outcomes[k].Receipt == nil {
			continue
		}
		if p.ids[i], err = a.draw(ctx, s, plan.Measures[i], queries[i], lower[i], outcomes[k].Receipt); err != nil {
			p.err = err
			return p
		}
	}
	p.err = a.growAll(ctx, s, plan, p.ids)
	return p
}

// abandonUnsaved lets others ask again for what was charged and not saved, whatever the reason. A saved receipt is closed.
func (a *Answerer) abandonUnsaved(outcomes []ledger.Outcome) {
	for _, o := range outcomes {
		if o.Receipt != nil {
			a.ledger.Abandon(o.Receipt)
		}
	}
}

// draw runs one paid measure, adds its noise and saves the release.
func (a *Answerer) draw(ctx context.Context, s *Session, m *plans.Measure, query rewrite.Query, lower below, receipt *ledger.Receipt) (int64, error) {
	if mechanisms.Is[*mechanisms.Alarm](m.Spec) {
		return a.beginWatch(ctx, s, m, receipt)
	}
	if m.Growth != nil {
		return a.beginGrowing(ctx, m, receipt)
	}
	if mechanisms.Is[*mechanisms.Online](m.Spec) {
		return a.begin(ctx, s, m, query, receipt)
	}
	var d drawn
	var err error
	if m.Refines() {
		a.workers.Draw(s.User, func() { d, err = lower.refine(m, receipt, a.random) })
	} else {
		truth, failed := a.execute(ctx, s, query, receipt)
		if failed != nil {
			a.log.Error("paid measure was not run", "measure", m.Name, "error", failed)
			return 0, errInternal
		}
		a.workers.Draw(s.User, func() {
			d, err = released(m, receipt.Levels(), truth, a.random, s.Policy.Server.Timing.Fresh)
		})
	}
	if err != nil {
		a.log.Error("no release was drawn", "measure", m.Name, "error", err)
		return 0, errInternal
	}
	return a.saved(ctx, m, receipt, d)
}

// saved saves what was drawn for a measure.
func (a *Answerer) saved(ctx context.Context, m *plans.Measure, receipt *ledger.Receipt, d drawn) (int64, error) {
	id, err := a.save(ctx, receipt, d)
	if err != nil {
		a.log.Error("release was not saved", "measure", m.Name, "error", err)
		return 0, errLedger
	}
	return id, nil
}

// savePatience is how long a drawn release waits for a ledger that is away: as long as a standby takes to be promoted. The
// charge is durable by then, so what is given up here is paid and lost.
const (
	savePatience = time.Minute
	savePause    = 2 * time.Second // at most, between two tries
)

// save saves what was drawn. Saving again stores the same draw, never another one.
func (a *Answerer) save(ctx context.Context, receipt *ledger.Receipt, d drawn) (id int64, err error) {
	begun := time.Now()
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
			return id, nil
		}
		away := errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrFull)
		if !away || time.Since(begun) > savePatience {
			return 0, err
		}
		time.Sleep(pause)
	}
}

// Item is a measure as the ledger is asked for it.
func Item(m *plans.Measure) ledger.Item {
	it := ledger.Item{Digest: ledger.Digest(m.Digest), Kind: m.Kind, Name: m.Name, Table: m.Table.Schema + "." + m.Table.Name,
		Shared: m.Shared, Cost: m.Cost, Spec: m.Spec, Described: m.Describe(), Ladder: ladderOf(m)}
	if m.Growth != nil {
		it.Spec = m.Growth.Spec
	}
	if m.Declared != nil {
		it.Refresh = m.Declared.Refresh
	}
	return it
}

var (
	errInternal  = &pgerror.Failure{SQLState: "58000", Message: "internal error; the details are in the operator's log"}
	errRefined   = &pgerror.Failure{SQLState: "DP003", Message: "what you have was refined by other sessions again and again; nothing was charged", Hint: "Ask again."}
	errPolicy    = &pgerror.Failure{SQLState: "DP003", Message: "the policy has just changed; nothing was charged", Hint: "Ask again."}
	errElsewhere = &pgerror.Failure{SQLState: "55006", Message: "this session or run of alarms is open in another proxy; nothing was asked", Hint: "Ask through that proxy. When it has ended, the next question here goes on, at one update."}
	errLedger    = &pgerror.Failure{SQLState: "DP003", Message: "the ledger is not available; nothing is answered without it", Hint: "Ask again later. What was charged stays charged, and a saved answer stays free."}
)

// chargeFailure says why nothing was charged. An analyst learns her own balance, and of the dataset's cap only that it is
// spent (privacy rule 1).
func (a *Answerer) chargeFailure(ctx context.Context, s *Session, plan *plans.Plan, err error) error {
	switch {
	case errors.Is(err, ledger.ErrRefined):
		return err // planned anew
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
		return errPolicy
	}
	a.log.Error("charge failed", "user", s.User, "dataset", s.Dataset.ID, "error", err)
	return errLedger
}
