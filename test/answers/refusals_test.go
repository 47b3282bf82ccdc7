package answers

import (
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestRefusalsAboveTheLeaves: the catalogue's entries that are found after planning, each with a case: refused with
// code, words and hint, and free.
func TestRefusalsAboveTheLeaves(t *testing.T) {
	kit.Beside(t)
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "5", Cap: "50"}, 0)).Connect("alice", "lab")
	for _, c := range []struct{ sql, code, message string }{
		{`SELECT n, 'dpproxy'::regrole FROM (SELECT city, count(*) AS n, rank() OVER (ORDER BY count(*)) FROM people GROUP BY city) t`, "DP002", "a cast to regrole cannot be run by the sandbox"},
		{`SELECT n FROM (SELECT city, count(*) AS n FROM people GROUP BY city) t GROUP BY city`, "42803", `column "t.n" must appear in the GROUP BY clause or be used in an aggregate function`},
		{`SELECT n + city FROM (SELECT city, count(*) AS n, rank() OVER (ORDER BY count(*)) FROM people GROUP BY city) t`, "42883", "operator does not exist: bigint + text"},
		{`SELECT count(*) FROM generate_series(1, 10^12)`, "42883", "function generate_series(integer, double precision) does not exist"},
	} {
		a := w.Ask(c.sql)
		if a.Err == nil || a.Err.Code != c.code || a.Err.Message != c.message {
			t.Errorf("%s:\n got %v\nwant %s %s", c.sql, a.Err, c.code, c.message)
		}
	}
	if w.Spent() != "0" {
		t.Errorf("refusals were charged: %s", w.Spent())
	}
}
