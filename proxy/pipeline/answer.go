// Package pipeline answers one statement: it plans, prices, charges, reads, draws, saves and post-processes, and says
// in notices and EXPLAIN what that cost and how exact it is. It is where the packages meet, and knows nothing of the
// wire: a Session tells it who asks, a Result is what the session encodes.
//
// An example: SELECT count(*) FROM people comes to Answerer.Answer, which finds no kept answer (lookup.go). answer
// plans and renders it (compile.go), waits for a slot of its user's and one of the database's (admit.go), charges
// (purchase.go), draws and saves (life.go), estimates the leaf's cells from the saved release (read.go), runs the outer
// query over them, and adds the notice "cost: ε 0.1; left: ε 0.9; ±37 at 95 %" (notices.go). Asked again it is read
// from what is held, for free.
package pipeline

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Answerer is the Pipeline of a running proxy: the one place where the packages meet. answer shows the way of a query.
type Answerer struct {
	ledger     ledger.Ledger
	log        *slog.Logger
	workers    *admission.Workers
	public     *PublicRows
	holdings   holdingsIndex
	remembered remembered

	account  *account
	database *database
	releases *releases
	buyer    *buyer
	outside  *outside
	reader   *reader
}

// Statements keeps the texts of statements that were charged, where a policy says that they are kept.
type Statements interface {
	Keep(statement ledger.Digest, text string)
}

// KeepStatements has the texts of charged statements kept from now on. It is called before the first statement.
func (a *Answerer) KeepStatements(in Statements) { a.buyer.statements = in }

// Charges counts what was charged, for the operator.
type Charges interface {
	Charged(dataset, kind string)
}

// NewAnswerer wires a pipeline. random is crypto/rand (buffered) in production.
func NewAnswerer(b backend.Backend, l ledger.Ledger, e sandbox.Engine, random io.Reader, log *slog.Logger, charges Charges) *Answerer {
	a := &Answerer{ledger: l, log: log, workers: admission.NewWorkers(sandboxSlots(e), databaseSlots(b)), public: &PublicRows{}, remembered: remembered{room: maxRemembered}}
	a.account = &account{ledger: l, log: log}
	a.database = &database{backend: b, purchases: admission.NewSlots(purchaseBurst), workers: a.workers, log: log}
	a.releases = &releases{database: a.database, ledger: l, random: random, log: log}
	a.buyer = &buyer{releases: a.releases, charges: charges}
	a.outside = &outside{engine: e, workers: a.workers, account: a.account}
	a.reader = &reader{releases: a.releases, outside: a.outside}
	return a
}

// sandboxSlots is how many queries a sandbox runs at a time; without one there are none to bound.
func sandboxSlots(e sandbox.Engine) int {
	if e == nil {
		return 0
	}
	return e.Slots()
}

// databaseSlots is how many queries a private database runs at a time.
func databaseSlots(b backend.Backend) int {
	if b == nil {
		return 0
	}
	return b.Slots()
}

// Workers are those that admit what the pipeline works on; a Server that shares them admits what it parses and encodes.
func (a *Answerer) Workers() *admission.Workers { return a.workers }

// Drain waits until every purchase under way is saved.
func (a *Answerer) Drain() { a.buyer.paid.Wait() }

// answer is the way of one SELECT: each line takes what the one before it made. It begins once and asks nothing twice;
// what it finds out that it was not planned by is for answerRetrying to begin again with.
func (a *Answerer) answer(ctx context.Context, x *execution, stmt parse.Statement, params []policy.Value, l *lookup) (Result, error) {
	planned := spans.Begin(ctx, spans.Plan)
	p, refusal := a.compile(ctx, x, stmt, params, l) // a Plan, and a Query of each of its measures
	planned()
	if refusal != nil {
		return Result{}, refusal
	}
	return a.answerCompiled(ctx, x, p)
}

// answerCompiled is the rest of the way, of what is planned and written: what is too dear is refused, what must be
// known first is answered first, for which the statement is planned anew; else it is bought, read and told.
func (a *Answerer) answerCompiled(ctx context.Context, x *execution, p compiled) (Result, error) {
	if a.needsRows(p.plan) {
		if ReadsRows(ctx); !a.inForce(x.Session) {
			return Result{}, ErrPolicy
		}
	}
	if err := tooDear(x, p.plan.Cost); err != nil {
		return Result{}, err
	}
	if len(p.plan.Inner)+len(p.plan.Finds) > 0 {
		return Result{}, a.answerFirst(ctx, x, p)
	}
	p.copies = a.public.copiesFor(p.plan)
	bought, err := a.buyer.buy(ctx, x, p.plan, p.queries) // a Receipt each, Sensitive groups, and what is Released of them and saved
	if err != nil {
		return Result{}, err
	}
	result := Result{Tag: "SELECT", Notices: a.notices(ctx, x, p, bought)} // the cost is told even if what follows fails
	result.Last = a.account.lastOf(ctx, x, p, bought, result.Notices)
	defer spans.Begin(ctx, spans.Outer)()
	answers, told, err := a.releases.askAll(ctx, x, p.plan, bought.ids)
	x.admitted.done()
	if err != nil {
		return result, err
	}
	result.Notices = withDetail(result.Notices, told)
	result.Last.tell(result.Notices)
	if result.Rows, err = a.reader.rows(ctx, x.Session, p, bought.ids, answers); err != nil {
		return result, err
	}
	result.Notices = a.reader.dated(ctx, x.Session, p.plan, bought.ids, toldNoise(result.Notices, p.plan, result.Rows.Value()))
	result.Last.tell(result.Notices)
	result.Columns, result.repeatable = a.outside.numbered(x.Session, p.plan.Outputs, result.Rows.Value().Columns), repeatable(p.plan, bought) && x.prior.answers == nil
	result.quick = p.quick
	return result, nil
}

// needsRows reports whether private rows are read for a plan, or what was kept of them: a function of the policy, her
// own history and what she was told.
func (a *Answerer) needsRows(plan *plans.Plan) bool {
	return len(plan.Finds) > 0 || isOnline(plan) || a.releases.behind(plan) || slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool { return !m.Held }) ||
		slices.ContainsFunc(plan.Inner, func(in *plans.Inner) bool { return a.needsRows(in.Plan) })
}

// inForce reports whether the session's policy is still the ledger's. Another proxy may have put another one in force:
// under this one nothing is charged any more, and what was paid before reads no rows.
func (a *Answerer) inForce(s *Session) bool {
	digest, ruled := a.ledger.Policy()
	return ruled && digest == s.Policy.Digest
}

// ErrPolicy refuses, before anything is charged, a statement that was planned under another policy than the ledger's:
// its session asks again.
var ErrPolicy = &pgerror.Failure{SQLState: "DP003", Message: "the policy has just changed; nothing was charged", Hint: "Ask again."}

// purchaseBurst is the time over which a user's purchases a second are counted.
const purchaseBurst = 10 * time.Second

var (
	errInternal  = &pgerror.Failure{SQLState: "58000", Message: "internal error; the details are in the operator's log", Logged: true}
	errOvertaken = &pgerror.Failure{SQLState: "DP003", Message: "other sessions of yours changed what you have again and again; nothing more was charged", Hint: "Ask again."}
	errElsewhere = &pgerror.Failure{SQLState: "55006", Message: "this session or run of alarms is open in another proxy; nothing was asked", Hint: "Ask through that proxy. When it has ended, the next question here goes on, at one update."}
	errLedger    = &pgerror.Failure{SQLState: "DP003", Message: "the ledger is not available; nothing is answered without it", Hint: "Ask again later. What was charged stays charged, and a saved answer stays free.", Logged: true}
)
