package pipeline

import (
	"context"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
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
	return d, refusal
}

func (a *Answerer) describe(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal) {
	switch stmt.Kind {
	case parse.KindShow:
		return plans.Description{Columns: []plans.OutColumn{{Name: stmt.Name, Type: policy.Text, Typmod: -1}}}, nil
	case parse.KindExplain:
		c := a.planContext(ctx, s, prior{})
		d, ask, refusal := planner.Describe(stmt.Explain.Statement, given, c)
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
	d, ask, refusal := planner.Describe(stmt, given, c)
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

// askSandbox has the sandbox name the columns of an outer query whose types only an engine knows. Its leaves stand
// there without rows.
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
		plan, refusal := planner.Build(stmt, nil, c)
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
