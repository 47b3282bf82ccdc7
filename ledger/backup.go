package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Backup writes a copy to path: consistent, compact, verified, flushed, and only then under its name.
func (f *keeper) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: backup: %s exists", path)
	}
	partial := path + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: backup: %w", err)
	}
	err := copyTo(ctx, f.site, partial)
	if err != nil {
		err = openFailed(err)
	}
	if err == nil {
		err = os.Chmod(partial, 0o600)
	}
	if err == nil {
		err = flushFile(partial)
	}
	if err == nil {
		_, err = verifyFile(ctx, partial, nil)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err == nil {
		err = store.SyncDirs(store.OSDisk{}, path)
	}
	if err != nil {
		os.Remove(partial)
		return fmt.Errorf("ledger: backup: %w", err)
	}
	return nil
}

// Restore puts a backup in the place of the ledger at url, which no process may have open. What was there is kept
// beside it: a file with ".replaced" added, a schema with "_replaced_" and the time. A backup that lacks rows which the
// witness has seen is refused with ErrRollback, unless opts.AcceptRollback is set; the first Open must then be told the
// same, and forfeits what is missing.
func Restore(ctx context.Context, backup, url string, opts Options) error {
	opts.Disk = store.OSDisk{}
	where, err := siteAt(url, opts)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if opts.Witness == "" {
		opts.Witness = where.Witness()
	}
	for _, name := range where.Locks() {
		held, err := store.OSDisk{}.Lock(name)
		if err != nil {
			return fmt.Errorf("ledger: restore: %w", err)
		}
		defer held.Close()
	}
	switch to := where.(type) {
	case *sqlite.Site:
		err = to.Restore(backup, func(partial string) error { return restorable(ctx, partial, opts) })
	case *postgres.Site:
		if err = restorable(ctx, backup, opts); err == nil {
			err = restoreShared(ctx, backup, to)
		}
	}
	if err != nil {
		return fmt.Errorf("ledger: restore: %w", err)
	}
	return nil
}

// copyTo writes a consistent and compact copy of the ledger that lies at a site, an SQLite file: a backup of either
// kind can be restored into either kind.
func copyTo(ctx context.Context, where store.Site, path string) error {
	if file, ok := where.(*sqlite.Site); ok {
		return file.Backup(ctx, path)
	}
	from, err := where.Open(ctx, false)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := from.Snapshot(); err != nil {
		return err
	}
	if fresh, err := from.Empty(); err != nil || fresh {
		return errors.Join(err, errors.New("there is no ledger yet"))
	}
	return sqlite.Write(path, func(to store.Store) (split bool, err error) {
		links, err := store.Copy(ctx, from, to)
		return links.Split(), err
	})
}

// restoreShared puts a verified backup in the place of a ledger that proxies share.
func restoreShared(ctx context.Context, backup string, to *postgres.Site) error {
	file, err := sqlite.At(backup, store.OSDisk{})
	if err != nil {
		return err
	}
	from, err := file.Open(ctx, false)
	if err != nil {
		return err
	}
	defer from.Close()
	return to.Restore(ctx, from)
}

// restorable verifies the copy and holds it against the witness of the ledger that it is to replace.
func restorable(ctx context.Context, partial string, opts Options) error {
	place := opts.Witness
	seen, _, present, err := readWitness(store.OSDisk{}, place)
	if err == nil && !present {
		err = fmt.Errorf("%w: %s is missing", ErrWitness, place)
	}
	lost := err
	b, err := verifyFile(ctx, partial, []mark{seen})
	if err != nil {
		return err
	}
	if lost != nil && (opts.AcceptRollback || opts.VouchForLedger) || opts.AcceptRollback {
		return nil
	}
	if lost != nil {
		return lost
	}
	return errBehind(b, seen)
}

func flushFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
