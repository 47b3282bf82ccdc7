package clients

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestNumericScale: numeric aggregates show as many digits as PostgreSQL gives the same values, computed in Go and by
// the sandbox. PostgreSQL is given the released sums and counts and divides them itself; of a variance it divides what
// the answer times n·(n − 1) says the dividend was, whose first digits decide how many are shown, and which has twice
// the decimals of a value, which are the sum's.
func TestNumericScale(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, database := kit.PostgresIn(t, t.TempDir(), server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	w := kit.Serve(t, path).Connect("alice", "lab")
	reference := secondCodec(t, server.URLFor("postgres", database))
	ask := func(sql string) string {
		rows := reference.play(t, protocolScript{lines: []string{"Q " + sql}})
		for _, line := range rows {
			if text, ok := strings.CutPrefix(line, `D ["`); ok {
				return strings.TrimSuffix(text, `"]`)
			}
		}
		t.Fatalf("%s: %v", sql, rows)
		return ""
	}
	decimals := func(text string) int {
		_, fraction, _ := strings.Cut(text, ".")
		return len(fraction)
	}
	for _, argument := range []string{"age", "1000 * age", "age * age", "age / 7.0"} {
		for _, wrapped := range []string{"%s", "SELECT *, row_number() OVER () FROM (%s) AS q"} {
			a := w.Ask("SET dp.epsilon = 1; " + fmt.Sprintf(wrapped, fmt.Sprintf(`SELECT avg(%[1]s), sum(%[1]s), count(%[1]s), variance(%[1]s), stddev(%[1]s), var_pop(%[1]s)
				FROM people WHERE city = 'c1' AND age < 60`, argument)))
			if a.Err != nil {
				t.Fatalf("%s: %v", argument, a.Err)
			}
			r := a.Rows[0]
			if want := ask(fmt.Sprintf("SELECT '%s'::numeric / %s", r[1], r[2])); r[0] != want {
				t.Errorf("avg(%s) is %s, PostgreSQL's %s (%s / %s)", argument, r[0], want, r[1], r[2])
			}
			for i, over := range map[int]string{3: "(%[2]s::numeric * (%[2]s - 1))", 5: "(%[2]s::numeric * %[2]s)"} {
				if r[i] == "0" { // as PostgreSQL shows what is not above 0
					continue
				}
				if want := ask(fmt.Sprintf("SELECT scale(round('%[1]s'::numeric * "+over+", %[3]d) / "+over+")", r[i], r[2], 2*decimals(r[1]))); fmt.Sprint(decimals(r[i])) != want {
					t.Errorf("a variance of %s is %s, with %s decimals in PostgreSQL", argument, r[i], want)
				}
			}
			if decimals(r[4]) != decimals(r[3]) {
				t.Errorf("stddev(%s) is %s, the variance %s", argument, r[4], r[3])
			}
		}
	}
}
