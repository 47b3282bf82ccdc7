package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// numbered is an item of its own for each number.
func numbered(n uint64, micro int64) Item {
	it := item(1, eps(micro))
	binary.BigEndian.PutUint64(it.Digest[:], n)
	return it
}

// What a batch presumes and is otherwise on the server is refused as it would be step by step, and the others of the
// batch are charged: a claim that another proxy has, an account that holds less than the book says, a budget that is
// spent.
func TestPresumedOtherwise(t *testing.T) {
	s := pgServer(t)
	for _, what := range []string{"a claim", "an account", "a budget"} {
		t.Run(what, func(t *testing.T) {
			url, two := several(t, 2, Options{}, census())
			a, b := two[0], two[1]
			config, err := pgx.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			charge(t, b, request("bob", numbered(1, 1)))
			item, want, soon := numbered(2, 1e6), ErrExhausted, ctx
			switch what {
			case "a claim":
				charge(t, a, request("ann", item))
				want = context.DeadlineExceeded
				var stop context.CancelFunc
				soon, stop = context.WithTimeout(ctx, 300*time.Millisecond)
				defer stop()
			case "an account":
				charge(t, b, request("ann", numbered(3, 1)))
				s.Exec(t, config.Database, "UPDATE dpproxy_ledger.account SET eps_limit = 1000 WHERE holder = 'ann'")
			case "a budget":
				item = numbered(2, 4e6)
			}
			var all sync.WaitGroup
			for n := range uint64(20) {
				all.Go(func() {
					if n == 7 {
						if _, err := b.Charge(soon, request("ann", item)); !errors.Is(err, want) {
							t.Errorf("error is %v, must be %v", err, want)
						}
					} else if _, err := b.Charge(ctx, request("bob", numbered(100+n, 1))); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			follow(t, b)
			own := map[string]int64{"a claim": 1e6, "an account": 1, "a budget": 0}[what]
			wantSpent(t, b, "ann", own, own+20)
			wantSpent(t, b, "bob", 20, own+20)
		})
	}
}

// stood is a site that counts the batches that have begun without a word from the server.
type stood struct {
	*postgres.Site
	batches atomic.Int64
}

func (p *stood) Open(ctx context.Context, writes bool) (store.Store, error) {
	s, err := p.Site.Open(ctx, writes)
	if err != nil {
		return nil, err
	}
	return &stoodStore{s.(*postgres.Store), p}, nil
}

type stoodStore struct {
	*postgres.Store
	site *stood
}

func (s *stoodStore) BeginPresuming(all chain.Head, chains []chain.Head, within time.Duration) (store.Begun, bool) {
	b, ok := s.Store.BeginPresuming(all, chains, within)
	if ok {
		s.site.batches.Add(1)
	}
	return b, ok
}

// A batch that presumes where its chains end decides nothing by a book that is behind: what another proxy has written
// in the same dataset meanwhile, or in chain 0, counts; and it passes by nobody who waits for the head.
func TestPresumedEnds(t *testing.T) {
	s := pgServer(t)
	url := s.URLFor("postgres", s.Database(t))
	site, err := postgres.At(url, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	counts := &stood{Site: site}
	a, b := another(t, url, Options{site: counts}), another(t, url, Options{})
	adopt(t, a, census())
	adopt(t, b, census())
	ds, _ := a.book.find("census")
	tries := counts.batches.Load()
	ready := func(n uint64) { // until a batch of a's begins so: nobody has written there for a second
		t.Helper()
		for tries = counts.batches.Load(); counts.batches.Load() == tries; n++ {
			charge(t, a, request("ann", numbered(n, 1)))
			time.Sleep(20 * time.Millisecond)
		}
		tries = counts.batches.Load()
	}

	for n := range uint64(3) { // on a slow machine a second may pass, after which it asks
		ready(1000 * n)
		charge(t, b, request("ann", numbered(9000+n, 1)))
		charge(t, a, request("ann", numbered(9100+n, 1)))
	}
	follow(t, b)
	own, _ := spent(t, b, "ann")
	charge(t, b, request("ann", numbered(10_000, 3e6-own-1)))
	_, err = a.Charge(ctx, request("ann", numbered(10_001, 2)))
	wantErr(t, err, ErrExhausted)
	charge(t, a, request("ann", numbered(10_002, 1)))
	verify(t, b)

	d := census()
	d.Budgets = map[string]BudgetTerms{"*": {Limit: eps(4e6)}}
	adopt(t, a, d)
	adopt(t, b, d)
	ready(20_000)
	if err := b.Adopt(ctx, Terms{PolicyDigest: Digest{2}, Datasets: []DatasetTerms{d}}); err != nil {
		t.Fatal(err)
	}
	_, err = a.Charge(ctx, request("ann", numbered(30_000, 1)))
	wantErr(t, err, ErrPolicy)
	if err := b.Adopt(ctx, Terms{PolicyDigest: policyA, Datasets: []DatasetTerms{d}}); err != nil {
		t.Fatal(err)
	}
	follow(t, a)

	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	ready(40_000)
	const lockTurn = 0x6470_7072_6f78_79 + 1
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockTurn+ds); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		_, err := a.Charge(ctx, request("ann", numbered(50_000, 1)))
		told <- err
	}()
	waits(t, conn)
	select {
	case err := <-told:
		t.Fatalf("it has not waited: %v", err)
	default:
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockTurn+ds); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
	verify(t, a)
	verify(t, b)
}

// waits returns once somebody waits for a lock in the database of a connection.
func waits(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(time.Millisecond) {
		var waits bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			return
		}
	}
	t.Error("nobody waits")
}

// Who has lost its connection is let in again once the server has done with it: a batch that was sent on it whole may
// not have begun yet.
func TestReconnectsAfterTheLostOne(t *testing.T) {
	s := pgServer(t)
	url := s.URLFor("postgres", s.Database(t))
	f := another(t, url, Options{again: time.Millisecond})
	adopt(t, f, census())
	charge(t, f, request("ann", numbered(1, 1)))
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	lingers, err := pgx.Connect(ctx, url) // as the server's process for the connection that is lost
	if err != nil {
		t.Fatal(err)
	}
	owner := f.site.(*postgres.Site).Owner
	if _, err := lingers.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", postgres.LockAlive, owner); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid::bigint = $1 AND pid <> $2", int64(owner), int64(lingers.PgConn().PID())); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		patiently(t, func() error {
			_, err := f.Charge(ctx, request("ann", numbered(2, 1)))
			return err
		})
		told <- nil
	}()
	waits(t, conn)
	if err := lingers.Close(ctx); err != nil {
		t.Fatal(err)
	}
	<-told
	verify(t, f)
}

// A proxy with few sessions has its turn at the head beside one with many, which comes again at once each time: while
// it has something to charge, the other has about as many batches, and not hundreds.
func TestTurnsAtTheHead(t *testing.T) {
	d := census()
	d.Cap, d.Budgets = eps(1e12), map[string]BudgetTerms{"*": {Limit: eps(1e12)}}
	url, two := several(t, 2, Options{}, d)
	var n atomic.Uint64
	busy, stop := context.WithCancel(ctx)
	charges := func(f *keeper, user string) {
		if _, err := f.Charge(ctx, request(user, numbered(n.Add(1), 1))); err != nil {
			t.Error(err)
			stop()
		}
	}
	var many, few sync.WaitGroup
	for range 16 {
		many.Go(func() {
			for busy.Err() == nil {
				charges(two[0], "ann")
			}
		})
	}
	for range 4 {
		few.Go(func() {
			for range 50 {
				charges(two[1], "bob")
			}
		})
	}
	few.Wait()
	stop()
	many.Wait()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var anns, bobs int
	err = conn.QueryRow(ctx, `SELECT count(DISTINCT substring(request, 1, 16)) FILTER (WHERE holder = 'ann'),
	count(DISTINCT substring(request, 1, 16)) FILTER (WHERE holder = 'bob')
FROM dpproxy_ledger.chain, (SELECT min(seq) AS first, max(seq) AS last FROM dpproxy_ledger.chain WHERE holder = 'bob') AS b
WHERE seq BETWEEN first AND last`).Scan(&anns, &bobs)
	if err != nil {
		t.Fatal(err)
	}
	if anns > 20*bobs { // about as many, but that a busy machine may let the few sessions wait for other things
		t.Errorf("%d batches of the proxy with many sessions beside %d of the other", anns, bobs)
	}
}

// Who has the row of a chain's head, even without a turn, is waited for, and what it has written meanwhile is taken in
// before anything is decided.
func TestHeadIsLocked(t *testing.T) {
	s := pgServer(t)
	f := open(t, s.URLFor("postgres", s.Database(t)), Options{Witness: filepath.Join(t.TempDir(), "witness")})
	adopt(t, f, census())
	charge(t, f, request("ann", numbered(1, 1)))
	conn, err := pgx.Connect(ctx, pathOf(f))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("BEGIN")
	ds, _ := f.book.find("census")
	exec("SELECT FROM dpproxy_ledger.heads WHERE head = $1 FOR UPDATE", ds)
	links := f.book.links.Clone()
	r := chain.Row{Seq: links.Last + 1, Kind: chain.RowBind, At: links.Time, DS: ds, Body: encodeRelations([]string{"public.others"})}
	links.Link(&r)
	var all sync.WaitGroup
	all.Go(func() {
		if out, err := f.Charge(ctx, request("ann", numbered(2, 1))); err != nil || out[0].Receipt.charge <= r.Seq || f.book.bound["public.others"] != ds {
			t.Errorf("%+v, %v", out, err)
		}
	})
	patiently(t, func() (err error) {
		var waits bool
		if err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits); err == nil && !waits {
			err = ErrUnavailable // nobody waits yet
		}
		return err
	})
	exec("INSERT INTO dpproxy_ledger.chain VALUES ($1, $2, $3, $4, '', $5, $6, 'by hand', $4)", r.Seq, r.Kind, r.At, r.DS, r.Body, r.Hash[:])
	exec("UPDATE dpproxy_ledger.heads SET seq = $1, hash = $2 WHERE head = $3", r.Seq, r.Hash[:], r.DS)
	exec("COMMIT")
	all.Wait()
	verify(t, f)
}

// Who follows beside a charge in one dataset learns of what others have written in another.
func TestFollowsWithABatch(t *testing.T) {
	_, two := several(t, 2, Options{}, census(), survey())
	a, b := two[0], two[1]
	ds, _ := a.book.find("census")
	begun, goOn, told := make(chan bool), make(chan bool), make(chan error, 3)
	does := func(j *job) { go func() { told <- a.do(ctx, j) }() }
	nothing := func(*batch) error { return nil }
	does(&job{ds: ds, run: func(*batch) error { close(begun); <-goOn; return nil }})
	<-begun
	charge(t, b, of("survey", request("bob", numbered(1, 1))))
	does(&job{follows: true, run: nothing})
	for len(a.queue) < 1 {
		time.Sleep(time.Millisecond)
	}
	does(&job{ds: ds, run: nothing})
	for len(a.queue) < 2 {
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	for range 3 {
		if err := <-told; err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Balance(ctx, "bob", "survey"); err != nil || got.LifeSpent.Epsilon.Micro() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
