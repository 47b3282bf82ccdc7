package ledger

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// sqliteSite is one SQLite file, which one process has open for writing.
type sqliteSite struct {
	path   string
	disk   Disk
	vfs    string       // the file system that SQLite opens its files on
	tested func() error // tests: in place of probe
}

func newSQLiteSite(path string, opts Options) (*sqliteSite, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return &sqliteSite{path, opts.Disk, opts.vfs, opts.probe}, nil
}

func (p *sqliteSite) locks() []string { return []string{p.path + "-lock"} }
func (p *sqliteSite) witness() string { return p.path + "-witness" }
func (p *sqliteSite) shared() bool    { return false }

func (p *sqliteSite) clock() time.Time { return time.Now() }

func (p *sqliteSite) open(_ context.Context, writes bool) (store, error) {
	if writes {
		if err := rewriteLog(p.disk, p.path+"-wal"); err != nil {
			return nil, err
		}
	}
	s, err := openSQLite(p.disk, p.path, p.vfs, writes)
	if err != nil {
		return nil, err
	}
	if s.data, err = s.dataVersion(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// probeBytes is what must fit on the disk before a re-opening is worth its work.
const probeBytes = 256 << 10

func (p *sqliteSite) probe() error {
	if p.tested != nil {
		return p.tested()
	}
	path := p.path + "-probe"
	f, err := p.disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, probeBytes), 0)
	return errors.Join(err, f.Sync(), f.Close(), p.disk.Remove(path))
}

// explain asks the disk where SQLite's own error has lost what the system said.
func (p *sqliteSite) explain(err error) error {
	if errors.Is(err, sqlite3.IOERR) && !diskFull(err) {
		if disk := p.probe(); diskFull(disk) {
			return errors.Join(err, disk)
		}
	}
	return err
}

func (p *sqliteSite) backup(ctx context.Context, path string) error {
	s, err := openSQLite(p.disk, p.path, p.vfs, false)
	if err != nil {
		return err
	}
	defer s.close()
	s.conn.SetInterrupt(ctx)
	if err := s.conn.Exec("PRAGMA query_only = off"); err != nil {
		return err
	}
	return s.run("VACUUM INTO ?", nil, path)
}

// rewriteLog writes the write-ahead log's bytes over themselves and flushes them. After a failed flush the kernel may hold
// pages that it believes to be on disk and that are not; whatever SQLite is going to read from the log must get there
// before anything is built on it. Pages of the main file are covered too: their copies stay in the log until a
// checkpoint has flushed them.
func rewriteLog(d Disk, path string) error {
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
