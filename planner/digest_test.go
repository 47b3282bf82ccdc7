package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
)

// TestDigestIsMeaning: questions that mean the same have one digest, others another.
func TestDigestIsMeaning(t *testing.T) {
	c := testContext(t, testPolicy(t))
	digest := func(sql string) plans.Digest {
		p := planOrRefusal(t, c, sql)
		if p == nil || len(p.Measures) != 1 {
			t.Fatalf("%s: no single measure", sql)
		}
		return p.Measures[0].Digest
	}
	seen := map[plans.Digest]string{}
	for _, same := range [][]string{
		{"SELECT count(*) FROM people WHERE kids BETWEEN 3 AND 4 AND sex = 'Male'", "SELECT count(1) FROM public.people p WHERE 'Male' = p.sex AND p.kids >= 3 AND NOT 4 < kids",
			"SELECT count(*) FROM (SELECT sex AS s, kids + 0 AS k FROM people) t WHERE s IN ('Male') AND (k = 3 OR k = 4)", "SELECT sum(1) FROM people WHERE kids = ANY('{4,3}') AND sex LIKE 'Mal_'"},
		{"SELECT count(*) FROM people WHERE kids BETWEEN 3 AND 5 AND sex = 'Male'"},
		{"SELECT sex, kids, count(*) FROM people GROUP BY 1, 2", "SELECT count(*) AS n, kids, sex AS geschlecht FROM people GROUP BY kids, sex ORDER BY 1",
			"SELECT count(*) FROM people WHERE sex = 'Male' AND kids = 0", "SELECT count(*) FROM people WHERE kids = 5 AND sex = 'Female'"}, // what is counted around one cell is counted around each
		{"SELECT sex, count(*) FROM people GROUP BY 1"},
		{"SELECT count(*) FROM people WHERE income < 1234.5", "SELECT count(*) FROM people WHERE 1234.50 > income"},
		{"SELECT count(*) FROM people WHERE income < 1234.6"},
		{"SELECT count(*) FROM people WHERE income <= 1234.5"},
		{"SELECT count(*) FROM people"},
		{"SELECT count(*) FROM people WHERE income IS NULL", "SELECT count(*) FROM people WHERE income IS NOT DISTINCT FROM NULL", "SELECT count(*) FROM people WHERE NOT NULL IS DISTINCT FROM income"},
		{"SELECT count(sex) FROM people", "SELECT count(*) FILTER (WHERE sex IS NOT NULL) FROM people", "SELECT count(*) FROM people WHERE sex IS NOT NULL", "SELECT sum(CASE WHEN sex IS NULL THEN 0 ELSE 1 END), count(sex) FROM people"},
		{"SELECT count(*) FILTER (WHERE age > 30), count(*) FROM people", "SELECT count(*), count(*) FILTER (WHERE age > 30) FROM people", "SELECT sum(1), count(*) FILTER (WHERE 30 < age), count(*) FILTER (WHERE NOT age <= 30) FROM people"},
		{"SELECT count(*) FILTER (WHERE age > kids), count(*) FROM people", "SELECT count(*), count(*) FILTER (WHERE kids < age), sum((age > kids)::int) FROM people",
			"SELECT count(*) FILTER (WHERE age > kids) FROM people", "SELECT count(*) FROM people WHERE kids < age"},
		{"SELECT sex, count(*) FROM people WHERE active GROUP BY 1", "SELECT sex, count(*) FILTER (WHERE active) FROM people GROUP BY 1"},
	} {
		for _, sql := range same {
			if d := digest(sql); d != digest(same[0]) {
				t.Errorf("%s and %s have different digests", same[0], sql)
			}
		}
		if other, taken := seen[digest(same[0])]; taken {
			t.Errorf("%s and %s share a digest", same[0], other)
		}
		seen[digest(same[0])] = same[0]
	}
}
