package ledger

import (
	"errors"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
)

// The states of a receipt. It only ever moves forward, but for a save that failed, which may be tried again.
const (
	receiptFresh int32 = 1 + iota
	receiptSpent
	receiptSaving
	receiptClosed // saved or abandoned
)

// Receipt proves that one measure is paid for. It is spent once, by the execution of exactly that measure. The zero
// value is invalid; only Charge and Grow make receipts.
type Receipt struct {
	digest Digest
	charge int64 // the charge's sequence number
	fence  int64 // of the claim on the draw, which a save needs
	at     int64 // the charge's time, which is the release's
	key    store.Key
	lock   *itemLock
	ds     int64
	user   string
	item   Item
	grows  int64           // the continual release that a step is of; then there is no charge
	step   mechanisms.Step // of grows
	state  atomic.Int32    // 0: invalid
}

// Levels are those that must be drawn together, the finest first; none means one release is drawn.
func (r *Receipt) Levels() []mechanisms.Level { return r.item.Levels }

// Spend uses the receipt up for the measure of that digest. It fails on a zero, spent or foreign receipt.
func (r *Receipt) Spend(d Digest) error {
	if r == nil || r.state.Load() == 0 {
		return errors.New("ledger: not a receipt")
	}
	if r.digest != d {
		return errors.New("ledger: receipt of another measure")
	}
	if !r.state.CompareAndSwap(receiptFresh, receiptSpent) {
		return errors.New("ledger: receipt already spent")
	}
	return nil
}
