package sandboxtest

import (
	"context"
	"errors"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Parse makes a plan of a text that reads no leaf but those given.
func Parse(t testing.TB, text string, leaves ...*plans.Leaf) *plans.Plan {
	t.Helper()
	tree, err := pg.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	parse.PlaceArguments(tree, text)
	return &plans.Plan{Outer: plans.Outer{Tree: tree.Stmts[0].Stmt}, Leaves: leaves}
}

// Ask rewrites and runs a catalog query.
func Ask(t testing.TB, e sandbox.Engine, text string) (sandbox.Rows, error) {
	t.Helper()
	return run(e, Parse(t, text))
}

// run writes the outer query of a plan without leaves for an engine and runs it there.
func run(e sandbox.Engine, plan *plans.Plan) (sandbox.Rows, error) {
	q, refusal := outer.Render(plan)
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	rows, err := e.Query(context.Background(), Session, q, nil)
	if err != nil {
		return sandbox.Rows{}, err
	}
	return rows.Value(), nil
}

// Planned takes a statement the whole way of a free query: parsed and planned, rewritten, run.
func Planned(t testing.TB, e sandbox.Engine, p *policy.Policy, text string) (sandbox.Rows, error) {
	t.Helper()
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(1_700_000_000, 0),
		Settings: plans.Settings{Epsilon: privacy.MicroEpsilon(100_000), Confidence: confidence, SearchPath: []string{"public"}, Zone: time.UTC}})
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
	return run(e, plan)
}

// StateOf is the SQLSTATE of an error of the planner or of a sandbox.
func StateOf(err error) string {
	var fault *scalar.Error
	var refusal *refuse.Refusal
	switch {
	case errors.As(err, &fault):
		return fault.SQLState
	case errors.As(err, &refusal):
		return refusal.SQLState
	}
	return ""
}
