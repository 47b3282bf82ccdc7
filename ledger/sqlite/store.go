// Package sqlite keeps a ledger in one SQLite file, which one process has open for writing (store.Store). Its
// durability is the write-ahead log, flushed at each commit; its tables refuse an account above its limit whatever the
// code says.
package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// The schema. The CHECKs are the last wall: whatever the code above does, SQLite refuses to commit an account above its
// limits. STRICT tables refuse a number that is not an integer, so no sum can slip into floating point.
const schema = `
CREATE TABLE chain (
	seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at INTEGER NOT NULL, ds INTEGER NOT NULL,
	holder TEXT NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE INDEX charges ON chain (ds, holder, seq) WHERE kind = 6;
CREATE TABLE account (
	ds INTEGER NOT NULL, scope INTEGER NOT NULL, holder TEXT NOT NULL, ends INTEGER NOT NULL,
	eps INTEGER NOT NULL, eps_limit INTEGER NOT NULL, eps_over INTEGER NOT NULL,
	rho INTEGER NOT NULL, rho_limit INTEGER NOT NULL, rho_over INTEGER NOT NULL,
	delta INTEGER NOT NULL, delta_limit INTEGER NOT NULL, delta_over INTEGER NOT NULL,
	alt INTEGER NOT NULL CHECK (alt >= 0),
	PRIMARY KEY (ds, scope, holder),
	` + store.Within + `
) STRICT, WITHOUT ROWID;
CREATE TABLE release (
	id INTEGER PRIMARY KEY, charge INTEGER NOT NULL UNIQUE, measure BLOB UNIQUE, noisy BLOB NOT NULL
) STRICT;
PRAGMA application_id = 1146114124;
PRAGMA user_version = 2;`

// The versions of files. They have the same tables: what version 2 says is that an older program does not know its
// rows. A file of version 1 has one chain, until a row of it begins the others.
const (
	oneChain      = "1"
	schemaVersion = "2"
)

// Store is the open SQLite file. It belongs to one goroutine at a time.
type Store struct {
	Conn  *sqlite3.Conn
	Pages int // in the log, as of the last commit
	disk  store.Disk
	path  string
	stmt  map[string]*sqlite3.Stmt
	data  int64 // PRAGMA data_version: moves when another connection writes
}

// dsn is the URI under which SQLite opens path. vfs is empty outside tests.
func dsn(path, vfs string) string {
	u := url.URL{Scheme: "file", Path: path}
	if vfs != "" {
		u.RawQuery = "vfs=" + url.QueryEscape(vfs)
	}
	return u.String()
}

// open opens the file and makes it durable: write-ahead log, a flush at each commit, and the directory flushed once
// the log's name is in it. SQLite's own directory flush cannot be relied on: this build flushes the log in its place.
//
// A reader is opened for writing too, because reading a write-ahead log needs its index, and is then set not to write.
func open(disk store.Disk, path string, writes bool) (*Store, error) {
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI | sqlite3.OPEN_NOFOLLOW
	if writes {
		flags |= sqlite3.OPEN_CREATE
	}
	conn, err := sqlite3.OpenFlags(dsn(path, disk.VFS()), flags)
	if err != nil {
		return nil, err
	}
	s := &Store{Conn: conn, disk: disk, path: path, stmt: map[string]*sqlite3.Stmt{}}
	if err := s.setUp(writes); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) setUp(writes bool) error {
	// After a failed flush the log must stay as it is until it has been written anew: no checkpoint on close.
	if _, err := s.Conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	if err := s.Conn.BusyTimeout(5 * time.Second); err != nil {
		return err
	}
	if err := s.Conn.Exec("PRAGMA trusted_schema = off; PRAGMA cell_size_check = on; PRAGMA temp_store = memory"); err != nil {
		return err
	}
	if !writes {
		return s.Conn.Exec("PRAGMA query_only = on")
	}
	s.Conn.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error { s.Pages = pages; return nil })
	for _, p := range []struct{ set, want string }{
		{"PRAGMA journal_mode = wal", "wal"}, {"PRAGMA journal_mode", "wal"}, {"PRAGMA synchronous = full", ""}, {"PRAGMA synchronous", "2"},
	} {
		got, err := s.text(p.set)
		if err != nil {
			return err
		}
		if p.want != "" && got != p.want {
			return fmt.Errorf("%s is %q, must be %q", p.set, got, p.want)
		}
	}
	return nil
}

func (s *Store) Close() error {
	for _, st := range s.stmt {
		st.Close()
	}
	return s.Conn.Close()
}

// text runs a statement to its end and returns the first column of its first row. A pragma that changes the file
// commits at its end, after its row: whether that has worked, only the end tells.
func (s *Store) text(sql string) (string, error) {
	st, _, err := s.Conn.Prepare(sql)
	if err != nil {
		return "", err
	}
	out := ""
	if st.Step() {
		out = st.ColumnText(0)
		for st.Step() {
		}
	}
	err = st.Err()
	return out, errors.Join(err, st.Close())
}

// prepared returns the statement of that text, ready to be bound.
func (s *Store) prepared(sql string) (*sqlite3.Stmt, error) {
	if st := s.stmt[sql]; st != nil {
		return st, nil
	}
	st, _, err := s.Conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	s.stmt[sql] = st
	return st, nil
}

// run binds and runs a statement; each row goes to scan.
func (s *Store) run(sql string, scan func(*sqlite3.Stmt) error, args ...any) error {
	st, err := s.prepared(sql)
	if err != nil {
		return err
	}
	for i, a := range args {
		if err := bind(st, i+1, a); err != nil {
			return err
		}
	}
	for st.Step() {
		if scan == nil {
			continue
		}
		if err := scan(st); err != nil {
			_ = st.Reset()
			return err
		}
	}
	err = st.Err()
	return errors.Join(err, st.Reset())
}

func bind(st *sqlite3.Stmt, i int, a any) error {
	switch v := a.(type) {
	case int64:
		return st.BindInt64(i, v)
	case string:
		return st.BindText(i, v)
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return st.BindBlob(i, v)
	case nil:
		return st.BindNull(i)
	}
	return fmt.Errorf("ledger: cannot bind a %T", a)
}

// Empty reports whether the file has no schema yet, and checks that it is a ledger of this version otherwise.
func (s *Store) Empty() (bool, error) {
	n, err := s.text("SELECT count(*) FROM sqlite_schema")
	if err != nil || n == "0" {
		return err == nil, err
	}
	v, err := s.text("PRAGMA user_version")
	if err != nil {
		return false, err
	}
	if id, err := s.text("PRAGMA application_id"); err != nil || id != "1146114124" {
		return false, errors.Join(fmt.Errorf("%w: not a ledger", store.ErrCorrupt), err)
	}
	if v != schemaVersion && v != oneChain {
		return false, store.OtherForm("the file has format %s", v)
	}
	if _, err := s.text("SELECT " + store.AccountColumns + " FROM account LIMIT 0"); errors.Is(err, sqlite3.ERROR) {
		return false, store.OtherForm("its table of accounts has other columns")
	} else if err != nil {
		return false, err
	}
	return false, nil
}

// dataVersion reports whether another connection has changed the file since the last call.
func (s *Store) dataVersion() (v int64, err error) {
	err = s.run("PRAGMA data_version", func(st *sqlite3.Stmt) error { v = st.ColumnInt64(0); return nil })
	return v, err
}

// Full reports whether an error means that there is no space.
func Full(err error) bool { return errors.Is(err, sqlite3.FULL) || store.Full(err) }

// Fault names what an error of SQLite's or of the disk says of a ledger: ErrCorrupt, ErrLocked, or neither.
func Fault(err error) error {
	switch {
	case errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.ERROR) || errors.Is(err, sqlite3.CONSTRAINT):
		return store.ErrCorrupt
	case errors.Is(err, sqlite3.BUSY):
		return store.ErrLocked
	}
	return nil
}

// Version is that of the SQLite that is built in, such as 3.53.2.
func Version() (version string, err error) {
	conn, err := sqlite3.Open(":memory:")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	st, _, err := conn.Prepare("SELECT sqlite_version()")
	if err != nil {
		return "", err
	}
	defer st.Close()
	if st.Step() {
		version = st.ColumnText(0)
	}
	return version, st.Err()
}
