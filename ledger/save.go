package ledger

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Save stores what was drawn on a spent receipt. After an error it may be called again with the same draw: if the
// first call was durable after all, the second one finds it.
func (f *keeper) Save(ctx context.Context, r *Receipt, drawn mechanisms.Drawn) (int64, error) {
	if r == nil || r.state.Load() == 0 || r.lock == nil {
		return 0, errors.New("ledger: not a receipt")
	}
	levels, own := drawn.Levels, r.item.level()
	if len(r.item.Levels)+len(levels) == 0 {
		levels, own = []privacy.Released[mechanisms.Noisy]{drawn.Noisy}, 0
	}
	if own < 0 || len(levels) != max(len(r.item.Levels), 1) {
		return 0, errors.New("ledger: other levels than were paid for")
	}
	if slices.ContainsFunc(levels, func(l privacy.Released[mechanisms.Noisy]) bool { return !l.Valid() }) {
		return 0, errors.New("ledger: nothing was released")
	}
	if begins := r.item.Ladder.From == 0 && r.item.Ladder != (Ladder{}); begins != drawn.Finest.Valid() {
		return 0, errors.New("ledger: a finest level where no ladder begins, or none where one does")
	}
	var sealed []byte
	if drawn.Finest.Valid() {
		sealed = drawn.Finest.AppendTo(nil)
	}
	blobs := make([][]byte, len(levels))
	for i, l := range levels {
		blobs[i] = chain.Release(l.Value(), sealed) // a draw of several levels begins no ladder
	}
	return f.stored(ctx, r, levels[own], func(t *batch) (int64, error) {
		if r.grows != 0 {
			return t.saveStep(r, blobs[own])
		}
		return f.saveLevels(t, r, blobs, own)
	})
}

// stored has the writer save what was drawn on a receipt, once.
func (f *keeper) stored(ctx context.Context, r *Receipt, noisy privacy.Released[mechanisms.Noisy], save func(*batch) (int64, error)) (int64, error) {
	if !r.state.CompareAndSwap(receiptSpent, receiptSaving) {
		return 0, errors.New("ledger: only a spent receipt can be saved, and once")
	}
	var id int64
	err := f.do(ctx, &job{ds: r.ds, run: func(t *batch) (err error) {
		id, err = save(t)
		return err
	}})
	if err != nil {
		r.state.Store(receiptSpent)
		return 0, err
	}
	r.state.Store(receiptClosed)
	if !r.item.Spec.Grows() {
		f.cache.put(id, noisy)
	}
	f.itemLocks.release(r.lock)
	return id, nil
}

func (f *keeper) save(t *batch, r *Receipt, body saveBody, blob []byte) (int64, error) {
	if id, ok := t.book.byCharge[r.charge]; ok {
		if t.book.releases[id].noisy != body.noisy {
			return 0, refusal{errors.New("ledger: another release was saved on this charge")}
		}
		return id, nil
	}
	if err := t.endClaim(r); err != nil {
		return 0, err
	}
	if o, ok := t.book.open[r.charge]; !ok || o.digest != r.digest {
		return 0, refusal{errors.New("ledger: receipt of another ledger")}
	}
	holder := r.user
	if r.item.Shared {
		holder = ""
	}
	row, err := t.add(chain.RowSave, r.ds, holder, body.encode())
	if err != nil {
		return 0, err
	}
	if r.item.Spec.GoesOn() { // it lives here from now on
		if err := f.lease(t, r.ds, row.Seq); err != nil {
			return 0, err
		}
	}
	return row.Seq, t.store.KeepRelease(store.Release{ID: row.Seq, Charge: r.charge, Key: body.key[:], Noisy: blob})
}

// Abandon gives a receipt up.
func (f *keeper) Abandon(r *Receipt) {
	if r == nil || r.lock == nil {
		return
	}
	if r.state.CompareAndSwap(receiptFresh, receiptClosed) || r.state.CompareAndSwap(receiptSpent, receiptClosed) {
		f.itemLocks.release(r.lock)
		f.drop(claimed{r.ds, r.key, r.fence})
	}
}

// Load returns a saved release.
func (f *keeper) Load(ctx context.Context, user string, id int64) (Release, error) {
	f.mu.RLock()
	rec, paid := f.book.heldBy(user, id)
	f.mu.RUnlock()
	if rec == nil || rec.Revoked || !paid {
		return Release{}, fmt.Errorf("ledger: %w", ErrNotHeld)
	}
	out := rec.Release
	fetch, key := f.fetch, id
	if n := len(rec.grown); n > 0 {
		fetch, key = f.fetchGrown, rec.grown[n-1].seq // which no other release has
	}
	noisy, ok := f.cache.get(key)
	if !ok {
		var err error
		if noisy, err = fetch(ctx, rec); err != nil {
			return Release{}, err
		}
		f.cache.put(key, noisy)
	}
	out.Noisy = noisy
	return out, nil
}

// fetch reads the observations of a release from disk and holds them against the chain's hash.
func (f *keeper) fetch(ctx context.Context, rec *record) (none privacy.Released[mechanisms.Noisy], _ error) {
	blob, err := f.blob(ctx, rec)
	if err != nil {
		return none, err
	}
	return decodeStored(rec, blob)
}

func decodeStored(rec *record, blob []byte) (none privacy.Released[mechanisms.Noisy], _ error) {
	noisy, _, err := chain.ReadRelease(blob)
	if err != nil {
		return none, fmt.Errorf("ledger: %w: release %d: %w", ErrCorrupt, rec.ID, err)
	}
	return privacy.Published(noisy), nil
}

// reads has do read from the connection for reading, which belongs to one caller at a time, within patience. After an
// error another connection is opened.
func reads[T any](f *keeper, do func(store.Store) (T, error)) (T, error) {
	out, err := deadline.Call(f.reading, patience, func() (none T, _ error) {
		s, err := f.openReader(context.Background())
		if err != nil {
			return none, err
		}
		out, err := do(s)
		if err != nil {
			f.reader = nil
			s.Close()
		}
		return out, err
	})
	if err != nil && !errors.Is(err, ErrClosed) {
		err = openFailed(err)
	}
	if err != nil {
		return out, fmt.Errorf("ledger: %w", err)
	}
	return out, nil
}

// openReader needs f.reading.
func (f *keeper) openReader(ctx context.Context) (s store.Store, err error) {
	select {
	case <-f.closing:
		return nil, ErrClosed
	default:
	}
	if f.reader == nil {
		if s, err = f.site.Open(ctx, false); err != nil {
			return nil, openFailed(err)
		}
		f.reader = s
	}
	return f.reader, nil
}

func (f *keeper) closeReader() (err error) {
	f.reading <- struct{}{}
	if f.reader != nil {
		err = f.reader.Close()
		f.reader = nil
	}
	<-f.reading
	return err
}

// Revoke withdraws a release.
func (f *keeper) Revoke(ctx context.Context, id int64) error {
	var gone []int64
	err := f.do(ctx, &job{alone: true, ds: f.datasetOf(id), run: func(t *batch) error {
		rec := t.book.releases[id]
		if rec == nil || rec.Revoked {
			return refusal{fmt.Errorf("ledger: %w: %d", ErrNotHeld, id)}
		}
		e := chain.Body()
		e.Int(id)
		if _, err := t.add(chain.RowRevoke, rec.ds, "", e.Bytes()); err != nil {
			return err
		}
		for _, level := range t.book.levelsOf(rec) {
			gone = append(gone, level.ID)
			if err := t.store.WithdrawRelease(level.ID); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	for _, level := range gone {
		f.cache.drop(level)
	}
	return nil
}

// cache keeps decoded releases, least recently used first out.
type cache struct {
	mu          sync.Mutex
	limit, size int64
	byID        map[int64]*list.Element
	order       list.List
}

type cached struct {
	id    int64
	noisy privacy.Released[mechanisms.Noisy]
	size  int64
}

func (c *cache) get(id int64) (none privacy.Released[mechanisms.Noisy], _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return none, false
	}
	c.order.MoveToBack(e)
	return e.Value.(*cached).noisy, true
}

func (c *cache) put(id int64, noisy privacy.Released[mechanisms.Noisy]) {
	size := int64(8*len(noisy.Value().Observations) + 128)
	for _, k := range noisy.Value().Keys {
		size += int64(len(k) + 16)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[int64]*list.Element{}
	}
	if c.byID[id] != nil || size > c.limit {
		return
	}
	c.byID[id] = c.order.PushBack(&cached{id, noisy, size})
	for c.size += size; c.size > c.limit; {
		c.remove(c.order.Front())
	}
}

func (c *cache) drop(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
}

func (c *cache) remove(e *list.Element) {
	old := c.order.Remove(e).(*cached)
	delete(c.byID, old.id)
	c.size -= old.size
}
