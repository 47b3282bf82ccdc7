package pipeline

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What a statement would answer, for who asks before it is run: the Describe of a driver, for whom SELECT sex, count(*)
// FROM people WHERE age > $1 GROUP BY sex has the parameter $1 of type integer, and the columns sex and count.

// explainColumn is the one column of EXPLAIN.
func explainColumn(t policy.Type) []plans.OutColumn {
	return []plans.OutColumn{{Name: "QUERY PLAN", Type: t, Typmod: -1}}
}

const jsonType policy.Type = 114

// Describe infers the parameters and columns of a statement. It is free and buys nothing.
func (a *Answerer) Describe(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type) (d plans.Description, refusal *refuse.Refusal) {
	refusal = a.worked(ctx, s, func(ctx context.Context) (refusal *refuse.Refusal) {
		if d, refusal = a.describe(ctx, s, stmt, given); refusal == nil && stmt.Kind == parse.KindSelect {
			d.Columns = a.outside.described(s, d.Outputs, d.Columns)
		}
		return refusal
	})
	return d, toFetcher(s.Settings.Variables["application_name"], stmt, refusal)
}

func (a *Answerer) describe(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal) {
	switch stmt.Kind {
	case parse.KindShow:
		return plans.Description{Columns: []plans.OutColumn{{Name: stmt.Name, Type: policy.Text, Typmod: -1}}}, nil
	case parse.KindExplain:
		c := a.planContext(ctx, s, prior{})
		d, ask, refusal := a.inferred(ctx, s, stmt.Explain.Statement, given, c)
		if refusal != nil {
			return plans.Description{}, refusal
		}
		if ask {
			_, _, _ = a.describedPlan(ctx, s, stmt.Explain.Statement, d, c) // what it refuses, the execution explains
		}
		t := policy.Text
		if stmt.Explain.JSON {
			t = jsonType
		}
		return plans.Description{Params: d.Params, Columns: explainColumn(t)}, nil
	}
	c := a.planContext(ctx, s, prior{})
	d, ask, refusal := a.inferred(ctx, s, stmt, given, c)
	if refusal != nil {
		return plans.Description{}, refusal
	}
	if ask {
		return a.askSandbox(ctx, s, stmt, d, c)
	}
	if c.Settings.ErrorColumns {
		d.Columns = withBoundColumns(d.Columns)
	}
	return d, nil
}

// inferred is planner.Describe of a statement of which the sandbox knows some types.
func (a *Answerer) inferred(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type, c reuse.Context) (
	d plans.Description, ask bool, refusal *refuse.Refusal,
) {
	refusal = a.outside.typed(ctx, s, c, func(c reuse.Context) (refusal *refuse.Refusal) {
		d, ask, refusal = planner.Describe(stmt, given, c)
		return refusal
	})
	return d, ask, refusal
}

// withBoundColumns adds x_low and x_high behind each noisy column x.
func withBoundColumns(columns []plans.OutColumn) []plans.OutColumn {
	var out []plans.OutColumn
	for _, c := range columns {
		out = append(out, c)
		if c.Noisy && c.Bound == plans.Unbounded {
			low, high := c, c
			low.Name, high.Name = c.Name+"_low", c.Name+"_high"
			out = append(out, low, high)
		}
	}
	return out
}

// askSandbox has the sandbox name the columns of an outer query whose types only an engine knows. Its leaves are there
// without rows.
func (a *Answerer) askSandbox(ctx context.Context, s *Session, stmt parse.Statement, d plans.Description, c reuse.Context) (plans.Description, *refuse.Refusal) {
	plan, columns, refusal := a.describedPlan(ctx, s, stmt, d, c)
	if refusal != nil {
		return plans.Description{}, refusal
	}
	if plan.Outer.Tree == nil {
		if c.Settings.ErrorColumns {
			d.Columns = withBoundColumns(d.Columns)
		}
		return d, nil
	}
	d.Columns = make([]plans.OutColumn, len(columns))
	for i, col := range columns {
		d.Columns[i] = plans.OutColumn{Name: col.Name, Type: col.Type, Typmod: col.Typmod}
		if i < len(plan.Columns) {
			d.Columns[i].Noisy, d.Columns[i].Bound = plan.Columns[i].Noisy, plan.Columns[i].Bound
		}
	}
	if c.Settings.ErrorColumns && len(plan.Leaves) > 0 && len(plan.Columns) == len(columns) {
		d.Columns = withBoundColumns(d.Columns)
	}
	return d, nil
}

// describedPlan is the plan of a described statement, and its columns. Its parameters have got the types that its outer
// query gives them, and those of its sub-queries that are answered first.
func (a *Answerer) describedPlan(ctx context.Context, s *Session, stmt parse.Statement, d plans.Description, c reuse.Context) (*plans.Plan, []sandbox.Column, *refuse.Refusal) {
	stmt.ParamTypes = d.Params // those that the client gave are among them
	for {
		plan, refusal := a.outside.build(ctx, s, stmt, nil, c)
		if refusal != nil {
			return plan, nil, refusal
		}
		columns, any, refusal := a.outside.settled(ctx, s, plan, d.Params)
		if refusal != nil || !any {
			return plan, columns, stmt.Placed(refusal)
		}
	}
}

// settled has the sandbox bind a plan, after those that are answered first, and reports whether it found types that
// were not known.
func (o *outside) settled(ctx context.Context, s *Session, plan *plans.Plan, params []policy.Type) (
	columns []sandbox.Column, any bool, refusal *refuse.Refusal,
) {
	for _, in := range plan.Inner {
		_, found, refusal := o.settled(ctx, s, in.Plan, params)
		if any = any || found; refusal != nil {
			return nil, any, refusal
		}
	}
	if plan.Outer.Tree == nil {
		return nil, any, nil
	}
	above, refusal := outer.Render(plan)
	if refusal != nil {
		return nil, any, refusal
	}
	bound, refusal := o.bound(ctx, s, plan, above)
	return bound.Columns, settle(params, bound.Params) || any, refusal
}

// settle fills in the types that were not known, and reports whether there were any.
func settle(params []policy.Type, found map[int]policy.Type) (any bool) {
	for n, t := range found {
		if n <= len(params) && (params[n-1] == 0 || params[n-1] == policy.Unknown) {
			if params[n-1], any = t, true; t == policy.Unknown {
				params[n-1] = policy.Text
			}
		}
	}
	return any
}

// A query may fail whatever is released: by its constants, to_char(n, '9.9.9') on each row that there is, or by what it
// takes of the processor and of memory. It is run before the charge over leaves that have the public keys and made-up
// numbers of several magnitudes: the first that it does not fail on is enough, and what fails by a value on all of
// them, with one SQLSTATE, is taken to fail on all there are. Nothing in it is private, so that what is refused tells
// nothing.
//
//	SELECT k, to_char(n, '9.9.9') FROM leaf_1   fails on all
//	SELECT k, 100 / n FROM leaf_1               fails on the zeros
//	SELECT k FROM leaf_1 WHERE n > 5            fails on none

// magnitudes are what the numbers of the leaves that are tried are about.
var magnitudes = []int64{1_000_000, 1000, 0}

// mostProbed is how many rows of a leaf are made up at first: what fails, fails on these. Where a leaf has more, all of
// them show what the query takes.
const mostProbed = 10_000

// probe refuses a query that fails over made-up leaves, or that takes too much over leaves of as many rows as theirs.
func (o *outside) probe(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query) *refuse.Refusal {
	var first *refuse.Refusal
	for _, about := range magnitudes {
		refusal, final := o.probeWith(ctx, s, plan, above, about, mostProbed)
		if refusal == nil && slices.ContainsFunc(plan.Leaves, func(l *plans.Leaf) bool { return l.CertainRows() > mostProbed }) {
			if refusal, final = o.probeWith(ctx, s, plan, above, about, math.MaxInt); !final {
				return nil
			}
		}
		if refusal == nil || final {
			return refusal
		}
		if first != nil && refusal.SQLState != first.SQLState {
			return nil
		}
		if first != nil && refusal.Message != first.Message {
			refusal.Message = "a value of the query is not valid where it stands" // theirs would show a made-up number
		}
		first = refusal
	}
	first.Hint = refuse.OfConstants
	return first
}

// probeWith runs an outer query over leaves of most rows at most, of numbers of one magnitude, in processor time of its
// own. It returns nil if the query does not fail there, and final if no other magnitude is to be tried: the query takes
// more than it may.
func (o *outside) probeWith(
	ctx context.Context, s *Session, plan *plans.Plan, above outer.Query, about int64, most int,
) (refusal *refuse.Refusal, final bool) {
	tables := make([]sandbox.Table, 0, len(plan.Leaves))
	for _, leaf := range plan.Leaves {
		tables = append(tables, sandbox.Table{Name: leaf.Name, Rows: privacy.Published(madeUp(leaf, about, most))})
	}
	limits := s.Policy.Server.Limits
	var spent time.Duration
	err := o.workers.Ask(admission.Metered(ctx), limits, sandboxSession(s, plan), func(session sandbox.Session) error {
		session.Unreleased, session.Took = true, func(took time.Duration) { spent = took }
		_, err := o.engine.Query(ctx, session, above, tables)
		return err
	})
	var fault *scalar.Error
	switch {
	case ctx.Err() != nil:
		return reuse.RefuseEnded(context.Cause(ctx)), true
	case err == nil && limits.StatementCPU > 0 && spent > limits.StatementCPU/2: // what is charged for needs as much again, and its plan some
		return refuse.Invalid("57014", "canceling statement: the query over released answers would take more than half of its "+
			limits.StatementCPU.String()+" of processor time (server.limits.statement_cpu)", "Ask for less at once. Nothing was charged."), true
	case err == nil:
		return nil, false
	case errors.As(err, &fault) && ofAValue(fault.SQLState):
		return refuse.Invalid(fault.SQLState, fault.Message, ""), false
	}
	f := pgerror.Describe(err)
	return refuse.Invalid(f.SQLState, f.Message, "Nothing was charged."), true
}

// ofAValue reports whether an error is of what a query computes, and not of what it takes or of the sandbox.
func ofAValue(state string) bool {
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "42" || state[:2] == "21" || state[:2] == "0A")
}

// madeUp are rows of a leaf with numbers of a magnitude: as many as it certainly has, but most of them at most.
func madeUp(leaf *plans.Leaf, about int64, most int) sandbox.Rows {
	rows := sandbox.Rows{Columns: leafColumns(leaf)}
	for r := range min(leaf.CertainRows(), most) {
		row := make([]policy.Value, 0, len(rows.Columns))
		for _, k := range leaf.Keys {
			row = append(row, k.Values[r])
		}
		for c := range leaf.Counts {
			n := about + about/1000*int64(r%500+7*c)
			if leaf.Counts[c].Width {
				n = -1 // each count is above it: no row is left out, no average NULL
			}
			row = append(row, madeUpNumber(rows.Columns[len(leaf.Keys)+c].Type, n))
		}
		rows.Data = append(rows.Data, row)
	}
	return rows
}

// madeUpNumber is a number as a value of a type; NULL if the type is none of numbers.
func madeUpNumber(t policy.Type, n int64) policy.Value {
	switch {
	case t == policy.Int2:
		return n % 30000
	case t.Integer():
		return n
	case t.Floating():
		return float64(n)
	case t == policy.NumericType:
		return policy.NewNumeric(n, 0)
	}
	return nil
}
