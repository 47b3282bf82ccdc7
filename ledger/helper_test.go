package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(withServer{m})
}

// withServer stops the tests' PostgreSQL server after them, if one was started.
type withServer struct{ tests *testing.M }

func (w withServer) Run() int {
	code := w.tests.Run()
	witnesses.Range(func(_, dir any) bool { return os.RemoveAll(dir.(string)) == nil })
	if server != nil {
		if err := server.Stop(); err != nil {
			fmt.Println(err)
			code = max(code, 1)
		}
	}
	return code
}

// server is a PostgreSQL that keeps its promises, as a ledger demands it.
var server *pgtest.Server

func pgServer(t testing.TB) *pgtest.Server {
	t.Helper()
	if server == nil {
		s, err := pgtest.Launch("fsync=on", "full_page_writes=on")
		if errors.Is(err, pgtest.ErrNoBinaries) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		server = s
	}
	return server
}

// onPostgres is the prefix of the names of tests that run on PostgreSQL.
const onPostgres = "TestOnPostgres/"

var (
	ctx     = context.Background()
	policyA = Digest{1}
)

// clock is a hand-set clock.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time         { return c.now }
func (c *clock) forward(d time.Duration) { c.now = c.now.Add(d) }

func eps(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }
func rho(pico int64) privacy.Cost  { return privacy.Cost{Rho: privacy.PicoRho(pico)} }

// census is a pure dataset with a cap of 10 and a budget of 3 for each user.
func census() DatasetTerms {
	return DatasetTerms{ID: "census", Accountant: privacy.Pure, Neighbors: privacy.AddRemove, Unit: "person people.id",
		Relations: []string{"public.people"}, Cap: eps(10e6), Budgets: map[string]BudgetTerms{"*": {Limit: eps(3e6)}}}
}

func terms(sets ...DatasetTerms) Terms { return Terms{PolicyDigest: policyA, Datasets: sets} }

// item is a count; n names the measure.
func item(n byte, cost privacy.Cost) Item {
	return Item{Digest: sha256.Sum256([]byte{n}), Kind: "count", Name: "count", Table: "public.people", Cost: cost, Spec: spec(1, 10)}
}

func spec(num, den int64) mechanisms.Spec {
	return mechanisms.Spec{Counters: 1, Cells: 1, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity},
		Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: num, Den: den}}}
}

func shared(n byte, cost privacy.Cost) Item {
	it := item(n, cost)
	it.Shared = true
	return it
}

func request(user string, items ...Item) Request {
	return Request{User: user, Dataset: "census", Statement: Digest{9}, Items: items, PolicyDigest: policyA}
}

func noisy(values ...int64) privacy.Released[mechanisms.Noisy] {
	return privacy.Published(mechanisms.Noisy{Observations: values})
}

// place is a path for a ledger of one test, or the URL of a database of its own where the test runs on PostgreSQL.
func place(t testing.TB) string {
	if strings.HasPrefix(t.Name(), onPostgres) || strings.HasPrefix(t.Name(), "BenchmarkPostgres") {
		s := pgServer(t)
		return s.URLFor("postgres", s.Database(t))
	}
	return filepath.Join(t.TempDir(), "test.ledger")
}

// witnesses are the directories of the witnesses of ledgers in PostgreSQL, by URL.
var witnesses sync.Map

// at is the URL and the options for a place.
func at(path string, o Options) (string, Options) {
	if !strings.HasPrefix(path, "postgres:") {
		return "sqlite:" + path, o
	}
	if o.Witness == "" {
		dir, ok := witnesses.Load(path)
		if !ok {
			made, err := os.MkdirTemp("", "witness")
			if err != nil {
				panic(err)
			}
			dir, _ = witnesses.LoadOrStore(path, made)
		}
		o.Witness = filepath.Join(dir.(string), "witness")
	}
	return path, o
}

// blank removes what is in a place.
func blank(path string) {
	url, o := at(path, Options{})
	if !strings.HasPrefix(path, "postgres:") {
		for _, suffix := range []string{"", "-wal", "-shm", "-witness"} {
			os.Remove(path + suffix)
		}
		return
	}
	os.Remove(o.Witness)
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS dpproxy_ledger CASCADE")
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		panic(err)
	}
}

// openAt opens the ledger at a place.
func openAt(path string, o Options) (Ledger, error) {
	url, o := at(path, o)
	return Open(ctx, url, o)
}

func open(t testing.TB, path string, o Options) *keeper {
	t.Helper()
	l, err := openAt(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*keeper)
}

// fresh is a new ledger with the given datasets adopted.
func fresh(t testing.TB, o Options, sets ...DatasetTerms) *keeper {
	t.Helper()
	f := open(t, place(t), o)
	adopt(t, f, sets...)
	return f
}

func adopt(t testing.TB, f *keeper, sets ...DatasetTerms) {
	t.Helper()
	if err := f.Adopt(ctx, terms(sets...)); err != nil {
		t.Fatal(err)
	}
}

func charge(t testing.TB, f *keeper, r Request) []Outcome {
	t.Helper()
	out, err := f.Charge(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// buy charges for one item, draws and saves it.
func buy(t testing.TB, f *keeper, user string, it Item, values ...int64) int64 {
	t.Helper()
	out := charge(t, f, request(user, it))
	if out[0].Receipt == nil {
		t.Fatalf("no receipt: %+v", out[0])
	}
	return keep(t, f, out[0].Receipt, values...)
}

func keep(t testing.TB, f *keeper, r *Receipt, values ...int64) int64 {
	t.Helper()
	if err := r.Spend(r.digest); err != nil {
		t.Fatal(err)
	}
	id, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(values...)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, must be %v", err, want)
	}
}

func verify(t testing.TB, f *keeper) {
	t.Helper()
	if _, err := f.Verify(ctx); err != nil {
		t.Fatal(err)
	}
}

// spent is what a user and the cap have spent, in micro-ε.
func spent(t testing.TB, f *keeper, user string) (own, pool int64) {
	t.Helper()
	b, err := f.Balance(ctx, user, "census")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := f.Cap(ctx, "census")
	if err != nil {
		t.Fatal(err)
	}
	return b.LifeSpent.Epsilon.Micro(), c.Epsilon.Micro()
}

func wantSpent(t testing.TB, f *keeper, user string, own, pool int64) {
	t.Helper()
	gotOwn, gotPool := spent(t, f, user)
	if gotOwn != own || gotPool != pool {
		t.Fatalf("%s has spent %d, the cap %d; must be %d and %d", user, gotOwn, gotPool, own, pool)
	}
}

// pathOf is the place of a ledger.
func pathOf(f *keeper) string {
	if p, ok := f.site.(*postgres.Site); ok {
		return p.Config.ConnString()
	}
	return f.site.(*sqlite.Site).Path
}
