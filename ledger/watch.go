package ledger

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
)

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
