package ledger

import (
	"errors"
	"sync/atomic"
)

// Receipt proves that one measure is paid for. It is spent once, by the execution of exactly that measure. The zero value
// is invalid; only Charge makes receipts.
type Receipt struct {
	digest Digest
	charge int64 // the charge's sequence number
	key    string
	state  atomic.Int32 // 0 invalid, 1 fresh, 2 spent, 3 closed (saved or abandoned)
}

// Spend uses the receipt up for the measure of that digest. It fails on a zero, spent or foreign receipt.
func (r *Receipt) Spend(d Digest) error {
	if r == nil || r.state.Load() == 0 {
		return errors.New("ledger: not a receipt")
	}
	if r.digest != d {
		return errors.New("ledger: receipt of another measure")
	}
	if !r.state.CompareAndSwap(1, 2) {
		return errors.New("ledger: receipt already spent")
	}
	return nil
}
