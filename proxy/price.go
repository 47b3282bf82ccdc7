package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Pricer tells which statements of a script would be answered, by what, at what cost and with what error. It plans each
// as a session would, with the user's own settings, history and balance, and stops there: nothing is charged, and the
// private database is not known to it. What one statement would buy, the next ones hold, unless Each. Each statement is
// a message of its own, as psql sends them. A refusal ends no block: the statements behind it are priced as if it had
// not been there, so that one run names all that is refused.
type Pricer struct {
	Policy  *policy.Policy
	Dataset *policy.Dataset
	User    string
	Each    bool             // each statement is priced by itself
	Held    []ledger.Release // what she has paid for
	Balance ledger.Balance   // her account
	Private dialect.Dialect  // of the private database
	Public  reuse.PublicRows // nil: no public table was read, and what joins one is not priced
	Engine  sandbox.Engine   // nil: outer queries are written for PostgreSQL and not tried
	Now     time.Time
	Log     *slog.Logger

	settings *settings.Settings
	tx       transaction
	prepared map[string]parse.Statement // by PREPARE
	selects  []workload.BatchItem
	held     reuse.Holdings
	bought   []ledger.Release
	spent    accounting.Charge
	after    *ledger.Balance // after the statements so far; nil means there was none
}

// PricedStatus says what would become of a statement.
type PricedStatus string

// The outcomes.
const (
	PricedAnswered PricedStatus = "answered"
	PricedRefused  PricedStatus = "refused"
	PricedDear     PricedStatus = "over budget" // there is an answer, which the balance does not hold
	PricedSession  PricedStatus = "session"     // it asks nothing: SET, BEGIN, …
)

// Priced is what a Pricer says of one statement.
type Priced struct {
	From      int // byte offset of the statement in its script
	Select    int // of statements that ask something: their number, from 1
	Text      string
	ReadAs    string // in PostgreSQL's SQL, where it was written in another
	Status    PricedStatus
	Cost      privacy.Cost // zero: free
	Error     string       // of the counts in the answer, in words
	HalfWidth *big.Rat     // the largest of a column, in its own unit; nil means none is known by constants
	Leaves    []pipeline.OfferedLeaf
	Notes     []string
	RefusalID string           // of the catalogue, where it comes from there
	Failure   *pgerror.Failure // why not; Position counts characters of the whole script
}

// Set gives a setting its value as at the start of a session.
func (p *Pricer) Set(name, value string) error { return asError(p.session().Start(name, value)) }

// session are the settings, as the policy gives them to the user.
func (p *Pricer) session() *settings.Settings {
	if p.settings == nil {
		p.settings = settings.New(p.User, false)
		u := p.Policy.User(p.User)
		if u == nil {
			u = &policy.User{Name: p.User}
		}
		p.settings.Adopt(p.Dataset, u)
		p.hold(nil)
	}
	return p.settings
}

// Dialect is the dialect that the next statement is read in.
func (p *Pricer) Dialect() parse.Dialect { return p.session().Dialect() }

// Spent is what the statements so far would cost together.
func (p *Pricer) Spent() privacy.Cost { return p.spent.Cost }

// Share is what of the budget the statements so far would cost together.
func (p *Pricer) Share() float64 { return p.Balance.Share(p.spent) }

// Spend is what the statements so far would cost together, as a session's dp.epsilon that buys as much; where they are
// free, it is dp.epsilon itself.
func (p *Pricer) Spend() (privacy.Epsilon, error) {
	switch {
	case p.spent == (accounting.Charge{}):
		return p.session().Typed().Epsilon, nil
	case p.spent.Cost.Rho.Pico() == 0:
		return p.spent.Cost.Epsilon, nil
	}
	rho := p.spent.Concentrated().Cost.Rho
	e := p.Dataset.EpsilonFor(rho, p.Balance.Limit)
	if p.Dataset.RhoOf(e, p.Balance.Limit).Pico() > rho.Pico() && e.Micro() > 1 {
		e = privacy.MicroEpsilon(e.Micro() - 1)
	}
	return e, nil
}

// Left is the balance before the first statement.
func (p *Pricer) Left() privacy.Cost { return p.Balance.Left() }

// Batch plans all SELECTs so far together, as `dpproxy release` would buy them: from the policy and the statements
// alone, whatever she holds (and from the rows of public tables, where they were read).
func (p *Pricer) Batch(epsilon privacy.Epsilon) (*workload.Batch, error) {
	return workload.PlanBatch(p.selects, reuse.Context{Policy: p.Policy, Dataset: p.Dataset, User: p.User, Settings: p.session().Typed(), Public: p.Public, Now: p.Now}, epsilon)
}

// Script prices the statements of a text.
func (p *Pricer) Script(ctx context.Context, text string) ([]Priced, error) {
	var out []Priced
	for from := 0; from < len(text); {
		dialect := p.Dialect()
		pieces := parse.Split(text[from:], dialect)
		next := len(text)
		for i, piece := range pieces {
			one := p.piece(ctx, piece.Text, dialect)
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			one.From = from + piece.From
			if one.Failure != nil && one.Failure.Position > 0 {
				one.Failure.Position += utf8.RuneCountInString(text[:one.From])
			}
			out = append(out, one)
			if p.Dialect() != dialect && i+1 < len(pieces) {
				next = from + pieces[i+1].From
				break
			}
		}
		from = next
	}
	return out, nil
}

// piece prices one statement.
func (p *Pricer) piece(ctx context.Context, text string, dialect parse.Dialect) Priced {
	out := Priced{Text: text}
	commands, refusal := parseCommandsAs(text, dialect, p.Dataset)
	if refusal != nil {
		return out.refused(refusal)
	}
	if len(commands) != 1 {
		return out.refused(pgerror.New("42601", "this is no statement"))
	}
	k := &commands[0]
	out.ReadAs = k.Translation()
	inBlock := p.tx.block
	p.tx.enter(p.session())
	defer func() {
		if !p.tx.block {
			p.tx.end(p.settings, true)
		}
	}()
	switch {
	case k.Kind == parse.KindExplain:
		out.Status = PricedSession
		return out
	case !k.own() && k.Kind == parse.KindSelect, k.Kind == parse.KindCopy:
		return p.query(ctx, out, k.asked())
	case k.Kind == parse.KindDeclare: // which draws and pays, and FETCH is free
		if !k.Cursor.Hold && !inBlock {
			return out.refused(outsideBlock("DECLARE CURSOR"))
		}
		return p.query(ctx, out, k.asked())
	case k.Kind == parse.KindExecute:
		return p.execute(ctx, out, k)
	case k.refusal != nil:
		return out.refused(k.refusal)
	}
	out.Status = PricedSession
	if err := p.control(k); err != nil {
		return out.refused(err)
	}
	return out
}

// query prices a SELECT, and sets what it sets.
func (p *Pricer) query(ctx context.Context, out Priced, stmt parse.Statement) Priced {
	for _, a := range stmt.Assignments {
		if f := p.assignable(a); f != nil {
			return out.refused(f)
		}
	}
	s := &pipeline.Session{User: p.User, Database: p.Dataset.ID, Policy: p.Policy, Dataset: p.Dataset, Settings: inForce(p.session())}
	p.selects = append(p.selects, workload.BatchItem{Statement: stmt, Settings: s.Settings.Settings})
	out.Select = len(p.selects)
	balance := p.Balance
	if !p.Each && p.after != nil {
		balance = *p.after
	}
	offer, refusal := pipeline.Estimate{Private: p.Private, Engine: p.Engine, Holdings: p.held, Public: p.Public, Left: balance.Left(), Now: p.Now, Log: p.Log}.Offer(ctx, s, stmt)
	if refusal != nil {
		return out.refused(refusal)
	}
	for _, a := range stmt.Assignments {
		if err := p.assign(a); err != nil {
			return out.refused(err)
		}
	}
	plan := offer.Plan
	out.Status, out.Cost, out.Error, out.HalfWidth, out.Notes, out.Leaves = PricedAnswered, plan.Cost, offer.Error, offer.HalfWidth, plan.Notes, offer.Leaves
	if !balance.Holds(plan.Charge()) {
		out.Status = PricedDear
		out.Failure = pgerror.New("DP001", fmt.Sprintf("the budget does not hold it: it costs %s, and %s is left", plan.Cost, balance.Left().In(balance.Limit))).
			WithHint("A smaller dp.epsilon costs less and is less exact.")
		return out
	}
	p.spent = p.spent.Plus(plan.Charge())
	if !p.Each {
		next := balance.After(plan.Charge())
		p.after = &next
		p.hold(plan)
	}
	return out
}

// refined notes that a release has been refined: what refines it takes its place.
func (p *Pricer) refined(id int64) {
	for _, list := range [][]ledger.Release{p.Held, p.bought} {
		for i := range list {
			list[i].Refined = list[i].Refined || list[i].ID == id
		}
	}
}

// hold makes what a plan buys the user's own, for the statements behind it.
func (p *Pricer) hold(plan *plans.Plan) {
	if plan != nil {
		for _, m := range plan.Bought() {
			if m.Refines() {
				p.refined(m.Refinement.From)
			}
			if !m.Held {
				p.bought = append(p.bought, ledger.Release{ID: -1 - int64(len(p.bought)), Item: pipeline.Item(m), At: p.Now})
			}
		}
	}
	p.held = pipeline.HoldingsOf(append(append([]ledger.Release{}, p.Held...), p.bought...), p.User, p.Dataset.ID)
}

// unreadPublic is said of a statement whose price depends on the rows of a public table.
const unreadPublic = "the price depends on the rows of a public table, which were not read"

// refused says why a statement is not answered.
func (out Priced) refused(err error) Priced {
	out.Status, out.Failure = PricedRefused, pgerror.Describe(err)
	if r, ok := err.(*refuse.Refusal); ok {
		if out.RefusalID = r.ID; r.ID == "public-table-not-copied" { // nothing is served here that could copy it
			out.Failure.Message, out.Failure.Hint = unreadPublic, "Ask it of a running dpproxy: EXPLAIN tells its cost and charges nothing."
		}
	}
	return out
}

// Amount is a cost without its unit, and the unit; under either accountant, where costs are in two, with it.
func Amount(c privacy.Cost, a privacy.Accountant) (amount, unit string) {
	switch a {
	case privacy.ZCDP:
		return c.Rho.String(), "rho"
	case privacy.Either:
		return c.String(), "epsilon or rho"
	}
	return c.Epsilon.String(), "epsilon"
}

// Line is the line of a byte offset of a script, from 1.
func Line(script string, at int) int { return 1 + strings.Count(script[:at], "\n") }

// What a statement of a priced script does to those behind it, as in a session: settings and their transactions,
// prepared statements.

// asked is the SELECT that a statement holds, or is.
func (k *command) asked() parse.Statement {
	if k.Inner != nil {
		return *k.Inner
	}
	return k.Statement
}

// control does what a statement that asks nothing does to those behind it.
func (p *Pricer) control(k *command) error {
	s := p.session()
	switch k.Kind {
	case parse.KindSet:
		return p.set(k)
	case parse.KindReset:
		if k.name != "" {
			return asError(s.Reset(k.name, false))
		}
		s.ResetAll()
	case parse.KindDiscard:
		return p.discard(k.name)
	case parse.KindBegin:
		return p.tx.begin(s, k.modes)
	case parse.KindCommit, parse.KindRollback:
		return p.finish(k)
	case parse.KindSavepoint:
		if !p.tx.block {
			return outsideBlock("SAVEPOINT")
		}
		p.tx.savepoints = append(p.tx.savepoints, savepoint{name: k.name, state: s.State()})
	case parse.KindReleaseSavepoint:
		at, err := p.tx.find(k.name, "RELEASE SAVEPOINT")
		if err != nil {
			return err
		}
		p.tx.savepoints = p.tx.savepoints[:at]
	case parse.KindRollbackTo:
		at, err := p.tx.find(k.name, "ROLLBACK TO SAVEPOINT")
		if err != nil {
			return err
		}
		p.tx.savepoints = p.tx.savepoints[:at+1]
		s.Restore(p.tx.savepoints[at].state)
	case parse.KindPrepare:
		return p.prepare(k)
	case parse.KindDeallocate:
		if k.name == "" {
			clear(p.prepared)
		}
		delete(p.prepared, k.name)
	}
	return nil
}

func (p *Pricer) finish(k *command) error {
	s, commit, modes := p.session(), k.Kind == parse.KindCommit, [][2]string(nil)
	if k.chain {
		if modes = s.Modes(); !p.tx.block {
			return outsideBlock(map[bool]string{true: "COMMIT", false: "ROLLBACK"}[commit] + " AND CHAIN")
		}
	}
	p.tx.end(s, commit)
	if k.chain {
		return p.tx.chained(s, modes)
	}
	return nil
}

func (p *Pricer) set(k *command) error {
	s := p.session()
	for _, pair := range k.modes {
		if f := s.Set(pair[0], pair[1], k.local); f != nil {
			return f
		}
	}
	switch {
	case len(k.modes) > 0:
		return nil
	case k.standard:
		return asError(s.Reset(k.name, k.local))
	}
	if f := p.lasting(k.name, k.local); f != nil {
		return f
	}
	return asError(s.Set(k.name, k.value, k.local))
}

// lasting refuses a setting that would end with itself.
func (p *Pricer) lasting(name string, local bool) *pgerror.Failure {
	if p.tx.block {
		return nil
	}
	return vanishing(p.session(), name, local)
}

func (p *Pricer) discard(what string) error {
	switch strings.ToLower(what) {
	case "", "all":
		if p.tx.block {
			return pgerror.New("25001", "DISCARD ALL cannot run inside a transaction block")
		}
		clear(p.prepared)
		p.session().ResetAll()
	}
	return nil
}

func (p *Pricer) prepare(k *command) error {
	if _, there := p.prepared[k.name]; there {
		return pgerror.New("42P05", fmt.Sprintf("prepared statement %q already exists", k.name))
	}
	if p.prepared == nil {
		p.prepared = map[string]parse.Statement{}
	}
	p.prepared[k.name] = *k.Inner
	return nil
}

// execute prices EXECUTE of what the script has prepared. Arguments are values, which a session computes when it runs.
func (p *Pricer) execute(ctx context.Context, out Priced, k *command) Priced {
	stmt, ok := p.prepared[k.name]
	switch {
	case !ok:
		return out.refused(missingStatement(k.name))
	case k.ArgumentCount > 0:
		out.Status, out.Notes = PricedSession, []string{"EXECUTE with arguments is not priced: write the statement with its values"}
		return out
	}
	return p.query(ctx, out, stmt)
}

// assignable checks what set_config sets, before the statement is planned.
func (p *Pricer) assignable(a parse.Assignment) *pgerror.Failure {
	switch {
	case a.Each: // rows give it
		return nil
	case a.Name == "":
		return pgerror.New("22004", "SET requires parameter name")
	case a.Reset:
		_, f := settings.Resettable(a.Name)
		return f
	}
	if _, _, f := p.session().Check(a.Name, a.Value); f != nil {
		return f
	}
	return p.lasting(a.Name, a.Local)
}

func (p *Pricer) assign(a parse.Assignment) error {
	if a.Each {
		return nil
	}
	if a.Reset {
		return asError(p.session().Reset(a.Name, a.Local))
	}
	return asError(p.session().Set(a.Name, a.Value, a.Local))
}
