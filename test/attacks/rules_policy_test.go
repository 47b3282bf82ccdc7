package attacks

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestRule7RefreshNeedsLifetime: a window without a lifetime is refused at load, with its place. That windows end by
// the ledger's own time, and never backwards, is TestRule7WindowsAndTheLedgersTime of package ledger.
func TestRule7RefreshNeedsLifetime(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
	kit.Edit(t, path, `"*": {epsilon: 5, delta: 0}`, `"*": {epsilon: 5, delta: 0, refresh: 30d}`)
	for _, command := range []string{"serve", "check"} {
		out := kit.Run(t, "", command, "--policy", path)
		if want := map[string]int{"serve": 1, "check": 3}[command]; out.Code != want || !regexp.MustCompile(`policy\.yaml:\d+:\d+: .*refresh needs lifetime`).MatchString(out.Stderr) {
			t.Errorf("%s: exit %d, want %d: %s", command, out.Code, want, out.Stderr)
		}
	}
	kit.Edit(t, path, `refresh: 30d`, `refresh: 30d, lifetime: {epsilon: 5.1, delta: 0}`)
	w := kit.Serve(t, path).Connect("alice", "lab")
	w.Ask(`SELECT count(*) FROM people`)
	a := w.Ask(`SELECT spent, budget, lifetime_spent, lifetime_budget, window_ends IS NOT NULL FROM dp.budget`)
	if fmt.Sprint(a.Rows) != "[[0.1 5 0.1 5.1 t]]" {
		t.Errorf("the account of a window: %v %v", a.Rows, a.Err)
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
		path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
		kit.Edit(t, path, `        releases:
          - {kind: range, columns: [age], epsilon: 0.5, insist: true}
          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
`, fmt.Sprintf(second, c.path))
		if c.unit != "" {
			kit.Edit(t, path, "unit: {name: person, key: people.uid}", c.unit)
		}
		out := kit.Run(t, "", "check", "--policy", path)
		if out.Code != 3 || !strings.Contains(out.Stderr+out.Stdout, c.complaint) || !regexp.MustCompile(`policy\.yaml:\d+:\d+: |dataset lab: table events: `).MatchString(out.Stderr+out.Stdout) {
			t.Errorf("%s: exit %d: %s%s", name, out.Code, out.Stdout, out.Stderr)
		}
	}
}

// TestRule9RowsWithoutAUnitAreExcluded: 5,000 rows whose unit is NULL count nothing, on both engines.
func TestRule9RowsWithoutAUnitAreExcluded(t *testing.T) {
	kit.Beside(t)
	const nobody = `INSERT INTO people SELECT NULL, 30, 500.0, 'n1', 'c1', true FROM generate_series(1, 5000)`
	duck := kit.DuckDB(t, kit.Budgets{User: "50", Cap: "50"}, 0)
	kit.ExecDuckDB(t, duck, nobody)
	server := pgtest.Shared(t)
	postgres, database := kit.Postgres(t, server, kit.Budgets{User: "50", Cap: "50"}, 0)
	server.Exec(t, database, `ALTER TABLE people DROP CONSTRAINT people_pkey, ALTER COLUMN uid DROP NOT NULL`, nobody)
	for engine, path := range map[string]string{"DuckDB": duck, "PostgreSQL": postgres} {
		w := kit.Serve(t, path).Connect("alice", "lab")
		w.Ask(`SET dp.epsilon = 1`)
		// P(|noise| > 21) < 10⁻⁹ at scale 1.
		if n := kit.Count(t, w.Ask(`SELECT count(*) FROM people WHERE note = 'n1'`)); n < 200-21 || n > 200+21 {
			t.Errorf("%s: %d, of 200 people and 5,000 rows of nobody", engine, n)
		}
	}
}

// TestRule9LeavesStayInTheirDataset: a session sees one dataset, and no name reaches another.
func TestRule9LeavesStayInTheirDataset(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
	kit.ExecDuckDB(t, path, `CREATE TABLE others AS SELECT * FROM people`)
	kit.Edit(t, path, "datasets:", `datasets:
  - id: other
    unit: {name: person, key: others.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 5, delta: 0}
    budgets: {"*": {epsilon: 5, delta: 0}}
    tables:
      - {name: others, source: main.others, expected_rows: 1000, max_rows_per_unit: 1, columns: [{name: hiv, type: boolean}]}`)
	w := kit.Serve(t, path).Connect("alice", "lab")
	for _, sql := range []string{`SELECT count(*) FROM others`, `SELECT count(*) FROM other.others`, `SELECT count(*) FROM other.public.others`,
		`SELECT count(*) FROM people, others`, `SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM others)`} {
		if a := w.Ask(sql); a.Err == nil {
			t.Errorf("answered: %s", sql)
		}
	}
	if w.Spent() != "0" {
		t.Errorf("charged %s", w.Spent())
	}
}

// TestRule1AtTheCap: when others have spent the dataset's cap she learns that it is spent, and nothing else changes.
func TestRule1AtTheCap(t *testing.T) {
	b := kit.Budgets{User: "5", Cap: "5"}
	spent, idle := kit.Serve(t, kit.DuckDB(t, b, 0)), kit.Serve(t, kit.DuckDB(t, b, 0))
	p := pair{spent.Connect("alice", "lab"), idle.Connect("alice", "lab")}
	const own = `SELECT count(*) FROM people WHERE city = 'c1'`
	p.sameShape(own)
	bob := spent.Connect("bob", "lab")
	bob.Ask(`SET dp.epsilon = 0.7`)
	for thousand := range 7 {
		if a := bob.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE income > %d`, 1000*thousand)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for _, sql := range append([]string{own}, publicCorpus...) {
		a, b := p.with.Ask(sql), p.without.Ask(sql)
		switch {
		case a.Err == nil || a.Err.Code != "DP001":
			if fmt.Sprint(a.Frames) != fmt.Sprint(b.Frames) {
				t.Errorf("%s:\n%v\n%v", sql, a.Frames, b.Frames)
			}
		case a.Err.Message != "the dataset's budget is spent" || strings.ContainsAny(a.Err.Message+a.Err.Detail+a.Err.Hint, "0123456789"):
			t.Errorf("%s: more than that the cap is spent: %+v", sql, a.Err)
		}
		if a.Err == nil != (b.Err == nil) && (a.Err == nil || a.Err.Code != "DP001") {
			t.Errorf("%s: %v, %v", sql, a.Err, b.Err)
		}
		if strings.Contains(sql, "epsilon = 0.5") {
			break // from here on the two sides hold different releases, as they must
		}
	}
	if a := p.with.Ask(`SELECT count(*) FROM people WHERE hiv IS NULL`); a.Err == nil || a.Err.Code != "DP001" {
		t.Errorf("the cap is not spent: %v", a.Err)
	}
	if p.with.Spent() != "0.1" {
		t.Errorf("charged %s", p.with.Spent())
	}
	if a := spent.Connect("alice", "lab").Ask(own); a.Err != nil {
		t.Error("what she has paid for is not free any more: ", a.Err)
	}
}

// TestRule3ChangedMeaningHidesTheRelease: after a change of a domain the same words are another question, charged anew;
// when the old meaning comes back so does the old answer, free.
func TestRule3ChangedMeaningHidesTheRelease(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
	p := kit.Serve(t, path)
	const sql = `SELECT count(*) FROM people WHERE age < 40`
	ask := func() (int, string) {
		w := p.Connect("alice", "lab")
		return kit.Count(t, w.Ask(sql)), w.Spent()
	}
	first, _ := ask()
	const old, changed = "outside: clamp}", "outside: exclude}"
	for _, c := range []struct{ from, to, spent string }{{old, changed, "0.2"}, {changed, old, "0.2"}} {
		kit.Edit(t, path, c.from, c.to)
		p.Stop(syscall.SIGTERM)
		p.Restart()
		n, spent := ask()
		if spent != c.spent || c.to == old && n != first {
			t.Errorf("%s: %d, first %d; spent %s, want %s", c.to, n, first, spent, c.spent)
		}
	}
}
