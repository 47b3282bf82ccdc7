package main

import (
	"regexp"
	"strings"
	"testing"
)

var (
	explainedCost = regexp.MustCompile(`(?m)^Cost: (?:ε ([0-9.]+)|nothing)`)
	noticedCost   = regexp.MustCompile(`^cost ε ([0-9.]+);`)
)

// chargedAsExplained asks EXPLAIN and then the statement itself, and returns what it was charged: what EXPLAIN said.
func chargedAsExplained(t *testing.T, w *wire, sql string) string {
	t.Helper()
	var plan strings.Builder
	for _, row := range w.ask("EXPLAIN " + sql).rows {
		plan.WriteString(row[0] + "\n")
	}
	told := explainedCost.FindStringSubmatch(plan.String())
	a := w.ask(sql)
	if a.err != nil || told == nil {
		t.Fatalf("%s: %v\n%s", sql, a.err, plan.String())
	}
	charged := ""
	if m := noticedCost.FindStringSubmatch(strings.Join(a.notes, "\n")); m != nil {
		charged = m[1]
	}
	if charged != told[1] {
		t.Errorf("%s: EXPLAIN says ε %q, charged ε %q\n%s", sql, told[1], charged, plan.String())
	}
	return charged
}

// TestMaxError: SET dp.max_error finds the least cost, says so beforehand, leaves what is exact enough free, and refuses
// with the cost what is too dear, without a charge.
func TestMaxError(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"0.6", "50"}, 0))
	w := p.connect("alice", "lab")
	w.ask(`SET dp.max_error = 50`)
	if a := w.ask(`SHOW dp.max_error`); a.rows[0][0] != "50" {
		t.Error(a.rows)
	}
	const sql = `SELECT count(*) FROM people WHERE hiv`
	for _, step := range []struct{ set, sql, want string }{
		{`SET dp.max_error = 50`, sql, "0.059313"},
		{`SET dp.max_error = 60`, sql, ""},
		{`SET dp.confidence = 0.9`, `SELECT city, count(*) FROM people GROUP BY city`, "0.038057"},
		{`RESET dp.max_error`, `SELECT note, count(*) FROM people GROUP BY note`, "0.1"},
	} {
		w.ask(step.set)
		if got := chargedAsExplained(t, w, step.sql); got != step.want {
			t.Errorf("%s; %s: charged %q, want %q", step.set, step.sql, got, step.want)
		}
		w.ask(`RESET dp.confidence`)
	}
	before := w.spent()
	for _, step := range []struct{ set, sql, code, message, hint string }{
		{`SET dp.max_error = 5`, `SELECT count(*) FROM people WHERE age > 30`, "DP002", "an error of at most ±5 at 95 % would cost ε 0.538175, more than the ε 0.1 that dp.epsilon lets a statement cost", "SET dp.epsilon = 0.538175, or dp.max_error to more."},
		{`SET dp.max_error = 0.4`, `SELECT count(*) FROM people WHERE age > 30`, "DP002", "would cost ε 3.663562", "The policy lets a statement cost ε 1 at most"},
		{`SET dp.epsilon = 1; SET dp.max_error = 5`, `SELECT count(*) FROM people WHERE age > 30 AND NOT hiv`, "DP001", "your privacy budget does not hold this query", "A larger SET dp.max_error costs less"},
		{`SET dp.max_error = 50`, `SELECT avg(age) FROM people`, "DP002", "how far avg will be off depends on the data", "SET dp.max_error = off"},
	} {
		w.ask(step.set)
		a := w.ask(step.sql)
		if a.err == nil || a.err.Code != step.code || !strings.Contains(a.err.Message, step.message) || !strings.Contains(a.err.Hint, step.hint) {
			t.Errorf("%s; %s: %+v", step.set, step.sql, a.err)
		}
	}
	if w.spent() != before {
		t.Errorf("refusals were charged: %s, then %s", before, w.spent())
	}
}
