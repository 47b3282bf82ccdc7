package proxy

import (
	"testing"
	"time"
)

// TestPadWaitsForTheGrid: an outcome leaves no earlier than the next multiple of the grid; without a grid there is no wait.
func TestPadWaitsForTheGrid(t *testing.T) {
	const grid = 20 * time.Millisecond
	for _, worked := range []time.Duration{0, 7 * time.Millisecond, 19 * time.Millisecond, 41 * time.Millisecond} {
		begun := time.Now().Add(-worked)
		pad(begun, grid)
		if took := time.Since(begun); took < worked.Truncate(grid)+grid {
			t.Errorf("after %s of work the outcome left at %s", worked, took)
		}
		pad(begun, 0)
	}
}
