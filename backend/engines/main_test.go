package engines

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
)

func TestMain(m *testing.M) {
	backendtest.Opener = Open
	os.Exit(sparktest.Main(mariadbtest.Main(pgtest.Main(m))))
}

// eachBackend runs a test on both databases, and on a snapshot of each source.
func eachBackend(t *testing.T, test func(t *testing.T, h *backendtest.House)) {
	t.Run("DuckDB", func(t *testing.T) { test(t, backendtest.DuckHouse(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, backendtest.PostgresHouse(t)) })
	t.Run("Spark", func(t *testing.T) { test(t, backendtest.SparkHouse(t)) })
	t.Run("snapshot", func(t *testing.T) { test(t, backendtest.SnapshotHouse(t)) })
	t.Run("snapshot of DuckDB", func(t *testing.T) { test(t, backendtest.DuckSnapshotHouse(t)) })
	t.Run("snapshot of MariaDB", func(t *testing.T) { test(t, backendtest.MariaHouse(t)) })
}
