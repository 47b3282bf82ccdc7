package ledger

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A release that goes on after it was drawn has steps: what its mechanism's state has more than before, in the mechanism's
// own bytes. A step is a row of the chain, durable before what it tells is sent, and is never taken back. What must not be
// known, such as a noisy threshold, is no part of any step.

// rowStep is a step of a release. Its number is on disk: never change it.
const rowStep int64 = 20

// mostStep bounds the bytes of a step.
const mostStep = 1 << 24

// goesOn tells releases that have steps.
func goesOn(s mechanisms.Spec) bool { return s.Online != nil || s.Alarm != nil }

func encodeStep(id int64, step []byte) []byte {
	var e encoder
	e.i64(id)
	e.bytes(step)
	return e.b
}

// applyStep folds a step into its release.
func (b *book) applyStep(r row) error {
	d := decoder{b: r.body}
	id, step := d.i64(), d.bytes()
	if err := d.end(); err != nil {
		return err
	}
	old := b.releases[id]
	if old == nil || !goesOn(old.Item.Spec) || old.ds != r.ds || old.holder != r.holder {
		return errBody
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

// Resume adds a step to a release that the user has paid for, durably, and hands out a receipt for running its measure once
// more: the step is what that costs the mechanism. Nothing is saved on such a receipt.
func (f *keeper) Resume(ctx context.Context, user string, id int64, step []byte) (*Receipt, error) {
	rec, err := f.extend(ctx, user, id, step)
	if err != nil {
		return nil, err
	}
	r := &Receipt{digest: rec.Item.Digest, ds: rec.ds, user: user, item: rec.Item}
	r.state.Store(receiptFresh)
	return r, nil
}

func (f *keeper) extend(ctx context.Context, user string, id int64, step []byte) (rec *record, err error) {
	if len(step) == 0 || len(step) > mostStep {
		return nil, fmt.Errorf("ledger: a step of %d bytes", len(step))
	}
	err = f.do(ctx, &job{run: func(t *batch) error {
		rec = f.book.releases[id]
		if rec == nil || rec.Revoked || rec.holder != user || !goesOn(rec.Item.Spec) {
			return refusal{fmt.Errorf("ledger: %w: %d", ErrNotHeld, id)}
		}
		if err := f.lease(t, id); err != nil {
			return err
		}
		_, err := t.add(rowStep, rec.ds, user, encodeStep(id, step))
		return err
	}})
	return rec, err
}

// The marks of the forms of a Spec's bytes for releases that are no counts. Numbers are on disk: never change one.
const (
	specOnline    int64 = -20
	specSynthetic int64 = -21
)

func (e *encoder) onlineSpec(s mechanisms.Spec) {
	o := s.Online
	e.i64(specOnline)
	e.i64(int64(s.Cells))
	e.i64(int64(o.Rule))
	e.contribution(o.Contribution)
	e.i64(o.Rows)
	e.i64(o.Spare)
	e.i64(int64(o.Updates))
	e.i64(o.Queries)
	e.cost(o.Cost)
}

func (d *decoder) onlineSpec() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.i64())}
	s.Online = &mechanisms.Online{Rule: mechanisms.OnlineRule(d.i64()), Contribution: d.contribution(), Rows: d.i64(), Spare: d.i64(), Updates: int(d.i64()), Queries: d.i64(), Cost: d.cost()}
	return s
}

func (e *encoder) syntheticSpec(s mechanisms.Spec) {
	y := s.Synthetic
	e.i64(specSynthetic)
	e.i64(int64(s.Cells))
	e.i64(int64(y.Rule))
	e.contribution(y.Contribution)
	e.i64(int64(len(y.Sizes)))
	for _, n := range y.Sizes {
		e.i64(int64(n))
	}
	e.i64(y.Total)
	e.i64(int64(y.Drawn))
	e.cost(y.Cost)
}

func (d *decoder) syntheticSpec() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.i64())}
	y := &mechanisms.Synthetic{Rule: mechanisms.SyntheticRule(d.i64()), Contribution: d.contribution()}
	for _, n := range d.list() {
		y.Sizes = append(y.Sizes, int(n))
	}
	y.Total, y.Drawn, y.Cost = d.i64(), int(d.i64()), d.cost()
	s.Synthetic = y
	return s
}

func (e *encoder) contribution(c mechanisms.Contribution) {
	e.i64(c.Rows)
	e.i64(c.Groups)
	e.i64(c.PerGroup)
	e.i64(int64(c.Neighbors))
}

func (d *decoder) contribution() mechanisms.Contribution {
	c := mechanisms.Contribution{Rows: d.i64(), Groups: d.i64(), PerGroup: d.i64()}
	c.Neighbors = privacy.Neighbors(d.i64())
	return c
}
