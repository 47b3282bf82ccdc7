package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestInitMySQL: from a schema in MariaDB init writes a policy that check accepts, with a snapshot, and that serve
// answers over. No row of a private table is in it, and no password.
func TestInitMySQL(t *testing.T) {
	server := mariadbtest.Start(t)
	database := server.Database(t)
	role := server.Role(t, database)
	server.ExecIn(t, database,
		"CREATE TABLE country (country_id smallint unsigned AUTO_INCREMENT PRIMARY KEY, name varchar(40)) COMMENT 'countries'",
		"CREATE TABLE customer (customer_id bigint unsigned AUTO_INCREMENT PRIMARY KEY, email varchar(100), full_name varchar(100), birth_date date, country_id smallint unsigned, active tinyint(1), era int AS (year(birth_date)) VIRTUAL, since int AS (year(birth_date)) STORED, tier enum('free', 'it''s paid'), FOREIGN KEY (country_id) REFERENCES country (country_id))",
		"CREATE TABLE orders (order_id int AUTO_INCREMENT PRIMARY KEY, customer_id bigint unsigned, placed datetime, status varchar(10) CHECK (status IN ('new', 'paid')), FOREIGN KEY (customer_id) REFERENCES customer (customer_id))",
		"CREATE TABLE order_lines (order_id int, line_no int, quantity int CHECK (quantity BETWEEN 1 AND 99), price decimal(8,2), PRIMARY KEY (order_id, line_no), FOREIGN KEY (order_id) REFERENCES orders (order_id))",
		"CREATE TABLE locker (locker_id int PRIMARY KEY, label varchar(9))",
		"ALTER TABLE customer ADD locker_id int UNIQUE, ADD city varchar(40) UNIQUE",
		"ALTER TABLE customer ADD FOREIGN KEY (locker_id) REFERENCES locker (locker_id)",
		"INSERT INTO locker VALUES (1, 'canary')",
		"INSERT INTO country VALUES (1, 'CH'), (2, 'DE')", "INSERT INTO customer (customer_id, email, full_name, birth_date, country_id, active, tier) VALUES (7, 'canary', 'canary', '1990-01-01', 1, 1, 'free')",
		"INSERT INTO orders VALUES (1, 7, '2024-01-01', 'new')", "INSERT INTO order_lines VALUES (1, 1, 3, 2.5), (1, 2, 4, 2.5)")
	path := filepath.Join(t.TempDir(), "policy.yaml")
	out := kit.Run(t, "", "init", server.URL(role, database), "--all", "--read-public", "--from", "2020-01-01", "--until", "2029-12-31", "--out", path)
	if out.Code != 0 || !strings.Contains(out.Stderr, "protects each customer.customer_id") {
		t.Fatalf("exit %d: %s", out.Code, out.Stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"snapshot: {dir: snapshots", "it's paid", "unit: ", "min: 1, max: 99", "public: true",
		"name: since", "locker is left out", "city: not listed"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "canary") || strings.Contains(string(text), role+":") {
		t.Errorf("a private row, or the password, is in the policy:\n%s", text)
	}
	kit.Edit(t, path, "mysql://"+role+"@", "mysql://"+role+":"+role+"@", "listen: 127.0.0.1:6432", "listen: 127.0.0.1:0")
	if out := kit.Run(t, "alice\n", "user", "add", "alice", "--policy", path); out.Code != 0 {
		t.Fatalf("user add: exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 {
		t.Fatalf("check: exit %d: %s%s\n%s", out.Code, out.Stdout, out.Stderr, text)
	}
	w, err := kit.Serve(t, path).Dial("alice", "data")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Ask("SELECT o.status, sum(l.quantity) FROM order_lines l JOIN orders o ON o.order_id = l.order_id GROUP BY 1"); r.Err != nil || len(r.Rows) == 0 {
		t.Errorf("got %v, %v", r.Rows, r.Err)
	}
	if out := kit.Run(t, "", "init", server.URL(role, database), "--table", "nowhere"); out.Code == 0 || !strings.Contains(out.Stderr, "table nowhere: not found") {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "init", server.URL("nobody_"+role, database), "--all"); out.Code == 0 || strings.Contains(out.Stderr, "nobody_") {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
	if out := kit.Run(t, "", "prepare", "--policy", path); out.Code != 2 || !strings.Contains(out.Stderr, "prepare is for PostgreSQL") {
		t.Errorf("exit %d: %s", out.Code, out.Stderr)
	}
}
