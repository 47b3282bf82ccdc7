package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/dpproxy/dpproxy/ledger/chain"
)

// What the keeper asks of a store, in SQLite's words.

func (s *sqliteStore) create(first chain.Row) error {
	if err := s.conn.Exec("BEGIN IMMEDIATE;" + schema); err != nil {
		return err
	}
	if err := s.insert(first); err != nil {
		return err
	}
	return s.conn.Exec("COMMIT")
}

func (s *sqliteStore) settle() (err error) {
	if err := errors.Join(s.disk.Chmod(s.path, 0o600), s.disk.Chmod(s.path+"-wal", 0o600), s.disk.Chmod(s.path+"-shm", 0o600), syncDirs(s.disk, s.path)); err != nil {
		return err
	}
	if _, _, err := s.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
		return err
	}
	s.data, err = s.dataVersion()
	return err
}

func (s *sqliteStore) begin(chain.Row) (news []chain.Row, err error) {
	if data, err := s.dataVersion(); err != nil || data != s.data {
		return nil, errors.Join(err, errors.New("the file was changed by another program"))
	}
	return nil, s.run("BEGIN IMMEDIATE", nil)
}

func (s *sqliteStore) savepoint() error         { return s.run("SAVEPOINT job", nil) }
func (s *sqliteStore) keep() error              { return s.run("RELEASE job", nil) }
func (s *sqliteStore) commit([]chain.Row) error { return s.run("COMMIT", nil) }
func (s *sqliteStore) rollback() error          { return s.run("ROLLBACK", nil) }

func (s *sqliteStore) undo() error {
	if err := s.run("ROLLBACK TO job", nil); err != nil {
		return err
	}
	return s.run("RELEASE job", nil)
}

// checkpointAt is how many pages the log may have before it is copied into the file.
const checkpointAt = 1000

// tidy copies the log into the file when it has grown. Its faults count: SQLite itself would pass over them.
func (s *sqliteStore) tidy() error {
	if s.pages < checkpointAt {
		return nil
	}
	if _, _, err := s.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (s *sqliteStore) finish() error {
	_, _, err := s.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return err
}

func (s *sqliteStore) insert(r chain.Row) error {
	return s.run("INSERT INTO chain (seq, kind, at, ds, holder, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)", nil,
		r.Seq, int64(r.Kind), r.At, r.DS, r.Holder, r.Body, r.Hash[:])
}

func (s *sqliteStore) keepRelease(r keptRelease) error {
	var key any // NULL is not unique
	if !r.withdrawn {
		key = r.key
	}
	return s.run("INSERT INTO release (id, charge, measure, noisy) VALUES (?, ?, ?, ?)", nil, r.id, r.charge, key, r.noisy)
}

func (s *sqliteStore) withdrawRelease(id int64) error {
	return s.run("UPDATE release SET measure = NULL WHERE id = ?", nil, id)
}

func (s *sqliteStore) snapshot() error { return s.run("BEGIN", nil) }

func (s *sqliteStore) sound() error {
	sound, err := s.text("PRAGMA integrity_check(1)")
	if err == nil && sound != "ok" {
		err = fmt.Errorf("%w: %s", ErrCorrupt, sound)
	}
	return err
}

func (s *sqliteStore) rows(ctx context.Context, after int64, do func(chain.Row) error) error {
	n := 0
	return s.run("SELECT seq, kind, at, ds, holder, body, hash FROM chain WHERE seq > ? ORDER BY seq", func(st *sqlite3.Stmt) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := chain.Row{Seq: st.ColumnInt64(0), Kind: chain.Kind(st.ColumnInt64(1)), At: st.ColumnInt64(2), DS: st.ColumnInt64(3), Holder: st.ColumnText(4),
			Body: st.ColumnBlob(5, nil)}
		copy(r.Hash[:], st.ColumnRawBlob(6))
		return do(r)
	}, after)
}

func (s *sqliteStore) releases(do func(keptRelease) error) error {
	return s.run("SELECT id, charge, measure IS NULL, measure, noisy FROM release", func(st *sqlite3.Stmt) error {
		return do(keptRelease{st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnBool(2), st.ColumnRawBlob(3), st.ColumnRawBlob(4)})
	})
}

func (s *sqliteStore) body(seq int64) ([]byte, error) {
	return s.blob("SELECT body FROM chain WHERE seq = ?", seq)
}

func (s *sqliteStore) noisy(id int64) ([]byte, error) {
	return s.blob("SELECT noisy FROM release WHERE id = ?", id)
}

func (s *sqliteStore) blob(sql string, id int64) (blob []byte, err error) {
	err = s.run(sql, func(st *sqlite3.Stmt) error { blob = st.ColumnBlob(0, nil); return nil }, id)
	return blob, err
}

func (s *sqliteStore) charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error {
	sql, args := "SELECT seq, at, holder, body FROM chain WHERE kind = 6 AND ds = ? AND seq <= ?", []any{ds, upTo}
	if user != "" {
		sql, args = sql+" AND holder = ?", append(args, user)
	}
	return s.run(sql+" ORDER BY seq DESC LIMIT ?", func(st *sqlite3.Stmt) error {
		return do(chain.Row{Seq: st.ColumnInt64(0), Kind: chain.RowCharge, At: st.ColumnInt64(1), DS: ds, Holder: st.ColumnText(2), Body: st.ColumnRawBlob(3)})
	}, append(args, limit)...)
}
