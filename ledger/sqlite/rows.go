package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// What the keeper asks of a store, in SQLite's words.

func (s *Store) Create(first chain.Row) error {
	if err := s.Conn.Exec("BEGIN IMMEDIATE;" + schema); err != nil {
		return err
	}
	if err := s.Insert(first); err != nil {
		return err
	}
	return s.Conn.Exec("COMMIT")
}

func (s *Store) Settle() (err error) {
	if err := errors.Join(s.disk.Chmod(s.path, 0o600), s.disk.Chmod(s.path+"-wal", 0o600), s.disk.Chmod(s.path+"-shm", 0o600), store.SyncDirs(s.disk, s.path)); err != nil {
		return err
	}
	if _, _, err := s.Conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
		return err
	}
	s.data, err = s.dataVersion()
	return err
}

// Begin holds all chains: one process writes the file, and nobody waits for it.
func (s *Store) Begin([]chain.Head, store.Wanted) (all store.Begun, err error) {
	if data, err := s.dataVersion(); err != nil || data != s.data {
		return all, errors.Join(err, errors.New("the file was changed by another program"))
	}
	return all, s.run("BEGIN IMMEDIATE", nil)
}

func (s *Store) Savepoint() error                { return s.run("SAVEPOINT job", nil) }
func (s *Store) Keep() error                     { return s.run("RELEASE job", nil) }
func (s *Store) Commit([]chain.Head, bool) error { return s.run("COMMIT", nil) }
func (s *Store) Rollback() error                 { return s.run("ROLLBACK", nil) }

func (s *Store) Undo() error {
	if err := s.run("ROLLBACK TO job", nil); err != nil {
		return err
	}
	return s.run("RELEASE job", nil)
}

// CheckpointAt is how many pages the log may have before it is copied into the file.
const CheckpointAt = 1000

// Tidy copies the log into the file when it has grown. Its faults count: SQLite itself would pass over them.
func (s *Store) Tidy() error {
	if s.Pages < CheckpointAt {
		return nil
	}
	if _, _, err := s.Conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (s *Store) Finish() error {
	_, _, err := s.Conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return err
}

func (s *Store) Insert(r chain.Row) error {
	return s.run("INSERT INTO chain (seq, kind, at, ds, holder, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)", nil,
		r.Seq, int64(r.Kind), r.At, r.DS, r.Holder, r.Body, r.Hash[:])
}

func (s *Store) KeepRelease(r store.Release) error {
	var key any // NULL is not unique
	if !r.Withdrawn {
		key = r.Key
	}
	return s.run("INSERT INTO release (id, charge, measure, noisy) VALUES (?, ?, ?, ?)", nil, r.ID, r.Charge, key, r.Noisy)
}

func (s *Store) WithdrawRelease(id int64) error {
	return s.run("UPDATE release SET measure = NULL WHERE id = ?", nil, id)
}

func (s *Store) Snapshot() error { return s.run("BEGIN", nil) }

func (s *Store) Sound() error {
	sound, err := s.text("PRAGMA integrity_check(1)")
	if err == nil && sound != "ok" {
		err = fmt.Errorf("%w: %s", store.ErrCorrupt, sound)
	}
	return err
}

func (s *Store) Rows(ctx context.Context, do func(chain.Row) error) error {
	n := 0
	return s.run("SELECT seq, kind, at, ds, holder, body, hash FROM chain ORDER BY seq", func(st *sqlite3.Stmt) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := chain.Row{Seq: st.ColumnInt64(0), Kind: chain.Kind(st.ColumnInt64(1)), At: st.ColumnInt64(2), DS: st.ColumnInt64(3), Holder: st.ColumnText(4),
			Body: st.ColumnBlob(5, nil)}
		copy(r.Hash[:], st.ColumnRawBlob(6))
		return do(r)
	})
}

// Releases copies what it hands out: SQLite's own memory holds the next row before a restore has sent this one.
func (s *Store) Releases(do func(store.Release) error) error {
	return s.run("SELECT id, charge, measure IS NULL, measure, noisy FROM release", func(st *sqlite3.Stmt) error {
		return do(store.Release{ID: st.ColumnInt64(0), Charge: st.ColumnInt64(1), Withdrawn: st.ColumnBool(2), Key: st.ColumnBlob(3, nil), Noisy: st.ColumnBlob(4, nil)})
	})
}

func (s *Store) Body(seq int64) ([]byte, error) {
	return s.blob("SELECT body FROM chain WHERE seq = ?", seq)
}

func (s *Store) Noisy(id int64) ([]byte, error) {
	return s.blob("SELECT noisy FROM release WHERE id = ?", id)
}

func (s *Store) blob(sql string, id int64) (blob []byte, err error) {
	err = s.run(sql, func(st *sqlite3.Stmt) error { blob = st.ColumnBlob(0, nil); return nil }, id)
	return blob, err
}

func (s *Store) Charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error {
	sql, args := "SELECT seq, at, holder, body FROM chain WHERE kind = 6 AND ds = ? AND seq <= ?", []any{ds, upTo}
	if user != "" {
		sql, args = sql+" AND holder = ?", append(args, user)
	}
	return s.run(sql+" ORDER BY seq DESC LIMIT ?", func(st *sqlite3.Stmt) error {
		return do(chain.Row{Seq: st.ColumnInt64(0), Kind: chain.RowCharge, At: st.ColumnInt64(1), DS: ds, Holder: st.ColumnText(2), Body: st.ColumnRawBlob(3)})
	}, append(args, limit)...)
}
