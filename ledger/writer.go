package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
)

const (
	witnessFlush  = time.Second            // how long a mark may stay unflushed
	reopenNotSoon = 200 * time.Millisecond // after a fault, before the next try
	writtenOfLate = time.Second            // how long a disk that has taken a write is believed to take the next

	probeBytes = 256 << 10 // must fit on the disk before a re-opening is worth its work
	soundBytes = 512       // must fit on one that nothing is wrong with
)

// write is the one goroutine that writes. It takes whatever waits and commits it at once.
func (f *keeper) write() {
	defer close(f.stopped)
	tick := time.NewTicker(witnessFlush)
	defer tick.Stop()
	for {
		f.frozen.Store(false)
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

// beginPresuming begins a batch without a word from the server, in datasets in whose chains nobody else has written of
// late: it presumes that these end as they are known to. What came until then goes into it.
func (f *keeper) beginPresuming() (store.Begun, bool) {
	s, ok := f.store.(store.Shared)
	if first := f.waiting[0]; !ok || f.sharing.asks || first.stepwise || first.alone || first.follows || f.rivalled(first.ds) {
		return store.Begun{}, false
	}
	links := f.ahead.links
	var heads []chain.Head
	for _, j := range f.batchable() {
		if j.follows || f.rivalled(j.ds) || slices.ContainsFunc(heads, func(h chain.Head) bool { return h.Chain == j.ds }) {
			continue
		}
		heads = append(heads, links.Head(j.ds))
	}
	slices.SortFunc(heads, func(a, b chain.Head) int { return cmp.Compare(a.Chain, b.Chain) }) // as all wait for them
	return s.BeginPresuming(links.Head(0), heads, rivalry)
}

// rivalled reports whether another process may be about to write in a dataset's chain, or it is not known whose that
// is.
func (f *keeper) rivalled(ds int64) bool {
	return ds == 0 || !f.ahead.links.Split() || f.ahead.links.Head(ds).Chain != ds || time.Since(f.sharing.rivals[ds]) < rivalry
}

// rest is what the writer does between jobs. It gives up what no batch has come for, or a batch that has failed should
// have: others wait for it even if nobody asks here any more.
func (f *keeper) rest() {
	f.sharing.mu.Lock()
	waits := slices.Clone(f.sharing.dropped)
	f.sharing.mu.Unlock()
	if len(waits) > 0 {
		f.serve(&job{ds: waits[0].ds, run: func(*batch) error { return nil }, done: make(chan struct{})})
	}
	if f.store == nil || f.witness == nil {
		return
	}
	if err := f.witness.flush(); err != nil {
		f.fail(fmt.Errorf("flush of the witness: %w", err))
	}
}

// serve runs a job, and those that wait with it, in one transaction and answers each. Any fault that is not a job's own
// refusal closes the ledger: all jobs of the batch fail, though what was written may turn out to be durable, and then
// counts.
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
		f.written = time.Now()
		if err := f.store.Tidy(); err != nil {
			f.fail(err)
		}
	}
	f.waiting = slices.Concat(left, f.waiting)
}

// ready opens the ledger again after a fault, if it is time. Where nothing has been written of late it finds out
// whether the disks of the ledger and of its witness take a little: who waits for one that has frozen is not charged.
func (f *keeper) ready() error {
	if f.store != nil {
		if time.Since(f.written) < writtenOfLate {
			return nil
		}
		err := f.site.Probe(soundBytes)
		if err == nil && filepath.Dir(f.site.Witness()) != filepath.Dir(f.opts.Witness) {
			err = store.Probe(f.disk, f.opts.Witness, soundBytes)
		}
		if err != nil {
			f.fail(err)
			return *f.fault.Load()
		}
		f.written = time.Now()
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
	err := f.site.Probe(probeBytes)
	switch {
	case err != nil:
	case f.Shared() && !errors.Is(cause, ErrCorrupt) && !errors.Is(cause, ErrRollback):
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

// Sound: see Ledger. A job that writes nothing has the writer find out, and open the ledger again after a
// fault, if it can.
func (f *keeper) Sound(ctx context.Context) error {
	err := f.Follow(ctx)
	if may := f.do(ctx, &job{run: func(*batch) error { return nil }}); err == nil { // what took the reader's connection may have taken the writer's
		err = may
	}
	return err
}

// fail closes the store. Nothing is written until ready has opened and compared it again.
func (f *keeper) fail(err error) {
	_ = f.shut()
	f.setBook(f.book)
	err = f.site.Explain(err)
	f.log.Error("ledger: not available", "error", err)
	kept := err
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrRollback) {
		kept = store.Unavailable(sqlite.Full(err))
	}
	kept = fmt.Errorf("ledger: %w", kept)
	f.fault.Store(&kept)
	f.retry = time.Now().Add(f.opts.again)
	_ = f.closeReader() // which has the same disk
}

// transact is one commit. done are the jobs that it has finished with, also those that have come while it waited for
// its turn; left are to be done in another one. The jobs' own errors are set; the error returned is the disk's, and all
// jobs'.
func (f *keeper) transact() (done, left []*job, err error) {
	defer func() {
		if r := recover(); r != nil {
			left, err = nil, fmt.Errorf("panic in the database: %v", r)
		}
	}()
	if f.Shared() { // those whom the last batch has answered come again in time for what is said of the chains that are wanted
		runtime.Gosched()
		f.gather()
	}
	jobs := f.batchable()
	if !slices.ContainsFunc(jobs, func(j *job) bool { return !j.follows }) {
		return f.choose(func(j *job) bool { return j.follows }), nil, f.catchUp()
	}
	for _, j := range f.waiting {
		j.told = true // of what is written now
	}
	begun, presumed := f.beginPresuming()
	if !presumed {
		begun, err = f.store.Begin(f.ahead.links.Heads(), f.wanted(jobs)) // which the writer alone changes
		if err == nil && begun.News != nil {
			err = f.learn(*begun.News)
		}
		if err != nil {
			return nil, nil, err
		}
		f.sharing.asks = false
		f.gather()
	}
	t := &batch{store: f.store, begun: begun, presumesEnds: presumed, book: f.ahead, base: f.ahead.links, links: f.ahead.links.Clone()}
	done = f.choose(func(j *job) bool {
		if j.follows && !presumed && (j.told || begun.Chains == nil) || !j.follows && t.writes(t.base.In(j.ds)) {
			return true // who follows came before the news was read, or all chains are held since
		}
		j.passed++
		return false
	})
	t.presume(done)
	err = f.commit(t, done)
	if errors.Is(err, store.ErrPresumed) || errors.Is(err, store.ErrMoved) {
		t.claims = nil // none was made
		f.settleClaims(t, false)
		if errors.Is(err, store.ErrPresumed) {
			return nil, doStepwise(done), nil
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
	if left = t.deferred; len(left) > 0 {
		done = slices.DeleteFunc(done, func(j *job) bool { return slices.Contains(left, j) })
	}
	for _, j := range done {
		if j.err == nil && j.after != nil {
			j.after()
		}
	}
	return done, doStepwise(left), nil
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

// contested reports whether another process waits for a chain of the batch's, as far as is known.
func (f *sharing) contested(t *batch) bool {
	return slices.ContainsFunc(t.begun.Chains, func(ds int64) bool { return time.Since(f.rivals[ds]) < rivalry })
}

// Ask hands out a receipt for running one question of a run of alarms that the user has paid for: the measure of that
// digest, once. It costs nothing and writes nothing: what the answer costs the run is a step, if it costs anything.
// Nothing is saved on such a receipt.
func (f *keeper) Ask(ctx context.Context, user string, id int64, question Digest) (*Receipt, error) {
	var rec *record
	err := f.do(ctx, &job{ds: f.datasetOf(id), run: func(t *batch) error {
		if rec = t.book.releases[id]; rec == nil || rec.Revoked || rec.holder != t.book.sets[rec.ds].holder(user) || !mechanisms.Is[*mechanisms.Alarm](rec.Item.Spec) {
			return refusal{fmt.Errorf("ledger: %w: %d", ErrNotHeld, id)}
		}
		return f.lease(t, rec.ds, id)
	}})
	if err != nil {
		return nil, err
	}
	r := &Receipt{digest: question, ds: rec.ds, user: rec.holder, item: rec.Item}
	r.state.Store(receiptFresh)
	return r, nil
}
