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

// TestMadeUpRowsThroughSQL: made-up rows have a name, which catalogs list; reading them never buys and says what would;
// the first aggregate over them buys, once, and whatever is asked of them is free from then on, also after a restart,
// and says that they are synthetic. In the private table's place they are where the session looks at it with
// dp.probes = made_up, and nowhere else: not in COPY, cursors, conditions, orders, joins or aggregates (privacy rules
// 15 and 31).
func TestMadeUpRowsThroughSQL(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDBReleasing(t, 0, fmt.Sprintf(syntheticRelease, "mwem"))
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	if a := w.Ask("SELECT column_name FROM information_schema.columns WHERE table_schema = 'dp' AND table_name = 'people_made_up' ORDER BY ordinal_position"); a.Err != nil || fmt.Sprint(a.Rows) != "[[age] [hiv] [city]]" {
		t.Errorf("%v %v", a.Err, a.Rows)
	}
	for _, q := range []string{"SELECT * FROM dp.people_made_up", "SELECT * FROM dp.made", "SELECT DISTINCT age FROM dp.made", "TABLE dp.people_made_up"} {
		if a := w.Ask(q); a.Err == nil || a.Err.Code != "42501" || !strings.Contains(a.Err.Hint, "SELECT count(*) FROM dp.made buys them") || spentBy(t, w) != "0" {
			t.Errorf("%s: %v, spent %s", q, a.Err, spentBy(t, w))
		}
	}
	w.Ask("SET dp.epsilon = 0.9")
	if a := w.Ask("SELECT count(*) FROM dp.made"); a.Err == nil || spentBy(t, w) != "0" {
		t.Errorf("dearer than dp.epsilon: %v, spent %s", a.Err, spentBy(t, w))
	}
	w.Ask("SET dp.epsilon = 1")
	if text := explainText(t, w, "SELECT count(*) FROM dp.people_made_up"); !strings.Contains(text, "500 made-up rows by MWEM over 234 cells") || !strings.Contains(text, "Cost: ε 1") || spentBy(t, w) != "0" {
		t.Error(text)
	}
	if a := w.Ask("SELECT count(*), avg(age) FROM dp.people_made_up"); a.Err != nil || a.Rows[0][0] != "500" || spentBy(t, w) != "1" {
		t.Fatalf("%v %v, spent %s", a.Err, a.Rows, spentBy(t, w))
	}
	for range 2 {
		for _, c := range []struct {
			probes, q string
			rows      int
			values    string
		}{
			{"off", "SELECT * FROM dp.people_made_up LIMIT 5", 5, ""},
			{"off", "SELECT age, city FROM dp.people_made_up WHERE age < 90 AND city <> 'c1' ORDER BY age DESC, city LIMIT 3", 3, ""},
			{"off", "SELECT city, avg(age), count(*) FROM dp.made m GROUP BY 1", -1, ""},
			{"off", "SELECT count(*) OVER (), age FROM dp.people_made_up WHERE hiv IS NOT NULL LIMIT 1", 1, ""},
			{"off", "COPY (SELECT age FROM dp.people_made_up LIMIT 4) TO STDOUT", -1, ""},
			{"made_up", `SELECT "public"."people"."age" AS "age", "public"."people"."note" AS "note" FROM "public"."people" LIMIT 3`, 3, "NULL"},
			{"made_up", "SELECT uid, age FROM people LIMIT 2", 2, "[[1 "}, // numbers of the rows
			{"made_up", "TABLE people LIMIT 2", 2, ""},
		} {
			w.Ask("SET dp.probes = " + c.probes)
			a := w.Ask(c.q)
			if a.Err != nil || c.rows >= 0 && len(a.Rows) != c.rows || !strings.Contains(fmt.Sprint(a.Rows), c.values) || spentBy(t, w) != "1" {
				t.Errorf("%s: %v %v, spent %s", c.q, a.Err, a.Rows, spentBy(t, w))
			}
			if len(a.Notes) == 0 || !strings.Contains(a.Notes[0], "synthetic") {
				t.Errorf("%s: told %q", c.q, a.Notes)
			}
		}
		for _, probes := range []string{"off", "made_up"} {
			w.Ask("SET dp.probes = " + probes)
			for _, q := range []string{
				"SELECT * FROM people", "SELECT age FROM people WHERE age < 90 LIMIT 3", "SELECT age FROM people ORDER BY age LIMIT 3", "SELECT age + 1 FROM people LIMIT 3",
				"SELECT age FROM people OFFSET 1 LIMIT 3", "SELECT * FROM (SELECT age FROM people) AS virtual_table LIMIT 3", "WITH x AS (SELECT * FROM people) SELECT * FROM x LIMIT 3",
				"COPY (SELECT age FROM people LIMIT 3) TO STDOUT", "COPY people (age) TO STDOUT", "BEGIN; DECLARE c CURSOR FOR SELECT age FROM people LIMIT 3; COMMIT",
				"SELECT a.age FROM people a, dp.made b LIMIT 3", "SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t", "SELECT (SELECT age FROM people LIMIT 1), count(*) FROM dp.made",
				"SELECT EXISTS (SELECT 1 FROM people LIMIT 1)", "SELECT 1 FROM people WHERE city = 'c1' LIMIT 1",
			} {
				a := w.Ask(q)
				if w.Ask("ROLLBACK"); a.Err == nil || a.Err.Code == "42501" && !strings.Contains(a.Err.Hint, "dp.people_made_up") || spentBy(t, w) != "1" {
					t.Errorf("%s: %v %v", q, a.Err, a.Rows)
				}
			}
		}
		w = p.Connect("alice", "lab")
	}
	const q = "SELECT * FROM dp.people_made_up LIMIT 5"
	before := w.Ask(q)
	p.Stop(syscall.SIGKILL)
	p.Restart()
	w = p.Connect("alice", "lab")
	if after := w.Ask(q); after.Err != nil || fmt.Sprint(after.Rows) != fmt.Sprint(before.Rows) {
		t.Errorf("%v: %v, before the restart %v", after.Err, after.Rows, before.Rows)
	}
	bob := p.Connect("bob", "lab")
	if a := bob.Ask(q); a.Err == nil || a.Err.Code != "42501" {
		t.Errorf("unpaid: %v %v", a.Err, a.Rows)
	}
	bob.Ask("SET dp.epsilon = 1")
	if a := bob.Ask("SELECT count(*) FROM dp.made"); a.Err != nil || spentBy(t, bob) != "1" {
		t.Fatalf("%v, spent %s", a.Err, spentBy(t, bob))
	}
	if a := bob.Ask(q); a.Err != nil || fmt.Sprint(a.Rows) != fmt.Sprint(before.Rows) {
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
	if a := w.Ask("SELECT age, hiv FROM dp.people_made_up LIMIT 50"); a.Err != nil || len(a.Rows) != 40 {
		t.Errorf("%v %d", a.Err, len(a.Rows))
	}
}

// TestDawaThroughSQL: rows of one ordered column are near the true ones, are paid for once, and EXPLAIN names how they
// are made. Half of the people are below 48, and none above 77; the false alarm is far below 1e-7 at ε 1.
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
	if a := w.Ask("SELECT age FROM dp.people_made_up LIMIT 50"); a.Err != nil || len(a.Rows) != 50 || spentBy(t, w) != "1" {
		t.Errorf("%v %d, spent %s", a.Err, len(a.Rows), spentBy(t, w))
	}
}
