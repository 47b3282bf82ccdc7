package mechanisms

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestRememberedIsBounded: an analyst who asks at one cost after another does not fill the memory.
func TestRememberedIsBounded(t *testing.T) {
	for n := range int64(maxOfRemembered + 100) {
		a := Alarm{Positives: 2, Contribution: Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000 + n)}}
		if _, err := NewAlarm(a); err != nil {
			t.Fatal(err)
		}
		if _, ok := alarms.load(a); !ok {
			t.Fatal("what was just found is not remembered")
		}
	}
	if n := len(alarms.known); n > maxOfRemembered {
		t.Errorf("%d are remembered, must be at most %d", n, maxOfRemembered)
	}
}
