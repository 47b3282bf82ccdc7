// Package spark holds tests of the whole program over Spark (`make spark`): the same questions over the same Parquet files by Spark and by DuckDB, a
// server that dies within a question, and no value of a row in anything that is said.
package spark

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(sparktest.Main(kit.Main(m, nil))) }
