package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// compile plans a statement, writes all its SQL, and has the sandbox try the outer query: what cannot be answered is
// refused for free, also where keys are placeholders of those to be found.
func (a *Answerer) compile(ctx context.Context, x *execution, stmt parse.Statement, params []policy.Value, l *lookup) (r compiled, refusal *refuse.Refusal) {
	x.plannedBy(l.held)
	if r, refusal = a.compileQuickly(ctx, x.Session, l); r.plan != nil {
		return r, refusal
	}
	r.begun = len(x.prior.answers) > 0
	refusal = a.worked(ctx, x.Session, func(ctx context.Context) (refusal *refuse.Refusal) {
		if r.plan, refusal = a.plan(ctx, x, stmt, params, l); refusal != nil {
			return refusal
		}
		return stmt.Placed(a.write(ctx, x.Session, &r))
	})
	return r, refusal
}

// compileQuickly is compile for what takes microseconds (quickly); without a plan it is something else.
func (a *Answerer) compileQuickly(ctx context.Context, s *Session, l *lookup) (r compiled, refusal *refuse.Refusal) {
	if r.plan = a.quickly(l); r.plan != nil {
		r.quick = true
		refusal = a.write(ctx, s, &r)
	}
	return r, refusal
}

// write writes all that a plan needs, and refuses what cannot be answered.
func (a *Answerer) write(ctx context.Context, s *Session, r *compiled) (refusal *refuse.Refusal) {
	if most := s.Policy.Server.Limits.StatementMemory / 2; most > 0 && leafBytes(r.plan) > most {
		return refuse.Invalid("54000", "the released tables of this statement need more than "+policy.SizeText(most)+" (half of server.limits.statement_memory)",
			"Group by fewer or coarser keys.")
	}
	if r.queries, r.outer, refusal = a.render(ctx, r.plan); refusal != nil {
		return refusal
	}
	if !r.begun && slices.ContainsFunc(r.queries, rewrite.Query.TooLong) {
		return refuse.TooLong()
	}
	if r.errors = errorParts(r.plan, tellsOff(r.plan)); ctx.Err() != nil {
		return reuse.RefuseEnded(context.Cause(ctx))
	}
	if len(r.plan.Inner) > 0 {
		r.inner = map[string]compiled{}
		if refusal = a.compileInner(ctx, s, r.plan, r.inner); refusal != nil {
			return refusal
		}
	}
	return a.outside.try(ctx, s, r.plan, r.outer)
}

// compiled is a statement that is planned and whose SQL is written, so that it may be paid for.
type compiled struct {
	plan    *plans.Plan
	queries []rewrite.Query
	outer   outer.Query
	errors  []string            // how exact it will be
	copies  []sandbox.Table     // of the public tables that its outer query reads
	inner   map[string]compiled // its sub-queries that are answered first, by their keys
	begun   bool                // a part of the statement has been paid for: what is around it is bounded by its cells (semantics.maxAnswered)
	quick   bool                // planning and reading it take microseconds, and no slot
}

// leafBytes is about how much memory the released tables of a plan take, from their numbers of rows and columns.
func leafBytes(plan *plans.Plan) (bytes int64) {
	for _, in := range plan.Inner {
		bytes += leafBytes(in.Plan)
	}
	for _, leaf := range plan.Leaves {
		bytes += int64(leaf.Rows) * int64(sandbox.RowSize(len(leaf.Keys)+len(leaf.Counts)))
	}
	return bytes
}

// planContext is what the plan may depend on: the policy, her settings, her holdings, what was bought before it; and
// what ends it.
func (a *Answerer) planContext(ctx context.Context, s *Session, first prior) reuse.Context {
	c := reuse.Context{Work: reuse.NewWork(ctx, planningLimits(s.Policy)), Policy: s.Policy, Dataset: s.Dataset, User: s.User, Settings: s.Settings.Settings, Public: a.public, Answers: first.answers, Now: a.ledger.Now()}
	if s.Dataset != nil {
		c.Found, c.Left = a.keysHeld(s), a.releases.left(ctx, s)
		c.Holdings = a.holdings.of(a.ledger.Holdings(s.User, s.Dataset.ID), s.User, s.Dataset.ID)
	}
	if s.Dataset != nil && s.Dataset.Accountant == privacy.Either {
		if b, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID); err == nil {
			left := b.Left()
			c.Unspent = &left
		}
		switch found := first.cost; { // what is asked of keys that were found for it stays in the unit that they were paid in
		case found.Rho.Pico() != 0:
			c.Priced = privacy.ZCDP
		case found.Epsilon.Micro() != 0:
			c.Priced = privacy.Pure
		}
	}
	return c
}

// planningLimits are what planning one statement may take by the policy: its bytes, and so many steps as a core does in
// its processor time, which are counted and not measured, so that what is refused does not depend on the machine's
// load.
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

// stepsPerSecond is how many steps of planning count as a second of processor time.
const stepsPerSecond = 20e6

// render writes all SQL of the plan before anything is charged, so that what cannot be written is refused for free.
func (a *Answerer) render(ctx context.Context, plan *plans.Plan) ([]rewrite.Query, outer.Query, *refuse.Refusal) {
	return render(ctx, plan, a.database.backend.Dialect(), a.log)
}

// render writes a plan's SQL for a private database and the sandbox.
func render(ctx context.Context, plan *plans.Plan, private dialect.Dialect, log *slog.Logger) ([]rewrite.Query, outer.Query, *refuse.Refusal) {
	queries, once := make([]rewrite.Query, len(plan.Measures)), []int{}
	var together []*plans.Measure
	for i, m := range plan.Measures {
		if ctx.Err() != nil {
			return nil, outer.Query{}, reuse.RefuseEnded(context.Cause(ctx))
		}
		if !m.Held && m.IsTooLong() {
			return nil, outer.Query{}, refuse.LongMeaning()
		}
		when := m.Reads()
		if m.Held && when != plans.EachQuestion {
			continue
		}
		if when == plans.Once {
			once, together = append(once, i), append(together, m)
			continue
		}
		q, err := renderQueried(plan, i, private)
		if err != nil {
			return nil, outer.Query{}, unrendered(ctx, log, m, err)
		}
		queries[i] = q
	}
	written, err := rewrite.RenderAll(ctx, together, private)
	if ctx.Err() != nil {
		return nil, outer.Query{}, reuse.RefuseEnded(context.Cause(ctx))
	}
	if err != nil {
		return nil, outer.Query{}, unrendered(ctx, log, together[0], err)
	}
	for k, i := range once {
		queries[i] = written[k]
	}
	if plan.Outer.Direct != nil || plan.Outer.Tree == nil {
		return queries, outer.Query{}, nil
	}
	above, refusal := outer.Render(plan)
	return queries, above, refusal
}

// renderQueried writes the SQL of a measure that is not read once, and returns the first of its queries.
func renderQueried(plan *plans.Plan, i int, private dialect.Dialect) (first rewrite.Query, err error) {
	list, err := queried(plan, i)
	for _, m := range list {
		q, err := rewrite.Render(m, private)
		if err != nil {
			return first, err
		}
		if !first.Valid() {
			first = q
		}
	}
	return first, err
}

// unrendered refuses a measure whose SQL cannot be written, which is a fault of ours but where it would be too long.
func unrendered(ctx context.Context, log *slog.Logger, m *plans.Measure, err error) *refuse.Refusal {
	if errors.Is(err, rewrite.ErrTooLong) {
		return refuse.TooLong()
	}
	log.ErrorContext(ctx, "measure cannot be rendered", "kind", m.Kind, "table", m.Table.Name, "error", err)
	return refuse.Unrendered()
}

// lookup is a statement that is asked, with what is remembered of it (remembered.go). It is looked up once, before
// anything else is done for it.
type lookup struct {
	lifted    parse.Lifted
	held      []ledger.Release
	statement []byte // the key of its text, without what a template leaves open; nil means nothing is kept of it
	values    []byte // the key of its parameters, or of the numbers that were lifted out of it
	valued    bool   // it has one: answers to parameters of rare types are not kept
	template  *planner.Template
	answer    Result
	answered  bool // whole, as it was when it was asked before
}

// lookUp looks a statement up.
func (a *Answerer) lookUp(s *Session, stmt parse.Statement, params []policy.Value) (l lookup) {
	l.lifted = parse.Lift(stmt, params)
	if s.Dataset == nil {
		return l
	}
	l.held = a.ledger.Holdings(s.User, s.Dataset.ID)
	key := appendStatement(make([]byte, 0, 384), s, l.lifted.Text, &stmt, a.public.version())
	n := len(key)
	key, l.valued = appendValues(key, l.lifted.Values)
	l.statement, l.values = key[:n:n], key[n:]
	a.remembered.find(s, &l)
	return l
}

// appendStatement adds what an answer depends on besides the policy, the holdings and the values of parameters: what is
// asked of which dataset, with which types of parameters and settings, its literals read how, over which copies of the
// public tables. When they were read is left out: what depends on the time is not kept.
func appendStatement(b []byte, s *Session, asked string, stmt *parse.Statement, copies int64) []byte {
	types := stmt.ParamTypes
	text := func(t string) {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	b = binary.AppendVarint(b, copies)
	text(s.Dataset.ID)
	text(asked)
	b = binary.AppendUvarint(b, uint64(len(types)))
	for _, t := range types {
		b = binary.AppendUvarint(b, uint64(t))
	}
	set := &s.Settings.Settings
	b = binary.AppendVarint(append(b, '|'), set.Epsilon.Micro())
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.Confidence.Float()))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.MaxError))
	text(set.Contribution.String())
	b = binary.AppendVarint(binary.AppendVarint(b, int64(set.Alarms)), set.Delta.Atto())
	b = append(b, flag(set.CoversAll))
	b = append(b, flag(set.ErrorColumns), flag(set.Significant), flag(set.Release), byte(set.Probes), byte(set.OffGrid), flag(stmt.HandedOn))
	if set.Zone != nil {
		text(set.Zone.String())
		_, east := time.Unix(0, 0).In(set.Zone).Zone() // '+05:30' names two: as an interval, and in POSIX's sign
		b = binary.AppendVarint(b, int64(east))
	}
	text(set.Form.Dates)
	text(set.Form.Intervals)
	b = append(b, set.Form.Digits)
	earlier := !stmt.Literals.SameSettings(set.Zone, set.Form)
	if b = append(b, flag(earlier)); earlier {
		text(stmt.Literals.Zone.String())
		text(stmt.Literals.Form.Dates)
		text(stmt.Literals.Form.Intervals)
	}
	b = binary.AppendUvarint(b, uint64(len(set.SearchPath)))
	for _, schema := range set.SearchPath {
		text(schema)
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// appendValues adds the values of parameters; false means some are of rare types.
func appendValues(b []byte, values []policy.Value) (with []byte, ok bool) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.AppendVarint(append(b, 'i'), v)
		case bool:
			b = fmt.Appendf(b, "b%t", v)
		case string:
			b = append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
		case float64:
			b = binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case policy.Date:
			b = binary.AppendVarint(append(b, 'd'), int64(v))
		case policy.Timestamp:
			b = binary.AppendVarint(append(b, 't'), int64(v))
		case policy.Timestamptz:
			b = binary.AppendVarint(append(b, 'z'), int64(v))
		case policy.Time:
			b = binary.AppendVarint(append(b, 'h'), int64(v))
		default:
			return b, false
		}
	}
	return b, true
}

// A statement whose parameters alone change is planned from a template (ADR 86), which is kept with its answers.

// plan plans a statement that was looked up, from its template where there is one.
func (a *Answerer) plan(ctx context.Context, x *execution, stmt parse.Statement, params []policy.Value, l *lookup) (*plans.Plan, *refuse.Refusal) {
	if l.template != nil {
		if p := l.template.Plan(l.lifted); p != nil {
			return p, nil
		}
	}
	c := a.planContext(ctx, x.Session, x.prior)
	p, refusal := a.outside.build(ctx, x.Session, stmt, params, c)
	refusal = toFetcher(x.Session.Settings.Variables["application_name"], stmt, refusal)
	if refusal != nil || l.statement == nil || l.lifted.Empty() || !sameList(l.held, a.ledger.Holdings(x.User, x.Dataset.ID)) {
		return p, refusal
	}
	if t := planner.TemplateOf(stmt, params, p, c); t != nil && !slices.ContainsFunc(l.held, undescribed) {
		a.remembered.keepTemplate(x.Session, l, t)
	}
	return p, nil
}

// quickly returns the plan of a statement that is read in microseconds from what is held already, asked before or not,
// or nil if it takes a slot of its user's to plan it, or to read it. What it takes is bounded by the template: one row,
// of one sum of the cells of one release.
func (a *Answerer) quickly(l *lookup) *plans.Plan {
	if l.template == nil {
		return nil
	}
	p := l.template.Quick(l.lifted)
	if p == nil || p.WantsErrors() || !a.reader.estimates.kept(p.Measures[0].HeldID) {
		return nil
	}
	return p
}

// undescribed reports whether the planner finds a release by its digest alone, which a template does not look for.
func undescribed(r ledger.Release) bool {
	return len(r.Item.Described) == 0 || r.Item.Described[0] != plans.DescribedVersion
}

// Estimate is what statements are planned by without a ledger and without a private database: nothing is charged.
type Estimate struct {
	Private  dialect.Dialect // of the private database
	Engine   sandbox.Engine  // nil: outer queries are written for PostgreSQL and not tried
	Holdings reuse.Holdings
	Public   reuse.PublicRows // nil: no public table was read
	Left     privacy.Cost     // of her budget
	Now      time.Time
	Log      *slog.Logger
}

// Offer is by what a SELECT would be answered.
type Offer struct {
	Plan      *plans.Plan
	Error     string   // of the columns of the answer, in words
	HalfWidth *big.Rat // the largest of a column, in its own unit; nil means none is known by constants
	Leaves    []OfferedLeaf
}

// OfferedLeaf is how one aggregation is answered.
type OfferedLeaf struct {
	SQL, Table, Kind, Source, Mechanism, Cost string
	Errors                                    []string
}

// Offer plans a SELECT, writes its SQL and has the sandbox try the outer query.
func (e Estimate) Offer(ctx context.Context, s *Session, stmt parse.Statement) (Offer, *refuse.Refusal) {
	sandboxed := &outside{engine: e.Engine, workers: admission.NewWorkers(0, 0)}
	c := reuse.Context{Policy: s.Policy, Dataset: s.Dataset, User: s.User, Settings: s.Settings.Settings, Holdings: e.Holdings, Public: e.Public, Now: e.Now, Unspent: &e.Left}
	plan, refusal := sandboxed.build(ctx, s, stmt, []policy.Value{}, c)
	if refusal != nil {
		return Offer{}, refusal
	}
	explain := func(p *plans.Plan) (explanation, *refuse.Refusal) {
		queries, above, refusal := render(context.Background(), p, e.Private, e.Log)
		if refusal == nil && p.Outer.Direct == nil && e.Engine != nil {
			_, refusal = sandboxed.bound(ctx, s, p, above)
		}
		if refusal != nil {
			return explanation{}, refusal
		}
		return explained(p, queries, above), nil
	}
	first, refusal := innerLeaves(plan, explain)
	if refusal != nil {
		return Offer{}, refusal
	}
	own, refusal := explain(plan)
	if refusal != nil {
		return Offer{}, refusal
	}
	offer := Offer{Plan: plan, Error: strings.Join(errorParts(plan, nil), "; ")}
	if most, ok := widest(plan); ok {
		offer.HalfWidth = most.rat()
	}
	for _, l := range append(first, own.Leaves...) {
		offer.Leaves = append(offer.Leaves, OfferedLeaf{SQL: l.SQL, Table: l.Table, Kind: l.Kind, Source: l.Source, Mechanism: l.Mechanism, Cost: l.Cost, Errors: l.Errors})
	}
	return offer, nil
}

// HoldingsOf are a user's releases of a dataset, as planning reads them.
func HoldingsOf(releases []ledger.Release, user, dataset string) reuse.Holdings {
	return (&holdingsIndex{}).of(releases, user, dataset)
}
