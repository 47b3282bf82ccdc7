package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// compile plans a statement, writes all its SQL, and has the sandbox try the outer query: what cannot be answered is
// refused for free, also where keys stand in for those to be found.
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
	if r.errors = errorParts(r.plan); ctx.Err() != nil {
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
	begun   bool                // a part of the statement has been paid for: what stands around it is bounded by its cells (semantics.maxAnswered)
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

// stepsPerSecond is how many steps of planning stand for a second of processor time.
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
