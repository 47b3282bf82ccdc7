package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/chain"
)

// postgresStore is one connection to a ledger in PostgreSQL. What needs no answer at once is sent with what does, so that
// a charge is one turn to the server and back.
type postgresStore struct {
	site    *postgresSite
	conn    *pgx.Conn
	writes  bool
	name    Digest // of the batch under way; each of its rows bears it
	parts   int64  // rows in it, also those taken back
	fence   int64  // of the claims made with it
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
	moves   []move // which are all of one time
	claims  []flightKey
	dropped []claimed
	rows    []chain.Row
}

// unknownCommit is the error of a commit of which nobody has told how it went.
type unknownCommit struct {
	request Digest
	cause   error
}

func (u unknownCommit) Error() string {
	return "whether the commit took place is not known: " + u.cause.Error()
}
func (u unknownCommit) Unwrap() error { return u.cause }

func (s *postgresStore) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), pgWait+pgConnect)
}

// later has a statement sent with the next flush. check sees how many rows it has touched.
func (s *postgresStore) later(sql string, check func(pgconn.CommandTag) error, args ...any) {
	q := s.waiting.Queue(sql, args...)
	if check != nil {
		q.Exec(check)
	}
}

// flush sends what waits, in order, and has each answered.
func (s *postgresStore) flush() error {
	if s.waiting.Len() == 0 {
		return nil
	}
	ctx, cancel := s.limit()
	defer cancel()
	batch := s.waiting
	s.waiting = pgx.Batch{}
	return s.conn.SendBatch(ctx, &batch).Close()
}

// renew gives the next batch its name.
func (s *postgresStore) renew() {
	rand.Read(s.name[:])
	s.parts, s.presumes, s.held = 0, false, held{}
}

// begin waits for this proxy's turn, locks the chain's head, and reads what others have written. Each statement after the lock
// sees all that was committed before, whatever isolation level the server is set to: the level is asked for by name. The turn
// is for fairness alone: who waits for a row may be overtaken, again and again, by who has just had it.
func (s *postgresStore) begin(last chain.Row) (news []chain.Row, err error) {
	s.renew()
	var end chain.Row
	var now int64
	s.later("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", nil)
	s.later(pgTurn, nil, lockTurn)
	s.waiting.Queue(pgLock).QueryRow(func(r pgx.Row) error {
		var hash []byte
		err := r.Scan(&end.Seq, &hash, &now, &s.fence)
		copy(end.Hash[:], hash)
		return err
	})
	s.waiting.Queue(pgRows, last.Seq-1).Query(func(rows pgx.Rows) error {
		return walk(rows, func(r chain.Row) error { news = append(news, r); return nil })
	})
	if err := s.flush(); err != nil {
		return nil, err
	}
	s.site.told(now)
	switch {
	case end.Seq == last.Seq && end.Hash == last.Hash:
		return nil, nil
	case news == nil:
		news = []chain.Row{}
	}
	return news, nil
}

func (s *postgresStore) presume() { s.presumes = true }

// savepoint needs none on the server where nothing is sent before the end.
func (s *postgresStore) savepoint() error {
	if s.job.statements, s.job.held = s.waiting.Len(), s.held; !s.presumes {
		s.later("SAVEPOINT job", nil)
	}
	return nil
}

func (s *postgresStore) keep() error {
	if !s.presumes {
		s.later("RELEASE SAVEPOINT job", nil)
	}
	return nil
}

func (s *postgresStore) undo() error {
	if s.presumes {
		s.waiting.QueuedQueries, s.held = s.waiting.QueuedQueries[:s.job.statements], s.job.held
		return nil
	}
	s.later("ROLLBACK TO SAVEPOINT job", nil)
	return s.keep()
}

// release has what was held back sent with the next flush.
func (s *postgresStore) release() {
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
	for _, m := range merged(h.moves) {
		s.move(m, pgChargeSure, nil)
	}
}

func (s *postgresStore) rollback() error {
	s.later("ROLLBACK", nil)
	return s.refuted(s.flush())
}

// refuted ends a batch that has presumed what is not so: of what was sent after that, its end too, nothing was carried out.
func (s *postgresStore) refuted(err error) error {
	var said *pgconn.PgError
	if !s.presumes || !errors.As(err, &said) || said.Code != "22012" {
		return err
	}
	s.presumes = false
	return cmp.Or(s.rollback(), errPresumed)
}

// commit moves the head and commits. Where the answer does not come, or comes from a server that is going down, it is not
// known how it went.
func (s *postgresStore) commit(rows []chain.Row) error {
	s.release()
	if n := len(rows); n > 0 {
		s.later(pgAhead, nil, rows[n-1].Seq, rows[n-1].Hash[:])
	}
	s.later("COMMIT", func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" { // a transaction that has failed answers otherwise, and without an error
			return fmt.Errorf("the commit was answered by %s", tag)
		}
		return nil
	})
	unsure := s.site.unsure.Load()
	err := s.flush()
	if err == nil && s.site.unsure.Load() != unsure {
		err = errors.New("the server has not waited for its standbys")
	}
	var said *pgconn.PgError
	if err != nil && (!errors.As(err, &said) || ends(said)) {
		return unknownCommit{s.name, err}
	}
	return s.refuted(err)
}

// ends tells an error with which the server ends the connection. What a person reads is in the server's language.
func ends(said *pgconn.PgError) bool {
	severity := cmp.Or(said.SeverityUnlocalized, said.Severity)
	return severity == "FATAL" || severity == "PANIC"
}

func (s *postgresStore) wrote(request Digest) (there bool, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	err = s.conn.QueryRow(ctx, pgWrote, rowName(request, 0), rowName(request, math.MaxUint32)).Scan(&there)
	return there, err
}

// rowName names one row of a request.
func rowName(request Digest, n int64) []byte {
	return binary.BigEndian.AppendUint32(request[:16:16], uint32(n))
}

func (s *postgresStore) tidy() error   { return nil }
func (s *postgresStore) settle() error { return nil }
func (s *postgresStore) finish() error { return nil }

// args are the columns of rows.
func (s *postgresStore) args(rows []chain.Row) []any {
	n := len(rows)
	seq, kind, at, ds := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	holder, body, hash, name := make([]string, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range rows {
		r := &rows[i]
		s.parts++
		seq[i], kind[i], at[i], ds[i], holder[i] = r.Seq, int64(r.Kind), r.At, r.DS, r.Holder
		body[i], hash[i], name[i] = append([]byte{}, r.Body...), r.Hash[:], rowName(s.name, s.parts)
	}
	return []any{seq, kind, at, ds, holder, body, hash, name}
}

func (s *postgresStore) insert(r chain.Row) error {
	if s.presumes {
		s.held.rows = append(s.held.rows, r)
	} else {
		s.later(pgInsert, nil, s.args([]chain.Row{r})...)
	}
	return nil
}

// charge moves all accounts in one turn. Those after one that refuses may have moved too: the job is undone then.
func (s *postgresStore) charge(now int64, moves []move) (int, error) {
	if s.now = now; s.presumes {
		s.held.moves = append(s.held.moves, moves...)
		return -1, nil
	}
	refused := -1
	for i, m := range moves {
		s.move(m, pgCharge, func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() != 1 && refused < 0 {
				refused = i
			}
			return nil
		})
	}
	return refused, s.flush()
}

// move moves one account.
func (s *postgresStore) move(m move, sql string, check func(pgconn.CommandTag) error) {
	if m.fresh != nil {
		s.later(pgOpenAccount, nil, m.fresh.args(m.key)...)
	}
	s.later(sql, check, m.args(s.now)...)
}

func (s *postgresStore) openAccount(key accountKey, a account) error {
	s.later(pgOpenAccount, nil, a.args(key)...)
	return nil
}

func (s *postgresStore) clearAccounts() error {
	s.later("DELETE FROM dpproxy_ledger.account", nil)
	return nil
}

func (s *postgresStore) keepRelease(r keptRelease) error {
	var key any
	if !r.withdrawn {
		key = r.key
	}
	s.later(pgKeepRelease, nil, r.id, r.charge, key, r.noisy)
	return nil
}

func (s *postgresStore) withdrawRelease(id int64) error {
	s.later(pgWithdraw, nil, id)
	return nil
}

func (s *postgresStore) claim(key flightKey) (fence int64, err error) {
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

func (s *postgresStore) claimArgs(keys ...flightKey) []any {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return []any{list, int64(s.site.owner), s.fence}
}

func (s *postgresStore) holds(key flightKey, fence int64) (there bool, err error) {
	args := []any{key[:], int64(s.site.owner), fence}
	if s.presumes {
		s.later(pgClaimedSure, nil, args...)
		return true, nil
	}
	s.later(pgClaimed, func(tag pgconn.CommandTag) error { there = tag.RowsAffected() == 1; return nil }, args...)
	return there, s.flush()
}

func (s *postgresStore) yield(key flightKey, fence int64) error {
	if c := (claimed{key, fence}); s.presumes {
		s.held.dropped = append(s.held.dropped, c)
	} else {
		s.unclaim([]claimed{c})
	}
	return nil
}

func (s *postgresStore) unclaim(list []claimed) {
	keys, fences := make([][]byte, len(list)), make([]int64, len(list))
	for i := range list {
		keys[i], fences[i] = list[i].key[:], list[i].fence
	}
	s.later(pgUnclaim, nil, keys, int64(s.site.owner), fences)
}

func (s *postgresStore) others() (n int, err error) {
	ctx, cancel := s.limit()
	defer cancel()
	err = s.conn.QueryRow(ctx, "SELECT count(DISTINCT o) FROM ("+pgAlive+") AS l (o) WHERE o <> $1", int64(s.site.owner)).Scan(&n)
	return n, err
}

func (s *postgresStore) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), pgConnect)
	defer cancel()
	return s.conn.Close(ctx)
}
