package spark

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/policy"
)

func TestMain(m *testing.M) {
	backendtest.Opener = func(ctx context.Context, p *policy.Policy, log *slog.Logger) (backend.Backend, error) {
		return Open(ctx, p, log)
	}
	os.Exit(sparktest.Main(m.Run()))
}
