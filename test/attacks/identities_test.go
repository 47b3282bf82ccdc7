package attacks

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/test/kit"
)

const identities = 50

// manyUsers is a fixture with 50 further users.
func manyUsers(t *testing.T, b kit.Budgets) string {
	path := kit.DuckDBIn(t, t.TempDir(), b, 0)
	var users strings.Builder
	for n := range identities {
		fmt.Fprintf(&users, "  - {name: u%d, password: %q}\n", n, kit.Verifier(t, fmt.Sprintf("u%d", n)))
	}
	kit.Edit(t, path, "users:\n", "users:\n"+users.String())
	return path
}

// pooling has all users ask at once, each ten questions at 0.1 that nobody else asks, and no other salt, and counts the
// answers. Whatever is no answer is DP001, unless the process dies.
func pooling(p *kit.Program, salt int) (answers int64, found kit.Findings) {
	var all sync.WaitGroup
	var got atomic.Int64
	var mu sync.Mutex
	for n := range identities {
		name := fmt.Sprintf("u%d", n)
		w, err := p.Dial(name, "lab")
		if err != nil {
			break // it was killed
		}
		all.Go(func() {
			for q := range 10 {
				a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND age < %d AND income < %d`, n+1, 119-salt, 1000*(q+1)))
				switch {
				case err != nil:
					return
				case a.Err == nil:
					got.Add(1)
				case a.Err.Code != "DP001":
					mu.Lock()
					found.Add("%s: %v", name, a.Err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return got.Load(), found
}

// moved compares, in the ledger of a process that does not run, what the users have spent with what the cap has.
func moved(t *testing.T, path string) (users, pool int64, charges int) {
	t.Helper()
	ctx := context.Background()
	l, err := ledger.Open(ctx, "sqlite:"+filepath.Join(filepath.Dir(path), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	balances, err := l.Balances(ctx, "lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range balances {
		users += b.LifeSpent.Epsilon.Micro()
	}
	spent, _, err := l.Cap(ctx, "lab")
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Charges(ctx, "", "lab", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return users, spent.Epsilon.Micro(), len(list)
}

// TestT38ManyIdentities: 50 users with a budget of 1 each, under a cap of 5, ask 500 questions at 0.1: exactly 50 are
// answered. Killed again and again on the way, the ledger has moved a user's account and the cap together each time.
func TestT38ManyIdentities(t *testing.T) {
	path := manyUsers(t, kit.Budgets{User: "1", Cap: "5"})
	p := kit.Serve(t, path)
	answers, found := pooling(p, 0)
	found.None(t)
	p.Stop(syscall.SIGTERM)
	users, pool, charges := moved(t, path)
	if answers != 50 || charges != 50 || users != 5_000_000 || pool != 5_000_000 {
		t.Errorf("%d answers, %d charges, users have spent %d, the cap %d", answers, charges, users, pool)
	}
	path = manyUsers(t, kit.Budgets{User: "500", Cap: "2500"}) // which no run of it spends
	p = kit.Serve(t, path)
	kills, apart, seen := threats.Length(4, 40), 0, int64(0)
	for k := range kills {
		process := p.Cmd.Process
		time.AfterFunc(time.Duration(400+k*37%400)*time.Millisecond, func() { _ = process.Signal(syscall.SIGKILL) })
		more, found := pooling(p, k)
		seen += more
		found.None(t)
		p.Stop(syscall.SIGKILL)
		users, pool, charges := moved(t, path)
		if users != pool || int64(charges)*100_000 != pool || seen > int64(charges) {
			apart++
			t.Errorf("kill %d: %d answers, %d charges, users have spent %d, the cap %d", k, seen, charges, users, pool)
		}
		p.Restart()
	}
	threats.Reached(t, "T38", "%d answers to %d users under a cap of 50; %d of %d kills left one account moved without the other", answers, identities, apart, kills)
}
