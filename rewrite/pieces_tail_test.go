package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestTheLastPieceMayBeLonger: where a column's pieces are of one length but for a longer last one, each row is in the
// piece that holds its value, on both engines.
func TestTheLastPieceMayBeLonger(t *testing.T) {
	text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
		"{name: a, type: integer, domain: {min: 0, max: 99999999, step: 1}, nulls: cell, outside: clamp}", 1)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i, a := range []string{"5", "70999", "71000", "79999", "80000", "123456", "99999999", "NULL"} {
		rows = append(rows, fmt.Sprintf("(%d, %s, 1)", i+1, a))
	}
	fill := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a int, b int)", "INSERT INTO clinic.people VALUES " + strings.Join(rows, ", ")}
	for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
		for text, want := range map[string][]int64{
			"SELECT least(a / 1000, 80), count(*) FROM people GROUP BY 1":                   {1, 1, 1, 1, 4},
			"SELECT least((a + 500) / 1000, 80), count(*) FROM people GROUP BY 1":           {1, 2, 5},
			"SELECT CASE WHEN a < 80000 THEN a / 1000 END, count(*) FROM people GROUP BY 1": {1, 1, 1, 1, 4},
		} {
			m := alikePlan(t, p, text).Measures[0]
			if m.Cuts == nil {
				t.Fatalf("%s: not in pieces", text)
			}
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			cells := slices.DeleteFunc(trueCells(m, q, run(t, q.SQL(), q.Args())), func(n int64) bool { return n == 0 })
			if !slices.Equal(cells, want) {
				t.Errorf("%s in dialect %v: %d, want %d", text, d, cells, want)
			}
		}
	}
}
