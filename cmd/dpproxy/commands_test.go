package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestHelp: every command explains itself and exits with 0; wrong usage exits with 2.
func TestHelp(t *testing.T) {
	for _, line := range []string{"", "demo", "serve", "check", "init", "user", "user add", "user list", "user password", "user disable", "user enable", "user remove", "budget", "ledger", "ledger verify", "ledger backup", "ledger restore", "query", "login", "schema", "version"} {
		out := kit.Run(t, "", append(strings.Fields(line), "--help")...)
		if out.Code != 0 || !strings.Contains(out.Stdout, "Usage:") || out.Stderr != "" {
			t.Errorf("%q --help: exit %d: %s%s", line, out.Code, out.Stdout, out.Stderr)
		}
	}
	for _, line := range []string{"serve --nosuch", "demo --rows many", "demo --rows 0", "check --log-level loud", "nosuch", "init", "query", "user add", "serve extra"} {
		if out := kit.Run(t, "", strings.Fields(line)...); out.Code != 2 || !strings.HasPrefix(out.Stderr, "dpproxy: ") {
			t.Errorf("%q: exit %d, want 2: %s", line, out.Code, out.Stderr)
		}
	}
	if out := kit.Run(t, "", "srve"); !strings.Contains(out.Stderr, "did you mean serve") {
		t.Errorf("a slip: %s", out.Stderr)
	}
	if out := kit.RunWith(t, []string{"DPPROXY_POLICY=/nonexistent/from-environment.yaml"}, "", "check"); out.Code != 3 || !strings.Contains(out.Stderr, "from-environment") {
		t.Errorf("a flag from the environment: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "--version"); out.Code != 0 || !strings.Contains(out.Stdout, version) {
		t.Errorf("--version: %s", out.Stdout)
	}
}

// TestPeopleInARunningProxy: who is disabled, removed or given another password is so in the proxy that runs, whose log
// says it once, and says no password; what she had spent is what she has spent when she comes back.
func TestPeopleInARunningProxy(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	p := kit.Serve(t, path)
	user := func(input string, args ...string) string {
		t.Helper()
		out := kit.Run(t, input, append(append([]string{"user"}, args...), "--policy", path)...)
		if out.Code != 0 {
			t.Fatalf("user %v: exit %d: %s", args, out.Code, out.Stderr)
		}
		return out.Stdout
	}
	logged := func(text string) {
		t.Helper()
		for !strings.Contains(p.LogText(), text) {
			if !p.Alive() || t.Context().Err() != nil {
				t.Fatalf("the log has no %q:\n%s", text, p.LogText())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	ask := func(password string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://alice:%s@%s/lab?sslmode=disable", password, p.Address))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return conn.Exec(ctx, "SELECT count(*) FROM people").Close()
	}
	if err := ask("alice"); err != nil {
		t.Fatal(err)
	}
	logged("msg=charged user=alice dataset=lab")
	if strings.Contains(p.LogText(), "count(*)") {
		t.Errorf("the log has the statement:\n%s", p.LogText())
	}
	spent := kit.Run(t, "", "budget", "--policy", path).Stdout
	open := p.Connect("alice", "lab")
	user("", "disable", "alice")
	logged("users_disabled=[alice]")
	if err := ask("alice"); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("disabled, she is told %v", err)
	}
	if told, _ := open.TryAsk("SELECT 1"); told.Err == nil || told.Err.Code != "28000" || told.Err.Severity != "FATAL" { // and then the connection ends
		t.Errorf("her open session is told %+v", told)
	}
	if list := user("", "list"); !strings.Contains(list, "disabled") {
		t.Errorf("list:\n%s", list)
	}
	user("", "enable", "alice")
	logged("users_enabled=[alice]")
	if err := ask("alice"); err != nil {
		t.Error(err)
	}
	user("brandnew\n", "password", "alice")
	logged("passwords_changed=[alice]")
	if err := ask("alice"); err == nil {
		t.Error("the old password lets in")
	}
	if err := ask("brandnew"); err != nil {
		t.Error(err)
	}
	user("", "remove", "alice")
	logged("users_removed=[alice]")
	if err := ask("brandnew"); err == nil {
		t.Error("removed, she is let in")
	}
	user("again\n", "add", "alice")
	logged("users_added=[alice]")
	if err := ask("again"); err != nil {
		t.Error(err)
	}
	if now := kit.Run(t, "", "budget", "--policy", path).Stdout; !strings.Contains(spent, "ε 0.1") || strings.Count(now, "ε 0.1") < 1 {
		t.Errorf("what she had spent was\n%s\nand is\n%s", spent, now)
	}
	if log := p.LogText(); strings.Contains(log, "brandnew") || strings.Contains(log, "SCRAM-SHA-256") {
		t.Errorf("a password or a verifier is in the log:\n%s", log)
	}
	if out := kit.Run(t, "", "user", "remove", "nobody", "--policy", path); out.Code != 1 || !strings.Contains(out.Stderr, "no such user") {
		t.Errorf("remove nobody: exit %d: %s", out.Code, out.Stderr)
	}
}

// TestCheckCommand: 0 and plain words where serve would start, 3 where it would not.
func TestCheckCommand(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	out := kit.Run(t, "", "check", "--policy", path)
	if out.Code != 0 || !strings.Contains(out.Stdout, "ok: serve would start") || !strings.Contains(out.Stdout, "room for 100 default questions") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	kit.Edit(t, path, "{name: income,", "{name: earned,")
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 3 || !strings.Contains(out.Stdout, "earned") || !strings.Contains(out.Stderr, "serve would refuse to start") {
		t.Errorf("a column that is not there: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	if out := kit.Run(t, "", "serve", "--policy", path); out.Code != 1 || !strings.Contains(out.Stderr, "earned") {
		t.Errorf("serve: exit %d: %s", out.Code, out.Stderr)
	}
}

// TestInitCommand: a first policy from a real schema loads as it is, holds nothing of the rows, and an existing
// file is left alone.
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
	if out := kit.Run(t, "", args...); out.Code != 0 {
		t.Fatalf("exit %d: %s", out.Code, out.Stderr)
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
	if out := kit.Run(t, "", args...); out.Code != 1 || !strings.Contains(out.Stderr, "exists") {
		t.Errorf("over an existing file: exit %d: %s", out.Code, out.Stderr)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Error("an existing file was changed")
	}
	if out := kit.Run(t, "", "init", server.URLFor("postgres", database), "--table", "nosuch"); out.Code != 1 || !strings.Contains(out.Stderr, "nosuch") {
		t.Errorf("a table that is not there: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "init", server.URLFor("postgres", database)); out.Code != 2 {
		t.Errorf("without --table: exit %d: %s", out.Code, out.Stderr)
	}
	server.Exec(t, database, `GRANT USAGE ON SCHEMA "odd name" TO `+role, `GRANT SELECT ON ALL TABLES IN SCHEMA public, "odd name" TO `+role)
	kit.Edit(t, path, "postgres@", role+"@", "/"+database, "/"+database+"?sslmode=disable")
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 {
		t.Errorf("check of the first policy: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
}

// TestUserCommand: a user who is added can log in at once, the file's comments stay, and the password is nowhere.
func TestUserCommand(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	kit.Edit(t, path, "users:", "# who may come in\nusers: # by name")
	p := kit.Serve(t, path)
	if out := kit.Run(t, "carol\n", "user", "add", "carol", "--policy", path); out.Code != 0 {
		t.Fatalf("exit %d: %s", out.Code, out.Stderr)
	}
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), "# who may come in\nusers: # by name") || strings.Contains(string(text), `"carol"`) || strings.Count(string(text), "SCRAM-SHA-256$") != 4 {
		t.Errorf("the file is now\n%s", text)
	}
	kit.Eventually(t, "carol can log in", func() bool {
		w, err := p.Dial("carol", "lab")
		return err == nil && w.Ask(`SELECT count(*) FROM people`).Err == nil
	})
	if out := kit.RunWith(t, []string{"DPPROXY_PASSWORD=dave"}, "", "user", "add", "dave", "--admin", "--policy", path); out.Code != 0 {
		t.Fatalf("exit %d: %s", out.Code, out.Stderr)
	}
	kit.Eventually(t, "dave sees the cap", func() bool {
		w, err := p.Dial("dave", "lab")
		return err == nil && len(w.Ask(`SELECT * FROM dp.budget WHERE user_name = '(cap)'`).Rows) == 1
	})
	before, _ := os.ReadFile(path)
	for name, out := range map[string]kit.Ran{"no password": kit.Run(t, "", "user", "add", "erin", "--policy", path), "a bad name": kit.Run(t, "x\n", "user", "add", "*", "--policy", path)} {
		if after, _ := os.ReadFile(path); out.Code != 1 || string(after) != string(before) {
			t.Errorf("%s: exit %d: %s", name, out.Code, out.Stderr)
		}
	}
}

// TestLedgerCommands: budget, verify and backup beside a running proxy; restore of the newest backup, refused for an
// older one and while a proxy runs.
func TestLedgerCommands(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	dir := filepath.Dir(path)
	p := kit.Serve(t, path)
	alice := p.Connect("alice", "lab")
	first := kit.Count(t, alice.Ask(`SELECT count(*) FROM people`))
	out := kit.Run(t, "", "budget", "--policy", path)
	if out.Code != 0 || !strings.Contains(out.Stdout, "alice  ε 0.1  ε 10") || !strings.Contains(out.Stdout, "(cap)  ε 0.1  ε 20") {
		t.Errorf("budget: exit %d:\n%s%s", out.Code, out.Stdout, out.Stderr)
	}
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 0 || !strings.Contains(out.Stdout, "ok: ") {
		t.Errorf("verify: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	old, fresh := filepath.Join(dir, "old.backup"), filepath.Join(dir, "new.backup")
	if out := kit.Run(t, "", "ledger", "backup", old, "--policy", path); out.Code != 0 {
		t.Fatalf("backup: exit %d: %s", out.Code, out.Stderr)
	}
	alice.Ask(`SELECT count(*) FROM people WHERE hiv`)
	if out := kit.Run(t, "", "ledger", "backup", fresh, "--policy", path); out.Code != 0 {
		t.Fatalf("backup: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "ledger", "backup", fresh, "--policy", path); out.Code != 1 || !strings.Contains(out.Stderr, "exists") {
		t.Errorf("backup over a file: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "ledger", "restore", fresh, "--policy", path); out.Code != 3 || !strings.Contains(out.Stderr, "another process") {
		t.Errorf("restore under a running proxy: exit %d: %s", out.Code, out.Stderr)
	}
	p.Stop(syscall.SIGTERM)
	if out := kit.Run(t, "", "ledger", "restore", old, "--policy", path); out.Code != 3 || !strings.Contains(out.Stderr, "older") {
		t.Errorf("restore of an older backup: exit %d: %s", out.Code, out.Stderr)
	}
	witness, err := os.ReadFile(filepath.Join(dir, "ledger.db-witness"))
	if err != nil {
		t.Fatal(err)
	}
	if out := kit.Run(t, "", "ledger", "restore", old, "--accept-rollback", "--policy", path); out.Code != 0 {
		t.Fatalf("restore of an older backup that is accepted: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 0 {
		t.Errorf("verify after a rollback that was accepted: exit %d: %s", out.Code, out.Stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.db-witness"), witness, 0o600); err != nil { // which knows nothing of the rollback
		t.Fatal(err)
	}
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 3 || !strings.Contains(out.Stderr, "older") {
		t.Errorf("verify of a ledger that is older than its witness: exit %d, want 3: %s", out.Code, out.Stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), []byte("not a ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 3 {
		t.Errorf("verify of a damaged ledger: exit %d, want 3: %s", out.Code, out.Stderr)
	}
	for _, tail := range []string{"-wal", "-shm"} {
		_ = os.Remove(filepath.Join(dir, "ledger.db"+tail)) // of the ledger that was
	}
	if out := kit.Run(t, "", "ledger", "restore", fresh, "--policy", path); out.Code != 0 {
		t.Fatalf("restore: exit %d: %s", out.Code, out.Stderr)
	}
	p.Restart()
	w := p.Connect("alice", "lab")
	if again := kit.Count(t, w.Ask(`SELECT count(*) FROM people`)); again != first || w.Spent() != "0.2" {
		t.Errorf("after restore: %d, was %d; spent %s", again, first, w.Spent())
	}
}

// TestQueryCommand: rows on standard output, notices on standard error, and the SQLSTATE of a refusal.
func TestQueryCommand(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	url := p.URL("alice", "lab")
	out := kit.Run(t, "", "query", "--url", url, `SELECT hiv, count(*) FROM people GROUP BY hiv`)
	if out.Code != 0 || !strings.Contains(out.Stdout, "hiv") || !strings.Contains(out.Stdout, "SELECT 3") || !strings.Contains(out.Stderr, "NOTICE:") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	if out := kit.Run(t, "", "query", "--url", url, `SELECT * FROM people`); out.Code != 1 || !strings.Contains(out.Stderr, "SQLSTATE") {
		t.Errorf("a refusal: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "query", "--url", "nonsense://", `SELECT 1`); out.Code != 2 {
		t.Errorf("a bad url: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "query", "--url", p.URL("mallory", "lab"), `SELECT 1`); out.Code != 1 || strings.Contains(out.Stderr, "mallory:mallory") {
		t.Errorf("an unknown user: exit %d: %s", out.Code, out.Stderr)
	}
}

// TestSchemaCommand: the JSON Schema is JSON, knows the policy's keys and matches docs/policy.schema.json.
func TestSchemaCommand(t *testing.T) {
	out := kit.Run(t, "", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(out.Stdout), &schema); err != nil || out.Code != 0 || !strings.Contains(out.Stdout, "max_rows_per_unit") {
		t.Errorf("exit %d: %v", out.Code, err)
	}
	if written, err := os.ReadFile("../../docs/policy.schema.json"); err != nil || string(written) != out.Stdout {
		t.Errorf("docs/policy.schema.json is not what `dpproxy schema` prints: %v", err)
	}
}

// TestDemoCommand: the demo's flags: what is spent stays, other rows are refused, --fresh starts anew and removes
// nothing that the demo did not write.
func TestDemoCommand(t *testing.T) {
	kit.Beside(t)
	dir := filepath.Join(t.TempDir(), "demo")
	p := kit.Demo(t, dir, "1000")
	ask := func(sql string) kit.Answer { return p.Connect("analyst", "demo").Ask(sql) }
	ask(`SELECT count(*) FROM people`)
	own := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Stop(syscall.SIGTERM)
	p.Restart()
	if got := fmt.Sprint(ask(`SELECT spent FROM dp.budget`).Rows); got != "[[0.1]]" {
		t.Errorf("after a restart %s is spent", got)
	}
	p.Stop(syscall.SIGTERM)
	if out := kit.Run(t, "", "demo", "--dir", dir, "--rows", "2000", "--listen", "127.0.0.1:0"); out.Code != 1 || !strings.Contains(out.Stderr, "--fresh") {
		t.Errorf("other rows: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "demo", "--dir", dir, "--rows", "1000", "--listen", "127.0.0.1:1"); out.Code != 1 || !strings.Contains(out.Stderr, "--fresh") {
		t.Errorf("another address: exit %d: %s", out.Code, out.Stderr)
	}
	p.Start([]string{"demo", "--dir", dir, "--rows", "2000", "--listen", "127.0.0.1:0", "--fresh"})
	if got := fmt.Sprint(ask(`SELECT spent FROM dp.budget`).Rows); got != "[[0]]" {
		t.Errorf("after --fresh %s is spent", got)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("--fresh removed a file of the user: %v", err)
	}
}
