package answers

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestCostlyIsRefusedForFree: what takes more of the processor or of memory above the counts than a statement may is
// refused before anything is charged, and what takes less is answered.
func TestCostlyIsRefusedForFree(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "100", Cap: "1000"}, 0)
	kit.Edit(t, path, `listen: "127.0.0.1:0"`, `listen: "127.0.0.1:0", limits: {statement_cpu: 1s, statement_memory: 64MiB}`)
	w := kit.Serve(t, path).Connect("alice", "lab")
	for _, c := range []struct{ sql, code string }{
		{`SELECT city, count(*), (SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b) FROM people WHERE age > 41 GROUP BY city`, "57014"},
		{`SELECT city, count(*), (SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 900) g WHERE g > 0) FROM people WHERE age > 42 GROUP BY city`, "54000"},
		{`SELECT city, count(*), (SELECT sum(g) FROM generate_series(1, 1000) g) FROM people WHERE age > 43 GROUP BY city`, ""},
		{`SELECT city, count(*), ntile((count(*) + 1)::int) OVER () FROM people WHERE age > 44 GROUP BY city`, ""},
		{`SELECT city, count(*) FROM people WHERE age > 45 GROUP BY city ORDER BY 1 OFFSET (SELECT count(*) - 700 FROM people WHERE age > 5)`, ""},
	} {
		before := w.Spent()
		a := w.Ask(c.sql)
		switch {
		case c.code == "" && a.Err != nil:
			t.Errorf("%s\n%v", c.sql, a.Err)
		case c.code != "" && (a.Err == nil || a.Err.Code != c.code || w.Spent() != before):
			t.Errorf("%s\n%v, spent %s before and %s after; want %s for free", c.sql, a.Err, before, w.Spent(), c.code)
		case c.code != "" && !strings.Contains(a.Err.Message, "server.limits"):
			t.Errorf("%s\n%s does not say which limit", c.sql, a.Err.Message)
		}
	}
}
