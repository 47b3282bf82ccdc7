package planner

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/parse"
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

// TestNestedSubqueriesAreWalkedOnce: however queries stand in one another, thirty deep, over catalogs, public rows,
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
