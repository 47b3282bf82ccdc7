package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// Restore puts what a verified backup holds in the ledger's place. What was there goes on in a schema of another name.
func (p *Site) Restore(ctx context.Context, from store.Store) error {
	opened, err := p.Open(ctx, true)
	if err != nil {
		return err
	}
	defer opened.Close()
	s := opened.(*Store)
	if n, err := s.Others(); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%w: %d proxies have it open", store.ErrLocked, n))
	}
	fresh, err := s.Empty()
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
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
		last, err := store.Copy(ctx, from, s)
		if err != nil {
			return err
		}
		s.later(pgAhead, nil, last.Seq, last.Hash[:])
		return s.flush()
	})
}
