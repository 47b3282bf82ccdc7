package answers

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	explainedCost = regexp.MustCompile(`(?m)^  Cost: (?:ε ([0-9.]+)|nothing)`)
	noticedCost   = regexp.MustCompile(`^cost ε ([0-9.]+);`)
)

// chargedAsExplained asks EXPLAIN and then the statement itself, and returns what it was charged: what EXPLAIN said.
func chargedAsExplained(t *testing.T, w *kit.Wire, sql string) string {
	t.Helper()
	var plan strings.Builder
	for _, row := range w.Ask("EXPLAIN " + sql).Rows {
		plan.WriteString(row[0] + "\n")
	}
	told := explainedCost.FindStringSubmatch(plan.String())
	a := w.Ask(sql)
	if a.Err != nil || told == nil {
		t.Fatalf("%s: %v\n%s", sql, a.Err, plan.String())
	}
	charged := ""
	if m := noticedCost.FindStringSubmatch(strings.Join(a.Notes, "\n")); m != nil {
		charged = m[1]
	}
	if charged != told[1] {
		t.Errorf("%s: EXPLAIN says ε %q, charged ε %q\n%s", sql, told[1], charged, plan.String())
	}
	return charged
}

// TestMaxError: SET dp.max_error finds the least cost, says so beforehand, leaves what is exact enough free, and
// refuses with the cost what is too dear, without a charge.
func TestMaxError(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "0.6", Cap: "50"}, 0))
	w := p.Connect("alice", "lab")
	w.Ask(`SET dp.max_error = 50`)
	if a := w.Ask(`SHOW dp.max_error`); a.Rows[0][0] != "50" {
		t.Error(a.Rows)
	}
	const sql = `SELECT count(*) FROM people WHERE hiv`
	for _, step := range []struct{ set, sql, want string }{
		{`SET dp.max_error = 50`, sql, "0.059313"},
		{`SET dp.max_error = 60`, sql, ""},
		{`SET dp.confidence = 0.9`, `SELECT city, count(*) FROM people GROUP BY city`, "0.038057"},
		{`RESET dp.max_error`, `SELECT note, count(*) FROM people GROUP BY note`, "0.1"},
	} {
		w.Ask(step.set)
		if got := chargedAsExplained(t, w, step.sql); got != step.want {
			t.Errorf("%s; %s: charged %q, want %q", step.set, step.sql, got, step.want)
		}
		w.Ask(`RESET dp.confidence`)
	}
	before := w.Spent()
	for _, step := range []struct{ set, sql, code, message, hint string }{
		{`SET dp.max_error = 5`, `SELECT count(*) FROM people WHERE age > 30`, "DP002", "an error of at most ±5 at 95 % would cost ε 0.538175, more than the ε 0.1 that dp.epsilon lets a statement cost", "SET dp.epsilon = 0.538175, or dp.max_error to more."},
		{`SET dp.max_error = 0.4`, `SELECT count(*) FROM people WHERE age > 30`, "DP002", "would cost ε 3.663562", "The policy lets a statement cost ε 1 at most"},
		{`SET dp.epsilon = 1; SET dp.max_error = 5`, `SELECT count(*) FROM people WHERE age > 30 AND NOT hiv`, "DP001", "your privacy budget does not hold this query", "A larger SET dp.max_error costs less"},
		{`SET dp.max_error = 50`, `SELECT avg(age) FROM people`, "DP002", "how far avg will be off depends on the data", "SET dp.max_error = off"},
	} {
		w.Ask(step.set)
		a := w.Ask(step.sql)
		if a.Err == nil || a.Err.Code != step.code || !strings.Contains(a.Err.Message, step.message) || !strings.Contains(a.Err.Hint, step.hint) {
			t.Errorf("%s; %s: %+v", step.set, step.sql, a.Err)
		}
	}
	if w.Spent() != before {
		t.Errorf("refusals were charged: %s, then %s", before, w.Spent())
	}
}

// TestRefining: a question asked again more exactly costs the difference, by dp.max_error and by dp.epsilon; nothing is
// read of the data again; both answers stay, and the finer one is what a repeat gets. It survives kill -9.
func TestRefining(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	const sql = `SELECT count(*) FROM people WHERE hiv = false`
	w.Ask(`SET dp.max_error = 50`)
	if got := chargedAsExplained(t, w, sql); got != "0.059313" {
		t.Errorf("first: %s", got)
	}
	w.Ask(`SET dp.max_error = 40`)
	var plan strings.Builder
	plan.WriteString(kit.Plan(w.Ask("EXPLAIN " + sql)))
	for _, want := range []string{"which you have paid for, refined", "refines what you have, for which you paid ε 0.059313: only the difference to ε 0.073952 is paid; the least cost for ±40 at 95 %", "Cost: ε 0.014639"} {
		if !strings.Contains(plan.String(), want) {
			t.Errorf("EXPLAIN without %q:\n%s", want, plan.String())
		}
	}
	if strings.Contains(plan.String(), "Query:") {
		t.Errorf("a refinement runs SQL:\n%s", plan.String())
	}
	a := w.Ask(sql)
	if notes := strings.Join(a.Notes, "\n"); !strings.Contains(notes, "cost ε 0.014639;") || !strings.Contains(notes, "refines what you had: ε 0.059313 was paid for it, ε 0.073952 now in all") {
		t.Error(notes)
	}
	finer := kit.Count(t, a)
	p.Stop(syscall.SIGKILL)
	kit.ExecDuckDB(t, path, `DELETE FROM people WHERE uid > 10`) // a ladder speaks of the data as they were at its first draw
	p.Restart()
	w = p.Connect("alice", "lab")
	w.Ask(`SET dp.max_error = 50`)
	if again := kit.Count(t, w.Ask(sql)); again != finer || w.Spent() != "0.073952" {
		t.Errorf("asked again at ±50: %d, the finer answer was %d; spent %s", again, finer, w.Spent())
	}
	w.Ask(`RESET dp.max_error; SET dp.epsilon = 1`)
	if got := chargedAsExplained(t, w, sql); got != "0.926048" {
		t.Errorf("at dp.epsilon 1: charged %q", got)
	}
	// P(|noise| > 40) < 10⁻¹⁷ at scale 1.
	if n := kit.Count(t, w.Ask(sql)); n < 999-40 || n > 999+40 || w.Spent() != "1" {
		t.Errorf("the finest level: %d of 999, spent %s", n, w.Spent())
	}
	// The groups around it were counted beside it, and are refined with it.
	if n := kit.Count(t, w.Ask(`SELECT count(*) FROM people WHERE hiv`)); n < 1-40 || n > 1+40 || w.Spent() != "1" {
		t.Errorf("the other side: %d, spent %s", n, w.Spent())
	}
}

// TestKeptAnswersAreOfTheirSettings: an answer that was free and was kept is not what a question gets that asks for a
// smaller error, or for bounds to be counted as they are.
func TestKeptAnswersAreOfTheirSettings(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0))
	w := p.Connect("alice", "lab")
	const sql, between = `SELECT note, count(*) FROM people GROUP BY note`, `SELECT count(*) FROM people WHERE income < 50500.5`
	w.Ask(`SET dp.offgrid = snap`)
	for range 3 { // bought, free and kept, and read from what is kept
		w.Ask(sql)
		w.Ask(between)
	}
	w.Ask(`RESET dp.offgrid; SET dp.max_error = 5`)
	if a := w.Ask(sql); a.Err == nil || a.Err.Code != "DP002" {
		t.Errorf("an answer at ε 0.1 passes for one within ±5: %v", a.Rows)
	}
	w.Ask(`RESET dp.max_error; SET dp.offgrid = exact`)
	if got := chargedAsExplained(t, w, between); got == "" {
		t.Error("a bound that was moved passes for one that was not")
	}
}
