package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// planned takes a statement the whole way of a free query: parsed and planned, rewritten, run.
func planned(t testing.TB, e sandbox.Engine, p *policy.Policy, text string) (sandbox.Rows, error) {
	t.Helper()
	statements, refusal := planner.Parse(text)
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan, refusal := planner.Build(statements[0], nil, planner.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(1_700_000_000, 0),
		Settings: planner.Settings{Epsilon: privacy.MicroEpsilon(100_000), Confidence: confidence, SearchPath: []string{"public"}, Zone: time.UTC}})
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	if len(plan.Measures) > 0 {
		t.Fatalf("a catalog query buys something: %s", text)
	}
	if d := plan.Outer.Direct; d != nil {
		rows, err := sandbox.Direct(context.Background(), d, nil, privacy.Released[sandbox.Rows]{})
		if err != nil {
			return sandbox.Rows{}, err
		}
		return rows.Value(), nil
	}
	q, refusal := outer.Render(plan, e.Dialect())
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	rows, err := e.Query(context.Background(), session, q, nil)
	if err != nil {
		return sandbox.Rows{}, err
	}
	return rows.Value(), nil
}

// TestPlannedCatalogStatements: psql's statements also pass the planner, which lets only known functions and relations
// through.
func TestPlannedCatalogStatements(t *testing.T) {
	asked, answered := 0, 0
	for _, text := range blocks(t, "psql") {
		if !catalogOnly(text) {
			continue
		}
		asked++
		if _, err := planned(t, engine(t), census(), text); err == nil {
			answered++
		} else if os.Getenv("DPPROXY_VERBOSE") != "" {
			fmt.Printf("--- %v\n%s\n", err, text)
		}
	}
	t.Logf("%d of %d recorded statements answered", answered, asked)
	if answered*10 < asked*9 {
		t.Errorf("%d of %d recorded statements answered, want 90 %%", answered, asked)
	}
}
