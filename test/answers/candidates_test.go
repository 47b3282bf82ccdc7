package answers

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestCandidatesThroughSQL: at an ε so large that nothing is random, the most popular of overlapping conditions and the
// dearest price are those of the rows, on both databases; asked again, after a restart too, they are free and the same.
func TestCandidatesThroughSQL(t *testing.T) {
	kit.Beside(t)
	prices := []string{`CREATE TABLE prices AS SELECT 1000 * i AS price FROM generate_series(1, 90) AS s(i)`}
	t.Run("DuckDB", func(t *testing.T) {
		path := kit.DuckDB(t, kit.Budgets{User: "900000", Cap: "900000"}, 0)
		kit.ExecDuckDB(t, path, prices...)
		candidatesThroughSQL(t, path, "main")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := pgtest.Shared(t)
		path, database := kit.Postgres(t, server, kit.Budgets{User: "900000", Cap: "900000"}, 0)
		server.Exec(t, database, append(prices, "GRANT SELECT ON prices TO public")...)
		candidatesThroughSQL(t, path, "public")
	})
}

func candidatesThroughSQL(t *testing.T, path, schema string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "max_epsilon: 1,", "max_epsilon: 900000,", 1) +
		"      - {name: prices, source: " + schema + ".prices, public: true, columns: [{name: price, type: integer}]}\n"
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	revenue, best := 0, 0
	for price := 1000; price <= 90000; price += 1000 {
		buyers := 0
		for i := 1; i <= 1000; i++ {
			if 1000*(i%90) >= price {
				buyers++
			}
		}
		if price*buyers > revenue {
			revenue, best = price*buyers, price
		}
	}
	tests := []struct{ sql, want, mechanism string }{
		{`SELECT x.fruit FROM (SELECT 'apple' AS fruit, count(*) FILTER (WHERE age < 30) AS n FROM people UNION ALL SELECT 'banana', count(*) FROM people WHERE income > 20000 UNION ALL SELECT 'cherry', count(*) FROM people WHERE city = 'c1') x ORDER BY n DESC LIMIT 1`, "banana", "popular"},
		{`SELECT v.fruit FROM people CROSS JOIN LATERAL (VALUES ('apple', age < 30), ('banana', income > 20000), ('cherry', city = 'c1'), ('date', age > 25)) v(fruit, likes) WHERE likes GROUP BY fruit ORDER BY count(*) DESC LIMIT 2`, "date/banana", "popular"},
		{`SELECT p.price FROM prices p JOIN people b ON b.income >= p.price GROUP BY 1 ORDER BY p.price * count(*) DESC LIMIT 1`, strconv.Itoa(best), "dearest"},
		{`SELECT p.price FROM (SELECT DISTINCT price FROM prices WHERE price > 10000) p, people b WHERE b.income >= p.price GROUP BY 1 ORDER BY sum(p.price) DESC LIMIT 1`, strconv.Itoa(best), "dearest"},
	}
	program := kit.Serve(t, path)
	w := program.Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 9000`)
	for _, test := range tests {
		if plan := kit.Plan(w.Ask(`EXPLAIN ` + test.sql)); !strings.Contains(plan, ": "+test.mechanism+" over ") || !strings.Contains(plan, "only the names are shown") {
			t.Errorf("%s: EXPLAIN does not name %s:\n%.600s", test.sql, test.mechanism, plan)
		}
		if got := rowsText(w.Ask(test.sql)); got != test.want {
			t.Errorf("%s: %s, want %s", test.sql, got, test.want)
		}
	}
	if got := rowsText(w.Ask(`SELECT v.n, count(*) FROM people, (VALUES (30000), (60000)) v(n) WHERE income >= v.n GROUP BY v.n ORDER BY v.n`)); got != "30000|660/60000|330" {
		t.Errorf("counts by what rows meet: %s", got)
	}
	spent := w.Spent()
	program.Stop(syscall.SIGTERM)
	program.Restart()
	w = program.Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 9000`)
	for _, test := range tests {
		if got := rowsText(w.Ask(test.sql)); got != test.want || w.Spent() != spent {
			t.Errorf("%s: asked again it said %s, and cost something else than nothing", test.sql, got)
		}
	}
}

// rowsText are the rows of an answer.
func rowsText(a kit.Answer) string {
	var rows []string
	for _, r := range a.Rows {
		rows = append(rows, strings.Join(r, "|"))
	}
	return strings.Join(rows, "/")
}
