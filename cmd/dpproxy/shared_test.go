package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
)

// sharedHouse is a fixture whose ledger several proxies share: a database of the server that holds the rows too, under a
// role of its own. Each proxy has a copy of the same policy in a directory of its own.
type sharedHouse struct {
	server         *pgtest.Server
	policy         string // the first copy
	role, database string // of the ledger
	data           string // the database with the rows
}

func sharedFixture(t *testing.T, b budgets) sharedHouse {
	t.Helper()
	h := sharedHouse{server: pgtest.Start(t, "fsync=on", "full_page_writes=on")}
	h.policy, h.data = pgFixture(t, h.server, b, 0)
	h.role = h.server.Role(t, "")
	h.database = h.server.Database(t)
	h.server.Exec(t, "postgres", "GRANT CREATE ON DATABASE "+h.database+" TO "+h.role)
	t.Cleanup(func() { h.server.Exec(t, h.database, "DROP OWNED BY "+h.role) })
	edit(t, h.policy, "sqlite:ledger.db", h.server.URLFor(h.role, h.database))
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
	p, err := readPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	return ledgerOptions(p, ledger.Options{}, nil).DataRoles[0]
}

// raceOn has connections to several proxies ask distinct questions at once, and counts the answers.
func raceOn(proxies []*program, connections, each int) (answers int, found findings) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for c := range connections {
		w := proxies[c%len(proxies)].connect("alice", "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			for q := range each {
				a, err := w.tryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, c+1, 1000*(q+1)))
				mu.Lock()
				switch {
				case err != nil:
					found.add("connection %d: %v", c, err)
				case a.err == nil && len(a.rows) == 1:
					answers++
				case a.err == nil || a.err.Code != "DP001":
					found.add("neither an answer nor DP001: %v", a.err)
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
	beside(t)
	h := sharedFixture(t, budgets{"10", "100"})
	one := serveProcess(t, h.policy)
	two := serveProcess(t, h.copied(t))
	a, b := one.connect("alice", "lab"), two.connect("alice", "lab")
	const question = "SELECT count(*) FROM people WHERE age > 40"
	spent := func(w *wire) string {
		t.Helper()
		return w.ask("SELECT spent FROM dp.budget WHERE user_name = 'alice'").rows[0][0]
	}
	first := a.ask(question).rows[0][0]
	if got := spent(b); got != "0.1" {
		t.Errorf("the other proxy says that %s is spent", got)
	}
	if got := b.ask(question).rows[0][0]; got != first || spent(b) != "0.1" {
		t.Errorf("what one proxy sold the other answers by %s, not %s; %s spent", got, first, spent(b))
	}

	t.Run("both at once", func(t *testing.T) {
		a, b := one.connect("bob", "lab"), two.connect("bob", "lab")
		for n := range 10 {
			sql := fmt.Sprintf("SELECT count(*) FROM people WHERE income < %d", 1000*(n+2))
			answers := make(chan string, 2)
			for _, w := range []*wire{a, b} {
				go func() { answers <- w.ask(sql).rows[0][0] }()
			}
			if x, y := <-answers, <-answers; x != y {
				t.Errorf("two answers to one question: %s and %s", x, y)
			}
		}
		if got := a.ask("SELECT spent FROM dp.budget WHERE user_name = 'bob'").rows[0][0]; got != "1" {
			t.Errorf("ten questions of two sessions cost %s", got)
		}
	})

	t.Run("revoke", func(t *testing.T) {
		list := dpproxy(t, "", "ledger", "releases", "--policy", h.policy)
		_, line, _ := strings.Cut(list.stdout, "\n")
		id := strings.Fields(line)[0]
		if r := dpproxy(t, "", "ledger", "revoke", "--policy", h.policy, id); r.code != 0 || !strings.Contains(r.stdout, "withdrawn") {
			t.Fatalf("%d: %s%s", r.code, r.stdout, r.stderr)
		}
		for i, w := range []*wire{a, b} {
			if got := w.ask("SELECT name FROM dp.releases WHERE kind = 'count' AND paid"); got.err != nil || len(got.rows) > 0 {
				t.Errorf("proxy %d still has %s, %v", i+1, got.rows, got.err)
			}
		}
		if b.ask(question); spent(a) != "0.2" {
			t.Errorf("a revoked release is not bought again: %s spent", spent(a))
		}
	})

	t.Run("commands", func(t *testing.T) {
		copied := filepath.Join(t.TempDir(), "backup")
		for _, args := range [][]string{{"ledger", "verify"}, {"ledger", "backup", copied}, {"budget"}, {"check"}} {
			if r := dpproxy(t, "", append(args, "--policy", h.policy)...); r.code != 0 {
				t.Errorf("%v: %d: %s%s", args, r.code, r.stdout, r.stderr)
			}
		}
		if r := dpproxy(t, "", "ledger", "restore", "--policy", h.policy, copied); r.code != 3 || !strings.Contains(r.stderr, "open in another process") {
			t.Errorf("restored while proxies are at work: %d: %s", r.code, r.stderr)
		}
	})

	t.Run("another policy", func(t *testing.T) {
		path := h.copied(t)
		edit(t, path, "max_epsilon: 1", "max_epsilon: 2")
		third := &program{t: t, as: "1", policy: path, args: []string{"serve", "--policy", path}}
		if err := third.tryStart(); err == nil || !strings.Contains(err.Error(), "the policy in force is another one") {
			third.stop(syscall.SIGKILL)
			t.Errorf("a proxy with another policy: %v", err)
		}
		const alarm = "SELECT count(*) > 5000 FROM people"
		a.ask("SET dp.alarms = 4")
		if got := a.ask(alarm); got.err != nil || !strings.Contains(strings.Join(got.notes, " "), "yes answers are left") {
			t.Fatalf("%v, %v", got.err, got.notes)
		}
		edit(t, two.policy, "max_epsilon: 1", "max_epsilon: 2") // which it loads
		await(t, "the policy is loaded", func() bool { return strings.Contains(two.logText(), "policy reloaded") })
		if r, err := a.tryAsk("SELECT count(*) FROM people WHERE age > 41"); err != nil || r.err == nil || r.err.Code != "DP003" {
			t.Errorf("a charge under a policy that is no longer in force: %v, %v", r.err, err)
		}
		if r, err := a.tryAsk(alarm); err != nil || r.err == nil || r.err.Code != "DP003" {
			t.Errorf("rows are read, for what was paid before, under a policy that is no longer in force: %v, %v", r.err, err)
		}
		if got := b.ask("SELECT count(*) FROM people WHERE age > 41"); got.err != nil {
			t.Error(got.err)
		}
	})

	t.Run("kill -9", func(t *testing.T) {
		one.stop(syscall.SIGKILL)
		if r := b.ask("SELECT count(*) FROM people WHERE age > 42"); r.err != nil {
			t.Error(r.err)
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
	beside(t)
	h := sharedFixture(t, budgets{"10", "100"})
	p := serveProcess(t, h.policy)
	refused, tries := 0, 0
	for table, privileges := range map[string]string{"account": "SELECT", "chain": "INSERT", "release": "UPDATE", "head": "DELETE"} {
		w := p.connect("alice", "lab")
		if r, err := w.tryAsk("SELECT * FROM dpproxy_ledger." + table); err != nil || r.err == nil {
			t.Errorf("an analyst asks for %s: %v", table, err)
		}
		data := dataRole(t, h.policy)
		h.server.Exec(t, h.database, "GRANT "+privileges+" ON dpproxy_ledger."+table+" TO "+data)
		path := h.copied(t)
		second := &program{t: t, as: "1", policy: path, args: []string{"serve", "--policy", path}}
		if err := second.tryStart(); err == nil || !strings.Contains(err.Error(), "the server cannot hold a ledger") {
			second.stop(syscall.SIGKILL)
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
