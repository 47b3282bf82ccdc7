package postgres

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// claimed is a key that this process has claimed, and the claim's fence.
type claimed struct {
	key   store.Key
	fence int64
}

func (s *Store) Claim(key store.Key) (fence int64, err error) {
	if s.presumes {
		if !slices.Contains(s.held.claims, key) { // one statement may not claim a key twice
			s.held.claims = append(s.held.claims, key)
		}
		return s.fence, nil
	}
	s.waiting.Queue(pgClaim, s.claimArgs(key)...).QueryRow(func(r pgx.Row) error {
		err := r.Scan(&fence)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return fence, s.flush()
}

func (s *Store) claimArgs(keys ...store.Key) []any {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return []any{list, int64(s.site.Owner), s.fence}
}

func (s *Store) Holds(key store.Key, fence int64) (there bool, err error) {
	args := []any{key[:], int64(s.site.Owner), fence}
	if s.presumes {
		s.later(pgClaimedSure, nil, args...)
		return true, nil
	}
	s.later(pgClaimed, func(tag pgconn.CommandTag) error { there = tag.RowsAffected() == 1; return nil }, args...)
	return there, s.flush()
}

func (s *Store) Yield(key store.Key, fence int64) error {
	if c := (claimed{key, fence}); s.presumes {
		s.held.dropped = append(s.held.dropped, c)
	} else {
		s.unclaim([]claimed{c})
	}
	return nil
}

func (s *Store) unclaim(list []claimed) {
	keys, claims := make([][]byte, len(list)), make([][]byte, len(list))
	for i := range list {
		key := list[i].key[:]
		keys[i], claims[i] = key, binary.BigEndian.AppendUint64(slices.Clone(key), uint64(list[i].fence))
	}
	s.later(pgUnclaim, nil, keys, int64(s.site.Owner), claims)
}

func (s *Store) Others() (n int, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	err = s.Conn.QueryRow(ctx, "SELECT count(DISTINCT o) FROM ("+Alive+") AS l (o) WHERE o <> $1", int64(s.site.Owner)).Scan(&n)
	return n, err
}
