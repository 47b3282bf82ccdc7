package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// pair is a primary with a standby that follows it, and the URL of a ledger that names both.
func pair(t *testing.T) (primary, standby *pgtest.Server, url string) {
	primary = pgtest.Start(t, "fsync=on", "full_page_writes=on")
	standby = primary.Standby(t, "fsync=on", "full_page_writes=on")
	return primary, standby, fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		primary.Port, standby.Port)
}

// sent waits until the standby has on its disk what the primary has.
func sent(t *testing.T, primary *pgtest.Server) {
	t.Helper()
	primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE flush_lsn >= pg_current_wal_flush_lsn())")
}

// settled is how a call ends once the ledger has found out what the server that answers now holds.
func settled(call func() error) (err error) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = call(); !errors.Is(err, ErrUnavailable) {
			return err
		}
	}
	return err
}

// TestT30PromotedStandby: the primary is lost, and its standby takes over. One that was sent everything, and had not
// even replayed it, is gone on with; one that lacks rows is refused by each proxy that has seen them, at work or
// starting, before it acknowledges or answers anything, also when another proxy has led it past them.
func TestT30PromotedStandby(t *testing.T) {
	tries, refused, gone := threats.Length(2, 10), 0, 0
	for n := range tries {
		t.Run(fmt.Sprint("lacking ", n), func(t *testing.T) { lackingStandby(t, n%2 == 1) })
		if !t.Failed() {
			refused++
		}
		t.Run(fmt.Sprint("whole ", n), wholeStandby)
		if !t.Failed() {
			gone++
		}
	}
	threats.Reached(t, "T30", "a promoted standby without the last rows refused %d of %d times, by proxies at work and starting; one with all of them gone on with %d of %d times", refused, tries, gone, tries)
}

func lackingStandby(t *testing.T, led bool) {
	primary, standby, url := pair(t)
	f := another(t, url, Options{again: 10 * time.Millisecond})
	adopt(t, f, census())
	buy(t, f, "ann", item(1, eps(1e6)), 1)
	sent(t, primary)
	standby.Detach(t)
	buy(t, f, "ann", item(2, eps(1e6)), 2)
	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	_, err := f.Charge(ctx, request("ann", item(3, eps(1e6))))
	wantErr(t, err, ErrUnavailable)
	standby.Promote(t)
	if led {
		other := another(t, url, Options{})
		adopt(t, other, census())
		for i := range byte(4) {
			buy(t, other, "bob", item(10+i, eps(100)), 3)
		}
		other.Close()
	}
	charged := settled(func() error { _, err := f.Charge(ctx, request("ann", item(3, eps(1e6)))); return err })
	wantErr(t, charged, ErrRollback)
	wantErr(t, settled(func() error { return f.Follow(ctx) }), ErrRollback) // which comes before each answer
	wantSpent(t, f, "ann", 2e6, 2e6)
	mark := f.opts.Witness
	f.Close()
	_, err = Open(ctx, url, Options{Witness: mark})
	wantErr(t, err, ErrRollback)
	_, err = Open(ctx, standby.URL(), Options{Witness: mark, VouchForLedger: true})
	wantErr(t, err, ErrRollback)
	forfeited := another(t, url, Options{Witness: mark, AcceptRollback: true})
	adopt(t, forfeited, census())
	if own, _ := spent(t, forfeited, "ann"); own < 2e6 {
		t.Errorf("%d spent after 2e6 were", own)
	}
}

func wholeStandby(t *testing.T) {
	primary, standby, url := pair(t)
	f := another(t, url, Options{again: 10 * time.Millisecond})
	adopt(t, f, census())
	standby.Until(t, "SELECT to_regclass('dpproxy_ledger.chain') IS NOT NULL")
	standby.Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
	id := buy(t, f, "ann", item(1, eps(1e6)), 7)
	sent(t, primary)
	standby.Until(t, "SELECT count(*) < 4 FROM dpproxy_ledger.chain") // it lags: the charge and its save are not there yet
	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	standby.Promote(t)
	if err := settled(func() error { _, err := f.Charge(ctx, request("ann", item(2, eps(1e6)))); return err }); err != nil {
		t.Fatal(err)
	}
	wantSpent(t, f, "ann", 2e6, 2e6)
	follow(t, f)
	r, err := f.Load(ctx, "ann", id)
	if err != nil || r.Noisy.Value().Observations[0] != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	verify(t, f)
	mark := f.opts.Witness
	f.Close()
	again := another(t, standby.URL(), Options{Witness: mark})
	wantSpent(t, again, "ann", 2e6, 2e6)
}

// TestT30WaitForTheStandby: where the server has its commits wait for a standby, none is acknowledged without: not for
// a role with another synchronous_commit, not when an administrator cancels the wait or ends the session in it, with
// which the commit is done all the same. So a promotion loses nothing that was acknowledged.
func TestT30WaitForTheStandby(t *testing.T) {
	acknowledged := 0
	ways := []string{"pg_cancel_backend", "pg_terminate_backend"}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			primary, standby, url := pair(t)
			primary.Exec(t, "postgres", "ALTER DATABASE postgres SET synchronous_commit = 'local'", "ALTER SYSTEM SET synchronous_standby_names = 'standby'",
				"SELECT pg_reload_conf()")
			primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
			f := open(t, url, Options{Witness: filepath.Join(t.TempDir(), "witness"), again: 10 * time.Millisecond})
			adopt(t, f, census())
			standby.Detach(t)
			told := make(chan error, 1)
			go func() {
				_, err := f.Charge(ctx, request("ann", item(1, eps(1e6))))
				told <- err
			}()
			const waits = "FROM pg_stat_activity WHERE application_name = 'dpproxy ledger' AND wait_event = 'SyncRep'"
			primary.Until(t, "SELECT count(*) = 1 "+waits)
			primary.Exec(t, "postgres", "SELECT "+way+"(pid) "+waits)
			primary.Until(t, "SELECT EXISTS (SELECT FROM dpproxy_ledger.chain WHERE kind = 6)") // done, and not on the standby
			select {
			case err := <-told:
				t.Fatalf("acknowledged (%v), and the standby has not heard of it", err)
			case <-time.After(300 * time.Millisecond):
			}
			standby.Attach(t, primary)
			if err := <-told; err != nil {
				t.Fatal(err)
			}
			if err := primary.Crash(); err != nil {
				t.Fatal(err)
			}
			standby.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = ''")
			standby.Promote(t)
			if err := settled(func() error { return f.Follow(ctx) }); err != nil {
				t.Fatal(err)
			}
			wantSpent(t, f, "ann", 1e6, 1e6)
			acknowledged++
		})
	}
	threats.Reached(t, "T30", "a wait for the standby cut off in %d of %d ways: no acknowledgement before it had the charge", acknowledged, len(ways))
}

// TestT30FollowersWaitForTheStandby: rows that a batch has others see early no proxy shows before the standby has them.
func TestT30FollowersWaitForTheStandby(t *testing.T) {
	primary, standby, url := pair(t)
	primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
	primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	a, b := another(t, url, Options{}), another(t, url, Options{})
	adopt(t, a, census())
	adopt(t, b, census())
	charge(t, a, request("ann", numbered(1, 1)))
	charge(t, b, request("ann", numbered(2, 1))) // of which the other one learns
	standby.Detach(t)
	told := make(chan error, 2)
	go func() {
		_, err := a.Charge(ctx, request("ann", numbered(3, 1)))
		told <- err
	}()
	primary.Until(t, "SELECT count(*) = 3 FROM dpproxy_ledger.chain WHERE kind = 6")
	go func() { told <- b.Follow(ctx) }()
	select {
	case err := <-told:
		t.Fatalf("told (%v), and the standby has not heard of it", err)
	case <-time.After(300 * time.Millisecond):
	}
	wantSpent(t, b, "ann", 2, 2)
	standby.Attach(t, primary)
	for range 2 {
		if err := <-told; err != nil {
			t.Fatal(err)
		}
	}
	wantSpent(t, a, "ann", 3, 3)
	wantSpent(t, b, "ann", 3, 3)
}

// waiting are two proxies of which the first has had another charge committed, at 3, for which a standby that hears
// nothing is waited for. Both have been shown 2.
func waiting(t *testing.T) (primary, standby *pgtest.Server, a, b *keeper, told chan error) {
	primary, standby, url := pair(t)
	primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
	primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	a, b = another(t, url, Options{again: 10 * time.Millisecond}), another(t, url, Options{again: 10 * time.Millisecond})
	adopt(t, a, census())
	adopt(t, b, census())
	charge(t, a, request("ann", numbered(1, 1)))
	charge(t, b, request("ann", numbered(2, 1))) // of which the other one learns
	follow(t, a)
	standby.Detach(t)
	told = make(chan error, 1)
	go func() {
		_, err := a.Charge(ctx, request("ann", numbered(3, 1)))
		told <- err
	}()
	primary.Until(t, "SELECT count(*) = 3 FROM dpproxy_ledger.chain WHERE kind = 6")
	return primary, standby, a, b, told
}

// TestT31EarlyCommitIsConfirmed: a connection that is lost between a commit that others see and the wait for its
// durability, and a wait that is cut off, leave a charge, once, and its proxy finds it.
func TestT31EarlyCommitIsConfirmed(t *testing.T) {
	for _, way := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		t.Run(way, func(t *testing.T) {
			primary, standby, a, b, told := waiting(t)
			primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
			primary.Exec(t, "postgres", "SELECT "+way+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			select {
			case err := <-told:
				t.Fatalf("told (%v), and the standby has not heard of it", err)
			case <-time.After(300 * time.Millisecond):
			}
			wantSpent(t, b, "ann", 2, 2)
			standby.Attach(t, primary)
			if err := <-told; err != nil {
				t.Error(err)
			}
			for _, f := range []*keeper{a, b} {
				recovers(t, f)
				wantSpent(t, f, "ann", 3, 3)
				verify(t, f)
			}
		})
	}
}

// TestT30EarlyCommitIsLostWithThePrimary: what the standby that takes over never heard of was answered to nobody, and
// nobody is refused for it.
func TestT30EarlyCommitIsLostWithThePrimary(t *testing.T) {
	primary, standby, a, b, told := waiting(t)
	other := make(chan error, 1)
	go func() {
		_, err := b.Charge(ctx, request("bob", numbered(4, 1))) // on top of it
		other <- err
	}()
	primary.Until(t, "SELECT count(*) = 4 FROM dpproxy_ledger.chain WHERE kind = 6")
	if err := primary.Crash(); err != nil {
		t.Fatal(err)
	}
	standby.Promote(t)
	wantErr(t, <-told, ErrUnavailable)
	wantErr(t, <-other, ErrUnavailable)
	for _, f := range []*keeper{a, b} {
		recovers(t, f)
		wantSpent(t, f, "ann", 2, 2)
	}
	charge(t, b, request("ann", numbered(3, 1)))
	follow(t, a)
	wantSpent(t, a, "ann", 3, 3)
	verify(t, a)
}
