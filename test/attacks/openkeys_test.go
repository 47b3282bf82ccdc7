package attacks

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

const openKeysSQL = `CREATE TABLE main.people AS SELECT i AS uid, CASE WHEN i = 7 THEN 'one of a kind' WHEN i % 50 = 0 THEN NULL ELSE 'town ' || (i % 3) END AS town,
  CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex FROM range(1, 20001) AS r(i)`

// openKeysFixture is a database of 20,000 people in three towns, some in none, and one where nobody else is.
func openKeysFixture(t *testing.T) string {
	t.Helper()
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
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

// TestKeysThatWereFoundInVain: where the cap holds what finds the keys and not the counts by them, the refusal comes
// with what was charged.
func TestKeysThatWereFoundInVain(t *testing.T) {
	path := openKeysFixture(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), "cap: {epsilon: 20,", "cap: {epsilon: 0.07,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := kit.Serve(t, path).Connect("alice", "lab")
	a := w.Ask(`SELECT town, sex, count(*) FROM people GROUP BY 1, 2`)
	if a.Err == nil || a.Err.Code != "DP001" || !strings.Contains(strings.Join(a.Notes, "\n"), "cost ε 0.05, δ 6.25e-08; 9.95 of 10 left; the keys that were found are yours") {
		t.Errorf("%v with %q", a.Err, a.Notes)
	}
	if a := w.Ask(`SELECT DISTINCT town FROM people`); a.Err != nil || len(a.Rows) < 3 || w.Spent() != "0.05" {
		t.Errorf("%v, %d towns, spent %s", a.Err, len(a.Rows), w.Spent())
	}
}

// TestKeysAreFoundThroughSQL: keys that enough people have are found, NULL among them, and a single person's is not;
// the same question, and what the keys answer, is free afterwards, also when the proxy has been restarted; EXPLAIN and
// refusals charge nothing; an exact comparison needs no keys.
func TestKeysAreFoundThroughSQL(t *testing.T) {
	kit.Beside(t)
	path := openKeysFixture(t)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	const ask = `SELECT town, count(*) FROM people GROUP BY town ORDER BY town`
	spent := func() string { return w.Ask(`SELECT spent FROM dp.budget`).Rows[0][0] }
	if a := w.Ask(`EXPLAIN ` + ask); a.Err != nil || spent() != "0" {
		t.Fatalf("%v, spent %s", a.Err, spent())
	}
	if a := w.Ask(`SELECT count(*) FROM people WHERE town SIMILAR TO 'town%'`); a.Err == nil || spent() != "0" {
		t.Fatalf("%v, spent %s", a.Err, spent())
	}
	first := w.Ask(ask)
	var towns []string
	for _, row := range first.Rows {
		towns = append(towns, row[0])
	}
	if first.Err != nil || len(towns) != 4 || !slices.Equal(towns[:3], []string{"town 0", "town 1", "town 2"}) || spent() != "0.1" {
		t.Fatalf("%v, found %q, spent %s", first.Err, towns, spent())
	}
	for _, free := range []string{ask, `SELECT upper(town), count(*) FROM people GROUP BY 1`, `SELECT DISTINCT town FROM people`} {
		if a := w.Ask(free); a.Err != nil || len(a.Rows) != 4 || spent() != "0.1" {
			t.Errorf("%s: %v, %d rows, spent %s", free, a.Err, len(a.Rows), spent())
		}
	}
	if a := w.Ask(`SELECT count(*) FROM people WHERE town = 'one of a kind'`); a.Err != nil || len(a.Rows) != 1 || spent() != "0.2" {
		t.Errorf("%v, spent %s", a.Err, spent())
	}
	if a := w.Ask(`SELECT town, sex, count(*) FROM people GROUP BY 1, 2`); a.Err != nil || len(a.Rows) != 16 || spent() != "0.25" {
		t.Errorf("%v, %d rows, spent %s", a.Err, len(a.Rows), spent())
	}
	p.Stop(syscall.SIGTERM)
	w = kit.Serve(t, path).Connect("alice", "lab")
	again := w.Ask(ask)
	if again.Err != nil || !slices.EqualFunc(again.Rows, first.Rows, func(a, b []string) bool { return slices.Equal(a, b) }) || spent() != "0.25" {
		t.Errorf("after a restart: %v, spent %s", again.Rows, spent())
	}
}
