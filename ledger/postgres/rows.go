package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// What the keeper reads of a ledger in PostgreSQL.

func (s *Store) Snapshot() error {
	s.later("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", nil)
	s.later("SET LOCAL statement_timeout = 0", nil)
	return s.flush()
}

// Sound leaves pages and indexes to PostgreSQL's own checksums; the chain's hashes cover each row.
func (s *Store) Sound() error { return nil }

func (s *Store) End() (r chain.Row, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	var hash []byte
	err = s.Conn.QueryRow(ctx, pgHead).Scan(&r.Seq, &hash)
	copy(r.Hash[:], hash)
	return r, err
}

// query walks the rows of a statement.
func (s *Store) query(ctx context.Context, sql string, do func(pgx.Rows) error, args ...any) error {
	if err := s.flush(); err != nil {
		return err
	}
	rows, err := s.Conn.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *Store) Rows(ctx context.Context, after int64, do func(chain.Row) error) error {
	return s.query(ctx, pgRows, func(rows pgx.Rows) error { return scanRow(rows, do) }, after)
}

// walk walks the rows of a chain.
func walk(rows pgx.Rows, do func(chain.Row) error) error {
	for rows.Next() {
		if err := scanRow(rows, do); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanRow(rows pgx.Rows, do func(chain.Row) error) error {
	var r chain.Row
	var hash []byte
	if err := rows.Scan(&r.Seq, &r.Kind, &r.At, &r.DS, &r.Holder, &r.Body, &hash); err != nil {
		return err
	}
	copy(r.Hash[:], hash)
	return do(r)
}

func (s *Store) Releases(do func(store.Release) error) error {
	return s.query(context.Background(), pgReleases, func(rows pgx.Rows) error {
		var r store.Release
		if err := rows.Scan(&r.ID, &r.Charge, &r.Key, &r.Noisy); err != nil {
			return err
		}
		r.Withdrawn = r.Key == nil
		return do(r)
	})
}

func (s *Store) Accounts() (map[store.AccountKey]store.Account, error) {
	out := map[store.AccountKey]store.Account{}
	err := s.query(context.Background(), pgAccounts, func(rows pgx.Rows) error {
		var key store.AccountKey
		var n store.Numbers
		into := []any{&key.DS, &key.Scope, &key.Holder}
		for i := range n {
			into = append(into, &n[i])
		}
		err := rows.Scan(into...)
		out[key] = n.Account()
		return err
	})
	return out, err
}

func (s *Store) Body(seq int64) ([]byte, error) { return s.blob(pgBody, seq) }
func (s *Store) Noisy(id int64) ([]byte, error) { return s.blob(pgNoisy, id) }

func (s *Store) blob(sql string, id int64) (blob []byte, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	err = s.query(ctx, sql, func(rows pgx.Rows) error { return rows.Scan(&blob) }, id)
	return blob, err
}

func (s *Store) Charges(ds int64, user string, upTo, limit int64, do func(chain.Row) error) error {
	ctx, cancel := s.limit()
	defer cancel()
	return s.query(ctx, pgCharges, func(rows pgx.Rows) error {
		r := chain.Row{Kind: chain.RowCharge, DS: ds}
		if err := rows.Scan(&r.Seq, &r.At, &r.Holder, &r.Body); err != nil {
			return err
		}
		return do(r)
	}, ds, upTo, limit, user)
}
