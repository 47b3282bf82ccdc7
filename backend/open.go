package backend

import (
	"context"
	"log/slog"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Open connects to the private database that a policy names.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (Backend, error) {
	inDuck := strings.HasPrefix(p.Backend.URL, "duckdb:")
	switch {
	case p.Backend.Snapshot != nil && inDuck:
		return opened(openSnapshots(p, newDuckSource(p, log), log))
	case p.Backend.Snapshot != nil && p.Backend.MySQL():
		return opened(snapshotsOf(ctx, p, openMySQL, log))
	case p.Backend.Snapshot != nil:
		return opened(snapshotsOf(ctx, p, openPostgres, log))
	case inDuck:
		return opened(openDuckDB(ctx, p, log))
	case p.Backend.Spark():
		return opened(openSpark(ctx, p, log))
	}
	return opened(openPostgres(ctx, p, log))
}

// snapshotsOf opens snapshots of a source.
func snapshotsOf[S source](ctx context.Context, p *policy.Policy, open func(context.Context, *policy.Policy, *slog.Logger) (S, error), log *slog.Logger) (*Snapshots, error) {
	of, err := open(ctx, p, log)
	if err != nil {
		return nil, err
	}
	return openSnapshots(p, of, log)
}

// opened keeps a nil pointer from becoming a Backend that is not nil.
func opened[B Backend](b B, err error) (Backend, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}
