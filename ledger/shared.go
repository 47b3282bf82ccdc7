package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Several proxies may keep one ledger. What each knows of it, its book, follows the chains: a batch first takes in what
// others have written, while it holds the heads of the chains that it writes, so that what it decides it decides on the
// latest state of these and of chain 0; and before a statement is planned Follow does the same without holding
// anything. What is under way in one process and must not be begun in another has a claim: a draw between its charge
// and its save, a step of a release that grows, and, as long as it lives, an online release. A claim ends with the
// process, and lets nobody spend anything: it only keeps a second draw from being paid for.

// errElsewhere: another process is at it.
var errElsewhere = errors.New("another process is at it")

// elsewherePause is how long to wait for another process before looking again, unless the ledger moves on before.
const elsewherePause = 100 * time.Millisecond

// sharing is what a keeper of a shared ledger has besides.
type sharing struct {
	mu      sync.Mutex
	round   *round          // the next read of the chains' ends, which all who ask now wait for
	moved   chan struct{}   // closed when the book next takes in others' rows
	leases  map[int64]int64 // online releases that live here, by fence
	dropped []claimed       // claims to be given up with the next batch
	adopted bool            // a policy was adopted by this process

	asks   bool                // what a batch has presumed was not so, and the next one asks; the writer's own, as is
	rivals map[int64]time.Time // when another process was last seen to have written in a dataset
}

type round struct {
	done chan struct{}
	err  error
}

type claimed struct {
	ds    int64 // in whose chain it was claimed
	key   store.Key
	fence int64
}

type leased struct{ id, fence int64 }

// Shared reports whether other processes may write the ledger.
func (f *keeper) Shared() bool { return f.site.Shared() }

// Follow is Ledger's. Those who ask while the chains' ends are being read share the next read.
func (f *keeper) Follow(ctx context.Context) error {
	if !f.Shared() || f.opts.ReadOnly {
		return nil
	}
	f.sharing.mu.Lock()
	r, leads := f.sharing.round, false
	if r == nil {
		r, leads = &round{done: make(chan struct{})}, true
		f.sharing.round = r
	}
	f.sharing.mu.Unlock()
	if leads {
		f.followOnce(r)
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// followOnce reads the chains' ends, and has the writer take in what is new.
func (f *keeper) followOnce(r *round) {
	defer close(r.done)
	over := func() { // who comes from here on waits for a read that begins after
		f.sharing.mu.Lock()
		defer f.sharing.mu.Unlock()
		if f.sharing.round == r {
			f.sharing.round = nil
		}
	}
	ends, err := reads(f, func(s store.Store) ([]chain.Head, error) {
		over()
		return s.(store.Shared).Ends()
	})
	if err != nil {
		over()
		r.err = err
		return
	}
	f.mu.RLock()
	current := f.book.links.At(ends)
	f.mu.RUnlock()
	if !current || f.fault.Load() != nil {
		r.err = f.do(context.Background(), &job{follows: true, run: func(*batch) error { return nil }})
	}
}

// catchUp takes in what others have written.
func (f *keeper) catchUp() error {
	news, err := f.store.(store.Shared).News(f.ahead.links.Heads())
	if err == nil && news != nil {
		err = f.learn(*news)
	}
	if err != nil || len(f.unshown) == 0 {
		return err
	}
	return f.show(nil)
}

// Of a shared ledger the writer has two books. What others have committed may not be durable yet: they give the heads
// of their chains back before the flush, so that nobody waits for it. So a batch decides on a book that is ahead, and
// what everybody else reads is one that ends at what is known to be durable: the rows in between come into it with the
// end of the batch, which is durable only after all that it has read. After a fault the one ahead is given up, and
// begins anew at the other: what a crash of the server takes back was never shown, and is no rollback.

// setBook makes a book that was read the one that there is.
func (f *keeper) setBook(b *book) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book, f.ahead, f.unshown = b, b, nil
}

// learn takes in the rows of each chain from the last one known on. Where that row is no longer what it was, or a chain
// does not end where its head says, it is another ledger, or an older state of this one.
func (f *keeper) learn(news store.News) error {
	if f.ahead == f.book {
		f.ahead = f.book.clone()
	}
	links := f.ahead.links
	known := links.Clone()
	for _, r := range news.Rows {
		if old := known.Head(links.Of(r)); r.Seq <= old.Seq {
			if r.Seq != old.Seq || r.Hash != old.Hash {
				return fmt.Errorf("%w: row %d is another one than was read before", ErrRollback, r.Seq)
			}
			continue
		}
		if err := f.ahead.take(r); err != nil {
			if errors.Is(err, chain.ErrOrder) {
				return fmt.Errorf("%w: what follows row %d is another ledger's: %v", ErrRollback, known.Head(links.Of(r)).Seq, err)
			}
			return err
		}
		f.unshown = append(f.unshown, r)
		if r.DS != 0 && f.tick()-r.At < int64(rivalry) { // and not long ago
			f.sharing.rivals[r.DS] = time.Now()
		}
	}
	if news.Part && !slices.ContainsFunc(news.Heads, func(h chain.Head) bool { return !links.Head(h.Chain).Ends(h) }) {
		return nil
	}
	if !links.At(news.Heads) {
		return fmt.Errorf("%w: a row is gone that was read before", ErrRollback)
	}
	return nil
}

// show has everybody read what is durable by now: what was learned of others, and a batch's own rows. The witness knows
// before whose rows they are is answered; nobody waits for its disk to read the book.
func (f *keeper) show(own []chain.Row) error {
	if err := f.bring(own); err != nil {
		return err
	}
	return f.witness.write(markOf(f.book))
}

// bring brings the book to what is durable.
func (f *keeper) bring(own []chain.Row) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range own {
		if err := f.ahead.take(r); err != nil {
			return err
		}
	}
	if f.ahead != f.book {
		for _, r := range slices.Concat(f.unshown, own) {
			if err := f.book.retake(r); err != nil {
				return err
			}
		}
	}
	if len(f.unshown) > 0 {
		f.unshown = nil
		f.sharing.mu.Lock()
		if f.sharing.moved != nil {
			close(f.sharing.moved)
			f.sharing.moved = nil
		}
		f.sharing.mu.Unlock()
	}
	return nil
}

// await returns when the book has taken in others' rows, or after a while.
func (f *keeper) await(ctx context.Context) error {
	f.sharing.mu.Lock()
	if f.sharing.moved == nil {
		f.sharing.moved = make(chan struct{})
	}
	moved := f.sharing.moved
	f.sharing.mu.Unlock()
	pause := time.NewTimer(elsewherePause)
	defer pause.Stop()
	select {
	case <-moved:
	case <-pause.C:
	case <-f.closing:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// claim makes a key this process's own as part of a batch; errElsewhere where another one that lives has it.
func (t *batch) claim(ds int64, key store.Key) (fence int64, err error) {
	s, ok := t.store.(store.Shared)
	if !ok {
		return 1, nil // there is no other process
	}
	if fence, err = s.Claim(key); err != nil {
		return 0, err
	}
	if fence == 0 {
		return 0, refusal{errElsewhere}
	}
	t.wrote = true
	t.claims = append(t.claims, claimed{ds, key, fence})
	return fence, nil
}

// holds reports whether a claim is still this process's.
func (t *batch) holds(key store.Key, fence int64) (bool, error) {
	if s, ok := t.store.(store.Shared); ok {
		return s.Holds(key, fence)
	}
	return true, nil
}

// yield gives a claim up as part of a batch.
func (t *batch) yield(key store.Key, fence int64) error {
	if s, ok := t.store.(store.Shared); ok {
		return s.Yield(key, fence)
	}
	return nil
}

// endClaim ends the claim on a draw that is being saved, if it is still this process's.
func (t *batch) endClaim(r *Receipt) error {
	mine, err := t.holds(r.key, r.fence)
	if err != nil {
		return err
	}
	if !mine {
		return refusal{errors.New("ledger: another process has taken the draw over")}
	}
	return t.yield(r.key, r.fence)
}

// drop has the writer give a claim up, with its next batch or when it next rests.
func (f *keeper) drop(c claimed) {
	if !f.Shared() {
		return
	}
	f.sharing.mu.Lock()
	defer f.sharing.mu.Unlock()
	f.sharing.dropped = append(f.sharing.dropped, c)
}

// dropAll gives up what was dropped in the datasets whose chains a batch holds, as part of it: nobody else claims
// anything there meanwhile, so that no two batches wait for each other's claims.
func (f *sharing) dropAll(t *batch) error {
	f.mu.Lock()
	var list, others []claimed
	for _, c := range f.dropped {
		if t.writes(t.base.In(c.ds)) {
			list = append(list, c)
		} else {
			others = append(others, c)
		}
	}
	f.dropped = others
	f.mu.Unlock()
	t.dropped = list
	for _, c := range list {
		if err := t.yield(c.key, c.fence); err != nil {
			return err
		}
	}
	t.wrote = t.wrote || len(list) > 0
	return nil
}

// settleClaims notes what a batch has begun; of one that has failed it has given up what it may have claimed.
func (f *sharing) settleClaims(t *batch, committed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !committed {
		f.dropped = slices.Concat(f.dropped, t.dropped, t.claims)
		return
	}
	for _, id := range t.lost { // whoever asked learns it: where the batch fails she does not, and asks again
		delete(f.leases, id)
	}
	for _, l := range t.leases {
		f.leases[l.id] = l.fence
	}
}

// leaseKey names the claim of an online release that lives.
func leaseKey(id int64) store.Key {
	var e chain.Encoder
	e.Text("lease")
	e.Int(id)
	return e.Hash()
}

// lease makes a release that goes on in a dataset this process's own, as part of a batch. One that was begun here is so
// already; what another process has taken over since is refused, and begun anew with the next call.
func (f *sharing) lease(t *batch, ds, id int64) error {
	f.mu.Lock()
	fence, begun := f.leases[id]
	f.mu.Unlock()
	var err error
	if begun {
		mine, err := t.holds(leaseKey(id), fence)
		if err != nil || mine {
			return err
		}
		t.lost = append(t.lost, id)
		return refusal{fmt.Errorf("ledger: %w", ErrElsewhere)}
	}
	if fence, err = t.claim(ds, leaseKey(id)); err != nil {
		if errors.Is(err, errElsewhere) {
			err = refusal{fmt.Errorf("ledger: %w", ErrElsewhere)}
		}
		return err
	}
	t.leases = append(t.leases, leased{id, fence})
	return nil
}

// datasetOf is the dataset of a release; 0 means it is not known yet.
func (f *keeper) datasetOf(id int64) int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if rec := f.book.releases[id]; rec != nil {
		return rec.ds
	}
	return 0
}

// Leads is Ledger's.
func (f *keeper) Leads(ctx context.Context, id int64) error {
	if !f.Shared() {
		return nil
	}
	ds := f.datasetOf(id)
	return f.do(ctx, &job{ds: ds, run: func(t *batch) error {
		f.sharing.mu.Lock()
		_, begun := f.sharing.leases[id]
		f.sharing.mu.Unlock()
		if !begun {
			return refusal{fmt.Errorf("ledger: %w", ErrElsewhere)}
		}
		return f.lease(t, ds, id)
	}})
}

// confirmWithin bounds how long the outcome of a commit is sought after its connection was lost.
const confirmWithin = 20 * time.Second

// confirm connects anew and finds out whether a batch is durable. To know it, the heads of all chains are held: by then
// the lost connection's transaction has ended, one way or the other.
func (f *keeper) confirm(u store.UnknownCommit) bool {
	for began := time.Now(); time.Since(began) < confirmWithin; time.Sleep(20 * time.Millisecond) {
		select {
		case <-f.closing:
			return false
		default:
		}
		durable := false
		err := f.rejoin(func(s store.Shared) (err error) {
			durable, err = s.Wrote(u.Request)
			return err
		})
		if err == nil {
			return durable
		}
		f.fail(err)
		if errors.Is(err, ErrRollback) || errors.Is(err, ErrCorrupt) {
			return false
		}
	}
	return false
}

// rejoin opens a shared ledger again after a fault and takes in what has been written since. The book is not read anew:
// a ledger that no longer has its last row is another one.
func (f *keeper) rejoin(look func(store.Shared) error) error {
	opened, err := f.site.Open(context.Background(), true)
	if err != nil {
		return openFailed(err)
	}
	s := opened.(store.Shared)
	f.store = s
	_, turn, _, err := readWitness(f.disk, f.opts.Witness)
	if err == nil {
		f.witness, err = openWitness(f.disk, f.opts.Witness, turn)
	}
	if err != nil {
		return err
	}
	begun, err := s.Begin(f.ahead.links.Heads(), store.Wanted{})
	if err == nil && begun.News != nil {
		err = f.learn(*begun.News)
	}
	if err == nil {
		err = compareAccounts(s, f.ahead)
	}
	if err == nil {
		err = look(s)
	}
	if err == nil { // what is there may not be on the server's standbys yet; this commit is when all before it is
		err = s.Commit([]chain.Head{f.ahead.links.Head(0)}, false)
	}
	if err == nil {
		err = f.show(nil)
	}
	if err != nil {
		return openFailed(err)
	}
	f.fault.Store(nil)
	f.log.Info("ledger open again", "rows", f.ahead.links.Rows)
	return nil
}

// alone refuses to put another policy in force than that under which other proxies are at work, when this one has not
// been at work itself (privacy rule 8). A proxy at work may: the others are then refused at their next charge.
func (f *keeper) alone(t *batch, p Terms) error {
	s, ok := t.store.(store.Shared)
	if !ok || f.sharing.adopted || !t.book.ruled || t.book.policy == p.PolicyDigest {
		return nil
	}
	n, err := s.Others()
	if err == nil && n > 0 {
		err = refusal{fmt.Errorf("ledger: %w: %d other proxies are at work under another policy; have one of them load this policy first", ErrPolicy, n)}
	}
	return err
}
