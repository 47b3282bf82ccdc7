package ledger

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger/chain"
)

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
