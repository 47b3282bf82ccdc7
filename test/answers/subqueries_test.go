package answers

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestSubqueriesAreThoseOfPlainSQL: statements whose sub-queries are answered first (ADR 117).
func TestSubqueriesAreThoseOfPlainSQL(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	answersOf(t, fresh, direct, "testdata/subqueries.sql")
}

// TestSubqueriesCost: a statement with a sub-query that is answered first costs no more than dp.epsilon, is free when
// it is asked again, tells both parts beforehand and afterwards, and charges nothing where the budget does not hold all
// of it or something of it is refused.
func TestSubqueriesCost(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "2.9", Cap: "90"}, 0))
	w := p.Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 1`)
	spent := func() string { return w.Ask(`SELECT spent FROM dp.budget`).Rows[0][0] }
	explained := func(sql string) string {
		var lines []string
		got := w.Ask(`EXPLAIN ` + sql)
		if got.Err != nil {
			t.Errorf("EXPLAIN %s: %v", sql, got.Err)
		}
		for _, row := range got.Rows {
			lines = append(lines, row[0])
		}
		return kit.Words(strings.Join(lines, "\n"))
	}
	older := `SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)`
	for _, want := range []string{"ε 1", "first_1.leaf_1", "answered first, for at most ε 0.5: SELECT avg(age) FROM people"} {
		if text := explained(older); !strings.Contains(text, want) {
			t.Errorf("EXPLAIN does not say %q:\n%s", want, text)
		}
	}
	first := w.Ask(older)
	if first.Err != nil || spent() != "1" {
		t.Fatalf("%v, spent %s", first.Err, spent())
	}
	for _, want := range []string{"cost ε 1;", "answered first, ", ": SELECT avg(age) FROM people ("} {
		if notes := strings.Join(first.Notes, "\n"); !strings.Contains(notes, want) {
			t.Errorf("notice does not say %q: %s", want, notes)
		}
	}
	if text := explained(older); !strings.Contains(text, "Cost: nothing") {
		t.Errorf("what is held has a cost:\n%s", text)
	}
	if again := w.Ask(older); again.Err != nil || again.Rows[0][0] != first.Rows[0][0] || spent() != "1" {
		t.Errorf("asked again: %v, %q then %q, spent %s", again.Err, first.Rows, again.Rows, spent())
	}
	// The sub-query is hers now, by itself too.
	w.Ask(`SET dp.epsilon = 0.5`)
	if got := w.Ask(`SELECT avg(age) FROM people`); got.Err != nil || spent() != "1" {
		t.Errorf("the sub-query by itself: %v, spent %s", got.Err, spent())
	}
	// Refused for free.
	w.Ask(`SET dp.epsilon = 1`)
	for _, q := range []struct{ sql, state string }{
		{`SELECT count(*) FROM people WHERE age > (SELECT age FROM people GROUP BY age)`, "21000"},
		{`SELECT count(*) FROM people WHERE age > (SELECT avg(age), count(*) FROM people)`, "42601"},
		{`SELECT count(*) FROM people WHERE age IN (SELECT age FROM people)`, "42501"},
		{`SELECT count(*) FROM people WHERE age > (SELECT avg(agee) FROM people)`, "42703"},
		{`SELECT count(*) FROM people WHERE agee > (SELECT avg(age) FROM people WHERE income > 70)`, "42703"},
		{`SELECT nothing(count(*)) FROM people WHERE age > (SELECT avg(age) FROM people WHERE income > 71)`, "42883"},
		{`SELECT count(*) FROM people WHERE age > (SELECT max(age) FROM people WHERE income > 72)`, "42501"},
		{`SELECT count(*) FROM people WHERE age > (SELECT count(*) FROM people WHERE age > (SELECT count(*) FROM people WHERE age > (SELECT count(*) FROM people WHERE age > (SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)))))`, "54001"},
	} {
		if got := w.Ask(q.sql); got.Err == nil || got.Err.Code != q.state || spent() != "1" {
			t.Errorf("%s: %v, spent %s; want %s for free", q.sql, got.Err, spent(), q.state)
		}
	}
	// What was released may make the rest fail: then the first part is spent, is said so, and stays hers.
	got := w.Ask(`SELECT count(*) FROM people WHERE 100 / (SELECT count(*) / 500000 FROM people WHERE income > 5000) > age`)
	if notes := strings.Join(got.Notes, "\n"); got.Err == nil || got.Err.Code != "22012" || spent() != "1.5" || !strings.Contains(notes, "what was answered first is yours") {
		t.Errorf("division by what was released as 0: %v, spent %s, notices %q", got.Err, spent(), got.Notes)
	}
	// NULL is a released value like any other.
	if got := w.Ask(`SELECT count(*) FROM people WHERE age > (SELECT CASE WHEN count(*) > 5000 THEN 1 END FROM people WHERE income > 6000)`); got.Err != nil || spent() != "2" || got.Rows[0][0] != "0" {
		t.Errorf("compared with NULL: %v %q, spent %s", got.Err, got.Rows, spent())
	}
	// The budget holds the first part and not the whole.
	if got := w.Ask(`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`); got.Err == nil || got.Err.Code != "DP001" || spent() != "2" {
		t.Errorf("beyond the budget: %v, spent %s", got.Err, spent())
	}
	// Parameters, described and given.
	w.Ask(`SET dp.epsilon = 0.2`)
	w.Ask(`PREPARE q(int) AS SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people WHERE age > $1)`)
	if got := w.Ask(`EXECUTE q(30)`); got.Err != nil || len(got.Rows) != 1 {
		t.Errorf("with a parameter: %v %q", got.Err, got.Rows)
	}
}
