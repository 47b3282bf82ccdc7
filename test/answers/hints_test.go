package answers

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// statementOf is what a hint says to write: a SELECT from a colon on, to the end of its sentence.
var statementOf = regexp.MustCompile(`: ((?:WITH|SELECT) .*?)\.(?: [A-Zac]|$)`)

// TestHintsRun: a refused statement's hint is pasted into the session that was refused, and answered.
func TestHintsRun(t *testing.T) {
	kit.Beside(t)
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "50", Cap: "500"}, 0)).Connect("alice", "lab")
	for sql, statements := range map[string]int{
		`SELECT any_value(city) FROM people WHERE age > 30`:                                           1,
		`SELECT array_agg(city ORDER BY age) FROM people p WHERE p.age > 30 OR p.hiv`:                 2,
		`SELECT string_agg(city || '.', ', '), count(*) FROM people`:                                  2,
		`WITH grown AS (SELECT city AS "Where", age FROM people) SELECT json_agg("Where") FROM grown`: 2,
		`SELECT corr(DISTINCT age, income) FROM people WHERE city IS NOT NULL`:                        0,
		`SELECT count(*) FROM peple`:                                                                  0,
		`SELECT * FROM people`:                                                                        1,
		`SELECT any_value(uid) FROM people`:                                                           0,
	} {
		a := w.Ask(sql)
		if a.Err == nil {
			t.Errorf("%s is answered", sql)
			continue
		}
		found := statementOf.FindAllStringSubmatch(strings.ReplaceAll(a.Err.Hint, ", with WHERE or GROUP BY.", "."), -1)
		if len(found) != statements {
			t.Errorf("%s: %d statements in the hint %q, want %d", sql, len(found), a.Err.Hint, statements)
		}
		for _, m := range found {
			if again := w.Ask(m[1]); again.Err != nil {
				t.Errorf("%s hints at %s\nwhich fails: %v %s", sql, m[1], again.Err, again.Err.Hint)
			}
		}
	}
}
