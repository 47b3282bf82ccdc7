package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// perRow is a sandbox whose queries take so much of the processor for each row of their tables.
type perRow struct {
	sandbox.Engine
	took time.Duration
}

func (e perRow) Query(_ context.Context, s sandbox.Session, _ outer.Query, tables []sandbox.Table) (none privacy.Released[sandbox.Rows], _ error) {
	for _, table := range tables {
		s.Took(e.took * time.Duration(len(table.Rows.Value().Data)))
	}
	return none, nil
}

// TestWhatTakesLongIsFoundBeforeTheCharge: a query over a leaf of many rows takes what it takes over all of them.
func TestWhatTakesLongIsFoundBeforeTheCharge(t *testing.T) {
	o := &outside{engine: perRow{took: 100 * time.Microsecond}, workers: admission.NewWorkers(1, 1)}
	limits := policy.Limits{StatementCPU: 5 * time.Second}
	s := &Session{Policy: &policy.Policy{Server: policy.Server{Limits: limits}}}
	for rows, refused := range map[int]bool{10: false, 9_999: false, 24_000: false, 26_000: true, 400_000: true} {
		plan := &plans.Plan{Leaves: []*plans.Leaf{{Name: "leaf_1", Rows: rows}}}
		refusal := o.probe(t.Context(), s, plan, outer.Query{})
		if (refusal != nil) != refused || refused && refusal.SQLState != "57014" {
			t.Errorf("%d rows: %v", rows, refusal)
		}
	}
}
