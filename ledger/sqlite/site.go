package sqlite

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// Site is one SQLite file, which one process has open for writing.
type Site struct {
	Path string
	disk store.Disk
}

// At is the site of a file.
func At(path string, disk store.Disk) (*Site, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return &Site{path, disk}, nil
}

func (p *Site) Locks() []string { return []string{p.Path + "-lock"} }
func (p *Site) Witness() string { return p.Path + "-witness" }
func (p *Site) Shared() bool    { return false }

func (p *Site) Clock() time.Time { return time.Now() }

func (p *Site) Open(_ context.Context, writes bool) (store.Store, error) {
	if writes {
		if err := rewriteLog(p.disk, p.Path+"-wal"); err != nil {
			return nil, err
		}
	}
	s, err := open(p.disk, p.Path, writes)
	if err != nil {
		return nil, err
	}
	if s.data, err = s.dataVersion(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (p *Site) Probe(room int) error { return store.Probe(p.disk, p.Path, room) }

// explainBytes is what fits on a disk that is not full.
const explainBytes = 256 << 10

// Explain asks the disk where SQLite's own error has lost what the system said.
func (p *Site) Explain(err error) error {
	if errors.Is(err, sqlite3.IOERR) && !Full(err) {
		if disk := p.Probe(explainBytes); Full(disk) {
			return errors.Join(err, disk)
		}
	}
	return err
}

// Backup writes a consistent and compact copy, an SQLite file.
func (p *Site) Backup(ctx context.Context, path string) error {
	s, err := open(p.disk, p.Path, false)
	if err != nil {
		return err
	}
	defer s.Close()
	s.Conn.SetInterrupt(ctx)
	if err := s.Conn.Exec("PRAGMA query_only = off"); err != nil {
		return err
	}
	return s.run("VACUUM INTO ?", nil, path)
}

// Restore puts a copy of a backup in the file's place, once check has found nothing wrong with the copy.
func (p *Site) Restore(backup string, check func(copy string) error) error {
	path, partial := p.Path, p.Path+".partial"
	err := copyFile(backup, partial)
	if err == nil {
		err = check(partial)
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
	return errors.Join(store.SyncDirs(store.OSDisk{}, path), os.Rename(partial, path), store.SyncDirs(store.OSDisk{}, path))
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

// rewriteLog writes the write-ahead log's bytes over themselves and flushes them. After a failed flush the kernel may
// hold pages that it believes to be on disk and that are not; whatever SQLite is going to read from the log must get
// there before anything is built on it. Pages of the main file are covered too: their copies stay in the log until a
// checkpoint has flushed them.
func rewriteLog(d store.Disk, path string) error {
	f, err := d.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for off := int64(0); ; {
		n, err := f.ReadAt(buf, off)
		if n > 0 {
			if _, err := f.WriteAt(buf[:n], off); err != nil {
				return err
			}
			off += int64(n)
		}
		if err == io.EOF {
			return f.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// Write makes an SQLite file of what fill writes into it, in one transaction: one file, as a compacted one is. Where
// that is one chain an older program reads the file too: a backup that is made before the ledger is changed is one to
// go back to.
func Write(path string, fill func(store.Store) (split bool, err error)) error {
	path, err := filepath.Abs(path) // a URI takes the first part of another for a host
	if err != nil {
		return err
	}
	to, err := open(store.OSDisk{}, path, true)
	if err != nil {
		return err
	}
	if err = to.Conn.Exec("BEGIN IMMEDIATE;" + schema); err == nil {
		var split bool
		if split, err = fill(to); err == nil && !split {
			err = to.Conn.Exec("PRAGMA user_version = " + oneChain)
		}
	}
	if err == nil {
		err = errors.Join(to.Commit(nil, false), to.Finish())
	}
	if err == nil {
		_, err = to.text("PRAGMA journal_mode = delete")
	}
	return errors.Join(err, to.Close())
}
