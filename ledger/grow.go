package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A continual release is charged once, with all that it will ever observe, and saved without an observation. Each step
// of its growth is a row of the chain that holds the step's observations, so that the chain's hash covers them. A step
// is drawn under a receipt without a charge: one at a time for each release, for whoever has paid for it, and never for
// cells that a saved row has. What was drawn and not saved was not sent: it is drawn anew, since nobody has seen
// anything of it (docs/adr/0027). Where rows may have been lost, what was sent is not known, so that growing releases
// end there: see endWhatGoesOn.

// growth is one saved step.
type growth struct {
	seq   int64 // its row
	to    int
	noisy Digest // of the stored observations
}

// through is the number of cells that a release has grown to.
func (r *record) through() int {
	if n := len(r.grown); n > 0 {
		return r.grown[n-1].to
	}
	return 0
}

// Grow is Ledger's.
func (f *keeper) Grow(ctx context.Context, user string, id int64, through int) (*Receipt, mechanisms.Step, error) {
	if f.fault.Load() != nil { // what a failed save left on the disk must be known first
		if err := f.do(ctx, &job{run: func(*batch) error { return nil }}); err != nil {
			return nil, mechanisms.Step{}, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, mechanisms.Step{}, err
		}
		r, wait, err := f.lockStep(user, id, through)
		switch {
		case err != nil || wait == nil && r == nil:
			return nil, mechanisms.Step{}, err
		case wait == nil:
			err := f.claimStep(ctx, r)
			if err == nil {
				return r, r.step, nil
			}
			f.itemLocks.release(r.lock)
			if errors.Is(err, errElsewhere) {
				err = f.await(ctx)
			}
			if err != nil && !errors.Is(err, errOutdated) {
				return nil, mechanisms.Step{}, err
			}
			continue
		}
		select {
		case <-wait.released:
		case <-ctx.Done():
			return nil, mechanisms.Step{}, ctx.Err()
		}
	}
}

// claimStep keeps other processes from the step, once it is known that none has made it.
func (f *keeper) claimStep(ctx context.Context, r *Receipt) error {
	if !f.Shared() {
		return nil
	}
	return f.do(ctx, &job{ds: r.ds, run: func(t *batch) (err error) {
		if rec := t.book.releases[r.grows]; rec == nil || rec.Revoked || rec.through() != r.step.From {
			return refusal{errOutdated}
		}
		r.fence, err = t.claim(r.ds, r.key)
		return err
	}})
}

// lockStep locks the next step of a release, or returns the lock that another caller has on it, to wait for; neither:
// there is nothing to grow.
func (f *keeper) lockStep(user string, id int64, through int) (*Receipt, *itemLock, error) {
	now := f.tick()
	f.itemLocks.mu.Lock()
	defer f.itemLocks.mu.Unlock()
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.itemLocks.closed {
		return nil, nil, ErrClosed
	}
	rec, paid := f.book.heldBy(user, id)
	if rec == nil || rec.Revoked || !paid || !rec.Item.Spec.Grows() {
		return nil, nil, fmt.Errorf("ledger: %w", ErrNotHeld)
	}
	step := mechanisms.Step{From: rec.through(), To: min(through, rec.Item.Spec.Cells)}
	if step.To <= step.From {
		return nil, nil, nil
	}
	var e chain.Encoder
	e.Text("growth")
	e.Int(id)
	key := store.Key(e.Hash())
	if l := f.itemLocks.held[key]; l != nil {
		return nil, l, nil
	}
	r := &Receipt{digest: step.Digest(rec.Item.Digest), at: now, key: key, lock: f.itemLocks.take(key), ds: rec.ds, user: f.book.sets[rec.ds].holder(user), item: rec.Item, grows: id, step: step}
	r.state.Store(receiptFresh)
	return r, nil, nil
}

// Grown is Ledger's.
func (f *keeper) Grown(id int64) int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if rec := f.book.releases[id]; rec != nil {
		return rec.through()
	}
	return 0
}

// saveStep is the writer's part of saving a step.
func (t *batch) saveStep(r *Receipt, blob []byte) (int64, error) {
	rec := t.book.releases[r.grows]
	if rec == nil || rec.Revoked {
		return 0, refusal{fmt.Errorf("ledger: %w: it was revoked", ErrNotHeld)}
	}
	if n := len(rec.grown); n > 0 && rec.through() == r.step.To && rec.grown[n-1].noisy == sha256.Sum256(blob) {
		return rec.ID, nil // the first try was durable after all
	}
	if err := t.endClaim(r); err != nil {
		return 0, err
	}
	if rec.through() != r.step.From {
		return 0, refusal{errors.New("ledger: the release has grown by another step")}
	}
	e := chain.Body()
	e.Int(r.grows)
	e.Int(int64(r.step.From))
	e.Int(int64(r.step.To))
	e.Blob(blob)
	if err := t.book.checkGrowth(r.ds, e.Bytes()); err != nil {
		return 0, refusal{fmt.Errorf("ledger: the step does not fit its release: %w", err)}
	}
	_, err := t.add(chain.RowGrow, r.ds, "", e.Bytes())
	return rec.ID, err
}

func decodeGrowth(b []byte) (id int64, p mechanisms.Step, blob []byte, err error) {
	d := chain.Read(b)
	id, p.From, p.To, blob = d.Int(), int(d.Int()), int(d.Int()), d.Blob()
	return id, p, blob, d.End()
}

// checkGrowth reports whether a step follows what is known of its release, with as many observations as it adds.
func (b *book) checkGrowth(ds int64, body []byte) error {
	id, p, blob, err := decodeGrowth(body)
	if err != nil {
		return err
	}
	rec := b.releases[id]
	if rec == nil || rec.Revoked || rec.ds != ds || rec.through() != p.From || p.To <= p.From || p.To > rec.Item.Spec.Cells {
		return chain.ErrMalformed
	}
	noisy, sealed, err := chain.ReadRelease(blob)
	if spec := rec.Item.Spec; err != nil || !spec.Grows() || len(noisy.Keys)+len(sealed) > 0 || len(noisy.Observations) != spec.Known(p.To)-spec.Known(p.From) {
		return chain.ErrMalformed
	}
	return nil
}

func (b *book) applyGrow(r chain.Row) error {
	if err := b.checkGrowth(r.DS, r.Body); err != nil {
		return err
	}
	id, p, blob, _ := decodeGrowth(r.Body)
	rec := *b.releases[id]
	rec.grown = append(rec.grown[:len(rec.grown):len(rec.grown)], growth{r.Seq, p.To, sha256.Sum256(blob)})
	b.releases[id] = &rec
	return nil
}

// endWhatGoesOn ends, where rows are missing, what they may have been a part of. A step of a release that grows was
// sent and would be drawn again; one of an online release or of a run of alarms was an update or a positive, which
// would be used again; a refinement would be drawn a second time towards the same finest level, and the two together
// cost more than their charges (package ladders). Releases with steps are withdrawn, ladders have no further level.
func (b *book) endWhatGoesOn() {
	for id, rec := range b.releases {
		switch {
		case rec.Revoked:
		case rec.Item.Spec.Grows() || rec.Item.Spec.GoesOn():
			b.withdraw(rec)
		case rec.first != 0:
			next := *rec
			next.topped = true
			b.releases[id] = &next
			if !b.refined[id] {
				b.leave(&next)
			}
		}
	}
}

// fetchGrown reads all that a release has grown by.
func (f *keeper) fetchGrown(ctx context.Context, rec *record) (none privacy.Released[mechanisms.Noisy], _ error) {
	all, err := reads(f, func(s store.Store) (all mechanisms.Noisy, _ error) {
		for _, g := range rec.grown {
			if err := ctx.Err(); err != nil {
				return all, err
			}
			body, err := s.Body(g.seq)
			if err != nil {
				return all, err
			}
			_, _, blob, err := decodeGrowth(body)
			if err != nil || sha256.Sum256(blob) != g.noisy {
				return all, fmt.Errorf("%w: row %d of release %d is not what was saved", ErrCorrupt, g.seq, rec.ID)
			}
			noisy, _, err := chain.ReadRelease(blob)
			if err != nil {
				return all, fmt.Errorf("%w: row %d of release %d: %w", ErrCorrupt, g.seq, rec.ID, err)
			}
			all.Observations = append(all.Observations, noisy.Observations...)
		}
		return all, nil
	})
	if err != nil {
		return none, err
	}
	return privacy.Published(all), nil
}

// A release that goes on after it was drawn has steps: what its mechanism's state has more than before, in the
// mechanism's own bytes. A step is a row of the chain, durable before what it tells is sent, and is never taken back.
// What must not be known, such as a noisy threshold, is no part of any step.

// maxStep bounds the bytes of a step.
const maxStep = 1 << 24

func encodeStep(id int64, step []byte) []byte {
	e := chain.Body()
	e.Int(id)
	e.Blob(step)
	return e.Bytes()
}

// applyStep folds a step into its release.
func (b *book) applyStep(r chain.Row) error {
	d := chain.Read(r.Body)
	id, step := d.Int(), d.Blob()
	if err := d.End(); err != nil {
		return err
	}
	old := b.releases[id]
	if old == nil || !old.Item.Spec.GoesOn() || old.ds != r.DS || old.holder != r.Holder {
		return chain.ErrMalformed
	}
	rec := *old
	rec.Steps = append(rec.Steps[:len(rec.Steps):len(rec.Steps)], step)
	b.releases[id] = &rec
	return nil
}

// Extend adds a step to a release that the user has paid for, durably.
func (f *keeper) Extend(ctx context.Context, user string, id int64, step []byte) error {
	_, err := f.extend(ctx, user, id, step)
	return err
}

// Resume adds a step to a release that the user has paid for, durably, and hands out a receipt for running its measure
// once more: the step is what that costs the mechanism. Nothing is saved on such a receipt.
func (f *keeper) Resume(ctx context.Context, user string, id int64, step []byte) (*Receipt, error) {
	rec, err := f.extend(ctx, user, id, step)
	if err != nil {
		return nil, err
	}
	r := &Receipt{digest: rec.Item.Digest, ds: rec.ds, user: rec.holder, item: rec.Item}
	r.state.Store(receiptFresh)
	return r, nil
}

func (f *keeper) extend(ctx context.Context, user string, id int64, step []byte) (rec *record, err error) {
	if len(step) == 0 || len(step) > maxStep {
		return nil, fmt.Errorf("ledger: a step of %d bytes", len(step))
	}
	err = f.do(ctx, &job{ds: f.datasetOf(id), run: func(t *batch) error {
		rec = t.book.releases[id]
		if rec == nil || rec.Revoked || rec.holder != t.book.sets[rec.ds].holder(user) || !rec.Item.Spec.GoesOn() {
			return refusal{fmt.Errorf("ledger: %w: %d", ErrNotHeld, id)}
		}
		if err := f.lease(t, rec.ds, id); err != nil {
			return err
		}
		_, err := t.add(chain.RowStep, rec.ds, rec.holder, encodeStep(id, step))
		return err
	}})
	if err != nil {
		return nil, err
	}
	return rec, nil
}
