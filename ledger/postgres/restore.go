package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/chain"
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
		links, err := store.Copy(ctx, from, &restoring{Store: s})
		if err != nil {
			return err
		}
		s.later(pgAhead, nil, knownArgs(links.Heads())...)
		s.later(pgNumber, nil, links.Last)
		return s.flush()
	})
}

// restoring is a store that is filled from another: it sends what it is given by and by, so that each batch keeps to
// the time that one may take, and memory to the size of a batch.
type restoring struct {
	*Store
	given int
}

const restoredAtOnce = 64 // rows or releases

func (r *restoring) Insert(row chain.Row) error { return errors.Join(r.Store.Insert(row), r.next()) }

func (r *restoring) KeepRelease(released store.Release) error {
	return errors.Join(r.Store.KeepRelease(released), r.next())
}

func (r *restoring) next() error {
	if r.given++; r.given%restoredAtOnce != 0 {
		return nil
	}
	return r.flush()
}
