package pipeline

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Online releases and runs of alarms are asked one question after the other. Their mechanism lives in this process from
// its first question on, which alone knows its noisy threshold and, of an online release, the sealed cells. Each hard
// answer, each yes, is a step in the ledger before it is sent; an easy one, a no, is nothing to be remembered. After a
// restart the first question goes on from the steps: one more step, which takes an update or a yes, is durable before
// the database is asked again (privacy rule 18; docs/adr/0030).

// live are the mechanisms that live, by the ledger's id. There is one of each.
type live struct {
	begins sync.RWMutex // held for reading by those that are being opened and have no id yet
	mu     sync.Mutex
	byID   map[int64]*instance
}

// instance is one of them. Who asks it holds it, for as long as the database takes; who only plans waits for that no
// longer than her client does.
type instance struct {
	locked chan struct{}   // of one element, which is there while somebody asks
	asked  mechanisms.Live // nil: not begun, or lost
	by     *Session        // who asks it, or asked it last: steps are made in her name
}

func newInstance() *instance { return &instance{locked: make(chan struct{}, 1)} }

// lock waits for it until the statement ends.
func (i *instance) lock(ctx context.Context) error {
	select {
	case i.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lockFor is lock for who asks it. Its steps are hers from now on: of a group's, whoever has opened it may have left
// since.
func (i *instance) lockFor(ctx context.Context, s *Session) error {
	if err := i.lock(ctx); err != nil {
		return err
	}
	i.by = s
	return nil
}

func (i *instance) unlock() { <-i.locked }

// of is the instance of an id. One that is not there may be about to be: whoever took it for lost would begin a second
// one.
func (l *live) of(id int64) *instance {
	if one := l.known(id); one != nil {
		return one
	}
	l.begins.Lock()
	defer l.begins.Unlock()
	if one := l.known(id); one != nil {
		return one
	}
	one := newInstance()
	l.put(id, one)
	return one
}

func (l *live) known(id int64) *instance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

func (l *live) put(id int64, one *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[int64]*instance{}
	}
	l.byID[id] = one
}

// opening keeps others from taking an instance for lost that is being saved, until what it returns is called: then it
// has its id, or 0.
func (l *live) opening(one *instance, id *int64) (done func()) {
	l.begins.RLock()
	return func() {
		defer l.begins.RUnlock()
		if *id != 0 {
			l.put(*id, one)
		}
	}
}

// left is how much a release of hers has left, updates or yes answers: as many as a question would find. It is 0 to a
// statement that has been cancelled meanwhile.
func (r *releases) left(ctx context.Context, s *Session) func(id int64) int {
	return func(id int64) int {
		one := r.live.of(id)
		if one.lock(ctx) != nil {
			return 0
		}
		defer one.unlock()
		if one.asked != nil {
			return one.asked.Left()
		}
		release, err := r.ledger.Load(ctx, s.User, id)
		if err != nil {
			return 0
		}
		left, err := release.Item.Spec.LeftAfter(release.Steps, true)
		if err != nil {
			r.log.ErrorContext(ctx, "steps of a release cannot be read: it is taken for ended", "release", id, "error", err)
			return 0
		}
		return left
	}
}

// extend makes a step of a release durable, before what it tells is sent.
func (r *releases) extend(s *Session, id int64, step []byte) error {
	return r.ledger.Extend(context.Background(), s.User, id, step)
}

// runAnswers are the answers that releases which go on gave, by run and row.
type runAnswers map[*plans.Run][]mechanisms.SessionAnswer

// errEnded is what a question gets whose run has ended since it was planned: by another question of the same analyst.
var errEnded = &pgerror.Failure{SQLState: "40001", Message: "the run of alarms has just ended",
	Hint: "Ask again: a new run is bought then."}

// askAll asks the releases of a plan that go on what it reads from them, in its order, and says what they answered: all
// of it is released.
func (r *releases) askAll(
	ctx context.Context, x *execution, plan *plans.Plan, ids []int64,
) (answers runAnswers, told []string, err error) {
	for run := range runs(plan) {
		if run.Measure < 0 || run.Selected != nil || !plan.Measures[run.Measure].Spec.GoesOn() {
			continue
		}
		m := plan.Measures[run.Measure]
		given, err := r.ask(ctx, x, m, ids[run.Measure], run)
		ended := err == errEnded && len(told) > 0 // by an answer of this statement
		if ended {
			given = []mechanisms.SessionAnswer{{Guessed: true}}
		} else if err != nil {
			return nil, nil, err
		}
		if answers == nil {
			answers = runAnswers{}
		}
		if answers[run] = given; run.Threshold != nil {
			told = append(told, alarmTold(m, given[0]))
		}
	}
	return answers, append(r.onlineParts(ctx, x.Session, plan, ids, answers), told...), nil
}

// ask asks one release, which is restored first where it does not live: a run of alarms about the rows that are counted
// for the question, an online release about its cells. What that has no answer for any more, since it stops at one of
// the rows, is its hypothesis's.
func (r *releases) ask(
	ctx context.Context, x *execution, m *plans.Measure, id int64, run *plans.Run,
) ([]mechanisms.SessionAnswer, error) {
	one, counted, lives := r.live.of(id), m, false
	if run.Threshold != nil {
		counted = run.Threshold.Measure
	} else {
		if err := one.lockFor(ctx, x.Session); err != nil {
			return nil, err
		}
		if lives = one.asked != nil; !lives {
			// Who waits for a slot keeps nobody from the release: those who have theirs may wait for it.
			one.unlock()
		}
	}
	var query rewrite.Query
	if !lives {
		var err error
		if query, err = rewrite.Render(counted, r.database.backend.Dialect()); err != nil {
			return nil, unrendered(ctx, r.log, counted, err)
		}
		const kept = "the release was not asked, and what was paid for it stays good"
		if err := r.database.admit(ctx, x, []rewrite.Query{query}, kept); err != nil {
			return nil, err
		}
		if err := one.lockFor(ctx, x.Session); err != nil {
			return nil, err
		}
	}
	defer one.unlock()
	questions, err := r.resume(ctx, x, m, id, one, query, run)
	if err != nil {
		return nil, err
	}
	out := make([]mechanisms.SessionAnswer, len(questions))
	for i, q := range questions {
		answer, err := one.asked.Answer(q)
		if errors.Is(err, mechanisms.ErrAlarmsSpent) {
			return nil, errEnded
		}
		if err != nil {
			one.asked = nil // whether the answer took a step is known now: the next question restores, at one
			r.log.ErrorContext(ctx, "release gave no answer", "release", id, "error", err)
			return nil, errLedger
		}
		out[i] = answer.Value()
	}
	// Another proxy may have gone on with it: then nothing of this is sent.
	if err := r.elsewhere(ctx, id, r.ledger.Leads(context.WithoutCancel(ctx), id)); err != nil {
		one.asked = nil
		return nil, err
	}
	return out, nil
}

// resume makes a release this proxy's and has it live here, and returns what it is asked. It is restored only when it
// is this proxy's: before, its last steps might still be another one's to make. The statement has its slot of the
// database where rows are read.
func (r *releases) resume(
	ctx context.Context, x *execution, m *plans.Measure, id int64, one *instance, query rewrite.Query, run *plans.Run,
) (list []mechanisms.Question, _ error) {
	var receipt *ledger.Receipt
	var err error
	switch {
	case run.Threshold != nil:
		receipt, err = r.ledger.Ask(context.WithoutCancel(ctx), x.User, id, ledger.Digest(run.Threshold.Measure.Digest))
	case one.asked == nil:
		receipt, err = r.ledger.Resume(context.WithoutCancel(ctx), x.User, id, mechanisms.RestartStep())
	}
	if errors.Is(err, ledger.ErrElsewhere) {
		one.asked = nil
	}
	if err := r.elsewhere(ctx, id, err); err != nil {
		return nil, err
	}
	counts := func() (privacy.Sensitive[[]privacy.Group], error) {
		truth, err := r.database.runQuery(ctx, x, query, receipt)
		if err != nil {
			r.log.ErrorContext(ctx, "release that goes on was not counted for", "kind", m.Kind, "table", m.Table.Name, "error", err)
			return truth, errInternal
		}
		return truth, nil
	}
	if one.asked == nil {
		if one.asked, err = r.restore(ctx, x, m, id, one, counts); err != nil {
			return nil, err
		}
	}
	if q := run.Threshold; q != nil {
		truth, err := counts()
		return []mechanisms.Question{{Place: q.Measure.Place, Groups: truth, Least: q.Least}}, err
	}
	for _, spans := range run.Spans {
		list = append(list, mechanisms.Question{Spans: spans})
	}
	return list, nil
}

// restore goes on with a release that another process has left.
func (r *releases) restore(
	ctx context.Context, x *execution, m *plans.Measure, id int64, one *instance,
	counts func() (privacy.Sensitive[[]privacy.Group], error),
) (mechanisms.Live, error) {
	release, err := r.load(ctx, x.Session, id)
	if err != nil {
		return nil, err
	}
	var truth privacy.Sensitive[[]privacy.Group]
	if m.Reads() == plans.OnceKept {
		if truth, err = counts(); err != nil {
			return nil, err
		}
	}
	asked, err := mechanisms.Restore(release.Item.Spec, release.Steps, m.Place, truth, r.randomness(x.Session),
		func(step []byte) error { return r.extend(one.by, id, step) })
	switch {
	case errors.Is(err, mechanisms.ErrAlarmsSpent):
		return nil, errEnded
	case err != nil && !errors.Is(err, ledger.ErrElsewhere):
		r.log.ErrorContext(ctx, "release was not restored", "release", id, "error", err)
		return nil, errLedger
	case err != nil:
		return nil, r.elsewhere(ctx, id, err)
	}
	return asked, nil
}

// elsewhere is the error of a release that the ledger does not let this proxy go on with.
func (r *releases) elsewhere(ctx context.Context, id int64, err error) error {
	if errors.Is(err, ledger.ErrElsewhere) {
		return errElsewhere
	}
	if err != nil {
		r.log.ErrorContext(ctx, "release cannot be asked here", "release", id, "error", err)
		return errLedger
	}
	return nil
}

// isOnline reports whether a plan asks an online release, or a run of alarms.
func isOnline(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool { return m.Spec.GoesOn() })
}

// runs are all runs of a plan's counts, in the order in which they are read.
func runs(plan *plans.Plan) iter.Seq[*plans.Run] {
	return func(yield func(*plans.Run) bool) {
		for _, leaf := range plan.Leaves {
			for c := range leaf.Counts {
				for r := range leaf.Counts[c].Runs {
					if !yield(&leaf.Counts[c].Runs[r]) {
						return
					}
				}
			}
		}
	}
}
