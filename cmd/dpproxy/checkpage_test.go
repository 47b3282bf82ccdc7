package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// pageLines is how many lines a page has.
const pageLines = 60

// manyVisits is a policy over people and so many tables of their visits.
func manyVisits(t *testing.T, tables int) string {
	t.Helper()
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var b strings.Builder
	for i := range tables {
		const table = "CREATE TABLE visits%d (id BIGINT PRIMARY KEY, who BIGINT, ward VARCHAR, room INTEGER)"
		if _, err := db.Exec(fmt.Sprintf(table, i)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, `      - name: visits%d
        source: main.visits%[1]d
        expected_rows: 1000
        unit: visits%[1]d.who = people.uid
        max_rows_per_unit: %d
        unique: [[id]]
        columns:
          - {name: id, type: bigint, keys: join}
          - {name: ward, type: text, keys: discover}
          - {name: room, type: integer, domain: {min: 0, max: 99, step: 1}}
`, i, 5+i%3)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, b.String()...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCheckPrintsAPage: of a policy of sixty tables check prints a page: by kind, counted, the grave ones first;
// --verbose prints all of it.
func TestCheckPrintsAPage(t *testing.T) {
	kit.Beside(t)
	path := manyVisits(t, 60)
	out := kit.Run(t, "", "check", "--policy", path)
	if lines := strings.Count(out.Stdout, "\n"); out.Code != 0 || lines > pageLines {
		t.Errorf("exit %d, %d lines: %s", out.Code, lines, out.Stderr)
	}
	golden(t, filepath.Join("testdata", "check_page.txt"), strings.ReplaceAll(out.Stdout, filepath.Dir(path)+"/", ""))
	all := kit.Run(t, "", "check", "--verbose", "--policy", path).Stdout
	if strings.Count(all, "\nwarning: dataset lab: column visits") != 60 || strings.Contains(all, "of this kind") {
		t.Errorf("--verbose: %s", all)
	}
	kit.Edit(t, path, "source: main.visits7\n", "source: main.visits_7\n")
	out = kit.Run(t, "", "check", "--policy", path)
	at := func(mark string) int { return strings.Index(out.Stdout, mark) }
	if out.Code != 3 || at("error: ") < 0 || at("warning: ") < at("error: ") || at("note: ") < at("warning: ") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
}
