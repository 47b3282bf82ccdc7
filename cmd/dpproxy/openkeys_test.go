package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const openKeysSQL = `CREATE TABLE main.people AS SELECT i AS uid, CASE WHEN i = 7 THEN 'one of a kind' WHEN i % 50 = 0 THEN NULL ELSE 'town ' || (i % 3) END AS town,
  CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex FROM range(1, 20001) AS r(i)`

// openKeysFixture is a database of 20,000 people in three towns, some in none, and one where nobody else is.
func openKeysFixture(t *testing.T) string {
	t.Helper()
	path := duckFixture(t, budgets{"10", "20"}, 0)
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "open.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(openKeysSQL); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(strings.NewReplacer("lab.duckdb", "open.duckdb", "epsilon: 10, delta: 0", "epsilon: 10, delta: 1e-6", "epsilon: 20, delta: 0", "epsilon: 20, delta: 1e-5").Replace(string(data)), "        columns:")
	text += "        columns:\n          - {name: town, type: text, keys: discover}\n          - {name: sex, type: text, domain: {values: [f, m]}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeysThatWereFoundInVain: where the cap holds what finds the keys and not the counts by them, the refusal comes with
// what was charged.
func TestKeysThatWereFoundInVain(t *testing.T) {
	path := openKeysFixture(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), "cap: {epsilon: 20,", "cap: {epsilon: 0.07,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := serveProcess(t, path).connect("alice", "lab")
	a := w.ask(`SELECT town, sex, count(*) FROM people GROUP BY 1, 2`)
	if a.err == nil || a.err.Code != "DP001" || !strings.Contains(strings.Join(a.notes, "\n"), "cost ε 0.05, δ 6.25e-08; 9.95 of 10 left; the keys that were found are yours") {
		t.Errorf("%v with %q", a.err, a.notes)
	}
	if a := w.ask(`SELECT DISTINCT town FROM people`); a.err != nil || len(a.rows) < 3 || w.spent() != "0.05" {
		t.Errorf("%v, %d towns, spent %s", a.err, len(a.rows), w.spent())
	}
}

// TestKeysAreFoundThroughSQL: keys that enough people have are found, NULL among them, and a single person's is not; the
// same question, and what the keys answer, is free afterwards, also when the proxy has been restarted; EXPLAIN and refusals
// charge nothing; an exact comparison needs no keys.
func TestKeysAreFoundThroughSQL(t *testing.T) {
	beside(t)
	path := openKeysFixture(t)
	p := serveProcess(t, path)
	w := p.connect("alice", "lab")
	const ask = `SELECT town, count(*) FROM people GROUP BY town ORDER BY town`
	spent := func() string { return w.ask(`SELECT spent FROM dp.budget`).rows[0][0] }
	if a := w.ask(`EXPLAIN ` + ask); a.err != nil || spent() != "0" {
		t.Fatalf("%v, spent %s", a.err, spent())
	}
	if a := w.ask(`SELECT count(*) FROM people WHERE town LIKE 'town%'`); a.err == nil || spent() != "0" {
		t.Fatalf("%v, spent %s", a.err, spent())
	}
	first := w.ask(ask)
	var towns []string
	for _, row := range first.rows {
		towns = append(towns, row[0])
	}
	if first.err != nil || len(towns) != 4 || !slices.Equal(towns[:3], []string{"town 0", "town 1", "town 2"}) || spent() != "0.1" {
		t.Fatalf("%v, found %q, spent %s", first.err, towns, spent())
	}
	for _, free := range []string{ask, `SELECT upper(town), count(*) FROM people GROUP BY 1`, `SELECT DISTINCT town FROM people`} {
		if a := w.ask(free); a.err != nil || len(a.rows) != 4 || spent() != "0.1" {
			t.Errorf("%s: %v, %d rows, spent %s", free, a.err, len(a.rows), spent())
		}
	}
	if a := w.ask(`SELECT count(*) FROM people WHERE town = 'one of a kind'`); a.err != nil || len(a.rows) != 1 || spent() != "0.2" {
		t.Errorf("%v, spent %s", a.err, spent())
	}
	if a := w.ask(`SELECT town, sex, count(*) FROM people GROUP BY 1, 2`); a.err != nil || len(a.rows) != 16 || spent() != "0.25" {
		t.Errorf("%v, %d rows, spent %s", a.err, len(a.rows), spent())
	}
	p.stop(syscall.SIGTERM)
	w = serveProcess(t, path).connect("alice", "lab")
	again := w.ask(ask)
	if again.err != nil || !slices.EqualFunc(again.rows, first.rows, func(a, b []string) bool { return slices.Equal(a, b) }) || spent() != "0.25" {
		t.Errorf("after a restart: %v, spent %s", again.rows, spent())
	}
}
