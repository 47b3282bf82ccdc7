package planner

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// nestings are the ways in which a query contains another: %[1]s is the query inside, or one of the innermost.
var nestings = map[string]string{
	"FROM":               "SELECT * FROM (%s) t",
	"FROM twice":         "SELECT t.* FROM (%s) t, (SELECT 1) u",
	"WITH":               "WITH t AS (%s) SELECT * FROM t",
	"WITH twice":         "WITH t AS (%s) SELECT a.* FROM t a",
	"JOIN":               "SELECT t.* FROM (%s) t JOIN regions r ON true",
	"LEFT JOIN":          "SELECT t.* FROM regions r LEFT JOIN (%s) t ON true",
	"IN":                 "SELECT * FROM (SELECT 1 AS k) t WHERE 1 IN (SELECT u.k FROM (%s) u(k))",
	"EXISTS":             "SELECT * FROM (SELECT 1 AS k) t WHERE EXISTS (%s)",
	"LATERAL":            "SELECT u.* FROM (SELECT 1) t, LATERAL (%s) u",
	"DISTINCT":           "SELECT DISTINCT * FROM (%s) t",
	"GROUP BY":           "SELECT k FROM (%s) t(k) GROUP BY k",
	"UNION, left":        "%[1]s UNION SELECT 1",
	"UNION, right":       "SELECT 1 UNION (%[1]s)",
	"UNION ALL, left":    "%[1]s UNION ALL SELECT 1",
	"UNION ALL, right":   "SELECT 1 UNION ALL (%[1]s)",
	"UNION ALL, ordered": "(%[1]s) UNION ALL SELECT 1 ORDER BY 1",
	"UNION, limited":     "(%[1]s) UNION SELECT 1 LIMIT 9",
	"INTERSECT":          "(%[1]s) INTERSECT SELECT 1",
	"EXCEPT":             "(%[1]s) EXCEPT SELECT 1",
	"EXCEPT ALL, right":  "SELECT 1 EXCEPT ALL (%[1]s)",
	"argument":           "SELECT (SELECT sum(length(code) + (%s)) FROM regions)",
	"grouped argument":   "SELECT (SELECT length(code) + (%s) FROM regions GROUP BY 1)",
	"window":             "SELECT (SELECT max(length(code)) OVER (ORDER BY (%s)) FROM regions LIMIT 1)",
	"CASE":               "SELECT CASE WHEN 1 = (%s) THEN 1 ELSE 2 END",
}

// TestNestedSubqueriesAreWalkedOnce: however queries are nested, thirty deep, over catalogs, public rows,
// groups and private rows, planning ends: a query of each level is bound once, not twice, which would be 2^30.
func TestNestedSubqueriesAreWalkedOnce(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for name, nesting := range nestings {
		for of, innermost := range map[string]string{
			"catalogs": "SELECT oid::int AS k FROM pg_class", "public rows": "SELECT length(code) AS k FROM regions", "constants": "SELECT 1 AS k",
			"groups": "SELECT count(*)::int AS k FROM visits", "private rows": "SELECT 1 AS k FROM visits",
		} {
			t.Run(name+"/"+of, func(t *testing.T) {
				text := innermost
				for range 30 {
					text = strings.NewReplacer("%s", text, "%[1]s", text).Replace(nesting)
				}
				text = "SELECT * FROM (" + text + ") q"
				statements, refusal := parse.Parse(text)
				if refusal != nil {
					t.Skip(refusal.Message)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				c := c
				c.Work = reuse.NewWork(ctx, reuse.DefaultLimits)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = Build(statements[0], nil, c)
				}()
				select {
				case <-done:
				case <-time.After(2 * time.Minute):
					t.Fatalf("goes on after its context has ended: %.120s", text)
				}
				if ctx.Err() != nil {
					t.Fatalf("is not planned before its context ends: %.120s", text)
				}
			})
		}
	}
}

// TestTablesInOneAnother: derived tables that are nested, or are named twice on each level, are planned in
// memory that grows with their number, or refused by counted work: what is in 2^d places is neither gone through nor
// written 2^d times.
func TestTablesInOneAnother(t *testing.T) {
	const visits, days = "SELECT person_id, referral, day FROM visits", "SELECT person_id, day FROM visits"
	for _, s := range []struct {
		name, first, level, last string
		depth                    int
		refused                  bool
		most                     uint64 // MiB that planning allocates
	}{
		{"DISTINCT", visits, "SELECT DISTINCT person_id, referral, day FROM %s", "SELECT count(*) FROM %s", 18, false, 200},
		{"counts beside", visits, "SELECT person_id, referral, day, (SELECT count(*) FROM visits w WHERE w.person_id = v.person_id) AS n FROM %s v", "SELECT count(*) FROM %s", 20, false, 200},
		{"EXISTS", visits, "SELECT * FROM %s v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person_id = v.person_id AND w.ward = 'A')", "SELECT count(*) FROM %s", 20, false, 200},
		{"windows", visits, "SELECT person_id, referral, lag(day) OVER (PARTITION BY person_id ORDER BY day) AS day FROM %s", "SELECT count(*) FROM %s", 20, false, 200},
		{"groups", visits, "SELECT person_id, referral, max(day) AS day FROM %s GROUP BY 1, 2", "SELECT count(*) FROM %s", 18, false, 200},
		{"UNION ALL", visits, "SELECT person_id, referral, day FROM %s UNION ALL SELECT person_id, referral, day FROM visits WHERE ward = 'B'", "SELECT count(*) FROM %s", 20, false, 200},
		{"EXCEPT", visits, "SELECT person_id, referral, day FROM %s EXCEPT SELECT person_id, referral, day FROM visits WHERE ward = 'B'", "SELECT count(*) FROM %s", 20, false, 200},
		{"EXISTS, twice", days, "SELECT * FROM %[1]s x WHERE EXISTS (SELECT 1 FROM %[1]s y WHERE y.person_id = x.person_id AND y.day > '2025-03-03')", "SELECT count(*) FROM %s", 7, false, 60},
		{"EXISTS, twice, deep", days, "SELECT * FROM %[1]s x WHERE EXISTS (SELECT 1 FROM %[1]s y WHERE y.person_id = x.person_id AND y.day > '2025-03-03')", "SELECT count(*) FROM %s", 16, true, 400},
		{"UNION ALL, twice", days, "SELECT * FROM %[1]s UNION ALL SELECT * FROM %[1]s", "SELECT count(*) FROM %s", 16, true, 400},
		{"JOIN, twice", "SELECT person_id, max(day) AS day FROM visits GROUP BY 1", "SELECT x.person_id, y.day FROM %[1]s x JOIN %[1]s y USING (person_id)", "SELECT count(*) FROM %s", 13, true, 600},
		{"released counts, twice", "SELECT ward AS k, count(*) AS n FROM visits GROUP BY 1", "SELECT x.k, x.n + y.n AS n FROM %[1]s x JOIN %[1]s y USING (k)", "SELECT * FROM %s", 20, true, 600},
		{"a column read twice", "SELECT person_id, active AS k FROM people", "SELECT person_id, k AND (k OR person_id IS NULL) AS k FROM %s", "SELECT k, count(*) FROM %s GROUP BY 1", 22, true, 400},
		{"CASE of what it tests", "SELECT person_id, age AS k FROM people", "SELECT DISTINCT person_id, CASE WHEN k > 3 THEN k ELSE 0 END AS k FROM %s", "SELECT k, count(*) FROM %s GROUP BY 1", 20, true, 400},
		{"* twice", "SELECT * FROM people", "SELECT x.*, x.* FROM %s x", "SELECT count(*) FROM %s", 12, true, 400},
		{"FROM twice", "SELECT 1 AS a, 2 AS b", "SELECT * FROM %[1]s x, %[1]s y", "SELECT 1 FROM %s", 20, true, 400},
		{"many columns of long ones", "SELECT person_id, age AS k FROM people", "SELECT person_id, CASE WHEN k > 3 THEN k ELSE 0 END AS k FROM %s", "SELECT count(*) FROM (SELECT k" + strings.Repeat(", k + 1", 1500) + " FROM %s) q", 13, true, 900},
		{"a text beside itself", "SELECT person_id, sex AS k FROM people", "SELECT person_id, k || k AS k FROM %s", "SELECT k, count(*) FROM %s GROUP BY 1", 22, true, 400},
	} {
		t.Run(s.name, func(t *testing.T) {
			plan := func(first string) (*plans.Plan, *refuse.Refusal) {
				text := "WITH t0 AS (" + first + ")"
				for i := range s.depth {
					named := fmt.Sprintf("t%d", i)
					text += fmt.Sprintf(", t%d AS (%s)", i+1, strings.NewReplacer("%s", named, "%[1]s", named).Replace(s.level))
				}
				return planned(t, testContext(t, testPolicy(t)), text+" "+fmt.Sprintf(s.last, fmt.Sprintf("t%d", s.depth)))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, refusal := plan(s.first)
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > s.most {
				t.Errorf("planning %d levels allocates %d MiB, may %d", s.depth, took, s.most)
			}
			if s.refused {
				if refusal == nil || refusal.SQLState != "54000" {
					t.Errorf("%d levels are not refused as too much work: %v", s.depth, refusal)
				}
				return
			}
			if refusal != nil {
				t.Fatal(refusal)
			}
			other, refusal := plan(s.first + " WHERE ward = 'C'")
			if refusal != nil || other.Measures[0].Digest == p.Measures[0].Digest {
				t.Errorf("of other rows: %v, the same digest", refusal)
			}
		})
	}
}
