package answers

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestMaxCost: what costs more than dp.max_cost is refused before anything is charged, whatever the way to it; what
// costs as much, or nothing, is answered.
func TestMaxCost(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0))
	w := p.Connect("alice", "lab")
	refused := 0
	for _, step := range []struct{ sql, spent, state string }{
		{sql: "SET dp.max_cost = 0.05"},
		{sql: "SELECT count(*) FROM people", spent: "0", state: "53400"},
		{sql: "EXPLAIN SELECT count(*) FROM people", spent: "0"},
		{sql: "SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)", spent: "0", state: "53400"},
		{sql: "COPY (SELECT count(*) FROM people) TO STDOUT", spent: "0", state: "53400"},
		{sql: "BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM people", spent: "0", state: "53400"},
		{sql: "ROLLBACK", spent: "0"},
		{sql: "PREPARE q AS SELECT count(*) FROM people WHERE age > $1", spent: "0"},
		{sql: "EXECUTE q(30)", spent: "0", state: "53400"},
		{sql: "SET dp.epsilon = 0.05; SELECT count(*) FROM people", spent: "0.05"},
		{sql: "SET dp.max_cost = 0; SELECT count(*) FROM people", spent: "0.05"},
		{sql: "SELECT count(*) FROM people WHERE age > 31", spent: "0.05", state: "53400"},
		{sql: "SELECT count(*) FROM dp.charges", spent: "0.05"},
		{sql: "RESET dp.max_cost; SELECT count(*) FROM people WHERE age > 31", spent: "0.1"},
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
		if state == "53400" {
			if refused++; !strings.Contains(a.Err.Message, "dp.max_cost") || !strings.Contains(a.Err.Message, "nothing was charged") {
				t.Errorf("%s: %s", step.sql, a.Err.Message)
			}
		}
		if got := p.Connect("alice", "lab").Ask("SELECT spent FROM dp.budget WHERE user_name = 'alice'").Rows[0][0]; step.spent != "" && got != step.spent {
			t.Errorf("after %s: %s spent, not %s", step.sql, got, step.spent)
		}
	}
	threats.Reached(t, "T75", "%d statements dearer than dp.max_cost, by all ways: 0 charged", refused)
}
