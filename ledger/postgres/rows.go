package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// What the keeper reads of a ledger in PostgreSQL.

// Snapshot waits until all that it shows is flushed: a backup, or what an operator is shown, is not to hold what a
// crash takes back. Who opens the ledger for writing settles that herself. What has not been flushed by then a commit
// of its own takes with it: the server does that by itself for commits, and the last written may be what somebody has
// under way.
func (s *Store) Snapshot() error {
	s.later("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", nil)
	s.later("SET LOCAL statement_timeout = 0", nil)
	if s.writes {
		return s.flush()
	}
	var flushed bool
	s.waiting.Queue(pgFlushed).QueryRow(func(r pgx.Row) error { return r.Scan(&flushed) })
	if err := s.flush(); err != nil || flushed {
		return err
	}
	ctx, cancel := s.limit()
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.site.Config)
	if err != nil {
		return err
	}
	beside := &Store{Conn: conn, site: s.site}
	defer beside.Close()
	beside.later(pgReads, nil)
	beside.later(pgLocal, nil)
	beside.later(pgFlush, nil)
	beside.later("COMMIT", committed)
	return beside.flush()
}

// Sound leaves pages and indexes to PostgreSQL's own checksums; the chain's hashes cover each row.
func (s *Store) Sound() error { return nil }

func (s *Store) Ends() (list []chain.Head, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	sql := pgEnds
	if s.tables == 1 {
		sql = pgEnd
	}
	err = s.query(ctx, sql, func(rows pgx.Rows) error {
		var h chain.Head
		var hash []byte
		err := rows.Scan(&h.Chain, &h.Seq, &hash)
		copy(h.Hash[:], hash)
		list = append(list, h)
		return err
	})
	return list, err
}

func (s *Store) News(known []chain.Head) (*store.News, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	var news store.News
	s.later(pgReads, nil)
	s.waiting.Queue(pgNews, knownArgs(known)...).Query(func(rows pgx.Rows) (err error) {
		news, err = scanNews(rows)
		return err
	})
	s.settle()
	if err := s.flushed(); err != nil {
		return nil, err
	}
	return unless(known, news), nil
}

// knownArgs are heads as three arrays.
func knownArgs(known []chain.Head) []any {
	n := len(known)
	head, seq, hash := make([]int64, n), make([]int64, n), make([][]byte, n)
	for i := range known {
		head[i], seq[i], hash[i] = known[i].Chain, known[i].Seq, known[i].Hash[:]
	}
	return []any{head, seq, hash}
}

// scanNews reads what pgNews returns, or pgNewsOf with more behind it: each head at least once, each row once.
func scanNews(rows pgx.Rows, more ...any) (n store.News, err error) {
	heads := map[int64]bool{}
	for rows.Next() {
		var h chain.Head
		var ended, hash, body []byte
		var seq, kind, at, ds *int64
		var holder *string
		if err := rows.Scan(append([]any{&h.Chain, &h.Seq, &ended, &seq, &kind, &at, &ds, &holder, &body, &hash}, more...)...); err != nil {
			return n, err
		}
		if copy(h.Hash[:], ended); !heads[h.Chain] {
			heads[h.Chain] = true
			n.Heads = append(n.Heads, h)
		}
		if seq == nil {
			continue
		}
		r := chain.Row{Seq: *seq, Kind: chain.Kind(*kind), At: *at, DS: *ds, Holder: *holder, Body: body}
		copy(r.Hash[:], hash)
		n.Rows = append(n.Rows, r)
	}
	return n, rows.Err()
}

// unless leaves news out where all chains end as they were known to.
func unless(known []chain.Head, n store.News) *store.News {
	ends := map[int64]chain.Head{}
	for _, h := range n.Heads {
		ends[h.Chain] = h
	}
	same := len(ends) == len(known)
	for _, k := range known {
		h, there := ends[k.Chain]
		same = same && there && k.Ends(h)
	}
	if same {
		return nil
	}
	return &n
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

func (s *Store) Rows(ctx context.Context, do func(chain.Row) error) error {
	return s.query(ctx, pgRows, func(rows pgx.Rows) error {
		var r chain.Row
		var hash []byte
		if err := rows.Scan(&r.Seq, &r.Kind, &r.At, &r.DS, &r.Holder, &r.Body, &hash); err != nil {
			return err
		}
		copy(r.Hash[:], hash)
		return do(r)
	})
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
	sql, args := pgCharges, []any{ds, upTo, limit}
	if user != "" {
		sql, args = pgChargesOf, append(args, user)
	}
	return s.query(ctx, sql, func(rows pgx.Rows) error {
		r := chain.Row{Kind: chain.RowCharge, DS: ds}
		if err := rows.Scan(&r.Seq, &r.At, &r.Holder, &r.Body); err != nil {
			return err
		}
		return do(r)
	}, args...)
}
