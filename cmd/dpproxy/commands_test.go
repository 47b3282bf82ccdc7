package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

// TestHelp: every command explains itself and exits with 0; wrong usage exits with 2.
func TestHelp(t *testing.T) {
	for _, line := range []string{"", "demo", "serve", "check", "init", "user", "user add", "budget", "ledger", "ledger verify", "ledger backup", "ledger restore", "query", "schema"} {
		out := dpproxy(t, "", append(strings.Fields(line), "--help")...)
		if out.code != 0 || !strings.Contains(out.stdout, "Usage:") || out.stderr != "" {
			t.Errorf("%q --help: exit %d: %s%s", line, out.code, out.stdout, out.stderr)
		}
	}
	for _, line := range []string{"serve --nosuch", "demo --rows many", "demo --rows 0", "check --log-level loud", "nosuch", "init", "query", "user add", "serve extra"} {
		if out := dpproxy(t, "", strings.Fields(line)...); out.code != 2 || !strings.HasPrefix(out.stderr, "dpproxy: ") {
			t.Errorf("%q: exit %d, want 2: %s", line, out.code, out.stderr)
		}
	}
	if out := dpproxy(t, "", "srve"); !strings.Contains(out.stderr, "did you mean serve") {
		t.Errorf("a slip: %s", out.stderr)
	}
	if out := dpproxyWith(t, []string{"DPPROXY_POLICY=/nonexistent/from-environment.yaml"}, "", "check"); out.code != 3 || !strings.Contains(out.stderr, "from-environment") {
		t.Errorf("a flag from the environment: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "--version"); out.code != 0 || !strings.Contains(out.stdout, version) {
		t.Errorf("--version: %s", out.stdout)
	}
}

// TestCheckCommand: 0 and plain words where serve would start, 3 where it would not.
func TestCheckCommand(t *testing.T) {
	path := duckFixture(t, budgets{"10", "20"}, 0)
	out := dpproxy(t, "", "check", "--policy", path)
	if out.code != 0 || !strings.Contains(out.stdout, "ok: serve would start") || !strings.Contains(out.stdout, "room for 100 default questions") {
		t.Errorf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	edit(t, path, "{name: income,", "{name: earned,")
	if out := dpproxy(t, "", "check", "--policy", path); out.code != 3 || !strings.Contains(out.stdout, "earned") || !strings.Contains(out.stderr, "serve would refuse to start") {
		t.Errorf("a column that is not there: exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if out := dpproxy(t, "", "serve", "--policy", path); out.code != 1 || !strings.Contains(out.stderr, "earned") {
		t.Errorf("serve: exit %d: %s", out.code, out.stderr)
	}
}

// TestInitCommand: a first policy from a real schema loads as it stands, holds nothing of the rows, and an existing file is
// left alone.
func TestInitCommand(t *testing.T) {
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	server.Exec(t, database, `CREATE TYPE mood AS ENUM ('sad', 'it''s "so" so', 'yes')`, `CREATE DOMAIN small AS integer CHECK (VALUE < 10)`,
		`CREATE TABLE people (person_id bigint PRIMARY KEY, age smallint, "Full Name" varchar(40), income numeric(12,2), m mood, active boolean,
			born date, seen timestamptz, at timestamp, photo bytea, tags text[], grade small, height real)`,
		`CREATE TABLE visits (visit_id int PRIMARY KEY, person_id bigint REFERENCES people, kind text, "yes" text)`,
		`CREATE SCHEMA "odd name"`, `CREATE TABLE "odd name"."Log" (person bigint REFERENCES people, ok boolean)`,
		`INSERT INTO people (person_id, "Full Name") VALUES (1, 'canary')`, `ANALYZE`)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	args := []string{"init", server.URLFor("postgres", database), "--table", "people", "--table", "public.visits", "--table", `"odd name"."Log"`, "--dataset", "prod", "--out", path}
	if out := dpproxy(t, "", args...); out.code != 0 {
		t.Fatalf("exit %d: %s", out.code, out.stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Read(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	people, visits := p.Datasets[0].Table("", "people"), p.Datasets[0].Table("", "visits")
	if log := p.Datasets[0].Table("", "Log"); log == nil || log.UnitColumn != "person" || log.Source.Schema != "odd name" {
		t.Errorf("a table of another schema: %+v", log)
	}
	if p.Datasets[0].ID != "prod" || people == nil || visits == nil || people.Column("active") == nil || people.Column("person_id") != nil || visits.UnitColumn != "person_id" {
		t.Errorf("not the policy of that schema:\n%s", text)
	}
	if strings.Contains(string(text), "canary") || !strings.Contains(string(text), "EDIT") {
		t.Errorf("rows in the policy, or no comments:\n%s", text)
	}
	if out := dpproxy(t, "", args...); out.code != 1 || !strings.Contains(out.stderr, "exists") {
		t.Errorf("over an existing file: exit %d: %s", out.code, out.stderr)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Error("an existing file was changed")
	}
	if out := dpproxy(t, "", "init", server.URLFor("postgres", database), "--table", "nosuch"); out.code != 1 || !strings.Contains(out.stderr, "nosuch") {
		t.Errorf("a table that is not there: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "init", server.URLFor("postgres", database)); out.code != 2 {
		t.Errorf("without --table: exit %d: %s", out.code, out.stderr)
	}
	server.Exec(t, database, `GRANT USAGE ON SCHEMA "odd name" TO `+role, `GRANT SELECT ON ALL TABLES IN SCHEMA public, "odd name" TO `+role)
	edit(t, path, "postgres@", role+"@", "/"+database, "/"+database+"?sslmode=disable")
	if out := dpproxy(t, "", "check", "--policy", path); out.code != 0 {
		t.Errorf("check of the first policy: exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
}

// TestUserCommand: a user who is added can log in at once, the file's comments stay, and the password is nowhere.
func TestUserCommand(t *testing.T) {
	beside(t)
	path := duckFixture(t, budgets{"10", "20"}, 0)
	edit(t, path, "users:", "# who may come in\nusers: # by name")
	p := serveProcess(t, path)
	if out := dpproxy(t, "carol\n", "user", "add", "carol", "--policy", path); out.code != 0 {
		t.Fatalf("exit %d: %s", out.code, out.stderr)
	}
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), "# who may come in\nusers: # by name") || strings.Contains(string(text), `"carol"`) || strings.Count(string(text), "SCRAM-SHA-256$") != 4 {
		t.Errorf("the file is now\n%s", text)
	}
	eventually(t, "carol can log in", func() bool {
		w, err := p.dial("carol", "lab")
		return err == nil && w.ask(`SELECT count(*) FROM people`).err == nil
	})
	if out := dpproxyWith(t, []string{"DPPROXY_PASSWORD=dave"}, "", "user", "add", "dave", "--admin", "--policy", path); out.code != 0 {
		t.Fatalf("exit %d: %s", out.code, out.stderr)
	}
	eventually(t, "dave sees the cap", func() bool {
		w, err := p.dial("dave", "lab")
		return err == nil && len(w.ask(`SELECT * FROM dp.budget WHERE user_name = '(cap)'`).rows) == 1
	})
	before, _ := os.ReadFile(path)
	for name, out := range map[string]ran{"no password": dpproxy(t, "", "user", "add", "erin", "--policy", path), "a bad name": dpproxy(t, "x\n", "user", "add", "*", "--policy", path)} {
		if after, _ := os.ReadFile(path); out.code != 1 || string(after) != string(before) {
			t.Errorf("%s: exit %d: %s", name, out.code, out.stderr)
		}
	}
}

// TestLedgerCommands: budget, verify and backup beside a running proxy; restore of the newest backup, refused for an older
// one and while a proxy runs.
func TestLedgerCommands(t *testing.T) {
	path := duckFixture(t, budgets{"10", "20"}, 0)
	dir := filepath.Dir(path)
	p := serveProcess(t, path)
	alice := p.connect("alice", "lab")
	first := count(t, alice.ask(`SELECT count(*) FROM people`))
	out := dpproxy(t, "", "budget", "--policy", path)
	if out.code != 0 || !strings.Contains(out.stdout, "alice  ε 0.1  ε 10") || !strings.Contains(out.stdout, "(cap)  ε 0.1  ε 20") {
		t.Errorf("budget: exit %d:\n%s%s", out.code, out.stdout, out.stderr)
	}
	if out := dpproxy(t, "", "ledger", "verify", "--policy", path); out.code != 0 || !strings.Contains(out.stdout, "ok: ") {
		t.Errorf("verify: exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	old, fresh := filepath.Join(dir, "old.backup"), filepath.Join(dir, "new.backup")
	if out := dpproxy(t, "", "ledger", "backup", old, "--policy", path); out.code != 0 {
		t.Fatalf("backup: exit %d: %s", out.code, out.stderr)
	}
	alice.ask(`SELECT count(*) FROM people WHERE hiv`)
	if out := dpproxy(t, "", "ledger", "backup", fresh, "--policy", path); out.code != 0 {
		t.Fatalf("backup: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "ledger", "backup", fresh, "--policy", path); out.code != 1 || !strings.Contains(out.stderr, "exists") {
		t.Errorf("backup over a file: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "ledger", "restore", fresh, "--policy", path); out.code != 3 || !strings.Contains(out.stderr, "another process") {
		t.Errorf("restore under a running proxy: exit %d: %s", out.code, out.stderr)
	}
	p.stop(syscall.SIGTERM)
	if out := dpproxy(t, "", "ledger", "restore", old, "--policy", path); out.code != 3 || !strings.Contains(out.stderr, "older") {
		t.Errorf("restore of an older backup: exit %d: %s", out.code, out.stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), []byte("not a ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := dpproxy(t, "", "ledger", "verify", "--policy", path); out.code != 3 {
		t.Errorf("verify of a damaged ledger: exit %d, want 3: %s", out.code, out.stderr)
	}
	for _, tail := range []string{"-wal", "-shm"} {
		_ = os.Remove(filepath.Join(dir, "ledger.db"+tail)) // of the ledger that was
	}
	if out := dpproxy(t, "", "ledger", "restore", fresh, "--policy", path); out.code != 0 {
		t.Fatalf("restore: exit %d: %s", out.code, out.stderr)
	}
	p.restart()
	w := p.connect("alice", "lab")
	if again := count(t, w.ask(`SELECT count(*) FROM people`)); again != first || w.spent() != "0.2" {
		t.Errorf("after restore: %d, was %d; spent %s", again, first, w.spent())
	}
}

// TestQueryCommand: rows on standard output, notices on standard error, and the SQLSTATE of a refusal.
func TestQueryCommand(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "20"}, 0))
	url := p.url("alice", "lab")
	out := dpproxy(t, "", "query", "--url", url, `SELECT hiv, count(*) FROM people GROUP BY hiv`)
	if out.code != 0 || !strings.Contains(out.stdout, "hiv") || !strings.Contains(out.stdout, "SELECT 3") || !strings.Contains(out.stderr, "NOTICE:") {
		t.Errorf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if out := dpproxy(t, "", "query", "--url", url, `SELECT * FROM people`); out.code != 1 || !strings.Contains(out.stderr, "SQLSTATE") {
		t.Errorf("a refusal: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "query", "--url", "nonsense://", `SELECT 1`); out.code != 2 {
		t.Errorf("a bad url: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "query", "--url", p.url("mallory", "lab"), `SELECT 1`); out.code != 1 || strings.Contains(out.stderr, "mallory:mallory") {
		t.Errorf("an unknown user: exit %d: %s", out.code, out.stderr)
	}
}

// TestSchemaCommand: the JSON Schema is JSON, knows the policy's keys and matches docs/policy.schema.json.
func TestSchemaCommand(t *testing.T) {
	out := dpproxy(t, "", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(out.stdout), &schema); err != nil || out.code != 0 || !strings.Contains(out.stdout, "max_rows_per_unit") {
		t.Errorf("exit %d: %v", out.code, err)
	}
	if written, err := os.ReadFile("../../docs/policy.schema.json"); err != nil || string(written) != out.stdout {
		t.Errorf("docs/policy.schema.json is not what `dpproxy schema` prints: %v", err)
	}
}

// TestDemoCommand: the demo's flags: what is spent stays, other rows are refused, --fresh starts anew and removes nothing
// that the demo did not write.
func TestDemoCommand(t *testing.T) {
	beside(t)
	dir := filepath.Join(t.TempDir(), "demo")
	p := demoProcess(t, dir, "1000")
	ask := func(sql string) answer { return p.connect("analyst", "demo").ask(sql) }
	ask(`SELECT count(*) FROM people`)
	own := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.stop(syscall.SIGTERM)
	p.restart()
	if got := fmt.Sprint(ask(`SELECT spent FROM dp.budget`).rows); got != "[[0.1]]" {
		t.Errorf("after a restart %s is spent", got)
	}
	p.stop(syscall.SIGTERM)
	if out := dpproxy(t, "", "demo", "--dir", dir, "--rows", "2000", "--listen", "127.0.0.1:0"); out.code != 1 || !strings.Contains(out.stderr, "--fresh") {
		t.Errorf("other rows: exit %d: %s", out.code, out.stderr)
	}
	if out := dpproxy(t, "", "demo", "--dir", dir, "--rows", "1000", "--listen", "127.0.0.1:1"); out.code != 1 || !strings.Contains(out.stderr, "--fresh") {
		t.Errorf("another address: exit %d: %s", out.code, out.stderr)
	}
	p.start([]string{"demo", "--dir", dir, "--rows", "2000", "--listen", "127.0.0.1:0", "--fresh"})
	if got := fmt.Sprint(ask(`SELECT spent FROM dp.budget`).rows); got != "[[0]]" {
		t.Errorf("after --fresh %s is spent", got)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("--fresh removed a file of the user: %v", err)
	}
}
