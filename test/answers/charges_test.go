package answers

import (
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestFetchedForFree: what a cursor, a portal, a COPY or an EXECUTE brings is charged when it is drawn, once, and never
// when it is fetched, fetched again, or lost with a transaction.
func TestFetchedForFree(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0))
	w, other := p.Connect("alice", "lab"), p.Connect("alice", "lab")
	spent := func() string {
		t.Helper()
		return other.Ask("SELECT spent FROM dp.budget WHERE user_name = 'alice'").Rows[0][0]
	}
	for _, step := range []struct{ sql, spent, state string }{
		{sql: "SELECT 1", spent: "0"},
		{sql: "DECLARE c CURSOR FOR SELECT count(*) FROM people", spent: "0", state: "25P01"},
		{sql: "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT city, count(*) FROM people GROUP BY 1", spent: "0.1"},
		{sql: "FETCH 2 c; FETCH ALL c; FETCH FIRST c; MOVE ALL c; FETCH BACKWARD ALL c", spent: "0.1"},
		{sql: "DECLARE c CURSOR FOR SELECT hiv, count(*) FROM people GROUP BY 1", spent: "0.1", state: "42P03"},
		{sql: "ROLLBACK", spent: "0.1"},
		{sql: "DECLARE h CURSOR WITH HOLD FOR SELECT city, count(*) FROM people GROUP BY 1; SELECT nope", spent: "0.1", state: "42703"},
		{sql: "DECLARE h CURSOR WITH HOLD FOR SELECT note, count(*) FROM people GROUP BY 1; SELECT nope", spent: "0.2", state: "42703"},
		{sql: "DECLARE h CURSOR WITH HOLD FOR SELECT note, count(*) FROM people GROUP BY 1", spent: "0.2"},
		{sql: "SET dp.epsilon = 0.3; FETCH 1 h; FETCH 9 h; CLOSE h; RESET dp.epsilon", spent: "0.2"},
		{sql: "COPY (SELECT note, count(*) FROM people GROUP BY 1) TO STDOUT (FORMAT binary)", spent: "0.2"},
		{sql: "COPY (SELECT age, count(*) FROM people GROUP BY 1) TO STDOUT (FORMAT csv, FORCE_QUOTE (nope))", spent: "0.2", state: "42703"},
		{sql: "COPY (SELECT age, count(*) FROM people WHERE age < 30 GROUP BY 1) TO STDOUT CSV HEADER", spent: "0.3"},
		{sql: "COPY people TO STDOUT", spent: "0.3", state: "42501"},
		{sql: "PREPARE q AS SELECT count(*) FROM people WHERE income < $1 AND note = 'n1'", spent: "0.3"},
		{sql: "EXECUTE q(50000, 1)", spent: "0.3", state: "42601"}, {sql: "EXECUTE q('x')", spent: "0.3", state: "22P02"},
		{sql: "EXECUTE q((SELECT count(*) FROM people WHERE hiv))", spent: "0.3", state: "DP002"},
		{sql: "EXECUTE q(generate_series(1, 0))", spent: "0.3", state: "DP002"}, {sql: "EXECUTE q(generate_series(1, 2))", spent: "0.3", state: "DP002"},
		{sql: "EXECUTE q(50000)", spent: "0.4"}, {sql: "EXECUTE q(25000 * 2)", spent: "0.4"},
		{sql: "EXPLAIN EXECUTE q(20000)", spent: "0.4"}, {sql: "EXPLAIN DECLARE c CURSOR FOR SELECT count(*) FROM people WHERE age = 3", spent: "0.4"},
		{sql: "EXPLAIN EXECUTE nobody", spent: "0.4", state: "26000"},
	} {
		a, err := w.TryAsk(step.sql)
		if err != nil {
			t.Fatalf("%s: %v", step.sql, err)
		}
		state := ""
		if a.Err != nil {
			state = a.Err.Code
		}
		if state != step.state {
			t.Errorf("%s: %v", step.sql, a.Err)
		}
		if got := spent(); got != step.spent {
			t.Errorf("after %s: %s spent, not %s", step.sql, got, step.spent)
		}
	}
}
