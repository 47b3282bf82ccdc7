package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/chain"
)

// backup copies the ledger, as it is in one snapshot, into an SQLite file: a backup of either kind can be restored into
// either kind.
func (p *postgresSite) backup(ctx context.Context, path string) error {
	from, err := p.open(ctx, false)
	if err != nil {
		return err
	}
	defer from.close()
	if err := from.snapshot(); err != nil {
		return err
	}
	if fresh, err := from.empty(); err != nil || fresh {
		return errors.Join(err, errors.New("there is no ledger yet"))
	}
	to, err := openSQLite(osDisk{}, path, "", true)
	if err != nil {
		return err
	}
	if err = to.conn.Exec("BEGIN IMMEDIATE;" + schema); err == nil {
		_, err = copyRows(ctx, from, to)
	}
	if err == nil {
		err = errors.Join(to.commit(nil), to.finish())
	}
	if err == nil {
		_, err = to.text("PRAGMA journal_mode = delete") // one file, as a compacted one is
	}
	return errors.Join(err, to.close())
}

// copyRows copies all that one store holds into another, whose transaction has begun, and returns the chain's last row.
func copyRows(ctx context.Context, from, to store) (last chain.Row, err error) {
	err = from.rows(ctx, 0, func(r chain.Row) error {
		last = r
		return to.insert(r)
	})
	if err != nil {
		return last, err
	}
	accounts, err := from.accounts()
	if err != nil {
		return last, err
	}
	for key, a := range accounts {
		if err := to.openAccount(key, a); err != nil {
			return last, err
		}
	}
	return last, from.releases(to.keepRelease)
}

// restore puts a verified backup in the ledger's place. What was there goes on in a schema of another name.
func (p *postgresSite) restore(ctx context.Context, backup string) error {
	from, err := openSQLite(osDisk{}, backup, "", false)
	if err != nil {
		return err
	}
	defer from.close()
	opened, err := p.open(ctx, true)
	if err != nil {
		return err
	}
	defer opened.close()
	s := opened.(*postgresStore)
	if n, err := s.others(); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%w: %d proxies have it open", ErrLocked, n))
	}
	fresh, err := s.empty()
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		if !fresh {
			if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER SCHEMA dpproxy_ledger RENAME TO dpproxy_ledger_replaced_%d", time.Now().UnixMilli())); err != nil {
				return err
			}
		}
		if err := s.migrateIn(ctx, tx); err != nil {
			return err
		}
		s.renew()
		last, err := copyRows(ctx, from, s)
		if err != nil {
			return err
		}
		s.later(pgAhead, nil, last.Seq, last.Hash[:])
		return s.flush()
	})
}
