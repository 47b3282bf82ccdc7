package pipeline

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestLongMeanings: a measure of which the ledger would not keep what it means is refused before it is charged.
func TestLongMeanings(t *testing.T) {
	for _, m := range []*plans.Measure{
		{Table: &policy.Table{}, Described: make([]byte, plans.MaxDescribed+1)},
		{Table: &policy.Table{}, Name: strings.Repeat("a column, ", plans.MaxNamed/10+1)},
	} {
		_, _, refusal := render(t.Context(), &plans.Plan{Measures: []*plans.Measure{m}}, dialect.DuckDB, slog.Default())
		if refusal == nil || refusal.ID != "long-meaning" {
			t.Errorf("a name of %d bytes, a description of %d: %v", len(m.Name), len(m.Described), refusal)
		}
	}
}
