package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What a statement needs before it can be planned to the end is bought first: answers of sub-queries in its conditions
// (ADR 117), and keys of columns whose values nobody declared. Then it is planned anew, with them. Of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the first time round buys the average, the second time the count.

// answerFirst buys what comes first, if the budget holds the whole statement, and says so by errPlanAnew. Nothing of
// the statement is charged before all of it has been planned, rendered and tried; from then on what is charged is saved
// and stays hers, whatever becomes of the rest.
func (a *Answerer) answerFirst(ctx context.Context, x *execution, r compiled) error {
	plan, free := r.plan, false
	for _, in := range plan.Inmost() { // whatever the budget holds: what is left to buy is known, or nothing, once these are answered
		if !in.Plan.Cost.IsZero() || a.needsRows(in.Plan) {
			continue
		}
		if err := a.answerInner(ctx, x, in.Key, r.inner[in.Key]); err != nil {
			return err
		}
		free = true
	}
	if free {
		return errPlanAnew
	}
	if b, err := a.ledger.Balance(ctx, x.User, x.Dataset.ID); err == nil && !b.Holds(plan.Charge()) {
		return a.buyer.chargeFailure(ctx, x.Session, plan, ledger.ErrExhausted)
	}
	if refusal := x.hurried(ctx); refusal != nil {
		return refusal
	}
	for _, in := range plan.Inmost() {
		if len(in.Plan.Finds) > 0 {
			return a.findKeys(ctx, x, in.Plan)
		}
		if err := a.answerInner(ctx, x, in.Key, r.inner[in.Key]); err != nil {
			return err
		}
	}
	if len(plan.Inner) == 0 {
		return a.findKeys(ctx, x, plan)
	}
	return errPlanAnew
}

// hurried refuses a statement where its deadline leaves less time for the rest, which is planned anew, than has passed
// until it was planned as a whole. It is asked before anything is charged and any row is read, once: what is read first
// may be free, a session that goes on or a run of alarms, which takes updates or positives, and how long that took is
// not to decide a refusal. On a grid (Policy.Server.Timing) a statement has no deadline here, and none is refused.
func (x *execution) hurried(ctx context.Context) *refuse.Refusal {
	end, bound := ctx.Deadline()
	if !bound || x.going || time.Until(end) > time.Since(x.begun) {
		x.going = true
		return nil
	}
	return refuse.Invalid("57014", "canceling statement: planning it took half of the time that statement_timeout gives it, "+
		"and it would be planned twice", "Nothing was charged. Set a longer statement_timeout.")
}

// answerInner answers one sub-query, which waits for nothing, and keeps what was released for the rest of its
// statement.
func (a *Answerer) answerInner(ctx context.Context, x *execution, key string, r compiled) error {
	bought, err := a.buyer.buy(ctx, x, r.plan, r.queries)
	x.prior.cost = bought.charged
	if err != nil {
		return err
	}
	answer, err := a.innerAnswer(ctx, x, key, r, bought.ids)
	if err == nil {
		x.prior.answers = withAnswer(x.prior.answers, key, answer)
	}
	return err
}

// innerAnswer reads a sub-query's answer from what was saved.
func (a *Answerer) innerAnswer(ctx context.Context, x *execution, key string, r compiled, ids []int64) (*plans.Answer, error) {
	answers, _, err := a.releases.askAll(ctx, x, r.plan, ids)
	if err != nil {
		return nil, err
	}
	rows, off, err := a.reader.rows(ctx, x.Session, r, ids, answers)
	if err != nil {
		return nil, err
	}
	released := rows.Value()
	answer := &plans.Answer{Rows: released.Data, Private: r.plan.Private(), Columns: answerColumns(released.Columns)}
	if !answer.Private { // it is as it is
		return answer, nil
	}
	exact := ""
	if errors := slices.Concat(r.errors, off); len(errors) > 0 {
		exact = " (" + strings.Join(errors, "; ") + ")"
	}
	answer.Notes = append([]string{"answered first" + cameTo(answer) + ": " + key + exact + ". The rest is counted for what was released of it"}, r.plan.Notes...)
	return answer, nil
}

// withAnswer is a map with one more answer. The one before is left as it is: plans that are being made read it.
func withAnswer(before map[string]*plans.Answer, key string, answer *plans.Answer) map[string]*plans.Answer {
	after := map[string]*plans.Answer{key: answer}
	for k, have := range before {
		after[k] = have
	}
	return after
}

// cameTo tells a single value, or how many rows there are.
func cameTo(answer *plans.Answer) string {
	if len(answer.Rows) != 1 || len(answer.Columns) != 1 {
		return fmt.Sprintf(", %d row%s", len(answer.Rows), plural(len(answer.Rows)))
	}
	if answer.Rows[0][0] == nil {
		return ", NULL"
	}
	return ", " + policy.FormatValue(answer.Columns[0].Type, answer.Rows[0][0])
}

// compileInner does for sub-queries what compile does for a statement: it writes their SQL, has the sandbox try what
// is above them, and finds how exact they will be.
func (a *Answerer) compileInner(ctx context.Context, s *Session, plan *plans.Plan, list map[string]compiled) (refusal *refuse.Refusal) {
	for _, in := range plan.Inner {
		r := compiled{plan: in.Plan}
		if r.queries, r.outer, refusal = a.render(ctx, in.Plan); refusal != nil {
			return refusal
		}
		if slices.ContainsFunc(r.queries, rewrite.Query.TooLong) {
			return refuse.TooLong()
		}
		if refusal = a.compileInner(ctx, s, in.Plan, list); refusal != nil {
			return refusal
		}
		if refusal = a.outside.try(ctx, s, in.Plan, r.outer); refusal != nil {
			return refusal
		}
		r.errors, r.copies = errorParts(in.Plan, tellsOff(in.Plan)), a.public.copiesFor(in.Plan)
		list[in.Key] = r
	}
	return nil
}

// foreseen plans a statement for EXPLAIN: sub-queries that are free are answered, so that what is around them is
// planned as it will be.
func (a *Answerer) foreseen(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (plan *plans.Plan, refusal *refuse.Refusal) {
	x := newExecution(s, "") // which buys nothing
	defer x.admitted.done()
	for again := 0; ; again++ {
		inner := map[string]compiled{}
		refusal = a.worked(ctx, s, func(ctx context.Context) (refusal *refuse.Refusal) {
			c := a.planContext(ctx, s, x.prior)
			c.Alternatives = stmt.Explain.Alternatives
			if plan, refusal = a.outside.build(ctx, s, stmt.Explain.Statement, params, c); refusal != nil {
				return toFetcher(s.Settings.Variables["application_name"], stmt.Explain.Statement, refusal)
			}
			return a.compileInner(ctx, s, plan, inner)
		})
		if refusal != nil || again == maxPlans {
			return plan, refusal
		}
		known := len(x.prior.answers)
		for _, in := range plan.Inmost() {
			if len(in.Plan.Finds) > 0 || a.needsRows(in.Plan) {
				continue
			}
			ids := make([]int64, len(in.Plan.Measures))
			for i, m := range in.Plan.Measures {
				ids[i] = m.HeldID
			}
			if answer, err := a.innerAnswer(ctx, x, in.Key, inner[in.Key], ids); err == nil { // else it says so when it is asked
				x.prior.answers = withAnswer(x.prior.answers, in.Key, answer)
			}
		}
		if len(x.prior.answers) == known {
			return plan, nil
		}
	}
}

// build is planner.Build of a statement of which the sandbox knows some types.
func (o *outside) build(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value, c reuse.Context) (
	p *plans.Plan, refusal *refuse.Refusal,
) {
	refusal = o.typed(ctx, s, c, func(c reuse.Context) (refusal *refuse.Refusal) {
		p, refusal = planner.Build(stmt, params, c)
		return refusal
	})
	return p, refusal
}

// typed plans a statement, again and again until the sandbox has named the types of all sub-queries that are answered
// first and of which only it knows them. What it refuses stays refused.
func (o *outside) typed(
	ctx context.Context, s *Session, c reuse.Context, plan func(c reuse.Context) *refuse.Refusal,
) *refuse.Refusal {
	c.Types = &reuse.Types{Known: map[string][]plans.AnswerColumn{}}
	for {
		c.Types.Wanted = nil
		refusal := plan(c)
		wanted := c.Types.Wanted
		if refusal == nil || wanted == nil || ctx.Err() != nil {
			return refusal
		}
		c.Types.Known[wanted.Key] = nil
		above, unwritten := outer.Render(wanted.Plan)
		if unwritten != nil || o.engine == nil {
			continue
		}
		if d, refused := o.bound(ctx, s, wanted.Plan, above); refused == nil {
			c.Types.Known[wanted.Key] = answerColumns(d.Columns)
		}
	}
}

// answerColumns are an engine's columns as those of an answer.
func answerColumns(list []sandbox.Column) (columns []plans.AnswerColumn) {
	for _, c := range list {
		columns = append(columns, plans.AnswerColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
	}
	return columns
}

// explainInner describes the sub-queries that are answered first.
func (a *Answerer) explainInner(ctx context.Context, plan *plans.Plan, e *explanation) *refuse.Refusal {
	list, refusal := innerLeaves(plan, func(p *plans.Plan) (explanation, *refuse.Refusal) {
		queries, above, refusal := a.render(ctx, p)
		if refusal != nil {
			return explanation{}, refusal
		}
		own := explained(p, queries, above)
		return own, a.explainFinds(ctx, p, &own)
	})
	e.Leaves = append(list, e.Leaves...)
	return refusal
}

// innerLeaves are the leaves of a plan's sub-queries, in the order in which they are answered.
func innerLeaves(plan *plans.Plan, explain func(*plans.Plan) (explanation, *refuse.Refusal)) (list []explainedLeaf, refusal *refuse.Refusal) {
	within := plan.Within()
	for i, p := range within[:len(within)-1] {
		own, refusal := explain(p)
		if refusal != nil {
			return nil, refusal
		}
		for _, leaf := range own.Leaves {
			leaf.Name = fmt.Sprintf("first_%d.%s", i+1, leaf.Name)
			list = append(list, leaf)
		}
	}
	return list, nil
}
