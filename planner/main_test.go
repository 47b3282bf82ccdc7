package planner

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap of plans grow: tests plan thousands of statements, and none is about what is held meanwhile.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
