// Package engines opens the private database that a policy names. Its tests ask all engines the same.
package engines

import (
	"context"
	"log/slog"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/duckdb"
	"github.com/dpproxy/dpproxy/backend/mysql"
	"github.com/dpproxy/dpproxy/backend/postgres"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/backend/spark"
	"github.com/dpproxy/dpproxy/policy"
)

// Open connects to the private database that a policy names.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (backend.Backend, error) {
	inDuck := strings.HasPrefix(p.Backend.URL, "duckdb:")
	switch {
	case p.Backend.Snapshot != nil && inDuck:
		return opened(snapshot.Open(p, duckdb.NewSource(p, log), log))
	case p.Backend.Snapshot != nil && p.Backend.MySQL():
		return opened(snapshotsOf(ctx, p, mysql.Open, log))
	case p.Backend.Snapshot != nil:
		return opened(snapshotsOf(ctx, p, postgres.Open, log))
	case inDuck:
		return opened(duckdb.Open(ctx, p, log))
	case p.Backend.Spark():
		return opened(spark.Open(ctx, p, log))
	}
	return opened(postgres.Open(ctx, p, log))
}

// snapshotsOf opens snapshots of a source.
func snapshotsOf[S snapshot.Source](ctx context.Context, p *policy.Policy, open func(context.Context, *policy.Policy, *slog.Logger) (S, error), log *slog.Logger) (*snapshot.Snapshots, error) {
	of, err := open(ctx, p, log)
	if err != nil {
		return nil, err
	}
	return snapshot.Open(p, of, log)
}

// opened keeps a nil pointer from becoming a Backend that is not nil.
func opened[B backend.Backend](b B, err error) (backend.Backend, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}
