// Package snapshots holds tests of copies of the private database end to end: what they cost beside PostgreSQL itself,
// and what is left of one that does not come to its end.
package snapshots

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(mariadbtest.Main(kit.Main(m, nil))) }
