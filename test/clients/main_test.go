// Package clients holds dpproxy against PostgreSQL as clients see both: psql, drivers and Superset as people have them,
// the recorded sessions of more, frame by frame by a second codec, encodings, certificates, cancels and sleeps, MySQL's
// words, and a sandbox that is a PostgreSQL server.
package clients

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
