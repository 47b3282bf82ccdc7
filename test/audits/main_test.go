// Package audits judges by statistics what the program sends: that answers on neighbouring databases differ by no more
// than was paid, and that errors are as they are stated.
package audits

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
