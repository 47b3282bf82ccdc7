package postgres

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
		source, err := Open(ctx, p, log)
		if err != nil || p.Backend.Snapshot == nil {
			return source, err
		}
		return snapshot.Open(p, source, log)
	}
	os.Exit(pgtest.Main(m))
}
