package answers

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/test/kit"
)

func simpleQuery(sql string) *pgproto3.Query { return &pgproto3.Query{String: sql} }

const syntheticRelease = "          - {kind: synthetic, name: made, columns: [{column: age, step: 10}, hiv, city], mechanism: %s, epsilon: 1, rows: 500}\n"

// TestMadeUpRowsThroughSQL: a preview never buys and says what would; the first aggregate over dp.name buys, once; from then on
// previews show made-up rows as BI tools ask for them, with conditions, order and limits, say that they are synthetic, and
// whatever is asked of dp.name is free, also after a restart; a column that is not there is NULL, and is not compared; no
// aggregate is ever computed on made-up rows in the place of private ones.
func TestMadeUpRowsThroughSQL(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDBReleasing(t, 0, fmt.Sprintf(syntheticRelease, "mwem"))
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	for _, q := range []string{"SELECT * FROM people LIMIT 5", "SELECT * FROM dp.made", "SELECT DISTINCT age FROM dp.made", "TABLE people"} {
		if a := w.Ask(q); a.Err == nil || a.Err.Code != "42501" || !strings.Contains(a.Err.Hint, "SELECT count(*) FROM dp.made buys them") || spentBy(t, w) != "0" {
			t.Errorf("%s: %v, spent %s", q, a.Err, spentBy(t, w))
		}
	}
	w.Ask("SET dp.epsilon = 0.9")
	if a := w.Ask("SELECT count(*) FROM dp.made"); a.Err == nil || spentBy(t, w) != "0" {
		t.Errorf("dearer than dp.epsilon: %v, spent %s", a.Err, spentBy(t, w))
	}
	w.Ask("SET dp.epsilon = 1")
	if text := explainText(t, w, "SELECT count(*) FROM dp.made"); !strings.Contains(text, "500 made-up rows by MWEM over 234 cells") || !strings.Contains(text, "Cost: ε 1") || spentBy(t, w) != "0" {
		t.Error(text)
	}
	if a := w.Ask("SELECT count(*), avg(age) FROM dp.made"); a.Err != nil || a.Rows[0][0] != "500" || spentBy(t, w) != "1" {
		t.Fatalf("%v %v, spent %s", a.Err, a.Rows, spentBy(t, w))
	}
	for range 2 {
		for _, c := range []struct {
			q      string
			rows   int
			values string
		}{
			{"SELECT * FROM people LIMIT 5", 5, ""},
			{"SELECT age, city FROM people WHERE age < 90 AND city <> 'c1' ORDER BY age DESC, city LIMIT 3", 3, ""},
			{`SELECT "public"."people"."age" AS "age", "public"."people"."note" AS "note" FROM "public"."people" LIMIT 3`, 3, "NULL"},
			{"SELECT * FROM (SELECT age, upper(city) AS c FROM people) AS virtual_table WHERE c <> 'C1' LIMIT 3", 3, "C"},
			{"SELECT city, avg(age), count(*) FROM dp.made m GROUP BY 1", -1, ""},
			{"SELECT count(*) OVER (), age FROM dp.made WHERE hiv IS NOT NULL LIMIT 1", 1, ""},
			{"SELECT * FROM people LIMIT 0", 0, ""},
			{"SELECT uid, age FROM people ORDER BY uid LIMIT 2", 2, "[[1 "}, // numbers of the rows
			{"SELECT * FROM (SELECT p.uid AS who FROM people p) t LIMIT 2", 2, "[[1] [2]]"},
		} {
			a := w.Ask(c.q)
			if a.Err != nil || c.rows >= 0 && len(a.Rows) != c.rows || !strings.Contains(fmt.Sprint(a.Rows), c.values) || spentBy(t, w) != "1" {
				t.Errorf("%s: %v %v, spent %s", c.q, a.Err, a.Rows, spentBy(t, w))
			}
			if c.rows != 0 && (len(a.Notes) == 0 || !strings.Contains(a.Notes[0], "synthetic")) {
				t.Errorf("%s: told %q", c.q, a.Notes)
			}
		}
		for q, code := range map[string]string{
			"SELECT age FROM people WHERE note = 'n1' LIMIT 3":                     "DP002",
			"SELECT uid FROM people WHERE uid IS NOT NULL LIMIT 3":                 "DP002",
			"SELECT uid FROM people WHERE uid = 1 LIMIT 3":                         "42501",
			"SELECT age, length(note) FROM people LIMIT 3":                         "DP002",
			"SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t":               "DP002",
			"SELECT a.age FROM people a, dp.made b LIMIT 3":                        "DP002",
			"WITH x AS (SELECT * FROM people) SELECT * FROM x LIMIT 3":             "42501",
			"SELECT (SELECT age FROM people LIMIT 1), count(*) FROM dp.made":       "",
			"SELECT count(*) FROM people WHERE age IN (SELECT age FROM dp.made)":   "DP002",
			"SELECT * FROM people p JOIN dp.made m ON m.age = p.age AND m.age = 3": "DP002",
		} {
			if a := w.Ask(q); code == "" && a.Err != nil || code != "" && (a.Err == nil || a.Err.Code != code) {
				t.Errorf("%s: %v %v, want %s", q, a.Err, a.Rows, code)
			}
		}
		w = p.Connect("alice", "lab")
	}
	before := w.Ask("SELECT * FROM people LIMIT 5")
	p.Stop(syscall.SIGKILL)
	p.Restart()
	w = p.Connect("alice", "lab")
	if after := w.Ask("SELECT * FROM people LIMIT 5"); after.Err != nil || fmt.Sprint(after.Rows) != fmt.Sprint(before.Rows) {
		t.Errorf("%v: %v, before the restart %v", after.Err, after.Rows, before.Rows)
	}
	bob := p.Connect("bob", "lab")
	if a := bob.Ask("SELECT * FROM people LIMIT 5"); a.Err == nil || a.Err.Code != "42501" {
		t.Errorf("unpaid: %v %v", a.Err, a.Rows)
	}
	bob.Ask("SET dp.epsilon = 1")
	if a := bob.Ask("SELECT count(*) FROM dp.made"); a.Err != nil || spentBy(t, bob) != "1" {
		t.Fatalf("%v, spent %s", a.Err, spentBy(t, bob))
	}
	if a := bob.Ask("SELECT * FROM people LIMIT 5"); a.Err != nil || fmt.Sprint(a.Rows) != fmt.Sprint(before.Rows) {
		t.Errorf("the release is shared: %v %v", a.Err, a.Rows)
	}
}

// TestSmallDatabaseThroughSQL: few columns, few cells, and rows of them.
func TestSmallDatabaseThroughSQL(t *testing.T) {
	kit.Beside(t)
	release := "          - {kind: synthetic, name: small, columns: [{column: age, step: 60}, hiv], mechanism: small-database, epsilon: 1, rows: 40}\n"
	w := kit.Serve(t, kit.DuckDBReleasing(t, 0, release)).Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	if a := w.Ask("SELECT count(*) FILTER (WHERE age < 60), count(*) FILTER (WHERE NOT hiv) FROM dp.small"); a.Err != nil || spentBy(t, w) != "1" {
		t.Errorf("%v %v, spent %s", a.Err, a.Rows, spentBy(t, w))
	}
	if a := w.Ask("SELECT age, hiv FROM people LIMIT 50"); a.Err != nil || len(a.Rows) != 40 {
		t.Errorf("%v %d", a.Err, len(a.Rows))
	}
}

// TestDawaThroughSQL: rows of one ordered column are near the true ones, are paid for once, and EXPLAIN names how they are made. Half
// of the people are below 48, and none above 77; the false alarm is far below 1e-7 at ε 1.
func TestDawaThroughSQL(t *testing.T) {
	kit.Beside(t)
	release := "          - {kind: synthetic, name: ages, columns: [age], mechanism: dawa, epsilon: 1, rows: 1000}\n"
	w := kit.Serve(t, kit.DuckDBReleasing(t, 0, release)).Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	if text := explainText(t, w, "SELECT count(*) FROM dp.ages"); !strings.Contains(text, "1000 made-up rows by DAWA over 121 cells") || !strings.Contains(text, "Cost: ε 1") || spentBy(t, w) != "0" {
		t.Error(text)
	}
	a := w.Ask("SELECT count(*) FILTER (WHERE age < 48), count(*) FILTER (WHERE age > 90) FROM dp.ages")
	if a.Err != nil || spentBy(t, w) != "1" {
		t.Fatalf("%v %v, spent %s", a.Err, a.Rows, spentBy(t, w))
	}
	var half, old float64
	if _, err := fmt.Sscan(a.Rows[0][0], &half); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(a.Rows[0][1], &old); err != nil {
		t.Fatal(err)
	}
	if half < 400 || half > 600 || old > 100 {
		t.Errorf("%v of 1000 made-up rows are below 48, %v above 90", half, old)
	}
	if a := w.Ask("SELECT age FROM people LIMIT 50"); a.Err != nil || len(a.Rows) != 50 || spentBy(t, w) != "1" {
		t.Errorf("%v %d, spent %s", a.Err, len(a.Rows), spentBy(t, w))
	}
}
