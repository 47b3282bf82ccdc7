package pipeline

import (
	"context"
	"iter"
	"sync"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// Some releases are asked one question after the other: online releases (online.go) and runs of alarms (watch.go). Their
// mechanism lives in this process, which alone knows its noisy threshold, from its first question on.

// live are the mechanisms of one kind that live, by the ledger's id. There is one of each: its lock is held while it begins.
type live[M mechanism] struct {
	what string // for the log
	lost string // of steps that cannot be read, for the log
	mu   sync.Mutex
	byID map[int64]*instance[M]
}

type instance[M mechanism] struct {
	mu    sync.Mutex
	asked M // nil: not begun, or lost
}

type mechanism interface {
	*mechanisms.Session | *mechanisms.Watch
	Left() int
	Opened() privacy.Released[mechanisms.Noisy]
}

func (l *live[M]) of(id int64) *instance[M] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] == nil {
		l.byID[id] = &instance[M]{}
	}
	return l.byID[id]
}

// begin opens a mechanism on a paid receipt, which saves its steps by what it is given, and saves that it is open.
func (l *live[M]) begin(ctx context.Context, a *Answerer, s *Session, m *plans.Measure, receipt *ledger.Receipt, open func(save func(step []byte) error) (M, error)) (id int64, _ error) {
	asked, err := open(func(step []byte) error { return a.extend(s, id, step) })
	if err != nil {
		a.log.Error(l.what+" was not opened", "measure", m.Name, "error", err)
		return 0, errInternal
	}
	l.mu.Lock() // once it is saved others may ask it, who would take it for lost and begin a second instance
	defer l.mu.Unlock()
	if id, err = a.save(ctx, receipt, drawn{noisy: asked.Opened()}); err != nil {
		a.log.Error(l.what+" was not saved", "measure", m.Name, "error", err)
		return 0, errLedger
	}
	l.byID[id] = &instance[M]{asked: asked}
	return id, nil
}

// left is how much a release of hers has left, updates or yes answers: as many as a question would find.
func (l *live[M]) left(a *Answerer, s *Session) func(id int64) int {
	return func(id int64) int {
		one := l.of(id)
		one.mu.Lock()
		defer one.mu.Unlock()
		if one.asked != nil {
			return one.asked.Left()
		}
		r, err := a.ledger.Load(context.Background(), s.User, id)
		if err != nil {
			return 0
		}
		left, err := r.Item.Spec.LeftAfter(r.Steps, true)
		if err != nil {
			a.log.Error(l.lost, "release", id, "error", err)
			return 0
		}
		return left
	}
}

// extend makes a step of a release durable, before what it tells is sent.
func (a *Answerer) extend(s *Session, id int64, step []byte) error {
	return a.ledger.Extend(context.Background(), s.User, id, step)
}

// load reads a saved release of hers.
func (a *Answerer) load(ctx context.Context, s *Session, id int64) (ledger.Release, error) {
	release, err := a.ledger.Load(ctx, s.User, id)
	if err != nil {
		a.log.Error("saved release cannot be read", "release", id, "error", err)
		return ledger.Release{}, errLedger
	}
	return release, nil
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
