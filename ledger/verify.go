package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Verify reads everything that is on disk, on a connection and in a snapshot of its own, while the ledger goes on.
func (f *file) Verify(ctx context.Context) (int64, error) {
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
	b, err := verifyFile(ctx, f.path, f.opts.vfs, marks)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	for _, m := range marks {
		if err := errBehind(b, m); err != nil {
			return 0, fmt.Errorf("ledger: %w", err)
		}
	}
	return b.last.seq, nil
}

// verifyFile compares all of one file with itself.
func verifyFile(ctx context.Context, path, vfs string, marks []mark) (*book, error) {
	s, err := openStore(path, vfs, false)
	if err != nil {
		return nil, openFailed(err)
	}
	defer s.close()
	if err := s.run("BEGIN", nil); err != nil {
		return nil, openFailed(err)
	}
	if fresh, err := s.empty(); err != nil || fresh {
		return nil, openFailed(errors.Join(err, fmt.Errorf("%w: not a ledger", ErrCorrupt)))
	}
	sound, err := s.text("PRAGMA integrity_check(1)")
	if err != nil {
		return nil, openFailed(err)
	}
	if sound != "ok" {
		return nil, fmt.Errorf("%w: %s", ErrCorrupt, sound)
	}
	b, err := replay(ctx, s, marks)
	if err != nil {
		return nil, err
	}
	return b, errors.Join(s.compareAccounts(b), s.compareReleases(ctx, b))
}

// compareReleases holds each stored release against the chain's hash of it.
func (s *store) compareReleases(ctx context.Context, b *book) error {
	found := 0
	err := s.run("SELECT id, charge, measure IS NULL, measure, noisy FROM release", func(st *sqlite3.Stmt) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec := b.releases[st.ColumnInt64(0)]
		if rec == nil || rec.of == 0 && b.byCharge[st.ColumnInt64(1)] != rec.ID || rec.of != 0 && st.ColumnInt64(1) != -rec.ID || st.ColumnBool(2) != rec.Revoked ||
			!rec.Revoked && string(st.ColumnRawBlob(3)) != string(rec.key[:]) || sha256.Sum256(st.ColumnRawBlob(4)) != rec.noisy {
			return fmt.Errorf("%w: release %d differs from the chain", ErrCorrupt, st.ColumnInt64(0))
		}
		found++
		return nil
	})
	if err == nil && found != len(b.releases) {
		err = fmt.Errorf("%w: %d saved releases are missing", ErrCorrupt, len(b.releases)-found)
	}
	return err
}
