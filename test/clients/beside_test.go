package clients

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

var updateBeside = flag.Bool("update-beside", false, "write the lists of differences in testdata/beside anew, keeping their reasons")

// store is one set of tables twice: in a PostgreSQL server, where user analyst may read them, and behind dpproxy at an
// ε where noise vanishes. Both are database store.
type store struct {
	policy, certificate string
	plain               []string // PostgreSQL's, as libpq reads it
	plainURL            string
}

// openStore loads the tables and serves them.
func openStore(t *testing.T) store {
	t.Helper()
	server := pgtest.Start(t, "max_connections=300")
	text, err := os.ReadFile("testdata/beside/store.sql")
	if err != nil {
		t.Fatal(err)
	}
	var keyed, bare strings.Builder
	for line := range strings.Lines(string(text)) {
		if shown, only := strings.CutPrefix(line, "SHOWN "); only {
			bare.WriteString(shown)
			continue
		}
		with, key := strings.CutPrefix(line, "KEYS ")
		keyed.WriteString(strings.ReplaceAll(with, "TIER", "tier"))
		if !key {
			bare.WriteString(strings.ReplaceAll(line, "TIER", "text"))
		}
	}
	server.Exec(t, "postgres", "CREATE ROLE analyst LOGIN", "CREATE ROLE reader LOGIN", "CREATE DATABASE store", "CREATE DATABASE store_private")
	server.Exec(t, "store", bare.String(), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO analyst")
	server.Exec(t, "store_private", keyed.String(), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
	dir := memory.Dir(t)
	certificate := writeCertificate(t, dir)
	if text, err = os.ReadFile("testdata/beside/policy.yaml"); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("BACKEND", server.URLFor("reader", "store_private"), "VERIFIER", kit.Verifier(t, "analyst")).Replace(string(text))
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(filled), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, err := url.Parse(server.URLFor("analyst", "store"))
	if err != nil {
		t.Fatal(err)
	}
	return store{policy: path, certificate: certificate, plainURL: plain.String(), plain: append(slices.Clone(besideEnvironment), "PGHOST=127.0.0.1", "PGPORT="+plain.Port(), "PGSSLMODE=disable")}
}

// besideEnvironment is the same for both sides.
var besideEnvironment = []string{"PGUSER=analyst", "PGPASSWORD=analyst", "PGDATABASE=store", "LC_ALL=C.UTF-8", "TZ=UTC"}

// serve begins with a budget of which nothing is spent: one driver's questions take nearly all of what a policy can
// grant.
func (s store) serve(t *testing.T) *kit.Program {
	t.Helper()
	for _, ledger := range []string{"ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-witness"} {
		_ = os.Remove(filepath.Join(filepath.Dir(s.policy), ledger)) // it may not be there
	}
	p := kit.Serve(t, s.policy)
	t.Cleanup(func() { p.Stop(syscall.SIGTERM) })
	return p
}

// environment is how libpq finds a proxy.
func (s store) environment(t *testing.T, p *kit.Program) []string {
	t.Helper()
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(besideEnvironment), "PGHOST=localhost", "PGPORT="+port, "PGSSLMODE=verify-full", "PGSSLROOTCERT="+s.certificate)
}

// seen is what a program has printed: what it looked at, and what it saw there.
type seen map[string]string

// seenIn reads the lines of a program: a name, a tab, and what it saw.
func seenIn(t *testing.T, text string) seen {
	t.Helper()
	out := seen{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok {
			continue
		}
		if _, twice := out[name]; twice {
			t.Errorf("%s is seen twice", name)
		}
		out[name] = value
	}
	return out
}

// besideDifference is what a driver sees otherwise than of PostgreSQL: by whatever road, which is in brackets before
// the name of what it looks at.
type besideDifference struct{ name, plain, proxied string }

// differencesFile has what each driver that was run sees otherwise, and why that is meant.
const differencesFile = "testdata/beside/differences.txt"

// readDifferences are the differences that are meant, with the reasons.
func readDifferences(t *testing.T, file string) map[besideDifference]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[besideDifference]string{}
	var d besideDifference
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		field, value, _ := strings.Cut(strings.TrimPrefix(line, "  "), ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "  "):
			d = besideDifference{name: line}
		case field == "PostgreSQL":
			d.plain = value
		case field == "dpproxy":
			d.proxied = value
		case field == "why":
			out[d] = value
		}
	}
	return out
}

// besidePrograms are the drivers; each looks at the same things of whatever server its environment names.
func besidePrograms() []script {
	return []script{
		{"libpq", []string{"python3", "beside_libpq.py"}, []string{"python3", "-c", "import ctypes; ctypes.CDLL('libpq.so.5')"}},
		{"pgjdbc", []string{"java", "-cp", jdbcJar, "BesideJdbc.java"}, []string{"sh", "-c", "java --version && test -r " + jdbcJar}},
		{"node-postgres", []string{"node", "beside_node.js"}, []string{"node", "-e", "require('pg')"}},
		{"psqlODBC", []string{"python3", "beside_odbc.py"}, []string{"sh", "-c", "python3 -c 'import ctypes; ctypes.CDLL(\"libodbc.so.2\")' && grep -q '^\\[PostgreSQL Unicode' /etc/odbcinst.ini"}},
	}
}

// TestDriversBesidePostgres has each driver look at a PostgreSQL server and at dpproxy over the same tables, through
// the same program: what it sees is the same, or is listed with the reason. pgx is part of this binary; the others are
// skipped where they are not installed.
func TestDriversBesidePostgres(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("starts other programs")
	}
	found := map[besideDifference][]string{}
	ran := map[string]bool{}
	s := openStore(t)
	note := func(driver string, plain, proxied seen) {
		ran[driver] = true
		noteDifferences(t, driver, plain, proxied, found)
	}
	t.Run("pgx", func(t *testing.T) {
		note("pgx", lookByPgx(t, s.plainURL), lookByPgx(t, s.serve(t).URL("analyst", "store")))
	})
	for _, p := range besidePrograms() {
		t.Run(p.name, func(t *testing.T) {
			if out, err := besideCommand(t, s.plain, p.probe).CombinedOutput(); err != nil {
				t.Skipf("%s is not installed: %s", p.name, out)
			}
			note(p.name, runBeside(t, s.plain, p), runBeside(t, s.environment(t, s.serve(t)), p))
		})
	}
	holdDifferences(t, differencesFile, "# What drivers see otherwise than of PostgreSQL, and why that is meant: TestDriversBesidePostgres. Written by -update-beside, which keeps the reasons.\n", found, ran)
}

// holdDifferences holds what was found against what a file lists, of the drivers that were run.
func holdDifferences(t *testing.T, file, title string, found map[besideDifference][]string, ran map[string]bool) {
	t.Helper()
	known := readDifferences(t, file)
	for d, roads := range found {
		if known[d] == "" {
			t.Errorf("%s (%s)\n  PostgreSQL: %s\n  dpproxy: %s", d.name, strings.Join(roads, "; "), d.plain, d.proxied)
		}
	}
	for d := range known {
		if driver, _, _ := strings.Cut(d.name, " "); ran[driver] && found[d] == nil {
			t.Errorf("%s is listed and does not differ so\n  PostgreSQL: %s\n  dpproxy: %s", d.name, d.plain, d.proxied)
		}
	}
	if *updateBeside {
		writeDifferences(t, file, title, known, found, ran)
	}
}

func besideCommand(t *testing.T, env, line []string) *exec.Cmd {
	t.Helper()
	cmd := command(t, env, line)
	cmd.Dir = filepath.Join("testdata", "beside")
	return cmd
}

func runBeside(t *testing.T, env []string, p script) seen {
	t.Helper()
	cmd := besideCommand(t, env, p.run)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", p.name, err, out, problems.String())
	}
	return seenIn(t, string(out))
}

// road is what is in brackets before a name.
var road = regexp.MustCompile(`^\[[^]]*\] `)

// noteDifferences holds what a driver saw of dpproxy against what it saw of PostgreSQL.
func noteDifferences(t *testing.T, driver string, plain, proxied seen, found map[besideDifference][]string) {
	t.Helper()
	if len(plain) < 10 {
		t.Fatalf("%d things seen", len(plain))
	}
	names := maps.Clone(plain)
	maps.Copy(names, proxied)
	for name := range names {
		if want, got := plain[name], proxied[name]; want != got {
			d := besideDifference{driver + " " + road.ReplaceAllString(name, ""), shortened(want), shortened(got)}
			found[d] = append(found[d], road.FindString(name))
		}
	}
}

// shortened leaves of a long text its length and its hash.
func shortened(text string) string {
	if len(text) <= 1000 {
		return text
	}
	return fmt.Sprintf("%s… (%d characters, %x)", text[:400], len(text), sha256.Sum256([]byte(text)))
}

func writeDifferences(t *testing.T, file, title string, known map[besideDifference]string, found map[besideDifference][]string, ran map[string]bool) {
	t.Helper()
	all := map[besideDifference]string{}
	for d, why := range known {
		if driver, _, _ := strings.Cut(d.name, " "); !ran[driver] || found[d] != nil {
			all[d] = why
		}
	}
	for d := range found {
		all[d] = known[d]
	}
	var out strings.Builder
	out.WriteString(title)
	for _, d := range slices.SortedFunc(maps.Keys(all), func(a, b besideDifference) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.proxied, b.proxied), strings.Compare(a.plain, b.plain))
	}) {
		fmt.Fprintf(&out, "\n%s\n  PostgreSQL: %s\n  dpproxy: %s\n  why: %s\n", d.name, d.plain, d.proxied, all[d])
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
