package durability

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT30PromotedUnderAProxy: the ledger's server is lost under a proxy at work, and its connection moves over to the
// standby that was promoted. Where that lacks the last charge, nothing is answered any more, bought before or not, nor
// after a restart; where it has all, the same answers are given again and the budget is as it was.
func TestT30PromotedUnderAProxy(t *testing.T) {
	const first, second, third = "SELECT count(*) FROM people WHERE age > 40", "SELECT count(*) FROM people WHERE age > 50", "SELECT count(*) FROM people WHERE age > 60"
	refused := 0
	for _, lacks := range []bool{true, false} {
		t.Run(fmt.Sprint("lacks ", lacks), func(t *testing.T) {
			primary := pgtest.Start(t, "fsync=on", "full_page_writes=on")
			standby := primary.Standby(t, "fsync=on", "full_page_writes=on")
			policy := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0)
			kit.Edit(t, policy, "sqlite:ledger.db", fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
				primary.Port, standby.Port))
			p := kit.Serve(t, policy)
			w := p.Connect("alice", "lab")
			sent := func() {
				primary.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE flush_lsn >= pg_current_wal_flush_lsn())")
			}
			one := w.Ask(first).Rows[0][0]
			if sent(); lacks {
				standby.Detach(t)
			}
			w.Ask(second)
			if !lacks {
				sent()
			}
			if err := primary.Crash(); err != nil {
				t.Fatal(err)
			}
			if a, err := w.TryAsk(third); err != nil || a.Err == nil || a.Err.Code != "DP003" {
				t.Fatalf("no server holds the ledger: %+v, %v", a, err)
			}
			standby.Promote(t)
			if lacks {
				for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					for _, sql := range []string{first, second, third, "SELECT spent FROM dp.budget WHERE user_name = 'alice'"} {
						if a, err := w.TryAsk(sql); err != nil || a.Err == nil || a.Err.Code != "DP003" {
							t.Fatalf("the standby lacks a charge, and %s: %+v, %v", sql, a, err)
						}
						refused++
					}
				}
				p.Stop(syscall.SIGTERM)
				if err := p.TryStart(); err == nil {
					t.Error("starts on a ledger that lacks what it has seen")
				}
				return
			}
			var a kit.Answer
			var err error
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if a, err = w.TryAsk(third); err != nil || a.Err == nil || a.Err.Code != "DP003" {
					break
				}
			}
			if err != nil || a.Err != nil {
				t.Fatalf("%v, %v", a.Err, err)
			}
			if got := w.Ask(first).Rows[0][0]; got != one {
				t.Errorf("the answer was %s and is %s", one, got)
			}
			if got := w.Ask("SELECT spent FROM dp.budget WHERE user_name = 'alice'").Rows[0][0]; got != "0.3" {
				t.Errorf("%s is spent", got)
			}
		})
	}
	if !t.Failed() {
		threats.Reached(t, "T30", "%d of %d statements refused by a proxy whose ledger moved over to a standby without its last charge", refused, refused)
	}
}
