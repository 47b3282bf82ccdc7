package postgres

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestEveryFormIsPlanned: whatever constraints the query's own snapshot proves, the text that runs is one that was
// planned before the charge.
func TestEveryFormIsPlanned(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)
	if len(q.Proven()) == 0 {
		t.Fatal("the query has one text alone")
	}
	planned := map[string]bool{}
	for _, f := range (*cluster)(nil).forms(q) {
		planned[f.SQL+fmt.Sprint(f.Args)] = true
	}
	for _, holds := range []bool{false, true} {
		if f := execute.Shortest(q, func(rewrite.Shorter) bool { return holds }); !planned[f.SQL+fmt.Sprint(f.Args)] {
			t.Errorf("constraints prove the bound: %v; what runs then is not planned:\n%s", holds, f.SQL)
		}
	}
	if err := h.Ready(t.Context(), q); err != nil {
		t.Error(err)
	}
}
