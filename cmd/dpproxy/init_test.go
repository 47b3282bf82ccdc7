package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the policies that init drafts into testdata/schemas")

// TestInitSchemas: from three schemas as people have them init writes a policy that check accepts as it is, with
// few marks, and that serve answers over. The policies are golden. No row of a private table is in them.
func TestInitSchemas(t *testing.T) {
	server := pgtest.Shared(t)
	for _, c := range []struct {
		name  string
		unit  string
		rows  []string // rows of lookups, and a canary in a private table
		marks int
		ask   string
	}{
		{"rental", "customer.customer_id", []string{
			`INSERT INTO country VALUES (1, 'CH'), (2, 'DE')`, `INSERT INTO city VALUES (1, 'Bern', 1), (2, 'Bonn', 2)`, `INSERT INTO address VALUES (1, 'canary', 'x', 1)`,
			`ALTER TABLE store DISABLE TRIGGER ALL`, `INSERT INTO store VALUES (1, 1, 1), (2, 1, 1)`, `INSERT INTO staff (staff_id, first_name) VALUES (1, 'canary')`,
			`INSERT INTO customer (customer_id, store_id, first_name, address_id) VALUES (7, 1, 'canary', 1)`,
			`INSERT INTO film (film_id, title) VALUES (1, 'A'), (2, 'B')`, `INSERT INTO inventory VALUES (11, 1, 1), (15, 2, 2)`,
			`INSERT INTO rental VALUES (1, '2024-02-03', 11, 7, '2024-02-04', 1)`},
			7, `SELECT f.title, count(*) FROM rental r JOIN inventory i ON i.inventory_id = r.inventory_id JOIN film f ON f.film_id = i.film_id GROUP BY 1`},
		{"shop", "customers.customer_id", []string{
			`INSERT INTO regions VALUES (1, 'north'), (2, 'south')`, `INSERT INTO nations VALUES (3, 1, 'ch', 'one'), (4, 2, 'de', 'two')`, `INSERT INTO products VALUES (5, 'a', 1, 'x'), (9, 'b', 2, 'y')`,
			`INSERT INTO addresses VALUES (1, 'canary', 'canary', 3)`, `INSERT INTO customers (customer_id, full_name, home_address) VALUES (7, 'canary', 1)`,
			`INSERT INTO orders (order_id, customer_id, status, placed, priority) VALUES (1, 7, 'F', '2024-01-01', 'canary')`, `INSERT INTO order_lines VALUES (1, 1, 5, NULL, 3, 2.5, 0.1, NULL)`},
			6, `SELECT o.status, sum(l.quantity) FROM order_lines l JOIN orders o ON o.order_id = l.order_id GROUP BY 1`},
		{"university", "Student.StudentId", []string{
			`INSERT INTO "Department" VALUES ('ab', 'x'), ('cd', 'y')`, `INSERT INTO "Course" VALUES (1, 'a', 5), (4, 'b', 6)`, `INSERT INTO "Student" VALUES (7, 'canary', 'canary')`, `INSERT INTO "Enrolment" VALUES (7, 1, 2, 5.5)`},
			7, `SELECT "Semester", count(*) FROM "Enrolment" GROUP BY 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			role, database := server.Role(t, ""), server.Database(t)
			sql, err := os.ReadFile(filepath.Join("testdata", "schemas", c.name+".sql"))
			if err != nil {
				t.Fatal(err)
			}
			server.Exec(t, database, append([]string{string(sql)}, c.rows...)...)
			server.Exec(t, database, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
			path := filepath.Join(t.TempDir(), "policy.yaml")
			out := kit.Run(t, "", "init", server.URLFor(role, database), "--all", "--read-public", "--from", "2020-01-01", "--until", "2029-12-31", "--out", path)
			if out.Code != 0 || !strings.Contains(out.Stderr, "protects each "+c.unit) {
				t.Fatalf("exit %d: %s", out.Code, out.Stderr)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "canary") {
				t.Errorf("a private row is in the policy:\n%s", text)
			}
			if marks := strings.Count(string(text), "# EDIT") - 1; marks != c.marks || !strings.Contains(out.Stderr, fmt.Sprintf("%d lines marked EDIT", marks)) { // one is the head's word for them
				t.Errorf("%d marks, want %d; init said %s", marks, c.marks, out.Stderr)
			}
			golden(t, filepath.Join("testdata", "schemas", c.name+".yaml"), strings.Replace(string(text), lineWith(string(text), "  url: \"postgres:"), "  url: postgres://…\n", 1))
			kit.Edit(t, path, "/"+database, "/"+database+"?sslmode=disable", "listen: 127.0.0.1:6432", "listen: 127.0.0.1:0")
			if out := kit.Run(t, "alice\n", "user", "add", "alice", "--policy", path); out.Code != 0 {
				t.Fatalf("user add: exit %d: %s", out.Code, out.Stderr)
			}
			checked := kit.Run(t, "", "check", "--policy", path)
			if checked.Code != 0 {
				t.Fatalf("check: exit %d: %s%s", checked.Code, checked.Stdout, checked.Stderr)
			}
			from := strings.Index(checked.Stdout, "\ntypical questions") + 1
			typical, _, _ := strings.Cut(checked.Stdout[from:], "ok: serve")
			golden(t, filepath.Join("testdata", "schemas", c.name+".questions.txt"), typical)
			w, err := kit.Serve(t, path).Dial("alice", "data")
			if err != nil {
				t.Fatal(err)
			}
			if r := w.Ask(c.ask); r.Err != nil || len(r.Rows) == 0 {
				t.Errorf("%s: %v, %d rows", c.ask, r.Err, len(r.Rows))
			}
			for line := range strings.Lines(typical) {
				if sql, _, asked := strings.Cut(strings.TrimSpace(line), "  "); asked {
					if r := w.Ask(sql); r.Err != nil {
						t.Errorf("%s: %v", sql, r.Err)
					}
				}
			}
		})
	}
}

// TestInitAsks: where two tables may be whom the budget protects, init writes nothing and shows both.
func TestInitAsks(t *testing.T) {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, `CREATE TABLE patients (id int PRIMARY KEY, email text, active boolean)`, `CREATE TABLE customers (id int PRIMARY KEY, email text, active boolean)`)
	url, path := server.URLFor("postgres", database), filepath.Join(t.TempDir(), "policy.yaml")
	out := kit.Run(t, "", "init", url, "--all", "--out", path)
	if out.Code != 2 || !strings.Contains(out.Stderr, "--unit patients.id") || !strings.Contains(out.Stderr, "--unit customers.id") {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a policy was written")
	}
	if out := kit.Run(t, "", "init", url, "--all", "--unit", "patients.id", "--out", path); out.Code != 0 {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
	if p, err := policy.Read(path); err != nil || p.Datasets[0].Unit.Table != "patients" {
		t.Errorf("%+v: %v", p, err)
	}
	out = kit.Run(t, "", "init", url, "--all", "--schema", "nosuch")
	if !strings.Contains(out.Stderr, "--schema takes one that has some: public") {
		t.Errorf("a schema without tables: %s", out.Stderr)
	}
	for _, wrong := range [][]string{{"--all", "--table", "patients"}, {"--all", "--from", "2020-01-01"}} {
		if out := kit.Run(t, "", append([]string{"init", url}, wrong...)...); out.Code == 0 || out.Stdout != "" {
			t.Errorf("%v: exit %d: %s", wrong, out.Code, out.Stderr)
		}
	}
}

// TestInitOfKeysThatAreNotSure: a table with a foreign key that is not valid yet, or that leads to a table that init
// was not asked to read, is not public, and its keys are not read.
func TestInitOfKeysThatAreNotSure(t *testing.T) {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, `CREATE SCHEMA crm`, `CREATE TABLE crm.owners (id int PRIMARY KEY)`, `INSERT INTO crm.owners VALUES (7)`,
		`CREATE TABLE customers (id int PRIMARY KEY, email text, active boolean)`,
		`CREATE TABLE bags (code varchar(9) PRIMARY KEY, bearer int)`, `INSERT INTO bags VALUES ('canary', 7)`, `ALTER TABLE bags ADD FOREIGN KEY (bearer) REFERENCES customers NOT VALID`,
		`CREATE TABLE plots (code varchar(9) PRIMARY KEY, lord int REFERENCES crm.owners)`, `INSERT INTO plots VALUES ('canary', 7)`,
		`CREATE TABLE stays (id int PRIMARY KEY, customer int REFERENCES customers, bag varchar(9) REFERENCES bags, plot varchar(9) REFERENCES plots)`)
	out := kit.Run(t, "", "init", server.URLFor("postgres", database), "--all", "--read-public")
	if out.Code != 0 || strings.Contains(out.Stdout, "public: true") || strings.Contains(out.Stdout, "canary") || !strings.Contains(out.Stdout, "name: stays") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stderr, out.Stdout)
	}
}

// TestInitOfAnotherSchema: tables of another schema are called by it, so that what is written for the database is
// answered; precisions, chars and columns that are generated load; a key that nobody declared is found.
func TestInitOfAnotherSchema(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, `CREATE SCHEMA cdm`,
		`CREATE DOMAIN cdm.code AS char(3)`, `CREATE DOMAIN cdm.instant AS timestamp(3)`,
		`CREATE TABLE cdm.person (person_id int PRIMARY KEY, year_of_birth int, gender char(1), country_code char(2),
			currency cdm.code, born timestamp(0), seen timestamptz(3), met cdm.instant, decade int GENERATED ALWAYS AS (year_of_birth / 10) STORED,
			person_source_value varchar(50) UNIQUE, status varchar(20), nationality text, api_key char(32))`,
		`CREATE UNIQUE INDEX ON cdm.person (nationality) WHERE nationality > ''`,
		`CREATE TABLE cdm.visit (visit_id bigint PRIMARY KEY, person_id int, site_id int, kind char(4),
			started timestamp(6), token text)`,
		`CREATE TABLE cdm.site (site_id int PRIMARY KEY, site_name varchar(40), beds_used int, last_visit_at timestamptz)`,
		`INSERT INTO cdm.person (person_id, gender, country_code) SELECT i, 'f', 'ch' FROM generate_series(1, 900) AS s(i)`,
		`INSERT INTO cdm.visit (visit_id, person_id, site_id, kind)
			SELECT i, i, 1, 'in' FROM generate_series(1, 900) AS s(i)`,
		`INSERT INTO cdm.site VALUES (1, 'north')`, `GRANT USAGE ON SCHEMA cdm TO `+role,
		`GRANT SELECT ON ALL TABLES IN SCHEMA cdm TO `+role)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	out := kit.Run(t, "", "init", server.URLFor(role, database), "--all", "--schema", "cdm", "--out", path)
	if out.Code != 0 {
		t.Fatalf("exit %d: %s", out.Code, out.Stderr)
	}
	kit.Edit(t, path, "/"+database, "/"+database+"?sslmode=disable", "listen: 127.0.0.1:6432", "listen: 127.0.0.1:0",
		"{epsilon: 1, delta: 1e-7}", "{epsilon: 9, delta: 5e-7}", "epsilon: 0.02", "epsilon: 0.4")
	if out := kit.Run(t, "alice\n", "user", "add", "alice", "--policy", path); out.Code != 0 {
		t.Fatalf("user add: exit %d: %s", out.Code, out.Stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if checked := kit.Run(t, "", "check", "--policy", path); checked.Code != 0 {
		t.Fatalf("check: exit %d: %s%s\n%s", checked.Code, checked.Stdout, checked.Stderr, text)
	}
	w, err := kit.Serve(t, path).Dial("alice", "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`SELECT count(*) FROM cdm.person`, `SELECT gender, count(*) FROM cdm.person GROUP BY 1`,
		`SELECT country_code, count(*) FROM cdm.person GROUP BY 1`,
		`SELECT s.site_name, count(*) FROM cdm.visit v JOIN cdm.site s ON s.site_id = v.site_id GROUP BY 1`,
		`SELECT kind, count(*) FROM cdm.visit GROUP BY 1`, `SELECT count(*) FROM cdm.visit WHERE started < '2020-01-01'`,
		`SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'cdm'`,
		`SET search_path = cdm`, `SELECT count(*) FROM person`,
	} {
		if r := w.Ask(sql); r.Err != nil || len(r.Rows) == 0 && !strings.HasPrefix(sql, "SET") {
			t.Errorf("%s: %v, %d rows\n%s", sql, r.Err, len(r.Rows), text)
		}
	}
	for _, hidden := range strings.Fields("api_key person_source_value token nationality beds_used last_visit_at") {
		if strings.Contains(string(text), "name: "+hidden) {
			t.Errorf("%s is listed:\n%s", hidden, text)
		}
	}
}

// golden holds a text against a file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *updateSchemas {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != text {
		t.Errorf("%s is not what init writes (%v); -update-schemas writes it", path, err)
	}
}

// lineWith is the first line of a text that begins so.
func lineWith(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return prefix
}

// TestInitOfPostgreSQL18: no key is drafted of one that holds for each span of time alone, nor a column that is
// computed when it is read, which check would refuse.
func TestInitOfPostgreSQL18(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if version := conn.PgConn().ParameterStatus("server_version"); version < "18" {
		t.Skipf("the server is PostgreSQL %s: `make versions` has newer ones", version)
	}
	server.Exec(t, database, `CREATE EXTENSION btree_gist`, `CREATE TABLE guests (id bigint PRIMARY KEY, age int CHECK (age BETWEEN 0 AND 99), inverse int GENERATED ALWAYS AS (100 / age) VIRTUAL)`,
		`CREATE TABLE stays (guest bigint NOT NULL REFERENCES guests, span daterange, price int CHECK (price BETWEEN 0 AND 9), PRIMARY KEY (guest, span WITHOUT OVERLAPS))`,
		`CREATE TABLE calls (guest bigint, secs int CHECK (secs BETWEEN 0 AND 59), CONSTRAINT ours FOREIGN KEY (guest) REFERENCES guests NOT ENFORCED)`,
		`INSERT INTO guests VALUES (1, 0)`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	out := kit.Run(t, "", "init", server.URLFor(role, database), "--all", "--unit", "guests.id", "--out", path)
	text, err := os.ReadFile(path)
	if err != nil || out.Code != 0 {
		t.Fatalf("exit %d: %s (%v)", out.Code, out.Stderr, err)
	}
	if got := string(text); strings.Contains(got, "inverse") || strings.Contains(got, "unique:") || strings.Contains(got, "name: span") || !strings.Contains(got, "calls is left out") {
		t.Errorf("it drafts\n%s", got)
	}
	if checked := kit.Run(t, "", "check", "--policy", path); checked.Code != 0 || !strings.Contains(checked.Stdout, "table stays: no constraint proves the rows per") {
		t.Errorf("check: %d\n%s%s", checked.Code, checked.Stdout, checked.Stderr)
	}
}
