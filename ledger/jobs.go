package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// The jobs that wait for the writer: who charges hands one over and waits, and the writer takes out of the queue those
// that may share a commit.

// maxJobs is how many jobs one commit covers at most.
const maxJobs = 256

// job is work for the writer: run adds rows to the batch, after is called once they are durable and in the book.
type job struct {
	run      func(*batch) error
	after    func()
	alone    bool  // shares its commit with no other
	follows  bool  // has nothing to write: takes in what others have written
	told     bool  // it came before the batch read what others have written
	stepwise bool  // is done step by step, nothing presumed
	ds       int64 // the dataset in whose chain it writes; 0 means it writes in chain 0, or nobody knows yet
	passed   int   // batches that have left it waiting, because another process wrote in its dataset
	state    atomic.Int32
	err      error
	done     chan struct{}
}

// The states of a job: whoever moves it from waiting first decides.
const (
	jobWaiting int32 = iota
	jobTaken
	jobWithdrawn
)

// patience is how long who reads, or hands over a job, waits for a disk that may have frozen: as long as for a
// PostgreSQL server. A job of a shared ledger that has been begun is waited for: that store ends its waits itself, and
// what it claims for the job needs an owner.
const patience = 15 * time.Second

// errFrozen is the error of what was not done within patience, and of all that comes until the writer goes on.
var errFrozen = fmt.Errorf("ledger: %w: %w", ErrUnavailable, deadline.ErrExceeded)

// do hands a job to the writer and waits for it. A job that has not been begun is withdrawn when ctx ends; one that has
// is waited for, because only its outcome reports whether it was charged. Where the disk freezes meanwhile nobody knows
// the outcome: a charge that turns out to be durable is spent, and what the job was to hand out is lost.
func (f *keeper) do(ctx context.Context, j *job) error {
	if f.opts.ReadOnly {
		return errors.New("ledger: opened for reading only")
	}
	j.done = make(chan struct{})
	select {
	case <-f.closing: // the queue may have room, and nobody comes for it any more
		return ErrClosed
	default:
	}
	if f.frozen.Load() {
		return errFrozen
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case f.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errFrozen
	case <-f.closing:
		return ErrClosed
	}
	return j.outcome(ctx, f, timer)
}

// outcome waits for what becomes of a job that f has in its queue.
func (j *job) outcome(ctx context.Context, f *keeper, timer *time.Timer) error {
	for ended := ctx.Done(); ; {
		select {
		case <-j.done:
			return j.err
		case <-ended:
			if j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
				return ctx.Err()
			}
			ended = nil
		case <-timer.C:
			if j.state.CompareAndSwap(jobWaiting, jobWithdrawn) || !f.Shared() {
				f.frozen.Store(true)
				return errFrozen
			}
		case <-f.stopped:
			select {
			case <-j.done:
				return j.err
			default:
				return ErrClosed
			}
		}
	}
}

// next waits for what the writer does next: a job, rest (nil) or the end. Of what came while it was busy the end goes
// first, so that Close waits for the work in hand alone, and then rest, so that the witness is flushed however many
// jobs wait; a select over all three would draw lots.
func (f *keeper) next(tick <-chan time.Time) (j *job, ended bool) {
	select {
	case <-f.closing:
		return nil, true
	default:
	}
	select {
	case <-tick:
		return nil, false
	default:
	}
	if len(f.waiting) > 0 {
		j, f.waiting = f.waiting[0], f.waiting[1:]
		return j, false
	}
	select {
	case <-f.closing:
		return nil, true
	case <-tick:
		return nil, false
	case j = <-f.queue:
		return j, false
	}
}

// gather takes the jobs that have come.
func (f *keeper) gather() {
	for len(f.waiting) < cap(f.queue)+maxJobs {
		select {
		case j := <-f.queue:
			f.waiting = append(f.waiting, j)
		default:
			return
		}
	}
}

// batchable are the jobs that may share a commit with the one that waits longest: none behind one that must be alone,
// and no other among those that are done step by step.
func (f *keeper) batchable() []*job {
	first := f.waiting[0]
	if first.alone {
		return f.waiting[:1]
	}
	var list []*job
	for _, j := range f.waiting {
		if j.alone {
			break
		}
		if j.stepwise == first.stepwise {
			list = append(list, j)
		}
	}
	return list
}

// choose takes those of the batchable jobs out of the queue that may go on.
func (f *keeper) choose(may func(*job) bool) (chosen []*job) {
	var left []*job
	stepwise, ended := f.waiting[0].stepwise, false
	for i, j := range f.waiting {
		ended = ended || i > 0 && (j.alone || f.waiting[0].alone) || len(chosen) == maxJobs
		switch {
		case ended || j.stepwise != stepwise || !may(j):
			left = append(left, j)
		case j.take():
			chosen = append(chosen, j)
		}
	}
	f.waiting = left
	return chosen
}

// take begins a job, unless it was withdrawn. One that is done again was begun already.
func (j *job) take() bool {
	if j.state.CompareAndSwap(jobWaiting, jobTaken) || j.state.Load() == jobTaken {
		return true
	}
	close(j.done)
	return false
}

// withdrawn ends a job that nobody waits for any more.
func (j *job) withdrawn() bool {
	if j.state.Load() != jobWithdrawn {
		return false
	}
	close(j.done)
	return true
}

// One transaction in the making, to which jobs add their rows. A job that is refused takes its own back, and the others
// of its commit go on.

// refusal is an error of one job: its rows are taken back, the others of the batch go on.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// batch is one transaction in the making.
type batch struct {
	store        store.Store
	begun        store.Begun
	presumesEnds bool         // it presumes where the chains end
	book         *book        // what it decides on
	base         *chain.Links // where the chains ended when it began
	links        *chain.Links // and where they will
	now          int64
	rows         []chain.Row

	// of a shared ledger
	presumed map[store.AccountKey]store.Account // of a batch that presumes: the accounts as its charges will leave them
	deferred []*job                             // which such a batch has left out
	wrote    bool                               // something else than rows
	claims   []claimed                          // made with it
	leases   []leased                           // begun with it
	lost     []int64                            // online releases that another process has taken over
	dropped  []claimed                          // given up with it
}

// next is the number of the next row.
func (t *batch) next() int64 {
	if t.begun.First == 0 {
		return t.links.Last + 1
	}
	return t.begun.First + int64(len(t.rows))
}

// writes reports whether nobody else writes a chain until the batch ends; who writes chain 0 holds all.
func (t *batch) writes(chain int64) bool {
	return t.begun.Chains == nil || slices.Contains(t.begun.Chains, chain)
}

// add writes the next row of a chain.
func (t *batch) add(kind chain.Kind, ds int64, holder string, body []byte) (chain.Row, error) {
	r := chain.Row{Seq: t.next(), Kind: kind, At: t.now, DS: ds, Holder: holder, Body: body}
	if t.begun.First != 0 && int64(len(t.rows)) >= t.begun.Numbers {
		return chain.Row{}, refusal{errStepwise} // there is a number for it in the next batch
	}
	if t.links.Link(&r); !t.writes(r.Chain) {
		return chain.Row{}, fmt.Errorf("a row of chain %d in a batch that does not hold it", r.Chain)
	}
	if err := t.store.Insert(r); err != nil {
		return chain.Row{}, err
	}
	t.rows = append(t.rows, r)
	return r, t.links.Move(r)
}

// attempt runs one job inside a savepoint.
func (t *batch) attempt(j *job, now int64) error {
	t.now, j.err = now, nil
	rows, claims, leases := len(t.rows), len(t.claims), len(t.leases)
	if err := t.store.Savepoint(); err != nil {
		return err
	}
	err := j.run(t)
	if err == nil {
		return t.store.Keep()
	}
	var refused refusal
	if !errors.As(err, &refused) {
		return err
	}
	if j.err = refused.error; errors.Is(err, errStepwise) || t.presumesEnds { // what was presumed refuses nobody
		t.deferred = append(t.deferred, j)
	}
	if len(t.rows) > rows {
		t.links = t.base.Clone()
		for _, r := range t.rows[:rows] {
			if err := t.links.Move(r); err != nil {
				return err
			}
		}
	}
	t.rows, t.claims, t.leases = t.rows[:rows], t.claims[:claims], t.leases[:leases]
	return t.store.Undo()
}

// itemLock is held on one item from before its charge until it is saved or given up, so that nobody else in this
// process pays for it meanwhile. Its key names what is being drawn or paid: the hash of dataset, holder, measure, spec
// and epoch; of a saved release it is the unique key on disk.
type itemLock struct {
	key      store.Key
	released chan struct{} // closed when it is
}

// lockTable are the locks that are held. A request takes those of all of its items at once or none, so two requests
// never wait for each other.
type lockTable struct {
	mu     sync.Mutex
	held   map[store.Key]*itemLock
	closed bool
}

// take takes a lock that nobody holds. The table's mutex is its caller's.
func (t *lockTable) take(key store.Key) *itemLock {
	l := &itemLock{key: key, released: make(chan struct{})}
	t.held[key] = l
	return l
}

func (t *lockTable) release(l *itemLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[l.key] == l {
		delete(t.held, l.key)
		close(l.released)
	}
}

// close gives all locks back, and has nobody take another one.
func (t *lockTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for key, l := range t.held {
		delete(t.held, key)
		close(l.released)
	}
}
