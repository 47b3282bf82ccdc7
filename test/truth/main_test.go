package truth

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// TestMain lets the heap of plans grow, as planner's does.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(pgtest.Main(m))
}
