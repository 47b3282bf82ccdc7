package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

const (
	mostJobs      = 256                    // one commit covers at most so many
	witnessFlush  = time.Second            // how long a mark may stay unflushed
	reopenNotSoon = 200 * time.Millisecond // after a fault, before the next try
)

// job is work for the writer: run adds rows to the batch, after is called once they are durable and in the book.
type job struct {
	run     func(*batch) error
	after   func()
	alone   bool  // shares its commit with no other
	follows bool  // has nothing to write: takes in what others have written
	told    bool  // it came before the batch read what others have written
	wary    bool  // is done step by step, nothing presumed
	ds      int64 // the dataset in whose chain it writes; 0: it writes in chain 0, or nobody knows yet
	passed  int   // batches that have left it waiting, because another process wrote in its dataset
	state   atomic.Int32
	err     error
	done    chan struct{}
}

// The states of a job: whoever moves it from waiting first decides.
const (
	jobWaiting int32 = iota
	jobTaken
	jobWithdrawn
)

// refusal is an error of one job: its rows are taken back, the others of the batch go on.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// batch is one transaction in the making.
type batch struct {
	store  store.Store
	begun  store.Begun
	stands bool         // it presumes where the chains end
	book   *book        // what it decides on
	base   *chain.Links // where the chains ended when it began
	links  *chain.Links // and where they will
	now    int64
	rows   []chain.Row

	// of a shared ledger
	presumed map[store.AccountKey]store.Account // of a batch that presumes: the accounts as its charges will leave them
	doubted  []*job                             // which such a batch has left out
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

// writes tells whether nobody else writes a chain until the batch ends; who writes chain 0 holds all.
func (t *batch) writes(chain int64) bool {
	return t.begun.Chains == nil || slices.Contains(t.begun.Chains, chain)
}

// add writes the next row of a chain.
func (t *batch) add(kind chain.Kind, ds int64, holder string, body []byte) (chain.Row, error) {
	r := chain.Row{Seq: t.next(), Kind: kind, At: t.now, DS: ds, Holder: holder, Body: body}
	if t.begun.First != 0 && int64(len(t.rows)) >= t.begun.Numbers {
		return chain.Row{}, refusal{errDoubted} // there is a number for it in the next batch
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

// do hands a job to the writer and waits for it. A job that has not been begun is withdrawn when ctx ends; one that has is
// waited for, because only its outcome tells whether it was charged.
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
	select {
	case f.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.closing:
		return ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
			return ctx.Err()
		}
	case <-f.stopped:
	}
	select {
	case <-j.done:
		return j.err
	case <-f.stopped:
	}
	select {
	case <-j.done:
		return j.err
	default:
		return ErrClosed
	}
}

// write is the one goroutine that writes. It takes whatever waits and commits it at once.
func (f *keeper) write() {
	defer close(f.stopped)
	tick := time.NewTicker(witnessFlush)
	defer tick.Stop()
	for {
		switch first, ended := f.next(tick.C); {
		case ended:
			return
		case first == nil:
			f.rest()
		default:
			f.serve(first)
		}
	}
}

// next waits for what the writer does next: a job, rest (nil) or the end. Of what came while it was busy the end goes first, so
// that Close waits for the work in hand alone, and then rest, so that the witness is flushed however many jobs wait; a select
// over all three would draw lots.
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
	for len(f.waiting) < cap(f.queue)+mostJobs {
		select {
		case j := <-f.queue:
			f.waiting = append(f.waiting, j)
		default:
			return
		}
	}
}

// line are the jobs that may share a commit with the one that waits longest: none behind one that must be alone, and no other
// among those that are done step by step.
func (f *keeper) line() []*job {
	first := f.waiting[0]
	if first.alone {
		return f.waiting[:1]
	}
	var list []*job
	for _, j := range f.waiting {
		if j.alone {
			break
		}
		if j.wary == first.wary {
			list = append(list, j)
		}
	}
	return list
}

// rivalry is how long a dataset in whose chain another process has written is taken for one that it goes on writing in.
const rivalry = time.Second

// wanted are the chains that jobs need; who has been left behind twice waits for her dataset's.
func (f *keeper) wanted(jobs []*job) store.Wanted {
	var want store.Wanted
	for _, j := range jobs {
		want.Look = want.Look || j.follows
		switch {
		case j.follows || slices.Contains(want.Chains, j.ds):
		case j.ds == 0 || !f.ahead.links.Split():
			return store.Wanted{}
		default:
			want.Chains = append(want.Chains, j.ds)
			want.Wait = want.Wait || len(want.Chains) == 1 && j.passed >= 2
		}
	}
	return want
}

// stand begins a batch without a word from the server, in datasets in whose chains nobody else has written of late: it presumes that
// these end as they are known to. What came until then goes into it.
func (f *keeper) stand() (store.Begun, bool) {
	s, ok := f.store.(store.Shared)
	if first := f.waiting[0]; !ok || f.sharing.asks || first.wary || first.alone || first.follows || f.rivalled(first.ds) {
		return store.Begun{}, false
	}
	links := f.ahead.links
	var heads []chain.Head
	for _, j := range f.line() {
		if j.follows || f.rivalled(j.ds) || slices.ContainsFunc(heads, func(h chain.Head) bool { return h.Chain == j.ds }) {
			continue
		}
		heads = append(heads, links.Head(j.ds))
	}
	slices.SortFunc(heads, func(a, b chain.Head) int { return cmp.Compare(a.Chain, b.Chain) }) // as all wait for them
	return s.Stand(links.Head(0), heads, rivalry)
}

// rivalled tells whether another process may be about to write in a dataset's chain, or it is not known whose that is.
func (f *keeper) rivalled(ds int64) bool {
	return ds == 0 || !f.ahead.links.Split() || f.ahead.links.Head(ds).Chain != ds || time.Since(f.sharing.rivals[ds]) < rivalry
}

// choose takes jobs of the line out of it, those that may go on.
func (f *keeper) choose(may func(*job) bool) (chosen []*job) {
	var left []*job
	wary, ended := f.waiting[0].wary, false
	for i, j := range f.waiting {
		ended = ended || i > 0 && (j.alone || f.waiting[0].alone) || len(chosen) == mostJobs
		switch {
		case ended || j.wary != wary || !may(j):
			left = append(left, j)
		case j.take():
			chosen = append(chosen, j)
		}
	}
	f.waiting = left
	return chosen
}

// rest is what the writer does between jobs.
func (f *keeper) rest() {
	f.dropAtRest()
	if f.store == nil || f.witness == nil {
		return
	}
	if err := f.witness.flush(); err != nil {
		f.fail(fmt.Errorf("flush of the witness: %w", err))
	}
}

// serve runs a job, and those that wait with it, in one transaction and answers each. Any fault that is not a job's own
// refusal closes the ledger: all jobs of the batch fail, though what was written may turn out to be durable, and then counts.
func (f *keeper) serve(first ...*job) {
	f.waiting = slices.Concat(first, f.waiting)
	f.gather()
	if f.waiting = slices.DeleteFunc(f.waiting, func(j *job) bool { return j.withdrawn() }); len(f.waiting) == 0 {
		return
	}
	var jobs, left []*job
	err := f.ready()
	if err == nil {
		jobs, left, err = f.transact()
		if err != nil {
			f.fail(err)
			err = *f.fault.Load()
		}
	}
	if err != nil { // nothing is written for those that wait either
		jobs = slices.Concat(jobs, slices.DeleteFunc(f.waiting, func(j *job) bool { return !j.take() }))
		f.waiting = nil
	}
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
	if err == nil {
		if err := f.store.Tidy(); err != nil {
			f.fail(err)
		}
	}
	f.waiting = slices.Concat(left, f.waiting)
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

// ready opens the ledger again after a fault, if it is time.
func (f *keeper) ready() error {
	if f.store != nil {
		return nil
	}
	cause := *f.fault.Load()
	if time.Now().Before(f.retry) {
		return cause
	}
	began := time.Now()
	f.mu.RLock()
	known := markOf(f.book)
	f.mu.RUnlock()
	err := f.site.Probe()
	switch {
	case err != nil:
	case f.shared() && !errors.Is(cause, ErrCorrupt) && !errors.Is(cause, ErrRollback):
		err = f.rejoin(func(store.Shared) error { return nil })
	default:
		err = f.open(context.Background(), known)
	}
	if err != nil {
		f.fail(err)
		f.retry = time.Now().Add(f.opts.again + time.Since(began))
		return *f.fault.Load()
	}
	return nil
}

// Sound is described at Ledger. After a fault a job that writes nothing has the writer open the ledger again, if it can.
func (f *keeper) Sound(ctx context.Context) error {
	nothing := &job{run: func(*batch) error { return nil }}
	if err := f.Follow(ctx); err != nil {
		_ = f.do(ctx, nothing) // what took the reader's connection may have taken the writer's: it finds out now, not with the next charge
		return err
	}
	if f.fault.Load() == nil {
		return nil
	}
	return f.do(ctx, nothing)
}

// fail closes the store. Nothing is written until ready has opened and compared it again.
func (f *keeper) fail(err error) {
	f.shut()
	f.hold(f.book)
	err = f.site.Explain(err)
	f.log.Error("ledger: not available", "error", err)
	kept := err
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrRollback) {
		kept = store.Unavailable(sqlite.Full(err))
	}
	kept = fmt.Errorf("ledger: %w", kept)
	f.fault.Store(&kept)
	f.retry = time.Now().Add(f.opts.again)
	f.reading.Lock()
	f.closeReader()
	f.reading.Unlock()
}

// transact is one commit. done are the jobs that it has finished with, also those that have come while it waited for its
// turn; left are to be done in another one. The jobs' own errors are set; the error returned is the disk's, and all jobs'.
func (f *keeper) transact() (done, left []*job, err error) {
	defer func() {
		if r := recover(); r != nil {
			left, err = nil, fmt.Errorf("panic in the database: %v", r)
		}
	}()
	if f.shared() { // those whom the last batch has answered come again in time for what is said of the chains that are wanted
		runtime.Gosched()
		f.gather()
	}
	line := f.line()
	if !slices.ContainsFunc(line, func(j *job) bool { return !j.follows }) {
		return f.choose(func(j *job) bool { return j.follows }), nil, f.catchUp()
	}
	for _, j := range f.waiting {
		j.told = true // of what is written now
	}
	begun, stands := f.stand()
	if !stands {
		begun, err = f.store.Begin(f.ahead.links.Heads(), f.wanted(line)) // which the writer alone changes
		if err == nil && begun.News != nil {
			err = f.learn(*begun.News)
		}
		if err != nil {
			return nil, nil, err
		}
		f.sharing.asks = false
		f.gather()
	}
	t := &batch{store: f.store, begun: begun, stands: stands, book: f.ahead, base: f.ahead.links, links: f.ahead.links.Clone()}
	done = f.choose(func(j *job) bool {
		if j.follows && !stands && (j.told || begun.Chains == nil) || !j.follows && t.writes(t.base.In(j.ds)) {
			return true // who follows came before the news was read, or all chains are held since
		}
		j.passed++
		return false
	})
	f.presume(t, done)
	err = f.commit(t, done)
	if errors.Is(err, store.ErrPresumed) || errors.Is(err, store.ErrMoved) {
		t.claims = nil // none was made
		f.settleClaims(t, false)
		if errors.Is(err, store.ErrPresumed) {
			return nil, warily(done), nil
		}
		f.sharing.asks = true
		return nil, done, nil
	}
	var unknown store.UnknownCommit
	if errors.As(err, &unknown) {
		f.fail(err)
		if f.confirm(unknown) {
			err = nil
		}
	}
	f.settleClaims(t, err == nil)
	if err != nil {
		return done, nil, err
	}
	if left = t.doubted; len(left) > 0 {
		done = slices.DeleteFunc(done, func(j *job) bool { return slices.Contains(left, j) })
	}
	for _, j := range done {
		if j.err == nil && j.after != nil {
			j.after()
		}
	}
	return done, warily(left), nil
}

// commit runs the jobs and makes what they wrote durable, in the book and known to the witness.
func (f *keeper) commit(t *batch, jobs []*job) (err error) {
	if err := f.dropAll(t); err != nil {
		return err
	}
	now := max(f.tick(), t.links.Time) // of all jobs, none of which looked at the book later
	for _, j := range jobs {
		if err := t.attempt(j, now); err != nil {
			return err
		}
	}
	if len(t.rows) == 0 && !t.wrote {
		err := f.store.Rollback()
		if err != nil || len(f.unshown) == 0 {
			return err
		}
		if err := f.store.Settle(); err != nil { // a refusal may tell of what was read
			return err
		}
	} else if err := f.store.Commit(t.links.Moved(t.base), f.contested(t)); err != nil {
		return err
	}
	return f.show(t.rows)
}

// contested tells whether another process waits for a chain of the batch's, as far as is known.
func (f *keeper) contested(t *batch) bool {
	return slices.ContainsFunc(t.begun.Chains, func(ds int64) bool { return time.Since(f.sharing.rivals[ds]) < rivalry })
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
	if j.err = refused.error; errors.Is(err, errDoubted) || t.stands { // what was presumed refuses nobody
		t.doubted = append(t.doubted, j)
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
