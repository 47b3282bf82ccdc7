package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// withPlaces is a policy over people and a public table of places, which has so many rows; below 0 there is none.
func withPlaces(t *testing.T, rows int) string {
	t.Helper()
	path := kit.DuckDB(t, kit.Budgets{User: "1", Cap: "2"}, 0)
	kit.Edit(t, path, "    tables:\n", "    tables:\n      - {name: places, source: main.places, public: true, "+
		"columns: [{name: place, type: text}, {name: country, type: text}]}\n")
	if rows < 0 {
		return path
	}
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const table = "CREATE TABLE places AS SELECT 'place ' || i AS place, 'country ' || i % 7 AS country FROM range(?) AS r(i)"
	if _, err := db.Exec(table, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPriceOfAJoinWithAPublicTable: the rows of the table are copied, since the price depends on them, and it is the
// price of the statement without the join.
func TestPriceOfAJoinWithAPublicTable(t *testing.T) {
	kit.Beside(t)
	path := withPlaces(t, 20)
	r := priced(t, 0, "--policy", path, "--user", "alice", "--each", writeScript(t,
		"SELECT country, count(*) FROM people JOIN places ON place = city GROUP BY 1; SELECT city, count(*) FROM people GROUP BY 1"))
	if len(r.Statements) != 2 || r.Statements[0].Status != "answered" || r.Statements[0].Cost != r.Statements[1].Cost {
		t.Errorf("%+v", r.Statements)
	}
}

// TestCheckAndServeAgree: what keeps serve from starting is an error of check, too: a public table of more rows than
// are copied, and a policy that the ledger does not take.
func TestCheckAndServeAgree(t *testing.T) {
	kit.Beside(t)
	path := withPlaces(t, 150300)
	refused := func(what string) {
		t.Helper()
		check, serve := kit.Run(t, "", "check", "--policy", path), kit.Run(t, "", "serve", "--policy", path)
		if check.Code != 3 || !strings.Contains(check.Stdout, "error: ") || !strings.Contains(check.Stdout, what) {
			t.Errorf("check: exit %d: %s%s", check.Code, check.Stdout, check.Stderr)
		}
		if serve.Code != 1 || !strings.Contains(serve.Stderr, what) {
			t.Errorf("serve: exit %d: %s", serve.Code, serve.Stderr)
		}
	}
	refused("public table places: has more than 100000 rows")
	kit.Edit(t, path, "public: true,", "public: true, max_rows: 200000,")
	p := kit.Serve(t, path)
	p.Connect("alice", "lab").Ask("SELECT count(*) FROM people") // the first charge binds people to lab
	p.Stop(syscall.SIGTERM)
	if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	kit.Edit(t, path, "  - id: lab", "  - id: other")
	refused("belongs to dataset lab")
}

// TestPriceSaysWhatItDidNotRead: a price that depends on the rows of a public table which cannot be copied is not put
// off to later.
func TestPriceSaysWhatItDidNotRead(t *testing.T) {
	kit.Beside(t)
	path := withPlaces(t, -1)
	r := priced(t, 3, "--policy", path, "--user", "alice", writeScript(t, "SELECT country, count(*) FROM people JOIN places ON place = city GROUP BY 1"))
	f := r.Statements[0].Refusal
	if f == nil || f.ID != "public-table-not-copied" || !strings.Contains(f.Reason, "were not read") || strings.Contains(f.Hint, "later") {
		t.Errorf("%+v", f)
	}
}
