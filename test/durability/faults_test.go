package durability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// fault is something that dpproxy needs and that goes away.
type fault struct {
	what  string // goes away
	part  string // of /readyz and dpproxy_ready
	aside bool   // /readyz tells of it and stays 200
	ask   string // a new question; its digits are made others
	told  string // what that gets meanwhile: an SQLSTATE; empty means its answer
	held  string // what is held gets meanwhile, in the same way
	login string // what a log-in as carol gets meanwhile, if it is not in; empty means she has none

	lay func(t *testing.T) faulty
}

// plain reports whether what is above no count is answered meanwhile.
func (f fault) plain() bool { return f.ask == rankedCity && f.told != "" }

// faulty is one with its dpproxy's policy laid.
type faulty struct {
	policy     string
	away, back func()
	settle     func(w *kit.Wire) // what there is to be asked until it shows; nil means nothing
}

const (
	plainCount = `SELECT count(*) FROM people WHERE age > 1%d`
	rankedCity = `SELECT city, count(*), rank() OVER (ORDER BY count(*) DESC) FROM people WHERE age > 1%d GROUP BY city`
)

// faults are all: the table of docs/operating.md is made of them.
var faults = []fault{
	{"the private database", "database", false, plainCount, "DP004", "", "", layDatabase},
	{"a private table that was altered", "database", true, plainCount, "DP004", "", "", layDrift},
	{"the ledger's disk, full", "ledger", false, plainCount, "DP003", "", "", layDisk},
	{"the ledger's PostgreSQL server", "ledger", false, plainCount, "DP003", "DP003", "", layLedger},
	{"the sandbox's PostgreSQL server", "sandbox", false, rankedCity, "XX000", "", "", layTwin},
	{"the private database, when it takes connections and says nothing", "database", false, plainCount, "DP004", "", "", layFrozenDatabase},
	{"the ledger's PostgreSQL server, in the same way", "ledger", false, plainCount, "DP003", "DP003", "", layFrozenLedger},
	{"the ledger's disk, frozen", "ledger", false, plainCount, "DP003", "", "", layFrozenDisk},
	{"the policy file, a pipe in its place", "policy file", true, plainCount, "", "", "", layPipe},
	{"the directory of snapshots", "next snapshot", true, plainCount, "", "", "", laySnapshots},
	{"the directory that judges passwords", "directory", true, plainCount, "", "", "57P03", layDirectory},
	{"the same, when it takes connections and says nothing", "directory", true, plainCount, "", "", "57P03", layHangingDirectory},
	{"the provider of tokens", "provider", true, plainCount, "", "", "", layProvider},
}

// noticedWithin is how long an operator may wait until the pages say so.
const noticedWithin = 5 * time.Second

// TestFaults: each thing that dpproxy needs goes away and comes back. /readyz and the metrics say which one within five
// seconds, and, without a restart, that it is back; /livez says all the time that the process serves. What was paid for
// is answered meanwhile, a new question gets what the table says, and after it there are new answers.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.what, func(t *testing.T) {
			kit.Beside(t) // each has servers and a proxy of its own, and mostly waits
			laid, admin := f.lay(t), kit.FreeAddress(t)
			kit.Edit(t, laid.policy, `listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", admin: %q`, admin))
			p := kit.Serve(t, laid.policy)
			w := p.Connect("alice", "lab")
			const bought = `SELECT count(*) FROM people WHERE hiv`
			before := kit.Count(t, w.Ask(bought))
			charges := w.Charges()
			pages{t, admin}.says(f, true)
			laid.away()
			over := make(chan struct{})
			go func() {
				defer close(over)
				if laid.settle != nil {
					laid.settle(p.Connect("bob", "lab"))
				}
			}()
			noticed := pages{t, admin}.says(f, false)
			if again := w.Ask(bought); state(again) != f.held || again.Err == nil && kit.Count(t, again) != before {
				t.Errorf("what is held: %d, then %v, %v", before, again.Rows, again.Err)
			}
			asked := 1 // and answered, with what is asked at last
			if got := state(w.Ask(fmt.Sprintf(f.ask, 1))); got != f.told {
				t.Errorf("a new question: %q, must be %q", got, f.told)
			} else if got == "" {
				asked++
			}
			if f.plain() {
				if a := w.Ask(fmt.Sprintf(plainCount, 3)); a.Err != nil {
					t.Errorf("a plain count: %v", a.Err)
				}
				asked++
			}
			if got := entering(t, p, "carol"); f.login != "" && got != f.login {
				t.Errorf("a log-in: %q, must be %q", got, f.login)
			}
			laid.back()
			back := pages{t, admin}.says(f, true)
			<-over
			kit.Eventually(t, "new answers", func() bool { return w.Ask(fmt.Sprintf(f.ask, 2)).Err == nil })
			if got := entering(t, p, "carol"); f.login != "" && got != "" {
				t.Errorf("a log-in afterwards: %q", got)
			}
			if now := w.Charges(); now != charges+asked {
				t.Errorf("%d charges for %d answers", now-charges, asked)
			}
			if !p.Alive() {
				t.Error("the process ended")
			}
			t.Logf("noticed after %s, back after %s", noticed.Round(10*time.Millisecond), back.Round(10*time.Millisecond))
		})
	}
}

// TestFaultsDocument: docs/operating.md has the faults that TestFaults holds.
func TestFaultsDocument(t *testing.T) {
	var table strings.Builder
	table.WriteString("| away | `/readyz` | `dpproxy_ready` | a new question | what is paid for | log-ins |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, f := range faults {
		ready, told, held, logins := "503", "answered", "answered", "as ever"
		if f.aside {
			ready = "200"
		}
		if f.told != "" {
			told = f.told + ", nothing charged"
		}
		if f.held != "" {
			held = f.held + ": proxies that share a ledger follow it with each statement"
		}
		if f.login != "" {
			logins = f.login + " to whom it judges"
		}
		if f.plain() {
			told += "; a plain count is answered"
		}
		fmt.Fprintf(&table, "| %s | %s, `%s: …` | `{part=%q} 0` | %s | %s | %s |\n", f.what, ready, f.part, f.part, told, held, logins)
	}
	const path, begin, end = "../../docs/operating.md", "<!-- faults: written by `go test ./test/durability -run FaultsDocument -update` -->\n", "<!-- end of faults -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, whole := strings.Cut(rest, end)
	if !ok || !whole {
		t.Fatalf("%s has no place for the faults", path)
	}
	if now := head + begin + table.String() + end + tail; now != string(text) {
		if !*kit.Update {
			t.Fatalf("%s has another table of faults: run it with -update", path)
		}
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pages are the operator's.
type pages struct {
	t     *testing.T
	admin string
}

func (p pages) get(page string) (int, string) {
	p.t.Helper()
	response, err := http.Get("http://" + p.admin + page)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body) // what was cut short is no match
	return response.StatusCode, string(text)
}

// says waits until both pages tell of a part, and returns how long that took.
func (p pages) says(f fault, ready bool) time.Duration {
	p.t.Helper()
	value, limit := "0", noticedWithin
	if ready {
		value, limit = "1", 2*noticedWithin
	}
	since := time.Now()
	for {
		code, text := p.get("/readyz")
		_, metrics := p.get("/metrics")
		told := ready && code == 200 && text == "ok\n"
		if !ready {
			said := strings.HasPrefix(text, f.part+": ") && code == 503
			if f.aside {
				said = strings.HasPrefix(text, "ok\n"+f.part+": ") && code == 200
			}
			told = said && strings.Count(strings.TrimPrefix(text, "ok\n"), "\n") == 1 // of this part alone
		}
		took := time.Since(since)
		if told && strings.Contains(metrics, fmt.Sprintf("dpproxy_ready{part=%q} %s\n", f.part, value)) {
			if code, _ := p.get("/livez"); code != 200 {
				p.t.Errorf("%s away: /livez says %d", f.part, code)
			}
			return took
		}
		if took > limit {
			p.t.Errorf("after %s /readyz says %d %q", took, code, text)
			return took
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// state is the SQLSTATE of an answer; empty means it is one.
func state(a kit.Answer) string {
	if a.Err != nil {
		return a.Err.Code
	}
	return ""
}

// entering logs a user in, and returns the SQLSTATE that she is shown; empty means she is in.
func entering(t *testing.T, p *kit.Program, user string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.URL(user, "lab"))
	var told *pgconn.PgError
	switch {
	case err == nil:
		_ = conn.Close(ctx) // the server does not care
		return ""
	case errors.As(err, &told):
		return told.Code
	}
	return err.Error()
}

var plenty = kit.Budgets{User: "1000", Cap: "1000"}

// connections lets a database of a server have some, or none.
func connections(t *testing.T, server *pgtest.Server, database string) (away, back func()) {
	return func() {
			server.Exec(t, "postgres", "ALTER DATABASE "+database+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+database+"'")
		}, func() {
			server.Exec(t, "postgres", "ALTER DATABASE "+database+" ALLOW_CONNECTIONS true")
		}
}

func layDrift(t *testing.T) faulty {
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, plenty, 0)
	return faulty{policy: path, away: func() { server.Exec(t, database, `ALTER TABLE people ENABLE ROW LEVEL SECURITY`) },
		back: func() { server.Exec(t, database, `ALTER TABLE people DISABLE ROW LEVEL SECURITY`) }}
}

func layDatabase(t *testing.T) faulty {
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, plenty, 0)
	away, back := connections(t, server, database)
	return faulty{path, away, back, nil}
}

func layLedger(t *testing.T) faulty {
	path, server, ledger := sharedLedger(t)
	away, back := connections(t, server, ledger)
	return faulty{path, away, back, nil}
}

// sharedLedger writes a policy whose ledger lies in a database of a server.
func sharedLedger(t *testing.T) (path string, server *pgtest.Server, ledger string) {
	server = pgtest.Start(t, "fsync=on", "full_page_writes=on")
	path = kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	role, ledger := server.Role(t, ""), server.Database(t)
	server.Exec(t, "postgres", "GRANT CREATE ON DATABASE "+ledger+" TO "+role)
	kit.Edit(t, path, "sqlite:ledger.db", server.URLFor(role, ledger))
	return path, server, ledger
}

func layTwin(t *testing.T) faulty {
	server := pgtest.Start(t)
	path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	server.Exec(t, "postgres", "CREATE ROLE faults_twin LOGIN CREATEDB CREATEROLE")
	kit.Edit(t, path, "\nledger:", "\nsandbox: {url: \""+server.URLFor("faults_twin", "faults_twin")+"\"}\nledger:")
	away, back := connections(t, server, "faults_twin")
	return faulty{path, away, back, nil}
}

// layDisk has the ledger on a small disk. It is full when nothing more is saved: bob asks until that shows.
func layDisk(t *testing.T) faulty {
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	kit.Edit(t, path, "sqlite:ledger.db", "sqlite:"+filepath.Join(disk, "ledger.db"))
	var filler string
	var enough atomic.Bool
	return faulty{path, func() { filler = fill(t, disk) }, func() {
		enough.Store(true)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	}, func(w *kit.Wire) { // a question that was charged waits until its answer is saved
		for q := 0; q < 2000 && !enough.Load() && w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age > %d AND income < %d`, q%100, 1000*(q/100+1))).Err == nil; q++ {
		}
	}}
}

func laySnapshots(t *testing.T) faulty {
	path := kit.DuckDBIn(t, t.TempDir(), plenty, 0)
	kit.Edit(t, path, "backend: {", "backend: {snapshot: {dir: snapshots, every: 1d}, ")
	dir := filepath.Join(filepath.Dir(path), "snapshots")
	move := func(from, to string) func() {
		return func() {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	return faulty{path, move(dir, dir+".away"), move(dir+".away", dir), nil}
}

func layDirectory(t *testing.T) faulty        { return laidDirectory(t, false) }
func layHangingDirectory(t *testing.T) faulty { return laidDirectory(t, true) }

func laidDirectory(t *testing.T, hangs bool) faulty {
	path, d := kit.DuckDBIn(t, t.TempDir(), plenty, 0), &directory{t: t, address: kit.FreeAddress(t)}
	d.listen()
	t.Cleanup(d.close)
	kit.Edit(t, path, "users:\n", "users:\n  - {name: carol, login: ldap, identity: c.jones}\n",
		`listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", login: {ldap: {url: "ldap://%s", bind: "uid={user},dc=example"}}`, d.address))
	if hangs {
		return faulty{path, func() { d.silent.Store(true) }, func() { d.silent.Store(false) }, nil}
	}
	return faulty{path, d.close, d.listen, nil}
}

// directory says yes to whatever it is asked, in LDAP's words.
type directory struct {
	t       *testing.T
	address string
	silent  atomic.Bool

	mu    sync.Mutex
	open  net.Listener
	conns []net.Conn
}

func (d *directory) listen() {
	l, err := net.Listen("tcp", d.address)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.mu.Lock()
	d.open = l
	d.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns = append(d.conns, conn)
			d.mu.Unlock()
			go d.serve(conn)
		}
	}()
}

// serve answers messages such as 30 0c 02 01 01 60 …: number 1, a bind.
func (d *directory) serve(conn net.Conn) {
	message := make([]byte, 4096)
	for {
		n, err := conn.Read(message)
		if err != nil || n < 6 {
			return
		}
		answer := map[byte]byte{0x60: 0x61, 0x63: 0x65}[message[5]] // bind, search
		if answer == 0 {
			conn.Close()
			return
		}
		if d.silent.Load() {
			continue
		}
		if _, err := conn.Write([]byte{0x30, 0x0c, 0x02, 0x01, message[4], answer, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00}); err != nil {
			return
		}
	}
}

func (d *directory) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.Close()
	for _, c := range d.conns {
		c.Close()
	}
}

func layProvider(t *testing.T) faulty {
	path, address := kit.DuckDBIn(t, t.TempDir(), plenty, 0), kit.FreeAddress(t)
	kit.Edit(t, path, "users:\n", "users:\n  - {name: frank, login: oidc, identity: f}\n",
		`listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", login: {oidc: {issuer: "http://%s", audience: dpproxy}}`, address))
	var server *http.Server
	back := func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":"http://%[1]s","jwks_uri":"http://%[1]s/keys","authorization_endpoint":"http://%[1]s/a","token_endpoint":"http://%[1]s/t"}`, address)
		})}
		go func(s *http.Server) { _ = s.Serve(l) }(server) // until it is closed
	}
	away := func() { server.Close() }
	back()
	t.Cleanup(away)
	return faulty{path, away, back, nil}
}

// TestSandboxProcessKilled: the sandbox's own server comes again by itself, and /readyz with it.
func TestSandboxProcessKilled(t *testing.T) {
	path, admin := kit.DuckDBIn(t, t.TempDir(), plenty, 0), kit.FreeAddress(t)
	kit.Edit(t, path, `listen: "127.0.0.1:0"`, fmt.Sprintf(`listen: "127.0.0.1:0", admin: %q`, admin))
	p := kit.Serve(t, path)
	for _, child := range p.Children() {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended
	}
	pages{t, admin}.says(fault{part: "sandbox"}, true)
}
