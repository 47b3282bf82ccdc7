package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/sandbox"
)

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
	r, err := a.answerRetrying(ctx, s, stmt, params, &l)
	if err == nil {
		a.keepAnswer(s, &l, r)
	}
	return r, err
}

// keepAnswer keeps an answer that would be the same again. What is made anew in microseconds is kept when it is asked a
// second time: most of what is asked of a slider, or of a map that is moved about, never is, and to keep it takes as
// long as to make it.
func (a *Answerer) keepAnswer(s *Session, l *lookup, r Result) {
	if r.repeatable && (!r.quick || a.remembered.meets(s, l)) {
		a.remembered.keepAnswer(s, l, r)
	}
}

// AtOnce is the answer to a SELECT that is kept whole, or that takes microseconds to read from what is held (quickly).
// It does not wait: where other proxies write the ledger, what they have written is waited for before each answer, and
// none is given so. What cannot be given so is for Answer.
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
	p, err := a.compileQuickly(ctx, s, &l)
	planned()
	if p.plan == nil || err != nil {
		return Result{}, false
	}
	x := newExecution(s, stmt.Text)
	defer x.admitted.done()
	r, failed := a.answerCompiled(ctx, x, p)
	if failed != nil {
		return Result{}, false
	}
	a.keepAnswer(s, &l, r)
	return r, true
}

// maxPlans bounds how often a statement begins again.
const maxPlans = 32

// answerRetrying has a statement answered by what is held when it pays. It begins again where that is not what it was
// planned by: it has found keys that the plan needs, or answered sub-queries, or another session of hers has refined,
// or lost, what this one was to refine. Nothing else is charged then, so that each time is a whole statement. What is
// held cannot be kept from changing instead: a user's sessions, on all the proxies of a ledger, plan without waiting
// for one another, and meet at the charge.
func (a *Answerer) answerRetrying(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value, l *lookup) (Result, error) {
	x := newExecution(s, stmt.Text)
	defer x.admitted.done()
	for again := 0; ; again++ {
		r, err := a.answer(ctx, x, stmt, params, l)
		overtaken := err == errPlanAnew || errors.Is(err, ledger.ErrRefined)
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
	if !stmt.Explain.SQL {
		e.leaveOutSQL()
	}
	if !stmt.Explain.JSON {
		return textResult("QUERY PLAN", policy.Text, "EXPLAIN", e.lines(stmt.Explain.SQL)...), nil
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
