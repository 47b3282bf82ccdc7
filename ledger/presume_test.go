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
)

// numbered is an item of its own for each number.
func numbered(n uint64, micro int64) Item {
	it := item(1, eps(micro))
	binary.BigEndian.PutUint64(it.Digest[:], n)
	return it
}

// What a batch presumes and is otherwise on the server is refused as it would be step by step, and the others of the batch
// are charged: a claim that another proxy has, an account that holds less than the book says, a budget that is spent.
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

// A proxy with few sessions has its turn at the head beside one with many, which comes again at once each time: while it has
// something to charge, the other has about as many batches, and not hundreds.
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

// Who has the row of a chain's head, even without a turn, is waited for, and what it has written meanwhile is taken in before anything is
// decided.
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
