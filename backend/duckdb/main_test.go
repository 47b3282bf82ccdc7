package duckdb

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/policy"
)

func TestMain(m *testing.M) {
	backendtest.Opener = func(ctx context.Context, p *policy.Policy, log *slog.Logger) (backend.Backend, error) {
		if p.Backend.Snapshot != nil {
			return snapshot.Open(p, NewSource(p, log), log)
		}
		return Open(ctx, p, log)
	}
	os.Exit(pgtest.Main(m))
}
