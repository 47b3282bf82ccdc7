package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

// Suites of tests that others wrote for PostgreSQL make tables and write rows, which a session never does. For them
// alone the session is built with a few lines changed (go test -overlay), so that a passThrough gets to see every
// statement. The product holds no switch for it.

// overlayChanges are the changed lines, by file.
var overlayChanges = []struct{ file, old, new string }{
	{"command.go", "k.refusal = parse.Refuse(s)", "k.Kind = parse.KindSelect"},
	{"prepared.go", "stmt.columns = make([]sandbox.Column, len(d.Columns))",
		"if d.Columns == nil {\n\t\tstmt.columns = nil\n\t\treturn nil\n\t}\n\tstmt.columns = make([]sandbox.Column, len(d.Columns))"},
	{"statement.go", "if err == nil && !result.Rows.Valid() {", `if err == nil && !result.Rows.Valid() && result.Tag == "" {`},
	{"transaction.go", "\tc.tx.implicit, c.tx.piped = false, false\n", "\tc.tx.implicit, c.tx.piped = false, false\n\t" + settled(true)},
	{"transaction.go", "\tcase c.tx.implicit:\n", "\tcase c.tx.implicit:\n\t" + settled(false)},
	{"statement.go", "tag, err := c.control(k)\n",
		"tag, err := c.control(k)\n\tif follow, ok := c.server.config.Pipeline.(interface {\n\t\tFollow(*session, *command, string) error\n\t}); ok && err == nil {\n\t\terr = follow.Follow(c, k, tag)\n\t}\n"},
}

// settled tells the pass-through of the end of an implicit transaction.
func settled(commit bool) string {
	return fmt.Sprintf("if settle, ok := c.server.config.Pipeline.(interface{ Settle(*objects, bool) }); ok {\n\t\tsettle.Settle(c, %v)\n\t}\n", commit)
}

// overlayFor writes the changed files and their list, and returns the list's path.
func overlayFor(t *testing.T) string {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range overlayChanges {
		source := filepath.Join(here, change.file)
		from := source
		if replaced[source] != "" {
			from = replaced[source]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), change.old) != 1 {
			t.Fatalf("%s does not hold %q once", change.file, change.old)
		}
		replaced[source] = filepath.Join(dir, change.file)
		if err := os.WriteFile(replaced[source], []byte(strings.Replace(string(text), change.old, change.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inSuites marks the process that the overlay was built into.
const inSuites = "DPPROXY_SUITES_INSIDE"

// TestSuites runs TestSuitesInside in a session that passes statements through. DPPROXY_SUITES is a directory of
// suites: files named *.pt, and others in directories named pgtest, are scripts of messages, which are played to
// PostgreSQL and to the proxy; with "serve" for it, both are kept up for programs until the test is interrupted.
func TestSuites(t *testing.T) {
	if os.Getenv("DPPROXY_SUITES") == "" || os.Getenv(inSuites) != "" {
		t.Skip("DPPROXY_SUITES names no directory of suites")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	run := exec.CommandContext(ctx, "go", "test", "-overlay", overlayFor(t), "-run", "^TestSuitesInside$", "-count=1", "-v", "-timeout", "2h", ".")
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.Env = append(os.Environ(), inSuites+"=yes")
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	if err := run.Run(); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

// TestSuitesOverlay keeps the changed lines where they are looked for.
func TestSuitesOverlay(t *testing.T) {
	build := exec.Command("go", "build", "-overlay", overlayFor(t), ".")
	build.Env = append(os.Environ(), "CGO_CFLAGS=") // those of `make race`, if any, would have the grammar compiled anew
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const suitePassword = "suites"

// suiteUsers are the roles that suites log in as; each has a database of its own name.
var suiteUsers = []string{"suites", "postgres", "pqgo", "pgx"}

func suitePolicy(t *testing.T) *policy.Policy {
	p := testPolicy(t)
	defaults, budgets := p.Datasets[0].Defaults, map[string]policy.Budget{}
	p.Users, p.Datasets = nil, nil
	for _, name := range suiteUsers {
		budgets[name] = policy.Budget{}
		p.Users = append(p.Users, policy.User{Name: name, Verifier: verifier(t, suitePassword, 4096)})
		p.Datasets = append(p.Datasets, &policy.Dataset{ID: name, Budgets: budgets, Defaults: defaults})
	}
	return p
}

// suiteServers starts PostgreSQL, with a database of each user for the pass-through and another, "direct_…", to
// compare.
func suiteServers(t *testing.T) (db *pgtest.Server, proxyPort int) {
	t.Helper()
	db = pgtest.Start(t, "max_connections=300", "max_prepared_transactions=10", "wal_level=logical")
	for _, name := range suiteUsers {
		if name != "postgres" {
			db.Exec(t, "postgres", "CREATE ROLE "+name+" SUPERUSER LOGIN")
			db.Exec(t, "postgres", "CREATE DATABASE "+name+" OWNER "+name)
		}
		db.Exec(t, "postgres", "CREATE DATABASE direct_"+name+" OWNER "+name)
	}
	p := newPassThrough(func(user, database string) string { return passURL(db.Port, user, database) })
	policies := suitePolicy(t)
	b := start(t, func(c *Config) {
		c.Pipeline, c.Policy = p, func() *policy.Policy { return policies }
	})
	p.server = b.Server
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.reap(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	_, port, err := net.SplitHostPort(b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	proxyPort, err = strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return db, proxyPort
}

// TestSuitesInside is what TestSuites runs.
func TestSuitesInside(t *testing.T) {
	if os.Getenv(inSuites) == "" {
		t.Skip("run by TestSuites")
	}
	db, port := suiteServers(t)
	if os.Getenv("DPPROXY_SUITES") == "serve" {
		fmt.Printf("PostgreSQL on port %d, the pass-through on port %d; users %v, password %s\n", db.Port, port, suiteUsers, suitePassword)
		ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
		defer stop()
		<-ctx.Done()
		return
	}
	playScripts(t, db, port)
	time.Sleep(50 * time.Millisecond) // for the last connections to be reaped
}
