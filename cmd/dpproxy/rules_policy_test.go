package main

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// TestRule7RefreshNeedsLifetime: a window without a lifetime is refused at load, with its place. That windows end by the
// ledger's own time, and never backwards, is TestRule7WindowsAndTheLedgersTime of package ledger.
func TestRule7RefreshNeedsLifetime(t *testing.T) {
	path := duckFixture(t, budgets{"5", "50"}, 0)
	edit(t, path, `"*": {epsilon: 5, delta: 0}`, `"*": {epsilon: 5, delta: 0, refresh: 30d}`)
	for _, command := range []string{"serve", "check"} {
		out := dpproxy(t, "", command, "--policy", path)
		if want := map[string]int{"serve": 1, "check": 3}[command]; out.code != want || !regexp.MustCompile(`policy\.yaml:\d+:\d+: .*refresh needs lifetime`).MatchString(out.stderr) {
			t.Errorf("%s: exit %d, want %d: %s", command, out.code, want, out.stderr)
		}
	}
	edit(t, path, `refresh: 30d`, `refresh: 30d, lifetime: {epsilon: 5.1, delta: 0}`)
	w := serveProcess(t, path).connect("alice", "lab")
	w.ask(`SELECT count(*) FROM people`)
	a := w.ask(`SELECT spent, budget, lifetime_spent, lifetime_budget, window_ends IS NOT NULL FROM dp.budget`)
	if fmt.Sprint(a.rows) != "[[0.1 5 0.1 5.1 t]]" {
		t.Errorf("the account of a window: %v %v", a.rows, a.err)
	}
}

// TestRule9UnitStandsAtTheDataset: what would leave a person with two units, or a row with none, is refused at load.
func TestRule9UnitStandsAtTheDataset(t *testing.T) {
	const second = `      - name: events
        source: main.events
        %s
        expected_rows: 1000
        max_rows_per_unit: 5
        columns:
          - {name: kind, type: text, domain: {values: [a, b]}}
`
	for name, c := range map[string]struct{ unit, path, complaint string }{
		"unit: row with two private tables":      {"unit: row", "", "row"},
		"a table without a path to the unit":     {"", "", "unit"},
		"a row with two paths":                   {"", `unit: "events.sender = people.uid or events.receiver = people.uid"`, "unit"},
		"a path through a column that is no key": {"", "unit: events.age = people.age", "no unique, NOT NULL constraint"},
	} {
		path := duckFixture(t, budgets{"5", "50"}, 0)
		edit(t, path, `        releases:
          - {kind: range, columns: [age], epsilon: 0.5}
          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
`, fmt.Sprintf(second, c.path))
		if c.unit != "" {
			edit(t, path, "unit: {name: person, key: people.uid}", c.unit)
		}
		out := dpproxy(t, "", "check", "--policy", path)
		if out.code != 3 || !strings.Contains(out.stderr+out.stdout, c.complaint) || !regexp.MustCompile(`policy\.yaml:\d+:\d+: |dataset lab: table events: `).MatchString(out.stderr+out.stdout) {
			t.Errorf("%s: exit %d: %s%s", name, out.code, out.stdout, out.stderr)
		}
	}
}

// TestRule9RowsWithoutAUnitAreExcluded: 5,000 rows whose unit is NULL count nothing, on both engines.
func TestRule9RowsWithoutAUnitAreExcluded(t *testing.T) {
	beside(t)
	const nobody = `INSERT INTO people SELECT NULL, 30, 500.0, 'n1', 'c1', true FROM generate_series(1, 5000)`
	duck := duckFixture(t, budgets{"50", "50"}, 0)
	duckExec(t, duck, nobody)
	server := pgtest.Shared(t)
	postgres, database := pgFixture(t, server, budgets{"50", "50"}, 0)
	server.Exec(t, database, `ALTER TABLE people DROP CONSTRAINT people_pkey, ALTER COLUMN uid DROP NOT NULL`, nobody)
	for engine, path := range map[string]string{"DuckDB": duck, "PostgreSQL": postgres} {
		w := serveProcess(t, path).connect("alice", "lab")
		w.ask(`SET dp.epsilon = 1`)
		// P(|noise| > 21) < 10⁻⁹ at scale 1.
		if n := count(t, w.ask(`SELECT count(*) FROM people WHERE note = 'n1'`)); n < 200-21 || n > 200+21 {
			t.Errorf("%s: %d, of 200 people and 5,000 rows of nobody", engine, n)
		}
	}
}

// TestRule9LeavesStayInTheirDataset: a session sees one dataset, and no name reaches another.
func TestRule9LeavesStayInTheirDataset(t *testing.T) {
	path := duckFixture(t, budgets{"5", "50"}, 0)
	duckExec(t, path, `CREATE TABLE others AS SELECT * FROM people`)
	edit(t, path, "datasets:", `datasets:
  - id: other
    unit: {name: person, key: others.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 5, delta: 0}
    budgets: {"*": {epsilon: 5, delta: 0}}
    tables:
      - {name: others, source: main.others, expected_rows: 1000, max_rows_per_unit: 1, columns: [{name: hiv, type: boolean}]}`)
	w := serveProcess(t, path).connect("alice", "lab")
	for _, sql := range []string{`SELECT count(*) FROM others`, `SELECT count(*) FROM other.others`, `SELECT count(*) FROM other.public.others`,
		`SELECT count(*) FROM people, others`, `SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM others)`} {
		if a := w.ask(sql); a.err == nil {
			t.Errorf("answered: %s", sql)
		}
	}
	if w.spent() != "0" {
		t.Errorf("charged %s", w.spent())
	}
}

// TestRule1AtTheCap: when others have spent the dataset's cap she learns that it is spent, and nothing else changes.
func TestRule1AtTheCap(t *testing.T) {
	b := budgets{"5", "5"}
	spent, idle := serveProcess(t, duckFixture(t, b, 0)), serveProcess(t, duckFixture(t, b, 0))
	p := pair{spent.connect("alice", "lab"), idle.connect("alice", "lab")}
	const own = `SELECT count(*) FROM people WHERE city = 'c1'`
	p.sameShape(own)
	bob := spent.connect("bob", "lab")
	bob.ask(`SET dp.epsilon = 0.7`)
	for thousand := range 7 {
		if a := bob.ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE income > %d`, 1000*thousand)); a.err != nil {
			t.Fatal(a.err)
		}
	}
	for _, sql := range append([]string{own}, publicCorpus...) {
		a, b := p.with.ask(sql), p.without.ask(sql)
		switch {
		case a.err == nil || a.err.Code != "DP001":
			if fmt.Sprint(a.frames) != fmt.Sprint(b.frames) {
				t.Errorf("%s:\n%v\n%v", sql, a.frames, b.frames)
			}
		case a.err.Message != "the dataset's budget is spent" || strings.ContainsAny(a.err.Message+a.err.Detail+a.err.Hint, "0123456789"):
			t.Errorf("%s: more than that the cap is spent: %+v", sql, a.err)
		}
		if a.err == nil != (b.err == nil) && (a.err == nil || a.err.Code != "DP001") {
			t.Errorf("%s: %v, %v", sql, a.err, b.err)
		}
		if strings.Contains(sql, "epsilon = 0.5") {
			break // from here on the two sides hold different releases, as they must
		}
	}
	if a := p.with.ask(`SELECT count(*) FROM people WHERE hiv IS NULL`); a.err == nil || a.err.Code != "DP001" {
		t.Errorf("the cap is not spent: %v", a.err)
	}
	if p.with.spent() != "0.1" {
		t.Errorf("charged %s", p.with.spent())
	}
	if a := spent.connect("alice", "lab").ask(own); a.err != nil {
		t.Error("what she has paid for is not free any more: ", a.err)
	}
}

// TestRule3ChangedMeaningHidesTheRelease: after a change of a domain the same words are another question, charged anew; when
// the old meaning comes back so does the old answer, free.
func TestRule3ChangedMeaningHidesTheRelease(t *testing.T) {
	beside(t)
	path := duckFixture(t, budgets{"5", "50"}, 0)
	p := serveProcess(t, path)
	const sql = `SELECT count(*) FROM people WHERE age < 40`
	ask := func() (int, string) {
		w := p.connect("alice", "lab")
		return count(t, w.ask(sql)), w.spent()
	}
	first, _ := ask()
	const old, changed = "outside: clamp}", "outside: exclude}"
	for _, c := range []struct{ from, to, spent string }{{old, changed, "0.2"}, {changed, old, "0.2"}} {
		edit(t, path, c.from, c.to)
		p.stop(syscall.SIGTERM)
		p.restart()
		n, spent := ask()
		if spent != c.spent || c.to == old && n != first {
			t.Errorf("%s: %d, first %d; spent %s, want %s", c.to, n, first, spent, c.spent)
		}
	}
}
