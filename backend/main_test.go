package backend

import (
	"context"
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/policy"
)

func TestMain(m *testing.M) {
	opener = Open
	preparer = func(b Backend, p *policy.Policy) error { return adopted(b.(*Snapshots), p) }
	os.Exit(sparktest.Main(mariadbtest.Main(pgtest.Main(m))))
}

// adopted has a policy's copy in force.
func adopted(b *Snapshots, p *policy.Policy) error {
	copies, err := b.Prepare(context.Background(), p)
	copies.PutInForce()
	return err
}

// eachBackend runs a test on both databases, and on a snapshot of each source.
func eachBackend(t *testing.T, test func(t *testing.T, h *house)) {
	t.Run("DuckDB", func(t *testing.T) { test(t, duckHouse(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgresHouse(t)) })
	t.Run("Spark", func(t *testing.T) { test(t, sparkHouse(t)) })
	t.Run("snapshot", func(t *testing.T) { test(t, snapshotHouse(t)) })
	t.Run("snapshot of DuckDB", func(t *testing.T) { test(t, duckSnapshotHouse(t)) })
	t.Run("snapshot of MariaDB", func(t *testing.T) { test(t, mariaHouse(t)) })
}
