package mechanisms

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestLiveIsNilWithAnError: a release that could not be opened or restored is nil, so that nobody goes on with it.
func TestLiveIsNilWithAnError(t *testing.T) {
	alarm := AlarmFor(5, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	spec, err := NewAlarm(alarm)
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("another proxy has it")
	fails := func([]byte) error { return lost }
	random := rand.NewChaCha8([32]byte{4})
	restored, err := Restore(spec, nil, nil, privacy.Sensitive[[]privacy.Group]{}, random, fails)
	if restored != nil || !errors.Is(err, lost) {
		t.Errorf("%v, %v", restored, err)
	}
}
