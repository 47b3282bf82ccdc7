// Package pipeline answers one statement: it plans, prices, charges, reads, draws, saves and post-processes, and says
// in notices and EXPLAIN what that cost and how exact it is. It is where the packages meet, and knows nothing of the
// wire: a Session tells it who asks, a Result is what the session encodes.
//
// An example: SELECT count(*) FROM people comes to Answerer.Answer, which finds no kept answer (compile.go). answer
// plans and renders it (compile.go), waits for a slot of its user's and one of the database's (admit.go), charges
// (purchase.go), draws and saves (life.go), estimates the leaf's cells from the saved release (read.go), runs the outer
// query over them, and adds the notice "cost: ε 0.1; left: ε 0.9; ±37 at 95 %" (notices.go). Asked again it is read
// from what is held, for free.
package pipeline

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
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
// known first is answered first, for which the statement is planned anew; else it is bought, read and answered.
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
	result := Result{Tag: "SELECT", Notices: a.notices(ctx, x, p, bought)} // the cost is shown even if what follows fails
	result.Last = a.account.lastOf(ctx, x, p, bought, result.Notices)
	defer spans.Begin(ctx, spans.Outer)()
	answers, told, err := a.releases.askAll(ctx, x, p.plan, bought.ids)
	x.admitted.done()
	if err != nil {
		return result, err
	}
	result.Notices = withDetail(result.Notices, told)
	result.Last.tell(result.Notices)
	var off []string
	if result.Rows, off, err = a.reader.rows(ctx, x.Session, p, bought.ids, answers); err != nil {
		return result, err
	}
	notices := toldNoise(toldOff(result.Notices, off), p.plan, result.Rows.Value())
	notices = a.reader.climbed(ctx, x.Session, p.plan, bought.ids, notices)
	result.Notices = a.reader.dated(ctx, x.Session, p.plan, bought.ids, notices)
	result.Last.tell(result.Notices)
	result.Columns, result.repeatable = a.outside.numbered(x.Session, p.plan.Outputs, result.Rows.Value().Columns), repeatable(p.plan, bought) && x.prior.answers == nil
	result.quick = p.quick
	return result, nil
}

// needsRows reports whether private rows are read for a plan, or what was kept of them: a function of the policy, her
// own history and what she was answered.
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

// execution is one statement on its way through the pipeline: who asks, and what its parts tell one another. Of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average is bought and answered first, and the statement is planned again with it: that is in prior by then, and
// what admission has granted for the average serves the count as well.
type execution struct {
	*Session
	begun    time.Time
	going    bool   // what is answered first may have been charged, or read: see hurried
	text     string // of the statement, for the operator; empty means it is none
	prior    prior
	since    int64 // the first number of a release that it was not planned by; 0 means that is not known
	token    bool  // it has had its user's token of purchases
	admitted grants
	failing  time.Time // since when the ledger does not save what was drawn; of the goroutine that draws

	mu      sync.Mutex
	charged privacy.Cost // all that it has been charged
}

// prior is what a statement has bought before it is planned to the end: keys that nobody declared, and answers of
// sub-queries.
type prior struct {
	cost    privacy.Cost
	answers map[string]*plans.Answer // of sub-queries, by their keys; never changed, but replaced
}

// newExecution begins to execute a statement. Whoever does ends it by admitted.done.
func newExecution(s *Session, text string) *execution {
	return &execution{Session: s, begun: time.Now(), text: text, admitted: grants{holders: 1}}
}

// plannedBy notes what it is planned by.
func (x *execution) plannedBy(held []ledger.Release) {
	x.since = 1
	for _, r := range held {
		x.since = max(x.since, r.ID+1)
	}
}

// wasCharged notes what has been charged by now: whoever draws knows it first, and the client may have left meanwhile.
func (x *execution) wasCharged(all privacy.Cost) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.charged = all
}

// chargedSoFar is what it has been charged by now.
func (x *execution) chargedSoFar() privacy.Cost {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.charged
}

// Pace is what a statement tells the grid on which its answer leaves (ADRs 36 and 45). A context without one keeps to
// none.
type Pace struct {
	ReadsRows func() // private rows are read
	AwaitGrid func() // a clock may be asked, whose time is in the answer: waits for the grid if rows were read
}

type paceKey struct{}

// WithPace is a context of one statement, which keeps to its session's pace.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// ReadsRows says that private rows are read for what this context belongs to. Whoever calls it decides by public
// things.
func ReadsRows(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.ReadsRows()
	}
}

// awaitGrid is called before a clock may be asked.
func awaitGrid(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.AwaitGrid()
	}
}

// What a statement costs may change between EXPLAIN and the statement: a policy is reloaded, a release is revoked,
// another session of hers refines one. SET dp.max_cost = 0.1 has it refused then, before anything of it is charged: who
// was shown a price pays that or less (docs/adr/0134). It looks at the plan, so that it depends on what the price
// depends on, and on nothing else.
//
//	SET dp.max_cost = 0; SELECT count(*) FROM people   -- answered if it is free, and else not

// tooDear is the error of a plan that costs more than the session lets it, together with what was bought first for it.
// A cost is in ρ where it names ρ, and else in ε, as amounts are in dp.budget. δ is bounded by dp.delta.
func tooDear(x *execution, cost privacy.Cost) error {
	if x.Settings.MaxCost == nil || cost.IsZero() {
		return nil
	}
	whole := x.prior.cost.Plus(cost)
	if withinMax(whole, *x.Settings.MaxCost) {
		return nil
	}
	kept := "nothing was charged"
	if !x.prior.cost.IsZero() {
		kept = "nothing more was charged"
	}
	return &pgerror.Failure{SQLState: "53400", Message: fmt.Sprintf("this costs %s, and dp.max_cost is %s; %s", whole, x.Settings.MaxCost, kept),
		Hint: "EXPLAIN shows what it costs and why. SET dp.max_cost = off lets it cost as much as dp.epsilon allows."}
}

// withinMax compares in units of 1e-12, in which both are whole. A δ alone is more than nothing.
func withinMax(cost privacy.Cost, most privacy.Rho) bool {
	const picoPerMicro = 1_000_000
	epsilon := cost.Epsilon.Micro()
	return cost.Rho.Pico() <= most.Pico() && epsilon <= most.Pico()/picoPerMicro && (most.Pico() > 0 || cost.IsZero())
}

// Result is the answer to one statement.
type Result struct {
	Columns []sandbox.Column
	Rows    privacy.Released[sandbox.Rows]
	Tag     string // "SELECT", "EXPLAIN" or "SHOW"; the session adds the row count to SELECT
	Notices []Notice
	Last    *Last // what dp.last shows of it; nil means what it shows stays

	repeatable bool // the same again would be the same: see repeatable
	quick      bool // and is made anew in microseconds
}

// Notice is a NOTICE to the client. The zero Severity is NOTICE, the zero SQLState 00000.
type Notice struct {
	Severity string // "WARNING", "NOTICE", "INFO", "LOG" or "DEBUG"
	SQLState string
	Message  string
	Detail   string
	Hint     string
}

// Session is what the answer to a statement may know of a client, as it is at the start of one statement. It does
// not change afterwards, so that work which outlives the wait may go on reading it.
type Session struct {
	User     string
	Database string // as asked for at start-up: the dataset's id
	PID      uint32
	Policy   *policy.Policy // the snapshot that the statement lives by
	Dataset  *policy.Dataset
	Settings Settings
	Cursors  []sandbox.Cursor // for pg_cursors and pg_prepared_statements
	Prepared []*sandbox.Prepared
	Listed   func() []plans.Variable // for pg_settings
	Clients  func() []sandbox.Client // the sessions of the user, for pg_stat_activity
	Last     func() *Last            // what dp.last shows, nil before the first answer; nil means nothing ever
}

// Settings are the session's variables.
type Settings struct {
	plans.Settings                   // the dp.* variables, search path and time zone, typed
	MaxCost        *privacy.Rho      // dp.max_cost; nil means off
	Variables      map[string]string // every variable by lower-case name, for current_setting()
}
