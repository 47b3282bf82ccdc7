package pipeline

import (
	"context"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
)

// elsewhere is a ledger in which every run of alarms lives in another proxy.
type elsewhere struct {
	ledger.Ledger
	loads int
}

func (e *elsewhere) Ask(context.Context, string, int64, ledger.Digest) (*ledger.Receipt, error) {
	return nil, ledger.ErrElsewhere
}

func (e *elsewhere) Load(context.Context, string, int64) (ledger.Release, error) {
	e.loads++
	return ledger.Release{}, ledger.ErrNotHeld
}

// TestRunIsHeldBeforeItIsRestored: the steps of a run that lives elsewhere are not read, since more may follow.
func TestRunIsHeldBeforeItIsRestored(t *testing.T) {
	l := &elsewhere{}
	a := NewAnswerer(nil, l, nil, nil, nil, nil)
	if _, err := a.hold(t.Context(), &Session{User: "alice"}, 1, a.watches.of(1), ledger.Digest{}); err != errElsewhere || l.loads > 0 {
		t.Errorf("%v, after the steps were read %d times", err, l.loads)
	}
}
