package planner

import (
	"context"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// TestNestedSubqueriesAreWalkedOnce: what is typed several times, an argument or an item of GROUP BY, has sub-queries
// that are walked once, so that planning takes a time that grows with the text; and it ends with its context.
func TestNestedSubqueriesAreWalkedOnce(t *testing.T) {
	c := testContext(t, testPolicy(t))
	argument, grouped, limit := "1", "1", "1"
	for range 40 {
		argument = "(SELECT sum(length(code) + " + argument + ") FROM regions)"
		grouped = "(SELECT length(code) + " + grouped + " FROM regions GROUP BY 1)"
		limit = "(SELECT max(length(code)) OVER (ORDER BY " + limit + ") FROM regions LIMIT 1)"
	}
	for _, nested := range []string{argument, grouped, limit} {
		text := "SELECT " + nested + ", max(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t"
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
		cancel()
	}
}
