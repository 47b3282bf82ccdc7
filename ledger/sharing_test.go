package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger/postgres"
	"github.com/dpproxy/dpproxy/mechanisms"
)

// several opens one new ledger in PostgreSQL as so many proxies would.
func several(t testing.TB, n int, o Options, sets ...DatasetTerms) (url string, list []*keeper) {
	t.Helper()
	s := pgServer(t)
	url = s.URLFor("postgres", s.Database(t))
	for range n {
		list = append(list, another(t, url, o))
		adopt(t, list[len(list)-1], sets...)
	}
	return url, list
}

// another opens a ledger as one more proxy, with a witness of its own.
func another(t testing.TB, url string, o Options) *keeper {
	t.Helper()
	if o.Witness == "" {
		o.Witness = filepath.Join(t.TempDir(), "witness")
	}
	return open(t, url, o)
}

func follow(t testing.TB, f *keeper) {
	t.Helper()
	if err := f.Follow(ctx); err != nil {
		t.Fatal(err)
	}
}

// vanish ends a keeper as the death of its process would: its connections are gone, and nothing is said.
func vanish(f *keeper) {
	f.once.Do(func() {
		close(f.closing)
		<-f.stopped
		f.itemLocks.close()
		f.store.Close()
		f.store = nil
		f.shut()
		f.unlockFiles()
	})
}

// gone waits until a ledger's server takes a proxy whose connection has ended for dead: until its process for the
// connection has ended, which on a busy machine is a while later, and until it is past the time after its start in
// which it takes nobody for dead.
func gone(t testing.TB, url string, owner int32) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for dead := false; !dead; time.Sleep(5 * time.Millisecond) {
		if err := conn.QueryRow(ctx, "SELECT "+postgres.Settled+" AND $1 NOT IN ("+postgres.Alive+")", int64(owner)).Scan(&dead); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSharedReleasesAndBalances(t *testing.T) {
	_, two := several(t, 2, Options{}, census())
	a, b := two[0], two[1]
	id := buy(t, a, "ann", item(1, eps(1e6)), 7)
	follow(t, b)
	wantSpent(t, b, "ann", 1e6, 1e6)
	r, err := b.Load(ctx, "ann", id)
	if err != nil || r.Noisy.Value().Observations[0] != 7 || len(b.Holdings("ann", "census")) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if out := charge(t, a, request("ann", item(1, eps(1e6)))); out[0].ID != id || !out[0].Charged.IsZero() {
		t.Fatalf("%+v", out)
	}
	if err := a.Revoke(ctx, id); err != nil {
		t.Fatal(err)
	}
	follow(t, b)
	_, err = b.Load(ctx, "ann", id)
	wantErr(t, err, ErrNotHeld)
	verify(t, a)
	verify(t, b)
}

// Of two proxies asked at once one draws; the other waits, and is answered from what was saved, or draws itself once
// the first has given up or is dead, on a charge of its own (privacy rules 4 and 5).
func TestRule4OneProxyDrawsTheOtherWaits(t *testing.T) {
	for _, end := range []string{"saved", "given up", "dead"} {
		t.Run(end, func(t *testing.T) {
			_, two := several(t, 2, Options{}, census())
			a, b := two[0], two[1]
			first := charge(t, a, request("ann", item(1, eps(1e6))))[0].Receipt
			type outcome struct {
				out []Outcome
				err error
			}
			second := make(chan outcome, 1)
			go func() {
				out, err := b.Charge(ctx, request("ann", item(1, eps(1e6))))
				second <- outcome{out, err}
			}()
			select {
			case o := <-second:
				t.Fatalf("did not wait: %+v", o)
			case <-time.After(300 * time.Millisecond):
			}
			switch end {
			case "saved":
				keep(t, a, first, 5)
			case "given up":
				a.Abandon(first)
			case "dead":
				vanish(a)
			}
			o := <-second
			if o.err != nil {
				t.Fatal(o.err)
			}
			if end == "saved" {
				if o.out[0].Receipt != nil || !o.out[0].Charged.IsZero() {
					t.Fatalf("%+v", o.out)
				}
				wantSpent(t, b, "ann", 1e6, 1e6)
				return
			}
			keep(t, b, o.out[0].Receipt, 6)
			wantSpent(t, b, "ann", 2e6, 2e6)
		})
	}
}

// A process that was taken for dead cannot save what another has taken over.
func TestTakenOverDrawIsNotSaved(t *testing.T) {
	url, two := several(t, 2, Options{}, census())
	a, b := two[0], two[1]
	first := charge(t, a, request("ann", item(1, eps(1e6))))[0].Receipt
	a.site.(*postgres.Site).Owner ^= 1 // as if its lock were gone with its connection
	cut(t, url, a)
	second := charge(t, b, request("ann", item(1, eps(1e6))))[0].Receipt
	if err := first.Spend(first.digest); err != nil {
		t.Fatal(err)
	}
	patiently(t, func() error { return a.Follow(ctx) })
	if _, err := a.Save(ctx, first, mechanisms.Drawn{Noisy: noisy(1)}); err == nil || !strings.Contains(err.Error(), "taken the draw over") {
		t.Fatalf("saved all the same: %v", err)
	}
	keep(t, b, second, 2)
	verify(t, b)
}

// cut ends the server's side of a keeper's writing connection.
func cut(t testing.TB, url string, f *keeper) {
	t.Helper()
	pid := f.store.(*postgres.Store).Conn.PgConn().PID()
	server.Exec(t, strings.TrimPrefix(f.site.(*postgres.Site).Config.Database, "/"), fmt.Sprintf("SELECT pg_terminate_backend(%d, 5000)", pid))
}

// An online release lives in one process; another goes on with it once the server knows that that one is gone, not
// before.
func TestRule18OneProxyHoldsTheLease(t *testing.T) {
	url, two := several(t, 2, Options{}, census())
	a, b := two[0], two[1]
	owner := a.site.(*postgres.Site).Owner
	id := buy(t, a, "ann", onlineItem(), 0)
	if err := a.Leads(ctx, id); err != nil {
		t.Fatal(err)
	}
	wantErr(t, b.Leads(ctx, id), ErrElsewhere)
	if err := a.Extend(ctx, "ann", id, []byte{1}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, b.Extend(ctx, "ann", id, []byte{2}), ErrElsewhere)
	_, err := b.Resume(ctx, "ann", id, mechanisms.RestartStep())
	wantErr(t, err, ErrElsewhere)
	lingers, err := pgx.Connect(ctx, url) // the server's process for the first, which has not noticed yet
	if err == nil {
		_, err = lingers.Exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", postgres.LockAlive, owner)
	}
	if err != nil {
		t.Fatal(err)
	}
	vanish(a)
	_, err = b.Resume(ctx, "ann", id, mechanisms.RestartStep())
	wantErr(t, err, ErrElsewhere)
	wantErr(t, b.Leads(ctx, id), ErrElsewhere)
	if err := lingers.Close(ctx); err != nil {
		t.Fatal(err)
	}
	gone(t, url, owner)
	if _, err := b.Resume(ctx, "ann", id, mechanisms.RestartStep()); err != nil {
		t.Fatal(err)
	}
	if err := b.Leads(ctx, id); err != nil {
		t.Fatal(err)
	}
}

// A process that was taken for dead learns that its online release lives elsewhere, and adds nothing to it.
func TestTakenOverReleaseIsRefused(t *testing.T) {
	url, two := several(t, 2, Options{}, census())
	a, b := two[0], two[1]
	id := buy(t, a, "ann", onlineItem(), 0)
	owner := a.site.(*postgres.Site).Owner
	a.site.(*postgres.Site).Owner ^= 1 // as if its lock were gone with its connection
	cut(t, url, a)
	gone(t, url, owner)
	if _, err := b.Resume(ctx, "ann", id, mechanisms.RestartStep()); err != nil {
		t.Fatal(err)
	}
	patiently(t, func() error { return a.Follow(ctx) })
	wantErr(t, a.Extend(ctx, "ann", id, []byte{1}), ErrElsewhere)
	wantErr(t, a.Leads(ctx, id), ErrElsewhere)
	if got, err := b.Load(ctx, "ann", id); err != nil || len(got.Steps) != 1 {
		t.Fatalf("%d steps, %v", len(got.Steps), err)
	}
	verify(t, b)
}

func TestGrowthInTwoProxies(t *testing.T) {
	_, two := several(t, 2, Options{}, census())
	a, b := two[0], two[1]
	out := charge(t, a, request("ann", growing(1)))
	id := keep(t, a, out[0].Receipt)
	grow(t, a, "ann", id, 2, 1)
	follow(t, b)
	if b.Grown(id) != 2 {
		t.Fatalf("grown to %d", b.Grown(id))
	}
	r, _, err := a.Grow(ctx, "ann", id, 3)
	if err != nil || r == nil {
		t.Fatal(err)
	}
	soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if _, _, err := b.Grow(soon, "ann", id, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("two proxies grow one release at once: %v", err)
	}
	a.Abandon(r)
	grow(t, b, "ann", id, 3, 9)
	verify(t, a)
}

// The rest of rule 8 for many: who is at work may put another policy in force, and a newcomer may not.
func TestRule8PoliciesOfSeveralProxies(t *testing.T) {
	url, two := several(t, 2, Options{}, census())
	c := another(t, url, Options{})
	other := terms(census())
	other.PolicyDigest = Digest{2}
	wantErr(t, c.Adopt(ctx, other), ErrPolicy)
	if err := two[0].Adopt(ctx, other); err != nil {
		t.Fatal(err)
	}
	_, err := two[1].Charge(ctx, request("ann", item(1, eps(1e6))))
	wantErr(t, err, ErrPolicy)
	wantSpent(t, two[1], "ann", 0, 0)
}

// The server comes back, and the ledger with it; meanwhile nothing is charged.
func TestServerAway(t *testing.T) {
	s := pgtest.Start(t, "fsync=on", "full_page_writes=on")
	f := another(t, s.URLFor("postgres", s.Database(t)), Options{again: 10 * time.Millisecond})
	adopt(t, f, census())
	receipt := charge(t, f, request("ann", item(1, eps(1e6))))[0].Receipt
	s.Exec(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpproxy ledger'")
	if err := receipt.Spend(receipt.digest); err != nil {
		t.Fatal(err)
	}
	patiently(t, func() error { _, err := f.Save(ctx, receipt, mechanisms.Drawn{Noisy: noisy(4)}); return err })
	patiently(t, func() error { return f.Follow(ctx) })
	wantSpent(t, f, "ann", 1e6, 1e6)
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	_, err := f.Charge(ctx, request("ann", item(2, eps(1e6))))
	wantErr(t, err, ErrUnavailable)
	wantErr(t, f.Follow(ctx), ErrUnavailable)
}

// What a server must promise (T30).
func TestT30CarelessServers(t *testing.T) {
	s := pgServer(t)
	refused := 0
	for _, setting := range []string{"synchronous_commit = off"} {
		role := s.Role(t, "SUPERUSER")
		s.Exec(t, "postgres", "ALTER ROLE "+role+" SET "+setting)
		_, err := Open(ctx, s.URLFor(role, s.Database(t)), Options{Witness: filepath.Join(t.TempDir(), "w")})
		wantErr(t, err, ErrServer)
		refused++
	}
	careless := pgtest.Start(t) // fsync=off, full_page_writes=off
	for setting, u := range map[string]*pgtest.Server{"fsync": careless, "full_page_writes": pgtest.Start(t, "fsync=on")} {
		_, err := Open(ctx, u.URL(), Options{Witness: filepath.Join(t.TempDir(), "w")})
		if !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), setting) {
			t.Fatalf("%s: %v", setting, err)
		}
		refused++
	}
	threats.Reached(t, "T30", "%d of 3 careless PostgreSQL servers refused", refused)
}

// TestRestoreIntoPostgreSQL: a backup of a shared ledger, which is an SQLite file, brings back each release with what
// it holds, more of them than are sent at once; what was revoked stays so, and what is asked again is not charged
// again.
func TestRestoreIntoPostgreSQL(t *testing.T) {
	url, one := several(t, 1, Options{}, census())
	a := one[0]
	const n = 100
	ids := map[byte]int64{}
	for i := range byte(n) {
		ids[i] = buy(t, a, "ann", item(i, eps(10)), int64(i), -int64(i))
	}
	if err := a.Revoke(ctx, ids[50]); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "backup")
	if err := a.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	vanish(a)
	none := Options{Witness: filepath.Join(t.TempDir(), "none"), VouchForLedger: true}
	patiently(t, func() error { return Restore(ctx, copied, url, none) }) // the server may not have noticed yet that it is gone
	b := another(t, url, Options{VouchForLedger: true})
	adopt(t, b, census())
	verify(t, b)
	for i, id := range ids {
		if i == 50 {
			if _, err := b.Load(ctx, "ann", id); err == nil {
				t.Error("what was revoked is read")
			}
			continue
		}
		if got := loaded(t, b, "ann", id); got[0] != int64(i) || got[1] != -int64(i) {
			t.Fatalf("release %d holds %v", i, got)
		}
		if out := charge(t, b, request("ann", item(i, eps(10)))); out[0].Receipt != nil || out[0].ID != id {
			t.Fatalf("release %d is charged again: %+v", i, out[0])
		}
	}
}

// An older state of the database is refused by each proxy that has seen more, whether it is at work or starts (T30).
func TestT30OlderDatabaseIsRefused(t *testing.T) {
	tries, refused := threats.Length(4, 20), 0
	for n := range tries {
		url, two := several(t, 2, Options{again: time.Millisecond}, census())
		a, b := two[0], two[1]
		buy(t, a, "ann", item(1, eps(1e6)), 1)
		copied := filepath.Join(t.TempDir(), "backup")
		if err := a.Backup(ctx, copied); err != nil {
			t.Fatal(err)
		}
		buy(t, a, "ann", item(2, eps(1e6)), 2)
		follow(t, b)
		mark := b.opts.Witness
		b.Close()
		vanish(a)
		wantErr(t, Restore(ctx, copied, url, Options{Witness: mark}), ErrRollback)
		none := Options{Witness: filepath.Join(t.TempDir(), "none"), VouchForLedger: true}
		patiently(t, func() error { return Restore(ctx, copied, url, none) }) // the server may not have noticed yet that they are gone
		if n%2 == 1 {                                                         // the restored one goes on, past what was seen
			c := another(t, url, Options{VouchForLedger: true})
			for i := range byte(4) {
				buy(t, c, "ann", item(3+i, eps(100)), 3)
			}
			c.Close()
		}
		_, err := Open(ctx, url, Options{Witness: mark})
		wantErr(t, err, ErrRollback)
		refused++
		forfeited := another(t, url, Options{Witness: mark, AcceptRollback: true})
		adopt(t, forfeited, census())
		if own, _ := spent(t, forfeited, "ann"); own < 2e6 {
			t.Fatalf("%d spent after a rollback of 2e6", own)
		}
		forfeited.Close()
	}
	threats.Reached(t, "T30", "an older PostgreSQL ledger refused %d of %d times", refused, tries)
}

// TestLostLeaseIsTold: that a release was taken over is forgotten only once whoever asked for it knows. With a batch
// that fails she does not: what lives here would else be taken for new, and go on beside what another process has made
// of it.
func TestLostLeaseIsTold(t *testing.T) {
	f := &keeper{}
	f.sharing.leases = map[int64]int64{7: 3}
	if f.settleClaims(&batch{lost: []int64{7}}, false); f.sharing.leases[7] != 3 {
		t.Error("forgotten although nobody was told")
	}
	if f.settleClaims(&batch{lost: []int64{7}}, true); len(f.sharing.leases) > 0 {
		t.Error("not forgotten")
	}
}
