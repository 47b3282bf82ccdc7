package mechanisms

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestAlarmsAreRemembered: a run is planned once.
func TestAlarmsAreRemembered(t *testing.T) {
	a := Alarm{Positives: 2, Contribution: Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000)}}
	if _, err := NewAlarm(a); err != nil {
		t.Fatal(err)
	}
	if _, ok := alarms.Load(a); !ok {
		t.Error("what was just found is not remembered")
	}
}
