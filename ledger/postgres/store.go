// Package postgres keeps a ledger in a PostgreSQL database that many proxies share (store.Shared, ADRs 34 and 148). A batch holds
// the heads of the chains that it writes from its first statement to its commit, so that the proxies write each chain in turns; what
// is under way in one of them has a claim, which ends with the process. A charge of Alice's sends, in one turn to the server and back: the
// turn's lock, the row of her dataset's head FOR UPDATE, and what reads the rows that others have written; and in a second one the
// claim of the draw, the updates of her accounts, the row of the chain, the head and COMMIT.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Store is one connection to a ledger in PostgreSQL. What needs no answer at once is sent with what does, so that
// a charge is one turn to the server and back.
type Store struct {
	Conn    *pgx.Conn
	site    *Site
	writes  bool
	before  bool     // what a snapshot shows are tables of version 1, of one head
	name    [32]byte // of the batch under way; each of its rows bears it
	parts   int64    // rows in it, also those taken back
	fence   int64    // of the claims made with it
	waiting pgx.Batch

	now      int64 // of its charges
	presumes bool  // the batch presumes
	held     held  // back by such a batch until its end
	job      struct {
		statements int
		held       held
	}
}

// held are the parts of a batch that presumes of which all go out as one statement each.
type held struct {
	moves   []store.Move // which are all of one time
	claims  []store.Key
	dropped []claimed
	rows    []chain.Row
}

func (s *Store) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), pgWait+pgConnect)
}

// later has a statement sent with the next flush. check sees how many rows it has touched.
func (s *Store) later(sql string, check func(pgconn.CommandTag) error, args ...any) {
	q := s.waiting.Queue(sql, args...)
	if check != nil {
		q.Exec(check)
	}
}

// flush sends what waits, in order, and has each answered.
func (s *Store) flush() error {
	if s.waiting.Len() == 0 {
		return nil
	}
	ctx, cancel := s.limit()
	defer cancel()
	batch := s.waiting
	s.waiting = pgx.Batch{}
	return s.Conn.SendBatch(ctx, &batch).Close()
}

// renew gives the next batch its name.
func (s *Store) renew() {
	rand.Read(s.name[:])
	s.parts, s.presumes, s.held = 0, false, held{}
}

// Begin takes the turns of the chains that a batch writes, locks their heads, and reads what others have written. Each statement
// after the locks sees all that was committed before, whatever isolation level the server is set to: the level is asked for
// by name. The turns are for fairness alone: who waits for a row may be overtaken, again and again, by who has just had it.
//
// Nobody who holds a turn or a row of one dataset's waits for another's: the first is waited for while nothing is held, the
// others are taken only where they are free. All chains are waited for in the order of their numbers.
func (s *Store) Begin(known []chain.Head, want store.Wanted) (store.Begun, error) {
	s.renew()
	s.later(pgReads, nil)
	if want.Chains == nil {
		s.later(pgTurn, nil, lockTurn) // who adds a chain has it
		s.later(pgTurns, nil, lockTurn)
		s.later(pgAll, nil)
		return s.begun(known)
	}
	if want.Wait || len(want.Chains) == 1 {
		s.later(pgTurn, nil, lockTurn+want.Chains[0])
	}
	s.later(pgSome, nil, want.Chains, lockTurn)
	b, err := s.begun(known)
	if err != nil || len(b.Chains) > 0 {
		return b, err
	}
	s.later(pgTurn, nil, lockTurn+want.Chains[0]) // none was free, and none is held
	s.later(pgSome, nil, want.Chains, lockTurn)
	if b, err = s.begun(known); err == nil && len(b.Chains) == 0 {
		err = fmt.Errorf("%w: the chain of dataset %d has no head", store.ErrCorrupt, want.Chains[0])
	}
	return b, err
}

// begun locks the heads of the turns that were taken, and reads on.
func (s *Store) begun(known []chain.Head) (b store.Begun, err error) {
	var now int64
	s.waiting.Queue(pgLock).Query(func(rows pgx.Rows) error {
		b.Chains, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	s.waiting.Queue(pgBegun).QueryRow(func(r pgx.Row) error { return r.Scan(&now, &s.fence, &b.First) })
	var news store.News
	s.waiting.Queue(pgNews, knownArgs(known)...).Query(func(rows pgx.Rows) (err error) {
		news, err = scanNews(rows)
		return err
	})
	if err := s.flush(); err != nil {
		return store.Begun{}, err
	}
	s.site.told(now)
	b.News = unless(known, news)
	return b, nil
}

func (s *Store) Presume() { s.presumes = true }

// Savepoint needs none on the server where nothing is sent before the end.
func (s *Store) Savepoint() error {
	if s.job.statements, s.job.held = s.waiting.Len(), s.held; !s.presumes {
		s.later("SAVEPOINT job", nil)
	}
	return nil
}

func (s *Store) Keep() error {
	if !s.presumes {
		s.later("RELEASE SAVEPOINT job", nil)
	}
	return nil
}

func (s *Store) Undo() error {
	if s.presumes {
		s.waiting.QueuedQueries, s.held = s.waiting.QueuedQueries[:s.job.statements], s.job.held
		return nil
	}
	s.later("ROLLBACK TO SAVEPOINT job", nil)
	return s.Keep()
}

// release has what was held back sent with the next flush.
func (s *Store) release() {
	h := s.held
	if s.held = (held{}); len(h.dropped) > 0 {
		s.unclaim(h.dropped)
	}
	if len(h.claims) > 0 {
		s.later(pgClaimSure, nil, s.claimArgs(h.claims...)...)
	}
	if len(h.rows) > 0 {
		s.later(pgInsert, nil, s.args(h.rows)...)
	}
	s.moveAll(merged(h.moves))
}

func (s *Store) Rollback() error {
	s.later("ROLLBACK", nil)
	return s.refuted(s.flush())
}

// refuted ends a batch that has presumed what is not so: of what was sent after that, its end too, nothing was carried out.
func (s *Store) refuted(err error) error {
	var said *pgconn.PgError
	if !s.presumes || !errors.As(err, &said) || said.Code != "22012" {
		return err
	}
	s.presumes = false
	return cmp.Or(s.Rollback(), store.ErrPresumed)
}

// Commit moves the heads and commits. Where the answer does not come, or comes from a server that is going down, it is not
// known how it went.
//
// An early one is two commits in one turn to the server. The first does not wait for its flush: with it the heads are free, and others
// read the rows. The second does, and for the standbys, and with it for all that was committed before: records of commits are flushed in the
// order in which they become visible, so that what a crash leaves is what had been committed up to some moment.
func (s *Store) Commit(moved []chain.Head, early bool) error {
	s.release()
	if len(moved) > 0 {
		s.later(pgAhead, nil, knownArgs(moved)...)
	}
	done := false
	if early {
		s.later(pgEarly, nil)
		s.later("COMMIT AND CHAIN", func(tag pgconn.CommandTag) error {
			err := committed(tag)
			done = err == nil
			return err
		})
		s.later(pgDurable, nil)
	}
	s.later("COMMIT", committed)
	err := s.flushed()
	var said *pgconn.PgError
	if err != nil && (done || !errors.As(err, &said) || ends(said)) {
		return store.UnknownCommit{Request: s.name, Cause: err}
	}
	return s.refuted(err)
}

// committed holds the answer to a COMMIT: a transaction that has failed answers otherwise, and without an error.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return fmt.Errorf("the commit was answered by %s", tag)
	}
	return nil
}

// flushed is flush of what ends with a commit that is to be durable.
func (s *Store) flushed() error {
	unsure := s.site.unsure.Load()
	err := s.flush()
	if err == nil && s.site.unsure.Load() != unsure {
		err = errors.New("the server has not waited for its standbys")
	}
	return err
}

// Settle waits for the flush of all that was read.
func (s *Store) Settle() error {
	s.later(pgReads, nil)
	s.settle()
	return s.flushed()
}

// settle ends a transaction, with which what was read in it or before is durable after the next flush.
func (s *Store) settle() {
	s.later(pgDurable, nil)
	s.later("COMMIT", committed)
}

// ends tells an error with which the server ends the connection. What a person reads is in the server's language.
func ends(said *pgconn.PgError) bool {
	severity := cmp.Or(said.SeverityUnlocalized, said.Severity)
	return severity == "FATAL" || severity == "PANIC"
}

func (s *Store) Wrote(request [32]byte) (there bool, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	err = s.Conn.QueryRow(ctx, pgWrote, rowName(request, 0), rowName(request, math.MaxUint32)).Scan(&there)
	return there, err
}

// rowName names one row of a request.
func rowName(request [32]byte, n int64) []byte {
	return binary.BigEndian.AppendUint32(request[:16:16], uint32(n))
}

func (s *Store) Tidy() error   { return nil }
func (s *Store) Finish() error { return nil }

// args are the columns of rows.
func (s *Store) args(rows []chain.Row) []any {
	n := len(rows)
	seq, kind, at, ds := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	holder, body, hash, name, head := make([]string, n), make([][]byte, n), make([][]byte, n), make([][]byte, n), make([]int64, n)
	for i := range rows {
		r := &rows[i]
		s.parts++
		seq[i], kind[i], at[i], ds[i], holder[i] = r.Seq, int64(r.Kind), r.At, r.DS, r.Holder
		body[i], hash[i], name[i] = append([]byte{}, r.Body...), r.Hash[:], rowName(s.name, s.parts)
		head[i] = r.Chain
	}
	return []any{seq, kind, at, ds, holder, body, hash, name, head}
}

func (s *Store) Insert(r chain.Row) error {
	if s.presumes {
		s.held.rows = append(s.held.rows, r)
	} else {
		s.later(pgInsert, nil, s.args([]chain.Row{r})...)
	}
	return nil
}

func (s *Store) KeepRelease(r store.Release) error {
	var key any
	if !r.Withdrawn {
		key = r.Key
	}
	s.later(pgKeepRelease, nil, r.ID, r.Charge, key, r.Noisy)
	return nil
}

func (s *Store) WithdrawRelease(id int64) error {
	s.later(pgWithdraw, nil, id)
	return nil
}

func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), pgConnect)
	defer cancel()
	return s.Conn.Close(ctx)
}
