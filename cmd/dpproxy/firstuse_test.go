package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
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
	out := kit.Run(t, "", "init", server.URLFor("postgres", database), "--table", "people", "--table", "visits", "--table", "payments", "--out", path)
	for _, want := range []string{"warning: table visits has no foreign key to people.person_id", "warning: table payments has 2 foreign keys to people.person_id"} {
		if out.Code != 0 || !strings.Contains(out.Stderr, want) {
			t.Errorf("exit %d, no %q in %s", out.Code, want, out.Stderr)
		}
	}
	if _, err := policy.Read(path); err == nil || !strings.Contains(err.Error(), "visits") {
		t.Errorf("a policy without a unit: %v", err)
	}
	kit.Edit(t, path, `# unit: "visits.COLUMN = people.person_id"`, `unit: "visits.person = people.person_id"`)
	p, err := policy.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Datasets[0]; d.Table("", "visits").UnitColumn != "person" || d.Table("", "payments").UnitColumn != "sender" {
		t.Errorf("units: %+v", d.Tables)
	}
	for _, url := range []string{"duckdb:", "duckdb:warehouse.duckdb"} {
		if out := kit.Run(t, "", "init", url, "--table", "people"); out.Code != 2 || !strings.Contains(out.Stderr, "PostgreSQL") || strings.Contains(out.Stderr, "keyword") {
			t.Errorf("%s: exit %d: %s", url, out.Code, out.Stderr)
		}
	}
}

// TestQueryRefusedLogin: what is shown is what the proxy said, not the attempt at TLS before it.
func TestQueryRefusedLogin(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	for _, c := range []struct{ login, want string }{
		{"alice:wrong@" + p.Address + "/lab", `FATAL:  password authentication failed for user "alice" (SQLSTATE 28P01)`},
		{"alice:alice@" + p.Address + "/nope", `FATAL:  database "nope" does not exist (SQLSTATE 3D000)`},
	} {
		out := kit.Run(t, "", "query", "--url", "postgres://"+c.login, "SELECT 1")
		if out.Code != 1 || !strings.HasPrefix(out.Stderr, c.want) || strings.Contains(out.Stderr, "tls") {
			t.Errorf("%s: exit %d: %s", c.login, out.Code, out.Stderr)
		}
	}
}

// TestCheckCounts: releases of every kind are counted.
func TestCheckCounts(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	kit.Edit(t, path, "          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}\n", `          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
          - {kind: online, columns: [city, hiv], mechanism: multiplicative-weights, epsilon: 1, updates: 50, insist: true}
          - {kind: synthetic, columns: [city, hiv], mechanism: mwem, epsilon: 1, rows: 1000}
`)
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 || !strings.Contains(out.Stdout, "4 releases") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
}
