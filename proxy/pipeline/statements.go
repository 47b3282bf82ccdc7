package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// explainColumn is the one column of EXPLAIN.
func explainColumn(t policy.Type) []plans.OutColumn {
	return []plans.OutColumn{{Name: "QUERY PLAN", Type: t, Typmod: -1}}
}

const jsonType policy.Type = 114

// Describe infers the parameters and columns of a statement. It is free and buys nothing.
func (a *Answerer) Describe(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type) (d plans.Description, refusal *refuse.Refusal) {
	refusal = a.worked(ctx, s, func(ctx context.Context) (refusal *refuse.Refusal) {
		if d, refusal = a.describe(ctx, s, stmt, given); refusal == nil && stmt.Kind == parse.KindSelect {
			d.Columns = a.described(s, d.Outputs, d.Columns)
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
			_, _ = describedPlan(stmt.Explain.Statement, d, c) // what it refuses, the execution explains
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

// worked plans or post-processes for a statement; what it may not take is a refusal like the planner's own.
func (a *Answerer) worked(ctx context.Context, s *Session, do func(context.Context) *refuse.Refusal) *refuse.Refusal {
	var refusal *refuse.Refusal
	err := a.workers.Run(ctx, s.User, s.Policy.Server.Limits, func(ctx context.Context) error {
		refusal = do(ctx)
		return nil
	})
	if err != nil {
		f := pgerror.Describe(err)
		return refuse.Invalid(f.SQLState, f.Message, f.Hint)
	}
	return refusal
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

// askSandbox has the sandbox name the columns of an outer query whose types only an engine knows. Its leaves stand there
// without rows.
func (a *Answerer) askSandbox(ctx context.Context, s *Session, stmt parse.Statement, d plans.Description, c reuse.Context) (plans.Description, *refuse.Refusal) {
	plan, refusal := describedPlan(stmt, d, c)
	if refusal != nil {
		return plans.Description{}, refusal
	}
	above, refusal := outer.Render(plan, a.engine.Dialect())
	if refusal != nil {
		return plans.Description{}, stmt.Placed(refusal)
	}
	columns, refusal := a.outerColumns(ctx, s, plan, above)
	if refusal != nil {
		return plans.Description{}, refusal
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

// describedPlan is the plan of a described statement, whose parameters have got the types that its outer query tells.
func describedPlan(stmt parse.Statement, d plans.Description, c reuse.Context) (*plans.Plan, *refuse.Refusal) {
	stmt.ParamTypes = d.Params // those that the client gave are among them
	plan, refusal := planner.Build(stmt, nil, c)
	if refusal != nil || !settle(d.Params, outer.Parameters(plan)) {
		return plan, refusal
	}
	return planner.Build(stmt, nil, c)
}

// settle fills in the types that were not known, and tells whether there are such.
func settle(params []policy.Type, told map[int]policy.Type) (any bool) {
	for n, t := range told {
		if n <= len(params) && (params[n-1] == 0 || params[n-1] == policy.Unknown) {
			params[n-1], any = t, true
		}
	}
	return any
}

// outerColumns are the columns of an outer query, over leaves without rows.
func (a *Answerer) outerColumns(ctx context.Context, s *Session, plan *plans.Plan, above outer.Query) ([]sandbox.Column, *refuse.Refusal) {
	tables := make([]sandbox.Table, 0, len(plan.Leaves))
	for _, leaf := range plan.Leaves {
		tables = append(tables, sandbox.Table{Name: leaf.Name, Rows: privacy.Published(sandbox.Rows{Columns: leafColumns(leaf)})})
	}
	var columns []sandbox.Column
	err := a.workers.Ask(ctx, s.Policy.Server.Limits, sandboxSession(s, plan), func(session sandbox.Session) (err error) {
		columns, err = a.engine.Describe(ctx, session, above, tables)
		return err
	})
	if err != nil {
		f := pgerror.Describe(err)
		return nil, refuse.Invalid(f.SQLState, f.Message, f.Hint)
	}
	return columns, nil
}

// Answer runs a statement.
func (a *Answerer) Answer(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (Result, error) {
	if params == nil { // no parameters, rather than parameters that are not known yet
		params = []policy.Value{}
	}
	if err := a.ledger.Follow(ctx); err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		a.log.ErrorContext(ctx, "ledger cannot be followed", "error", err)
		return Result{}, errLedger
	}
	switch stmt.Kind {
	case parse.KindSelect:
		return a.answerOrRepeat(ctx, s, stmt, params)
	case parse.KindExplain:
		return a.answerExplain(ctx, s, stmt, params)
	case parse.KindShow:
		return a.answerShow(ctx, s, stmt.Name)
	}
	return Result{}, errInternal
}

// answerOrRepeat answers a SELECT, from the kept answers where the same was answered for free before.
func (a *Answerer) answerOrRepeat(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (Result, error) {
	l := a.lookUp(s, stmt, params)
	if l.answered {
		return l.answer, nil
	}
	r, err := a.settled(ctx, s, stmt, params, &l)
	if err == nil {
		a.keepAnswer(s, &l, r)
	}
	return r, err
}

// keepAnswer keeps an answer that would be the same again. What is made anew in microseconds is kept when it is asked a second time: most of what is asked of a slider, or of a
// map that is moved about, never is, and to keep it takes as long as to make it.
func (a *Answerer) keepAnswer(s *Session, l *lookup, r Result) {
	if r.repeatable && (!r.quick || a.remembered.meets(s, l)) {
		a.remembered.keepAnswer(s, l, r)
	}
}

// AtOnce is the answer to a SELECT that is kept whole, or that takes microseconds to read from what is held (quickly). It does not wait: where other proxies write the
// ledger, what they have written is waited for before each answer, and none is given so. What cannot be given so is for Answer.
func (a *Answerer) AtOnce(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (Result, bool) {
	if stmt.Kind != parse.KindSelect || s.Dataset == nil || a.ledger.Shared() {
		return Result{}, false
	}
	if params == nil {
		params = []policy.Value{}
	}
	l := a.lookUp(s, stmt, params)
	if l.answered {
		return l.answer, true
	}
	planned := spans.Begin(ctx, spans.Plan)
	p, err := a.readyQuickly(ctx, s, &l)
	planned()
	if p.plan == nil || err != nil {
		return Result{}, false
	}
	x := newExecution(s, stmt.Text)
	defer x.admitted.done()
	r, failed := a.answerReady(ctx, x, p)
	if failed != nil {
		return Result{}, false
	}
	a.keepAnswer(s, &l, r)
	return r, true
}

// maxPlans bounds how often a statement begins again.
const maxPlans = 32

// settled has a statement answered by what is held when it pays. It begins again where that is not what it was planned by: it has found
// keys that the plan needs, or answered sub-queries, or another session of hers has refined, or lost, what this one was to refine. Nothing else is charged
// then, so that each time is a whole statement. What is held cannot be kept from changing instead: a user's sessions, on all the
// proxies of a ledger, plan without waiting for one another, and meet at the charge.
func (a *Answerer) settled(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value, l *lookup) (Result, error) {
	x := newExecution(s, stmt.Text)
	defer x.admitted.done()
	for again := 0; ; again++ {
		r, err := a.answer(ctx, x, stmt, params, l)
		overtaken := err == errFound || errors.Is(err, ledger.ErrRefined)
		if overtaken && again < maxPlans {
			*l = a.lookUp(s, stmt, params)
			continue
		}
		if overtaken {
			err = errOvertaken
		}
		if err != nil && len(r.Notices) == 0 {
			r = a.unanswered(ctx, x)
		}
		return r, err
	}
}

func (a *Answerer) answerExplain(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (r Result, err error) {
	plan, refusal := a.foreseen(ctx, s, stmt, params)
	if refusal != nil {
		return Result{}, refusal
	}
	err = a.workers.Run(ctx, s.User, s.Policy.Server.Limits, func(ctx context.Context) (err error) {
		r, err = a.explainResult(ctx, s, stmt, plan)
		return err
	})
	return r, err
}

func (a *Answerer) explainResult(ctx context.Context, s *Session, stmt parse.Statement, plan *plans.Plan) (Result, error) {
	e, refusal := a.explain(ctx, s, plan)
	if refusal != nil {
		return Result{}, refusal
	}
	e.ReadAs = stmt.Explain.Statement.Translation()
	if stmt.Explain.NoSQL {
		e.leaveOutSQL()
	}
	if !stmt.Explain.JSON {
		return textResult("QUERY PLAN", policy.Text, "EXPLAIN", e.lines()...), nil
	}
	text, err := json.MarshalIndent([]map[string]explanation{{"Plan": e}}, "", "  ")
	if err != nil {
		return Result{}, err
	}
	return textResult("QUERY PLAN", jsonType, "EXPLAIN", string(text)), nil
}

// Budget is what SHOW knows beside the settings.
const Budget = "dp.budget"

// ErrUnknownName is the answer to SHOW of a name that is neither a setting nor Budget.
var ErrUnknownName = errors.New("no such name")

// answerShow answers SHOW dp.budget, which is no setting: what is left, in one line.
func (a *Answerer) answerShow(ctx context.Context, s *Session, name string) (Result, error) {
	if name != Budget {
		return Result{}, ErrUnknownName
	}
	if s.Dataset == nil {
		return Result{}, &pgerror.Failure{SQLState: "3D000", Message: "no dataset"}
	}
	b, err := a.ledger.Balance(ctx, s.User, s.Dataset.ID)
	if err != nil {
		return Result{}, errLedger
	}
	text := fmt.Sprintf("%s of %s left%s", b.Left().In(b.Limit), b.Limit, windowText(b))
	return textResult(name, policy.Text, "SHOW", text), nil
}

// textResult is one column of lines.
func textResult(column string, t policy.Type, tag string, lines ...string) Result {
	columns := []sandbox.Column{{Name: column, Type: t, Typmod: -1}}
	data := make([][]policy.Value, len(lines))
	for i, l := range lines {
		data[i] = []policy.Value{l}
	}
	return Result{Columns: columns, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: data}), Tag: tag}
}
