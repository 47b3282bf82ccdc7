package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Runs of alarms live in this process: the noisy threshold is in memory alone. Each yes is a step in the ledger before it is
// sent; a no is nothing to be remembered. After a restart of the process the first question goes on from the steps: one more
// step, which takes a yes, is durable before the database is asked (privacy rule 18; docs/adr/0030).

// openWatch opens a run on a paid receipt and saves that it is open. The database is asked nothing yet.
func (a *Answerer) openWatch(ctx context.Context, x *execution, m *plans.Measure, receipt *ledger.Receipt) (int64, error) {
	if err := receipt.Spend(ledger.Digest(m.Digest)); err != nil {
		a.log.ErrorContext(ctx, "paid run of alarms was not begun", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	return a.watches.open(ctx, a, x, m, receipt, func(save func([]byte) error) (*mechanisms.Watch, error) {
		return mechanisms.OpenWatch(m.Spec, a.randomness(x.Session), save)
	})
}

// add joins what runs of alarms said.
func (a runAnswers) add(alarms runAnswers) {
	for run, answers := range alarms {
		a[run] = answers
	}
}

// askAlarms asks the runs of a plan its questions, in their order, and says what they learnt: all of it is released.
func (a *Answerer) askAlarms(ctx context.Context, x *execution, plan *plans.Plan, ids []int64) (out runAnswers, told []string, err error) {
	for run := range runs(plan) {
		if run.Threshold == nil || run.Measure < 0 {
			continue
		}
		m := plan.Measures[run.Measure]
		answer, err := a.askAlarm(ctx, x, m, ids[run.Measure], run.Threshold)
		if err == errEnded && out != nil { // by an answer of this statement
			out[run] = []mechanisms.SessionAnswer{{Guessed: true}}
			told = append(told, m.Name+": not asked, since the run ended before: the answer is NULL")
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if out == nil {
			out = runAnswers{}
		}
		told = append(told, alarmTold(m, answer))
		out[run] = []mechanisms.SessionAnswer{answer}
	}
	return out, told, nil
}

func alarmTold(m *plans.Measure, answer mechanisms.SessionAnswer) string {
	positives, left := m.Spec.Kind.(*mechanisms.Alarm).Positives, answer.Left
	switch yes := answer.Value != 0; {
	case yes && left == 0:
		return fmt.Sprintf("%s: yes, the last of the run's %d: it has ended, and the next such question buys a new one", m.Name, positives)
	case yes:
		return fmt.Sprintf("%s: yes; %d of the run's %d are left", m.Name, left, positives)
	}
	return fmt.Sprintf("%s: no, which is free; %d of the run's %d yes answers are left", m.Name, left, positives)
}

// errEnded is what a question gets whose run has ended since it was planned: by another question of the same analyst.
var errEnded = &pgerror.Failure{SQLState: "40001", Message: "the run of alarms has just ended", Hint: "Ask again: a new run is bought then."}

// askAlarm counts what a question is about and asks one run, which is restored first where it does not live.
func (a *Answerer) askAlarm(ctx context.Context, x *execution, m *plans.Measure, id int64, q *plans.ThresholdQuestion) (given mechanisms.SessionAnswer, err error) {
	query, err := rewrite.Render(q.Measure, a.backend.Dialect())
	if err != nil {
		return given, unrendered(ctx, a.log, q.Measure, err)
	}
	if err := a.admit(ctx, x, []rewrite.Query{query}, "the run was not asked, and what was paid for it stays good"); err != nil {
		return given, err
	}
	one := a.watches.of(id)
	if err := one.lockFor(ctx, x.Session); err != nil {
		return given, err
	}
	defer one.unlock()
	receipt, err := a.takeRun(ctx, x.Session, id, one, ledger.Digest(q.Measure.Digest))
	if err != nil {
		return given, err
	}
	truth, err := a.runQuery(ctx, x, query, receipt)
	if err != nil {
		a.log.ErrorContext(ctx, "question of a run of alarms was not run", "kind", q.Measure.Kind, "table", q.Measure.Table.Name, "error", err)
		return given, errInternal
	}
	answer, err := one.asked.Ask(q.Measure.Place, truth, q.Least)
	switch {
	case errors.Is(err, mechanisms.ErrAlarmsSpent):
		return given, errEnded
	case err != nil:
		one.asked = nil // that it was a yes is known now: the next question restores, which takes one
		a.log.ErrorContext(ctx, "run of alarms gave no answer", "release", id, "error", err)
		return given, errLedger
	}
	if err := a.leads(ctx, id); err != nil { // as of online releases
		one.asked = nil
		return given, err
	}
	if given.Left = one.asked.Left(); answer.Value() {
		given.Value = 1
	}
	return given, nil
}

// takeRun makes a run this proxy's and has it live here, with a receipt for one question. It is restored only when it is this
// proxy's: before, its last steps might still be another one's to make.
func (a *Answerer) takeRun(ctx context.Context, s *Session, id int64, one *instance[*mechanisms.Watch], question ledger.Digest) (*ledger.Receipt, error) {
	receipt, err := a.ledger.Ask(context.WithoutCancel(ctx), s.User, id, question)
	if errors.Is(err, ledger.ErrElsewhere) {
		one.asked = nil
		return nil, errElsewhere
	}
	if err != nil {
		a.log.ErrorContext(ctx, "run of alarms was not asked", "release", id, "error", err)
		return nil, errLedger
	}
	if one.asked == nil {
		one.asked, err = a.restoreWatch(ctx, s, id, one)
	}
	return receipt, err
}

// restoreWatch goes on with a run that another process has left.
func (a *Answerer) restoreWatch(ctx context.Context, s *Session, id int64, one *instance[*mechanisms.Watch]) (*mechanisms.Watch, error) {
	release, err := a.load(ctx, s, id)
	if err != nil {
		return nil, err
	}
	asked, err := mechanisms.RestoreWatch(release.Item.Spec, release.Steps, a.randomness(s), func(step []byte) error { return a.extend(one.by, id, step) })
	switch {
	case errors.Is(err, mechanisms.ErrAlarmsSpent):
		return nil, errEnded
	case errors.Is(err, ledger.ErrElsewhere):
		return nil, errElsewhere
	case err != nil:
		a.log.ErrorContext(ctx, "run of alarms was not restored", "release", id, "error", err)
		return nil, errLedger
	}
	return asked, nil
}

// renderAlarms writes the questions that a plan has for a run, and returns the first for EXPLAIN.
func renderAlarms(plan *plans.Plan, measure int, private dialect.Dialect) (first rewrite.Query, err error) {
	some := false
	for run := range runs(plan) {
		if run.Measure != measure || run.Threshold == nil {
			continue
		}
		q, err := rewrite.Render(run.Threshold.Measure, private)
		if err != nil {
			return first, err
		}
		if !some {
			first, some = q, true
		}
	}
	return first, nil
}

// alarmText names the mechanism of a run of alarms.
func alarmText(a *mechanisms.Alarm) string {
	return fmt.Sprintf("sparse vector (AboveThreshold) with noise of one side on threshold and count: the run ends at yes number %d; each no before that is free", a.Positives)
}
