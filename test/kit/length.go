package kit

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// Length is how much a test does: little in `make test`, and where a planted fault is to be found; what fits CI in `make safety`; all of it
// in `make safety-full`.
func Length(little, ci, full int) int {
	if os.Getenv("DPPROXY_SAFETY") == "" {
		ci = little
	}
	return threats.Length(ci, full)
}

// Beside has a test run at the same time as others that call it, after all that do not: those measure times, count what this
// process has open, or hang on what was drawn in it before. At full length each test runs alone.
func Beside(t *testing.T) {
	t.Helper()
	if !threats.Full() {
		t.Parallel()
	}
}
