// Package answers asks dpproxy what people ask, through SQL, and looks at the answers: each mechanism as
// docs/mechanisms.md shows it, the tour, TPC-H and Adult, plain SQL, views, keys that are found, what is charged, what
// is said of errors.
package answers

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, map[string]kit.StandIn{"dies": serveUntil}))
}
