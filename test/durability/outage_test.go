package durability

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestReload: a good policy takes effect on SIGHUP and on change, in sessions that are open too; a broken one, one that
// the ledger refuses and one that needs a restart leave the old one in force, and the log says where and why.
func TestReload(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	w.Ask(`SELECT count(*) FROM people`)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change []string
		log    string
	}{
		"broken":              {[]string{"expected_rows: 1000", "expected_rows: lots"}, "policy.yaml:"},
		"forbidden by ledger": {[]string{"key: people.uid", "key: people.age"}, "unit cannot change"},
		"another ledger":      {[]string{`"sqlite:ledger.db"`, `"sqlite:other.db"`}, "needs a restart"},
		"spans":               {[]string{`listen: "127.0.0.1:0"`, `listen: "127.0.0.1:0", spans: true`}, "needs a restart"},
		"another deadline":    {[]string{`backend: {`, `backend: {deadline: 7s, `}, "needs a restart"},
		"not in the database": {[]string{"{name: hiv, type: boolean, domain: {values: [false, true]}}", "{name: hiv, type: boolean, domain: {values: [false, true]}}\n          - {name: nosuch, type: boolean}"}, "nosuch"},
	} {
		said := func() int {
			return strings.Count(p.LogText(), c.log) * strings.Count(p.LogText(), "the old one stays in force")
		}
		before := said()
		kit.Edit(t, path, c.change...)
		if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, name+": the log says so", func() bool { return said() > before })
		if a := w.Ask(`SELECT count(*) FROM people`); a.Err != nil || w.Spent() != "0.1" {
			t.Errorf("%s: the old policy is not in force: %v, spent %s", name, a.Err, w.Spent())
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kit.Edit(t, path, `"*": {epsilon: 10, delta: 0}`, `"*": {epsilon: 7, delta: 0}`)
	_ = p.Cmd.Process.Signal(syscall.SIGHUP)
	kit.Eventually(t, "a good policy takes effect", func() bool {
		return fmt.Sprint(w.Ask(`SELECT budget, spent FROM dp.budget`).Rows) == "[[7 0.1]]"
	})
	if a := w.Ask(`SELECT count(*) FROM people`); a.Err != nil || w.Spent() != "0.1" {
		t.Errorf("what she holds: %v, spent %s", a.Err, w.Spent())
	}
}

// TestDatabaseUnreachableAtStart: serve and check say so in one line without the database's text, and nothing is made.
func TestDatabaseUnreachableAtStart(t *testing.T) {
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	kit.Edit(t, path, `"duckdb:lab.duckdb"`, `"postgres://dpproxy:hunter2@127.0.0.1:1/prod?sslmode=disable&connect_timeout=2"`, "main.people", "public.people")
	for command, code := range map[string]int{"serve": 1, "check": 3} {
		out := kit.Run(t, "", command, "--policy", path)
		if out.Code != code || !strings.Contains(out.Stderr, "database: the private database does not answer") || strings.Contains(out.Stderr+out.Stdout, "hunter2") {
			t.Errorf("%s: exit %d, want %d: %s", command, out.Code, code, out.Stderr)
		}
	}
}

// TestFullDisk: when the ledger's disk is full nothing is charged or answered anew, what is held is answered still, and
// once there is space all goes on without a restart.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "1000", Cap: "1000"}, 0)
	kit.Edit(t, path, "sqlite:ledger.db", "sqlite:"+filepath.Join(disk, "ledger.db"))
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	first := kit.Count(t, w.Ask(`SELECT count(*) FROM people`))
	filler := fill(t, disk)
	answers, refused := 1, kit.Answer{}
	for q := 0; q < 2000 && refused.Err == nil; q++ {
		if refused = w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d AND income < %d`, q%100, 1000*(q/100+1))); refused.Err == nil {
			answers++
		}
	}
	if refused.Err == nil || refused.Err.Code != "DP003" || len(refused.Rows) != 0 {
		t.Fatalf("a full disk: %v", refused.Err)
	}
	if again := kit.Count(t, w.Ask(`SELECT count(*) FROM people`)); again != first {
		t.Errorf("what is held: %d, then %d", first, again)
	}
	if !p.Alive() {
		t.Fatal("the process ended")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	const fresh = `SELECT count(*) FROM people WHERE hiv`
	since := time.Now()
	kit.Eventually(t, "it works again after space returns", func() bool { return w.Ask(fresh).Err == nil })
	again := time.Since(since)
	a := w.Ask(`SELECT count(*) FROM dp.charges`)
	// One charge may be without an answer: its release found no space to be saved.
	n := kit.Count(t, a)
	if n < answers+1 || n > answers+2 {
		t.Errorf("%d answers, %d charges", answers+1, n)
	}
	threats.Reached(t, "T28", "%d answers, %d charges, 0 answers while the disk was full; serving again %s after there was room, by itself", answers+1, n, again.Round(10*time.Millisecond))
	p.Stop(syscall.SIGTERM)
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 0 {
		t.Errorf("verify: %s", out.Stderr)
	}
}

// fill takes all space of a file system and returns the file that does.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// TestOneProxyPerLedger: a second proxy on a ledger is refused, and the first goes on.
func TestOneProxyPerLedger(t *testing.T) {
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	p := kit.Serve(t, path)
	// Another directory and database, the same ledger.
	second := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	kit.Edit(t, second, "sqlite:ledger.db", "sqlite:"+filepath.Join(filepath.Dir(path), "ledger.db"))
	if out := kit.Run(t, "", "serve", "--policy", second); out.Code != 1 || !strings.Contains(out.Stderr, "open in another process") {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
	if a := p.Connect("alice", "lab").Ask(`SELECT count(*) FROM people`); a.Err != nil {
		t.Error(a.Err)
	}
}

// TestLedgerPutBack: a ledger that is gone, that is an older copy, or that was changed is refused.
func TestLedgerPutBack(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "10"}, 0)
	ledger := filepath.Join(filepath.Dir(path), "ledger.db")
	p := kit.Serve(t, path)
	p.Connect("alice", "lab").Ask(`SELECT count(*) FROM people`)
	p.Stop(syscall.SIGTERM)
	old, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	p.Restart()
	p.Connect("alice", "lab").Ask(`SELECT count(*) FROM people WHERE hiv`)
	p.Stop(syscall.SIGTERM)
	now, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), now...)
	at := strings.Index(string(now), "alice")
	if at < 0 {
		t.Fatal("the ledger names nobody")
	}
	flipped[at] ^= 1
	for name, content := range map[string][]byte{"deleted": nil, "an older copy": old, "changed": flipped} {
		if err := os.Remove(ledger); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if content != nil {
			if err := os.WriteFile(ledger, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out := kit.Run(t, "", "serve", "--policy", path); out.Code != 1 || !strings.Contains(out.Stderr, "ledger: ") {
			t.Errorf("%s: exit %d: %s", name, out.Code, out.Stderr)
		}
	}
	if err := os.WriteFile(ledger, now, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Restart()
	if s := p.Connect("alice", "lab").Spent(); s != "0.2" {
		t.Errorf("spent %s", s)
	}
}

// TestSandboxDies: when the process that runs outer queries is killed, the next ones run in a new one; nothing is
// charged for what is not answered, and the proxy lives.
func TestSandboxDies(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "20"}, 0))
	w := p.Connect("alice", "lab")
	const sql = `SELECT city, count(*), rank() OVER (ORDER BY count(*) DESC) FROM people GROUP BY city`
	if a := w.Ask(sql); a.Err != nil {
		t.Fatal(a.Err)
	}
	children := p.Children()
	if len(children) == 0 {
		if _, err := os.Stat("/proc/self/task"); err != nil {
			t.Skip("no /proc here")
		}
		t.Fatal("the proxy has no sandbox process")
	}
	for _, child := range children {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	kit.Eventually(t, "outer queries are answered again", func() bool { return w.Ask(sql).Err == nil })
	if w.Spent() != "0.1" || !p.Alive() {
		t.Errorf("spent %s", w.Spent())
	}
}

// TestAdminAddress: /healthz says that the proxy serves, /metrics counts charges, and neither holds a value of the data
// or an answer. Without the key there is no such listener.
func TestAdminAddress(t *testing.T) {
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10", Cap: "20"}, 0)
	admin := kit.FreeAddress(t)
	kit.Edit(t, path, `listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", admin: %q`, admin))
	w := kit.Serve(t, path).Connect("alice", "lab")
	answers := w.Ask(`SELECT city, count(*) FROM people WHERE city <> 'other' GROUP BY city`).Rows
	get := func(page string) string {
		response, err := http.Get("http://" + admin + page)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", page, response.Status, err)
		}
		return string(text)
	}
	get("/healthz")
	metrics := get("/metrics")
	if !strings.Contains(metrics, `dataset="lab"`) {
		t.Errorf("no charge is counted:\n%s", metrics)
	}
	for _, line := range strings.Split(metrics, "\n") {
		name, value, _ := strings.Cut(line, " ")
		for _, row := range answers {
			if strings.HasPrefix(name, "dpproxy_") && value == row[1] || strings.Contains(line, "Zzyzx") {
				t.Errorf("%s: as much as %v", line, row)
			}
		}
	}
}
