package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestSumsOfTheSmallestNumbers: numbers that a coarse grid's division would underflow add nothing, and fail on no engine: a
// failure would tell that somebody has such a value.
func TestSumsOfTheSmallestNumbers(t *testing.T) {
	for _, kind := range []string{"double precision", "real"} {
		text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
			"{name: a, type: "+kind+", domain: {min: -1000000000, max: 1000000000, step: 100000000}, outside: clamp}", 1)
		p, err := policy.Parse([]byte(text), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		least := map[string]string{"double precision": "5e-324", "real": "1e-45"}[kind]
		fill := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a " + kind + ", b int)",
			"INSERT INTO clinic.people VALUES (1, '" + least + "', 1), (2, '-" + least + "', 2), (3, 3e8, 1), (4, 'NaN', 1), (5, 'Infinity', 1), (6, '-Infinity', 3), (7, '-0', 1)"}
		for d, run := range map[rewrite.Dialect]engine{rewrite.DuckDB: duckEngine(t, fill), rewrite.PostgreSQL: postgresEngine(t, fill)} {
			for _, text := range []string{"SELECT sum(a) FROM people", "SELECT avg(a), stddev(a) FROM people", "SELECT corr(a, b) FROM people"} {
				for _, m := range alikePlan(t, p, text).Measures {
					q, err := rewrite.Render(m, d)
					if err != nil {
						t.Fatal(err)
					}
					cells := trueCells(m, q, run(t, q.SQL(), q.Args()))
					if strings.Contains(text, "sum") && !slices.Equal(cells, []int64{300_000_000 / power(m.Sums[0])}) {
						t.Errorf("%s of %s in dialect %v: %d", text, kind, d, cells)
					}
				}
			}
		}
	}
}

// power is the grid of a sum's only factor.
func power(s *planner.Sum) int64 {
	n := int64(1)
	for range s.Terms[0].Factors[0].Exponent {
		n *= 10
	}
	return n
}
