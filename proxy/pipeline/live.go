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

// live are the mechanisms of one kind that live, by the ledger's id. There is one of each.
type live[M mechanism] struct {
	what    string       // for the log
	lost    string       // of steps that cannot be read, for the log
	opening sync.RWMutex // held for reading by those that are being opened and have no id yet
	mu      sync.Mutex
	byID    map[int64]*instance[M]
}

// instance is one of them. Who asks it holds it, for as long as the database takes; who only plans waits for that no longer than her
// client does.
type instance[M mechanism] struct {
	locked chan struct{} // of one element, which is there while somebody asks
	asked  M             // nil: not begun, or lost
	by     *Session      // who asks it, or asked it last: steps are made in her name
}

func newInstance[M mechanism](asked M) *instance[M] {
	return &instance[M]{locked: make(chan struct{}, 1), asked: asked}
}

// lock waits for it until the statement ends.
func (i *instance[M]) lock(ctx context.Context) error {
	select {
	case i.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lockFor is lock for who asks it. Its steps are hers from now on: of a group's, whoever has opened it may have left since.
func (i *instance[M]) lockFor(ctx context.Context, s *Session) error {
	if err := i.lock(ctx); err != nil {
		return err
	}
	i.by = s
	return nil
}

func (i *instance[M]) unlock() { <-i.locked }

type mechanism interface {
	*mechanisms.Session | *mechanisms.Watch
	Left() int
	Opened() privacy.Released[mechanisms.Noisy]
}

// of is the instance of an id. One that is not there may be about to be: whoever took it for lost would begin a second one.
func (l *live[M]) of(id int64) *instance[M] {
	if one := l.known(id); one != nil {
		return one
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] == nil {
		l.byID[id] = newInstance[M](nil)
	}
	return l.byID[id]
}

func (l *live[M]) known(id int64) *instance[M] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

// open opens a mechanism on a paid receipt, which saves its steps by what it is given, and saves that it is open.
func (l *live[M]) open(ctx context.Context, a *Answerer, x *execution, m *plans.Measure, receipt *ledger.Receipt, begin func(save func(step []byte) error) (M, error)) (id int64, _ error) {
	one := newInstance[M](nil)
	one.by = x.Session
	asked, err := begin(func(step []byte) error { return a.extend(one.by, id, step) })
	if err != nil {
		a.log.ErrorContext(ctx, l.what+" was not opened", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errInternal
	}
	l.opening.RLock()
	defer l.opening.RUnlock()
	if id, err = a.save(ctx, x, receipt, drawn{noisy: asked.Opened()}); err != nil {
		a.log.ErrorContext(ctx, l.what+" was not saved", "kind", m.Kind, "table", m.Table.Name, "error", err)
		return 0, errLedger
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.asked = asked
	l.byID[id] = one
	return id, nil
}

// left is how much a release of hers has left, updates or yes answers: as many as a question would find. It is 0 to a statement that
// has been cancelled meanwhile.
func (l *live[M]) left(ctx context.Context, a *Answerer, s *Session) func(id int64) int {
	return func(id int64) int {
		one := l.of(id)
		if one.lock(ctx) != nil {
			return 0
		}
		defer one.unlock()
		if one.asked != nil {
			return one.asked.Left()
		}
		r, err := a.ledger.Load(ctx, s.User, id)
		if err != nil {
			return 0
		}
		left, err := r.Item.Spec.LeftAfter(r.Steps, true)
		if err != nil {
			a.log.ErrorContext(ctx, l.lost, "release", id, "error", err)
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
		a.log.ErrorContext(ctx, "saved release cannot be read", "release", id, "error", err)
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
