package ledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// unflushed is a site of a proxy that stops, once it is asked to, between a commit that others see and the flush.
type unflushed struct {
	*postgres.Site
	armed     atomic.Bool
	committed chan struct{} // closed when others see the rows
	goOn      chan struct{} // to be closed when it may go on
}

func (p *unflushed) Open(ctx context.Context, writes bool) (store.Store, error) {
	s, err := p.Site.Open(ctx, writes)
	if err != nil {
		return nil, err
	}
	return &unflushedStore{s.(*postgres.Store), p}, nil
}

type unflushedStore struct {
	*postgres.Store
	site *unflushed
}

// Stand: what it stops is a batch that has begun.
func (s *unflushedStore) BeginPresuming(chain.Head, []chain.Head, time.Duration) (b store.Begun, ok bool) {
	return b, false
}

func (s *unflushedStore) Commit(moved []chain.Head, early bool) error {
	if !s.site.armed.CompareAndSwap(true, false) {
		return s.Store.Commit(moved, early)
	}
	_, err := s.Conn.Exec(ctx, "SET LOCAL synchronous_commit = off")
	if err == nil {
		err = s.Store.Commit(moved, false)
	}
	close(s.site.committed)
	<-s.site.goOn
	return errors.Join(err, s.Settle())
}

// crashes ends one of the server's processes as a fault would, with which the server loses all connections and what it
// has in memory, and starts anew by itself.
func crashes(t *testing.T, s *pgtest.Server) {
	t.Helper()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for other.Ping(ctx) == nil {
		time.Sleep(time.Millisecond)
	}
	for _, c := range []*pgx.Conn{conn, other} {
		_ = c.Close(ctx) // it is lost
	}
	patiently(t, func() error {
		again, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			return ErrUnavailable
		}
		return again.Close(ctx)
	})
}

// recovers waits until a proxy has its connections again.
func recovers(t *testing.T, f *keeper) {
	t.Helper()
	patiently(t, func() error {
		err := errors.Join(f.do(ctx, &job{run: func(*batch) error { return nil }}), f.Follow(ctx))
		if errors.Is(err, ErrRollback) { // from which it would recover too, by reading all of the ledger
			t.Fatalf("the ledger is taken for an older one: %v", err)
		}
		return err
	})
}

// twoProxies are two of which the first stops at its next commit, on a server that flushes nothing by itself.
func twoProxies(t *testing.T) (s *pgtest.Server, stops *unflushed, a, b *keeper) {
	s = pgtest.Start(t, "fsync=on", "full_page_writes=on")
	s.Exec(t, "postgres", "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()")
	url := s.URLFor("postgres", s.Database(t))
	site, err := postgres.At(url, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	stops = &unflushed{Site: site, committed: make(chan struct{}), goOn: make(chan struct{})}
	a = another(t, url, Options{site: stops, again: 10 * time.Millisecond})
	adopt(t, a, census())
	b = another(t, url, Options{again: 10 * time.Millisecond})
	adopt(t, b, census())
	buy(t, a, "ann", item(1, eps(1e6)), 7)
	follow(t, b)
	return s, stops, a, b
}

// charges has a proxy charge, and returns when that is committed and not flushed; the reply comes later.
func (u *unflushed) charges(f *keeper) (told chan error) {
	u.armed.Store(true)
	told = make(chan error, 1)
	go func() {
		_, err := f.Charge(ctx, request("ann", item(2, eps(1e6))))
		told <- err
	}()
	<-u.committed
	return told
}

// flushesAgain has a server flush by itself what is committed, as servers do.
func flushesAgain(t *testing.T, s *pgtest.Server) {
	t.Helper()
	s.Exec(t, "postgres", "ALTER SYSTEM RESET wal_writer_delay", "SELECT pg_reload_conf()")
}

// TestRule4NothingIsShownBeforeItIsDurable: what one proxy has committed and not flushed another decides on, and shows
// to nobody; and when a crash of the server takes it back nobody has paid or seen anything, no proxy takes the ledger
// for an older one, and all go on.
func TestRule4NothingIsShownBeforeItIsDurable(t *testing.T) {
	s, stops, a, b := twoProxies(t)
	told := stops.charges(a)
	ds, _ := b.book.find("census")
	decides, goOn := make(chan int64), make(chan struct{})
	releases := sync.OnceFunc(func() { close(goOn); close(stops.goOn) })
	defer releases() // a test that fails waits for nobody either
	go func() {
		told <- b.do(ctx, &job{ds: ds, run: func(t *batch) error {
			decides <- t.book.balance(ds, "ann", t.now).LifeSpent.Epsilon.Micro()
			<-goOn
			return nil
		}})
	}()
	if on := <-decides; on != 2e6 {
		t.Errorf("decides on a balance of %d", on)
	}
	wantSpent(t, b, "ann", 1e6, 1e6)
	crashes(t, s)
	releases()
	for range 2 {
		wantErr(t, <-told, ErrUnavailable)
	}
	for _, f := range []*keeper{a, b} {
		recovers(t, f)
		wantSpent(t, f, "ann", 1e6, 1e6)
	}
	charge(t, b, request("ann", item(2, eps(1e6)))) // she was not charged for it, and is now
	follow(t, a)
	wantSpent(t, a, "ann", 2e6, 2e6)
	flushesAgain(t, s)
	verify(t, a)
	verify(t, b)
}

// TestRefusalWaitsForTheFlush: a refusal tells of what was charged, also by another proxy, and so waits for its flush,
// though the batch has nothing to commit.
func TestRefusalWaitsForTheFlush(t *testing.T) {
	s, stops, a, b := twoProxies(t)
	told := stops.charges(a)
	ds, _ := b.book.find("census")
	err := b.do(ctx, &job{ds: ds, run: func(*batch) error { return refusal{ErrExhausted} }}) // which writes nothing
	wantErr(t, err, ErrExhausted)
	crashes(t, s)
	close(stops.goOn)
	wantErr(t, <-told, ErrUnavailable)
	recovers(t, b)
	wantSpent(t, b, "ann", 2e6, 2e6)
}

// TestFollowWaitsForTheFlush: whoever follows has what she is shown flushed, whoever has written it.
func TestFollowWaitsForTheFlush(t *testing.T) {
	s, stops, a, b := twoProxies(t)
	told := stops.charges(a)
	follow(t, b)
	wantSpent(t, b, "ann", 2e6, 2e6)
	crashes(t, s)
	close(stops.goOn)
	wantErr(t, <-told, ErrUnavailable)
	flushesAgain(t, s)
	for _, f := range []*keeper{b, a} {
		recovers(t, f)
		wantSpent(t, f, "ann", 2e6, 2e6)
		verify(t, f)
	}
}

// TestBackupWaitsForTheFlush: a copy holds nothing that a crash can take back.
func TestBackupWaitsForTheFlush(t *testing.T) {
	s, stops, a, b := twoProxies(t)
	told := stops.charges(a)
	flushesAgain(t, s)
	verify(t, b) // which reads in a snapshot, as a backup does
	crashes(t, s)
	close(stops.goOn)
	wantErr(t, <-told, ErrUnavailable)
	recovers(t, b)
	wantSpent(t, b, "ann", 2e6, 2e6)
}

// TestEarlyCommitsAreDurable: where another proxy has just written in a dataset a batch gives its heads back before the
// flush. What it has charged is there all the same once that is answered, whatever becomes of the server; what it
// presumed and is not so is refused.
func TestEarlyCommitsAreDurable(t *testing.T) {
	s, _, a, b := twoProxies(t)
	charged := int64(1e6)
	for n := range uint64(10) {
		f := []*keeper{a, b}[n%2]
		if out := charge(t, f, request("ann", numbered(n, 1))); out[0].Receipt == nil {
			t.Fatal("not charged")
		}
		charged++
		if n%3 == 2 {
			_, err := f.Charge(ctx, request("ann", numbered(100+n, 4e6)))
			wantErr(t, err, ErrExhausted)
		}
		if n%4 != 3 {
			continue
		}
		crashes(t, s)
		for _, f := range []*keeper{a, b} {
			recovers(t, f)
			wantSpent(t, f, "ann", charged, charged)
		}
		charge(t, b, request("ann", numbered(1000+n, 1))) // so that the other one learns of a rival again
		charged++
	}
	flushesAgain(t, s)
	for _, f := range []*keeper{a, b} {
		recovers(t, f)
		verify(t, f)
	}
}

// TestFollowWhateverTheRoleIsSetTo: what others have written is taken in also where the role begins its transactions
// otherwise.
func TestFollowWhateverTheRoleIsSetTo(t *testing.T) {
	s := pgServer(t)
	for _, setting := range []string{"default_transaction_isolation = 'repeatable read'", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = on"} {
		t.Run(setting, func(t *testing.T) {
			role, db := s.Role(t, "SUPERUSER"), s.Database(t)
			a := another(t, s.URLFor("postgres", db), Options{})
			adopt(t, a, census())
			s.Exec(t, "postgres", "ALTER ROLE "+role+" SET "+setting)
			b := another(t, s.URLFor(role, db), Options{})
			adopt(t, b, census())
			charge(t, a, request("ann", item(1, eps(10))))
			follow(t, b)
			wantSpent(t, b, "ann", 10, 10)
		})
	}
}

// TestSnapshotWaitsForCommitsAlone: what others have under way on the server, of which nothing is flushed, keeps nobody
// from a backup.
func TestSnapshotWaitsForCommitsAlone(t *testing.T) {
	s := pgtest.Start(t, "fsync=on", "full_page_writes=on")
	a := another(t, s.URLFor("postgres", s.Database(t)), Options{})
	adopt(t, a, census())
	charge(t, a, request("ann", item(1, eps(10))))
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range []string{"BEGIN", "SELECT pg_logical_emit_message(true, 'x', 'y')"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	verify(t, a)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}
