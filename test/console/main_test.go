// Package console looks at the console of a running dpproxy: by a client of its own, and in Chromium.
package console

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
