package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// TestFunctionsNotOverRows: what PostgreSQL has is refused as not permitted, what it lacks as unknown, and what the
// engine may call over counts stays answered.
func TestFunctionsNotOverRows(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, e := range []struct{ sql, id string }{
		{"SELECT count(*) FROM people WHERE random() < 0.5", "function-not-permitted"},
		{"SELECT count(*) FROM people WHERE pg_catalog.random() < 0.5", "function-not-permitted"},
		{"SELECT count(*) FROM people WHERE pg_sleep(1) IS NULL", "function-not-permitted"},
		{"SELECT count(*) FROM people WHERE nextval('s') = 1", "function-not-permitted"},
		{"SELECT count(*) FROM people WHERE gen_random_uuid() IS NULL", "function-not-permitted"},
		{"SELECT count(*) FROM people GROUP BY random()", "function-not-permitted"},
		{"SELECT count(*), pg_sleep(1) FROM people", "function-not-permitted"},
		{"SELECT count(*) FROM people WHERE lower(age) = 'x'", refuse.UnknownFunction.ID},
		{"SELECT count(*) FROM people WHERE frobnicate(sex) = 'x'", refuse.UnknownFunction.ID},
		{"SELECT count(*), frobnicate(1) FROM people", refuse.UnknownFunction.ID},
		{"SELECT count(*), random() FROM people", ""},
		{"SELECT sex, count(*) FROM people GROUP BY sex ORDER BY random()", ""},
	} {
		id := ""
		if r := refused(c, e.sql); r != nil {
			id = r.ID
			if r.SQLState != map[string]string{"function-not-permitted": "42501", refuse.UnknownFunction.ID: "42883"}[id] || r.Hint == "" {
				t.Errorf("%s: %+v", e.sql, r)
			}
		}
		if id != e.id {
			t.Errorf("%s: %q, want %q", e.sql, id, e.id)
		}
	}
}
