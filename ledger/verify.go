package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Verify reads everything that is on disk, on a connection and in a snapshot of its own, while the ledger goes on.
func (f *keeper) Verify(ctx context.Context) (int64, error) {
	f.mu.RLock()
	known := markOf(f.book)
	f.mu.RUnlock()
	marks := []mark{known}
	seen, _, present, err := readWitness(f.disk, f.opts.Witness)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	if present {
		marks = append(marks, seen)
	}
	b, err := verifySite(ctx, f.site, marks)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	for _, m := range marks {
		if err := errBehind(b, m); err != nil {
			return 0, fmt.Errorf("ledger: %w", err)
		}
	}
	return b.links.Rows, nil
}

// verifyFile verifies a ledger in an SQLite file.
func verifyFile(ctx context.Context, path string, marks []mark) (*book, error) {
	where, err := sqlite.At(path, store.OSDisk{})
	if err != nil {
		return nil, err
	}
	return verifySite(ctx, where, marks)
}

// verifySite compares all that lies in a site with itself.
func verifySite(ctx context.Context, p store.Site, marks []mark) (*book, error) {
	s, err := p.Open(ctx, false)
	if err != nil {
		return nil, openFailed(err)
	}
	defer s.Close()
	if err := s.Sound(); err != nil {
		return nil, openFailed(err)
	}
	b, err := readAll(ctx, s, marks)
	if err != nil {
		return nil, err
	}
	return b, compareReleases(ctx, s, b)
}

// compareReleases holds each stored release against the chain's hash of it.
func compareReleases(ctx context.Context, s store.Store, b *book) error {
	found := 0
	err := s.Releases(func(r store.Release) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec := b.releases[r.ID]
		if rec == nil || rec.of == 0 && b.byCharge[r.Charge] != rec.ID || rec.of != 0 && r.Charge != -rec.ID || r.Withdrawn != rec.Revoked ||
			!rec.Revoked && string(r.Key) != string(rec.key[:]) || sha256.Sum256(r.Noisy) != rec.noisy {
			return fmt.Errorf("%w: release %d differs from the chain", ErrCorrupt, r.ID)
		}
		found++
		return nil
	})
	if err == nil && found != len(b.releases) {
		err = fmt.Errorf("%w: %d saved releases are missing", ErrCorrupt, len(b.releases)-found)
	}
	return err
}
