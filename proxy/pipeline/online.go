package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Online releases live in this process from their first question on: the sealed cells and the noisy threshold are in
// memory alone. Each hard answer is a step in the ledger before it is sent. After a restart the first question goes on
// from the steps: one more step, which takes an update, is durable before the cells are read again (privacy rule 18).

// openSession opens a session on a paid receipt and saves that it is open; its first question follows.
func (a *Answerer) openSession(ctx context.Context, x *execution, m *plans.Measure, query rewrite.Query, receipt *ledger.Receipt) (int64, error) {
	truth, err := a.runQuery(ctx, x, query, receipt)
	if err != nil {
		a.log.ErrorContext(ctx, "paid measure was not run", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	return a.sessions.open(ctx, a, x, m, receipt, func(save func([]byte) error) (asked *mechanisms.Session, err error) {
		a.workers.Draw(x.User, func() { asked, err = mechanisms.OpenSession(m.Spec, m.Place, truth, a.randomness(x.Session), save) })
		return asked, err
	})
}

// runAnswers are the answers that an online release gave, by run and row.
type runAnswers map[*plans.Run][]mechanisms.SessionAnswer

// askSessions asks the online releases of a plan what it reads from them: its rows, in their order.
func (a *Answerer) askSessions(ctx context.Context, x *execution, plan *plans.Plan, ids []int64) (runAnswers, error) {
	var out runAnswers
	for run := range runs(plan) {
		if run.Measure < 0 || run.Selected != nil || !mechanisms.Is[*mechanisms.Online](plan.Measures[run.Measure].Spec) {
			continue
		}
		if out == nil {
			out = runAnswers{}
		}
		answers, err := a.ask(ctx, x, plan.Measures[run.Measure], ids[run.Measure], run.Spans)
		if err != nil {
			return nil, err
		}
		out[run] = answers
	}
	return out, nil
}

// ask asks one online release, which is restored first where it does not live. What it has no answer for any more, since it
// stops at one of the rows, is its hypothesis's.
func (a *Answerer) ask(ctx context.Context, x *execution, m *plans.Measure, id int64, rows [][]mechanisms.Span) ([]mechanisms.SessionAnswer, error) {
	one := a.sessions.of(id)
	if err := one.lockFor(ctx, x.Session); err != nil {
		return nil, err
	}
	if one.asked == nil { // who waits for a slot keeps nobody from the release: those who have theirs may wait for it
		one.unlock()
		query, err := rewrite.Render(m, a.backend.Dialect())
		if err != nil {
			return nil, unrendered(ctx, a.log, m, err)
		}
		if err := a.admit(ctx, x, []rewrite.Query{query}, "the session was not asked, and what was paid for it stays good"); err != nil {
			return nil, err
		}
		if err := one.lockFor(ctx, x.Session); err != nil {
			return nil, err
		}
	}
	defer one.unlock()
	if one.asked == nil {
		restored, err := a.restore(ctx, x, m, id, one)
		if err != nil {
			return nil, err
		}
		one.asked = restored
	}
	out := make([]mechanisms.SessionAnswer, len(rows))
	for i, spans := range rows {
		if len(spans) == 0 {
			continue // no cell is asked about: 0, whatever the data
		}
		answer, err := one.asked.Answer(spans)
		if err != nil {
			one.asked = nil // whether the answer was hard is known now: the next question restores, at an update
			a.log.ErrorContext(ctx, "online release gave no answer", "release", id, "error", err)
			return nil, errLedger
		}
		out[i] = answer.Value()
	}
	if err := a.leads(ctx, id); err != nil { // another proxy may have gone on with it: then nothing of this is sent
		one.asked = nil
		return nil, err
	}
	return out, nil
}

// leads tells whether what lives here may answer.
func (a *Answerer) leads(ctx context.Context, id int64) error {
	err := a.ledger.Leads(context.WithoutCancel(ctx), id)
	if errors.Is(err, ledger.ErrElsewhere) {
		return errElsewhere
	}
	if err != nil {
		a.log.ErrorContext(ctx, "whether a release is still this proxy's is not known", "release", id, "error", err)
		return errLedger
	}
	return nil
}

// restore goes on with a session that another process has left. The statement has its slot of the database.
func (a *Answerer) restore(ctx context.Context, x *execution, m *plans.Measure, id int64, one *instance[*mechanisms.Session]) (*mechanisms.Session, error) {
	query, err := rewrite.Render(m, a.backend.Dialect())
	if err != nil {
		return nil, unrendered(ctx, a.log, m, err)
	}
	receipt, err := a.ledger.Resume(context.WithoutCancel(ctx), x.User, id, mechanisms.RestartStep())
	if errors.Is(err, ledger.ErrElsewhere) {
		return nil, errElsewhere
	}
	if err != nil {
		a.log.ErrorContext(ctx, "restart of an online release was not saved", "release", id, "error", err)
		return nil, errLedger
	}
	release, err := a.load(ctx, x.Session, id)
	if err != nil {
		return nil, err
	}
	truth, err := a.runQuery(ctx, x, query, receipt)
	if err == nil {
		var asked *mechanisms.Session
		asked, err = mechanisms.RestoreSession(release.Item.Spec, release.Steps, m.Place, truth, a.randomness(x.Session), func(step []byte) error { return a.extend(one.by, id, step) })
		if err == nil {
			return asked, nil
		}
	}
	a.log.ErrorContext(ctx, "online release was not restored", "release", id, "error", err)
	return nil, errInternal
}

// onlineParts says what a statement learnt of its online releases: all of it are released values.
func (a *Answerer) onlineParts(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, answers runAnswers) []string {
	var parts []string
	for i, m := range plan.Measures {
		o, ok := m.Spec.Kind.(*mechanisms.Online)
		if !ok {
			continue
		}
		hard, guessed, asked := 0, 0, false
		for run := range runs(plan) {
			if run.Measure != i {
				continue
			}
			asked = true
			for _, one := range answers[run] {
				if one.Guessed {
					guessed++
				} else if one.Hard {
					hard++
				}
			}
		}
		if !asked {
			continue // its hypothesis alone is read
		}
		left := a.sessions.left(ctx, a, s)(ids[i])
		text := fmt.Sprintf("online release %s: %d from the rows, the others from its hypothesis; %d of %d updates left", m.Name, hard, left, o.Updates)
		if guessed > 0 {
			text += fmt.Sprintf("; it stopped on the way: %d values are its hypothesis's own, and their error is not known", guessed)
		} else if left == 0 {
			text += ": it has stopped"
		}
		parts = append(parts, text)
	}
	return parts
}

// withDetail adds to the detail of the answer's notice.
func withDetail(notices []Notice, told []string) []Notice {
	if len(told) == 0 || len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	if out[0].Detail != "" {
		told = append(told, out[0].Detail)
	}
	out[0].Detail = strings.Join(told, "\n")
	return out
}

// isOnline tells a plan that asks an online release, or a run of alarms.
func isOnline(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool { return m.Spec.GoesOn() })
}

// onlineText names an online release's mechanism.
func onlineText(s mechanisms.Spec, o *mechanisms.Online) string {
	return fmt.Sprintf("%s over %d cells: a sparse vector compares each answer of the hypothesis with the rows; up to %d answers come from the rows, with noise of their own", o.Rule, s.Cells, o.Updates)
}

// syntheticText names how made-up rows came about.
func syntheticText(s mechanisms.Spec, y *mechanisms.Synthetic) string {
	return fmt.Sprintf("%d made-up rows by %s over %d cells", y.Drawn, y.Rule, s.Cells)
}
