package durability

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

// sharedHouse is a fixture whose ledger several proxies share: a database of the server that holds the rows too, under
// a role of its own. Each proxy has a copy of the same policy in a directory of its own.
type sharedHouse struct {
	server         *pgtest.Server
	policy         string // the first copy
	role, database string // of the ledger
	data           string // the database with the rows
}

func sharedFixture(t *testing.T, b kit.Budgets) sharedHouse {
	t.Helper()
	h := sharedHouse{server: pgtest.Start(t, "fsync=on", "full_page_writes=on")}
	h.policy, h.data = kit.Postgres(t, h.server, b, 0)
	h.role = h.server.Role(t, "")
	h.database = h.server.Database(t)
	h.server.Exec(t, "postgres", "GRANT CREATE ON DATABASE "+h.database+" TO "+h.role)
	t.Cleanup(func() { h.server.Exec(t, h.database, "DROP OWNED BY "+h.role) })
	kit.Edit(t, h.policy, "sqlite:ledger.db", h.server.URLFor(h.role, h.database))
	return h
}

// copied is another copy of the policy.
func (h sharedHouse) copied(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(h.policy)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dataRole is the role of a policy's backend.
func dataRole(t *testing.T, path string) string {
	t.Helper()
	p, err := policy.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(p.Backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.Username()
}

// raceOn has connections to several proxies ask distinct questions at once, and counts the answers.
func raceOn(proxies []*kit.Program, connections, each int) (answers int, found kit.Findings) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for c := range connections {
		w := proxies[c%len(proxies)].Connect("alice", "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			for q := range each {
				a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, c+1, 1000*(q+1)))
				mu.Lock()
				switch {
				case err != nil:
					found.Add("connection %d: %v", c, err)
				case a.Err == nil && len(a.Rows) == 1:
					answers++
				case a.Err == nil || a.Err.Code != "DP001":
					found.Add("neither an answer nor DP001: %v", a.Err)
				}
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	return answers, found
}

// TestSharedLedger: two proxies on one ledger, as operators and analysts see them.
func TestSharedLedger(t *testing.T) {
	kit.Beside(t)
	h := sharedFixture(t, kit.Budgets{User: "10", Cap: "100"})
	one := kit.Serve(t, h.policy)
	two := kit.Serve(t, h.copied(t))
	a, b := one.Connect("alice", "lab"), two.Connect("alice", "lab")
	const question = "SELECT count(*) FROM people WHERE age > 40"
	spent := func(w *kit.Wire) string {
		t.Helper()
		return w.Ask("SELECT spent FROM dp.budget WHERE user_name = 'alice'").Rows[0][0]
	}
	first := a.Ask(question).Rows[0][0]
	if got := spent(b); got != "0.1" {
		t.Errorf("the other proxy says that %s is spent", got)
	}
	if got := b.Ask(question).Rows[0][0]; got != first || spent(b) != "0.1" {
		t.Errorf("what one proxy sold the other answers by %s, not %s; %s spent", got, first, spent(b))
	}

	t.Run("both at once", func(t *testing.T) {
		a, b := one.Connect("bob", "lab"), two.Connect("bob", "lab")
		for n := range 10 {
			sql := fmt.Sprintf("SELECT count(*) FROM people WHERE income < %d", 1000*(n+2))
			answers := make(chan string, 2)
			for _, w := range []*kit.Wire{a, b} {
				go func() { answers <- w.Ask(sql).Rows[0][0] }()
			}
			if x, y := <-answers, <-answers; x != y {
				t.Errorf("two answers to one question: %s and %s", x, y)
			}
		}
		if got := a.Ask("SELECT spent FROM dp.budget WHERE user_name = 'bob'").Rows[0][0]; got != "1" {
			t.Errorf("ten questions of two sessions cost %s", got)
		}
	})

	t.Run("revoke", func(t *testing.T) {
		list := kit.Run(t, "", "ledger", "releases", "--policy", h.policy)
		_, line, _ := strings.Cut(list.Stdout, "\n")
		id := strings.Fields(line)[0]
		if r := kit.Run(t, "", "ledger", "revoke", "--policy", h.policy, id); r.Code != 0 || !strings.Contains(r.Stdout, "withdrawn") {
			t.Fatalf("%d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		for i, w := range []*kit.Wire{a, b} {
			if got := w.Ask("SELECT name FROM dp.releases WHERE kind = 'count' AND paid"); got.Err != nil || len(got.Rows) > 0 {
				t.Errorf("proxy %d still has %s, %v", i+1, got.Rows, got.Err)
			}
		}
		if b.Ask(question); spent(a) != "0.2" {
			t.Errorf("a revoked release is not bought again: %s spent", spent(a))
		}
	})

	t.Run("revoke what an answer is kept of", func(t *testing.T) {
		const kept = "SELECT count(*) FROM people WHERE age > 43"
		for range 3 {
			b.Ask(kept)
		}
		before := spent(b)
		for line := range strings.SplitSeq(kit.Run(t, "", "ledger", "releases", "--policy", h.policy).Stdout, "\n") {
			if f := strings.Fields(line); len(f) > 2 && f[2] == "alice" {
				if r := kit.Run(t, "", "ledger", "revoke", "--policy", h.policy, f[0]); r.Code != 0 {
					t.Fatalf("%d: %s%s", r.Code, r.Stdout, r.Stderr)
				}
			}
		}
		if b.Ask(kept); spent(b) == before { // nothing is asked between the two that would have read the ledger's end
			t.Errorf("an answer is given from memory whose release another process has revoked: %s spent", before)
		}
	})

	t.Run("commands", func(t *testing.T) {
		copied := filepath.Join(t.TempDir(), "backup")
		for _, args := range [][]string{{"ledger", "verify"}, {"ledger", "backup", copied}, {"budget"}, {"check"}} {
			if r := kit.Run(t, "", append(args, "--policy", h.policy)...); r.Code != 0 {
				t.Errorf("%v: %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
			}
		}
		if r := kit.Run(t, "", "ledger", "restore", "--policy", h.policy, copied); r.Code != 3 || !strings.Contains(r.Stderr, "open in another process") {
			t.Errorf("restored while proxies are at work: %d: %s", r.Code, r.Stderr)
		}
	})

	t.Run("another policy", func(t *testing.T) {
		path := h.copied(t)
		kit.Edit(t, path, "max_epsilon: 1", "max_epsilon: 2")
		third := &kit.Program{T: t, Policy: path, Args: []string{"serve", "--policy", path}}
		if err := third.TryStart(); err == nil || !strings.Contains(err.Error(), "the policy in force is another one") {
			third.Stop(syscall.SIGKILL)
			t.Errorf("a proxy with another policy: %v", err)
		}
		const alarm = "SELECT count(*) > 5000 FROM people"
		a.Ask("SET dp.alarms = 4")
		if got := a.Ask(alarm); got.Err != nil || !strings.Contains(strings.Join(got.Notes, " "), "yes answers are left") {
			t.Fatalf("%v, %v", got.Err, got.Notes)
		}
		kit.Edit(t, two.Policy, "max_epsilon: 1", "max_epsilon: 2") // which it loads
		await(t, "the policy is loaded", func() bool { return strings.Contains(two.LogText(), "policy reloaded") })
		if r, err := a.TryAsk("SELECT count(*) FROM people WHERE age > 41"); err != nil || r.Err == nil || r.Err.Code != "DP003" {
			t.Errorf("a charge under a policy that is no longer in force: %v, %v", r.Err, err)
		}
		if r, err := a.TryAsk(alarm); err != nil || r.Err == nil || r.Err.Code != "DP003" {
			t.Errorf("rows are read, for what was paid before, under a policy that is no longer in force: %v, %v", r.Err, err)
		}
		if got := b.Ask("SELECT count(*) FROM people WHERE age > 41"); got.Err != nil {
			t.Error(got.Err)
		}
	})

	t.Run("kill -9", func(t *testing.T) {
		one.Stop(syscall.SIGKILL)
		if r := b.Ask("SELECT count(*) FROM people WHERE age > 42"); r.Err != nil {
			t.Error(r.Err)
		}
	})
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestT39DataRoleAtTheLedger: a role under which the rows are read must not reach the ledger's tables.
func TestT39DataRoleAtTheLedger(t *testing.T) {
	kit.Beside(t)
	h := sharedFixture(t, kit.Budgets{User: "10", Cap: "100"})
	p := kit.Serve(t, h.policy)
	refused, tries := 0, 0
	for table, privileges := range map[string]string{"account": "SELECT", "chain": "INSERT", "release": "UPDATE", "heads": "DELETE"} {
		w := p.Connect("alice", "lab")
		if r, err := w.TryAsk("SELECT * FROM dpproxy_ledger." + table); err != nil || r.Err == nil {
			t.Errorf("an analyst asks for %s: %v", table, err)
		}
		data := dataRole(t, h.policy)
		h.server.Exec(t, h.database, "GRANT "+privileges+" ON dpproxy_ledger."+table+" TO "+data)
		path := h.copied(t)
		second := &kit.Program{T: t, Policy: path, Args: []string{"serve", "--policy", path}}
		if err := second.TryStart(); err == nil || !strings.Contains(err.Error(), "the server cannot hold a ledger") {
			second.Stop(syscall.SIGKILL)
			t.Errorf("%s on %s for the data role: %v", privileges, table, err)
		} else {
			refused++
		}
		tries++
		h.server.Exec(t, h.database, "REVOKE ALL ON dpproxy_ledger."+table+" FROM "+data)
	}
	if !t.Failed() {
		threats.Reached(t, "T39", "%d of %d starts with a privilege of the data role on a table refused; without one none is there", refused, tries)
	}
}
