package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
)

// What somebody meets first: a policy whose units the schema does not tell, a wrong password, what check counts.

// TestInitUnits: a table without a foreign key to the unit has its unit: in a comment and a warning; of two keys one is
// taken and the other shown.
func TestInitUnits(t *testing.T) {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, `CREATE TABLE people (person_id int PRIMARY KEY, age int)`, `CREATE TABLE visits (person int, minutes int)`,
		`CREATE TABLE payments (sender int REFERENCES people, receiver int REFERENCES people, amount int)`)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	out := dpproxy(t, "", "init", server.URLFor("postgres", database), "--table", "people", "--table", "visits", "--table", "payments", "--out", path)
	for _, want := range []string{"warning: table visits has no foreign key to people.person_id", "warning: table payments has 2 foreign keys to people.person_id"} {
		if out.code != 0 || !strings.Contains(out.stderr, want) {
			t.Errorf("exit %d, no %q in %s", out.code, want, out.stderr)
		}
	}
	if _, err := policy.Read(path); err == nil || !strings.Contains(err.Error(), "visits") {
		t.Errorf("a policy without a unit: %v", err)
	}
	edit(t, path, `# unit: "visits.COLUMN = people.person_id"`, `unit: "visits.person = people.person_id"`)
	p, err := policy.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Datasets[0]; d.Table("", "visits").UnitColumn != "person" || d.Table("", "payments").UnitColumn != "sender" {
		t.Errorf("units: %+v", d.Tables)
	}
	for _, url := range []string{"duckdb:", "duckdb:warehouse.duckdb"} {
		if out := dpproxy(t, "", "init", url, "--table", "people"); out.code != 2 || !strings.Contains(out.stderr, "PostgreSQL") || strings.Contains(out.stderr, "keyword") {
			t.Errorf("%s: exit %d: %s", url, out.code, out.stderr)
		}
	}
}

// TestQueryRefusedLogin: what is shown is what the proxy said, not the attempt at TLS before it.
func TestQueryRefusedLogin(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "20"}, 0))
	for _, c := range []struct{ login, want string }{
		{"alice:wrong@" + p.address + "/lab", `FATAL:  password authentication failed for user "alice" (SQLSTATE 28P01)`},
		{"alice:alice@" + p.address + "/nope", `FATAL:  database "nope" does not exist (SQLSTATE 3D000)`},
	} {
		out := dpproxy(t, "", "query", "--url", "postgres://"+c.login, "SELECT 1")
		if out.code != 1 || !strings.HasPrefix(out.stderr, c.want) || strings.Contains(out.stderr, "tls") {
			t.Errorf("%s: exit %d: %s", c.login, out.code, out.stderr)
		}
	}
}

// TestCheckCounts: releases of every kind are counted.
func TestCheckCounts(t *testing.T) {
	path := duckFixture(t, budgets{"10", "20"}, 0)
	edit(t, path, "          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}\n", `          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
          - {kind: online, columns: [city, hiv], mechanism: multiplicative-weights, epsilon: 1, updates: 50, insist: true}
          - {kind: synthetic, columns: [city, hiv], mechanism: mwem, epsilon: 1, rows: 1000}
`)
	if out := dpproxy(t, "", "check", "--policy", path); out.code != 0 || !strings.Contains(out.stdout, "4 releases") {
		t.Errorf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
}
