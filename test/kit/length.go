package kit

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// Length is how much a test does: little in `make test`, which shows that it works and finds gross faults; some in
// `make safety` and `make night`, where a planted fault is found; all of it in `make safety-full`.
func Length(little, some, full int) int {
	if os.Getenv("DPPROXY_SAFETY") == "" && !threats.Night() {
		some = little
	}
	return threats.Length(some, full)
}

// Beside has a test run at the same time as others that call it, after all that do not: those measure times, count what
// this process has open, or depend on what was drawn in it before. At full length each test runs alone.
func Beside(t *testing.T) {
	t.Helper()
	if !threats.Full() {
		t.Parallel()
	}
}
