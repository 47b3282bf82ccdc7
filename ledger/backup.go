package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	err := f.site.backup(ctx, partial)
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
		err = syncDirs(osDisk{}, path)
	}
	if err != nil {
		os.Remove(partial)
		return fmt.Errorf("ledger: backup: %w", err)
	}
	return nil
}

// Restore puts a backup in the place of the ledger at url, which no process may have open. What was there is kept beside
// it: a file with ".replaced" added, a schema with "_replaced_" and the time. A backup that lacks rows which the witness has seen is refused with ErrRollback, unless
// opts.AcceptRollback is set; the first Open must then be told the same, and forfeits what is missing.
func Restore(ctx context.Context, backup, url string, opts Options) error {
	opts.Disk = osDisk{}
	where, err := siteAt(url, opts)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if opts.Witness == "" {
		opts.Witness = where.witness()
	}
	for _, name := range where.locks() {
		held, err := osDisk{}.Lock(name)
		if err != nil {
			return fmt.Errorf("ledger: restore: %w", err)
		}
		defer held.Close()
	}
	switch to := where.(type) {
	case *sqliteSite:
		err = to.restore(ctx, backup, opts)
	case *postgresSite:
		if err = restorable(ctx, backup, opts); err == nil {
			err = to.restore(ctx, backup)
		}
	}
	if err != nil {
		return fmt.Errorf("ledger: restore: %w", err)
	}
	return nil
}

// restore puts a copy of a backup in the file's place.
func (p *sqliteSite) restore(ctx context.Context, backup string, opts Options) error {
	path, partial := p.path, p.path+".partial"
	err := copyFile(backup, partial)
	if err == nil {
		err = restorable(ctx, partial, opts)
	}
	if err != nil {
		os.Remove(partial)
		return err
	}
	// The old log must be gone before the new file has the name, or SQLite would play it into the wrong file. After a
	// crash in between there is a ledger without its tail, or none, and the witness says so.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, path+suffix+".replaced"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(syncDirs(osDisk{}, path), os.Rename(partial, path), syncDirs(osDisk{}, path))
}

// restorable verifies the copy and holds it against the witness of the ledger that it is to replace.
func restorable(ctx context.Context, partial string, opts Options) error {
	place := opts.Witness
	seen, _, present, err := readWitness(osDisk{}, place)
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

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func flushFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
