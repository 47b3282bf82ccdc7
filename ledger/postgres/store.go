// Package postgres keeps a ledger in a PostgreSQL database that many proxies share (store.Shared, ADRs 34 and 148). A
// batch holds the heads of the chains that it writes from its first statement to its commit, so that the proxies write
// each chain in turns; what is under way in one of them has a claim, which ends with the process. A charge of Alice's
// sends, in one turn to the server and back: the turn's lock, the row of her dataset's head FOR UPDATE, and what reads
// the rows that others have written; and in a second one the claim of the draw, the updates of her accounts, the row of
// the chain, the head and COMMIT. Where nobody else has written of late all of it is one turn: that her chain ends
// where it is known to is presumed, and a condition of the head's update (Stand, ADR 160).
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

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
	tables  int      // the version of the tables, once it was asked for
	name    [32]byte // of the batch under way; each of its rows bears it
	parts   int64    // rows in it, also those taken back
	fence   int64    // of the claims made with it
	numbers numbers  // which no batch has had yet
	stand   *stand   // where the batch presumes the chains to end; nil means it has asked
	waiting pgx.Batch

	now      int64 // of its charges
	presumes bool  // the batch presumes
	held     held  // back by such a batch until its end
	job      struct {
		statements int
		held       held
	}
}

// numbers are what a batch has left of those that it has drawn.
type numbers struct {
	next, end int64
	told      time.Time // when the server has last said what time it is
}

// stand is where a batch presumes chains to end: chain 0, and those that it writes.
type stand struct {
	all    chain.Head
	chains []chain.Head
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
	s.parts, s.presumes, s.held, s.stand = 0, false, held{}, nil
}

// Begin takes the turns of the chains that a batch writes, locks their heads, and reads what others have written. Each
// statement after the locks sees all that was committed before, whatever isolation level the server is set to: the
// level is asked for by name. The turns are for fairness alone: who waits for a row may be overtaken, again and again,
// by who has just had it.
//
// Nobody who holds a turn or a row of one dataset's waits for another's: the first is waited for while nothing is held,
// the others are taken only where they are free. All chains are waited for in the order of their numbers.
func (s *Store) Begin(known []chain.Head, want store.Wanted) (store.Begun, error) {
	s.renew()
	s.later(pgReads, nil)
	if want.Chains == nil {
		s.later(pgTurn, nil, lockTurn) // who adds a chain has it
		s.later(pgTurns, nil, lockTurn)
		return s.begun(known, func(took func(pgx.Rows) error) { s.waiting.Queue(pgAll).Query(took) })
	}
	some := func(took func(pgx.Rows) error) { s.waiting.Queue(pgSome, want.Chains, lockTurn).Query(took) }
	if want.Wait || len(want.Chains) == 1 {
		s.later(pgTurn, nil, lockTurn+want.Chains[0])
	}
	begun := func() (store.Begun, error) { return s.begunOf(known, want.Chains, some) }
	if want.Look {
		begun = func() (store.Begun, error) { return s.begun(known, some) }
	}
	b, err := begun()
	if err != nil || len(b.Chains) > 0 {
		return b, err
	}
	s.later(pgTurn, nil, lockTurn+want.Chains[0]) // none was free, and none is held
	if b, err = begun(); err == nil && len(b.Chains) == 0 {
		err = fmt.Errorf("%w: the chain of dataset %d has no head", store.ErrCorrupt, want.Chains[0])
	}
	return b, err
}

// begun locks heads, and reads on.
func (s *Store) begun(known []chain.Head, lock func(took func(pgx.Rows) error)) (b store.Begun, err error) {
	lock(func(rows pgx.Rows) error {
		b.Chains, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	var now int64
	s.waiting.Queue(pgBegun).QueryRow(func(r pgx.Row) error { return r.Scan(&now, &s.fence, &b.First) })
	var news store.News
	s.waiting.Queue(pgNews, knownArgs(known)...).Query(func(rows pgx.Rows) (err error) {
		news, err = scanNews(rows)
		return err
	})
	if err := s.flush(); err != nil {
		return store.Begun{}, err
	}
	b.News = unless(known, news)
	return s.told(b, now), nil
}

// begunOf is begun of a batch that writes some chains: it reads where these and chain 0 end, however many there are.
// What was written in chain 0 follows from all of them, which are then read.
func (s *Store) begunOf(known []chain.Head, chains []int64, lock func(took func(pgx.Rows) error)) (b store.Begun, err error) {
	lock(func(rows pgx.Rows) error {
		b.Chains, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	asked := slices.DeleteFunc(slices.Clone(known), func(h chain.Head) bool { return h.Chain != 0 && !slices.Contains(chains, h.Chain) })
	var now int64
	var news store.News
	s.waiting.Queue(pgNewsOf, knownArgs(asked)...).Query(func(rows pgx.Rows) (err error) {
		news, err = scanNews(rows, &now, &s.fence, &b.First)
		return err
	})
	if err := s.flush(); err != nil {
		return store.Begun{}, err
	}
	news.Part = true
	if b.News = unless(asked, news); b.News != nil && !stands(asked[0], news.Heads) || len(news.Heads) < len(asked) {
		s.waiting.Queue(pgNews, knownArgs(known)...).Query(func(rows pgx.Rows) (err error) {
			news, err = scanNews(rows)
			return err
		})
		if err := s.flush(); err != nil {
			return store.Begun{}, err
		}
		b.News = unless(known, news)
	}
	return s.told(b, now), nil
}

// stands reports whether a chain is among others and ends where it did.
func stands(h chain.Head, list []chain.Head) bool { return slices.ContainsFunc(list, h.Ends) }

// told is what the server has said with the heads.
func (s *Store) told(b store.Begun, now int64) store.Begun {
	s.site.told(now)
	b.Numbers = store.Block
	s.numbers = numbers{b.First, b.First + store.Block, time.Now()}
	return b
}

// BeginPresuming begins a batch of which it presumes that chain 0 and those that it writes end as they are known to.
// Nothing is sent before its end. It goes on with the numbers of the batch before it: they are larger than all that is
// known, and smaller than what anybody draws later. Its fence is the first of them, less than zero where those of the
// sequence are greater.
func (s *Store) BeginPresuming(all chain.Head, chains []chain.Head, within time.Duration) (b store.Begun, ok bool) {
	least := all.Seq
	for _, h := range chains {
		b.Chains, least = append(b.Chains, h.Chain), max(least, h.Seq)
	}
	n := s.numbers
	if time.Since(n.told) > within || n.next <= least || n.end-n.next < store.Block/2 {
		return store.Begun{}, false
	}
	s.renew()
	s.stand, s.presumes = &stand{all, chains}, true
	b.First, b.Numbers, s.fence = n.next, n.end-n.next, -n.next
	s.numbers.next++ // also where no row needs one, for the fence
	return b, true
}

// moves sends a batch that presumes where the chains end ahead of what it writes, as far as that is.
func (s *Store) moves(moved []chain.Head) {
	rest := s.waiting
	s.waiting = pgx.Batch{}
	s.later(pgReads, nil)
	n := len(s.stand.chains)
	head, seq, hash, was, its := make([]int64, n), make([]int64, n), make([][]byte, n), make([]int64, n), make([][]byte, n)
	for i := range s.stand.chains {
		old := &s.stand.chains[i]
		to := old
		if at := slices.IndexFunc(moved, func(h chain.Head) bool { return h.Chain == old.Chain }); at >= 0 {
			to = &moved[at]
		}
		head[i], seq[i], hash[i], was[i], its[i] = old.Chain, to.Seq, to.Hash[:], old.Seq, old.Hash[:]
	}
	s.later(pgMove, nil, head, seq, hash, was, its, lockTurn)
	s.waiting.Queue(pgStands, s.stand.all.Seq, s.stand.all.Hash[:]).QueryRow(func(r pgx.Row) error {
		var now int64
		err := r.Scan(&now, nil)
		if err == nil {
			s.site.told(now)
			s.numbers.told = time.Now()
		}
		return err
	})
	s.waiting.QueuedQueries = append(s.waiting.QueuedQueries, rest.QueuedQueries...)
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
	if s.stand != nil { // what was decided without a row rests on it too
		s.moves(nil)
	}
	s.later("ROLLBACK", nil)
	return s.refuted(s.flush())
}

// refuted ends a batch that has presumed what is not so: of what was sent after that, its end too, nothing was carried
// out.
func (s *Store) refuted(err error) error {
	var said *pgconn.PgError
	if !s.presumes || !errors.As(err, &said) || said.Code != "22012" && said.Code != "2201E" {
		return err
	}
	what := store.ErrPresumed
	if said.Code == "2201E" {
		what = store.ErrMoved
	}
	s.presumes, s.stand = false, nil
	return cmp.Or(s.Rollback(), what)
}

// Commit moves the heads and commits. Where the answer does not come, or comes from a server that is going down, it is
// not known how it went.
//
// An early one is two commits in one turn to the server. The first does not wait for its flush: with it the heads are
// free, and others read the rows. The second does, and for the standbys, and with it for all that was committed before:
// records of commits are flushed in the order in which they become visible, so that what a crash leaves is what had
// been committed up to some moment.
func (s *Store) Commit(moved []chain.Head, early bool) error {
	for _, h := range moved {
		s.numbers.next = max(s.numbers.next, h.Seq+1)
	}
	if s.release(); s.stand != nil {
		s.moves(moved)
	} else if len(moved) > 0 {
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
