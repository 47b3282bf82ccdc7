// Package spark holds tests of the whole program over Spark: the same questions over the same Parquet files by Spark
// and by DuckDB, servers and executors that die within a question, and no value of a row in anything that is said.
// Where Spark is in bin/spark a short part of them runs in every `go test`; the rest runs in `make spark`.
package spark

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// asked tells that tests against Spark were asked for, and not only those that are short.
var asked = os.Getenv(sparktest.Environment) != ""

func TestMain(m *testing.M) {
	if !asked && sparktest.Installed() {
		os.Setenv(sparktest.Environment, "1")
	}
	os.Exit(sparktest.Main(kit.Main(m, nil)))
}

// whole skips a test that is no part of the short run.
func whole(t *testing.T) {
	t.Helper()
	if !asked {
		t.Skip("long: make spark runs it")
	}
}
