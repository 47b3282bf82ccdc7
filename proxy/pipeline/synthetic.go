package pipeline

import (
	"context"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// readSynthetic reads the cells of the made-up rows that a plan shows: those that a synthetic release drew, or those that the
// steps of an online release amount to.
func (r *reader) readSynthetic(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, readings []reading) error {
	for _, leaf := range plan.Leaves {
		if leaf.Synthetic == nil {
			continue
		}
		i := leaf.Synthetic.Measure
		if !mechanisms.Is[*mechanisms.Online](plan.Measures[i].Spec) {
			readings[i].rows = privacy.PostProcess(readings[i].noisy, func(n mechanisms.Noisy) []int32 {
				cells := make([]int32, len(n.Observations))
				for k, c := range n.Observations {
					cells[k] = int32(c)
				}
				return cells
			})
			continue
		}
		release, err := r.releases.load(context.WithoutCancel(ctx), s, ids[i])
		if err != nil {
			return err
		}
		belief, err := release.Item.Spec.Believe(release.Steps)
		if err != nil {
			r.releases.log.ErrorContext(ctx, "steps of an online release cannot be read", "release", ids[i], "error", err)
			return errLedger
		}
		readings[i].rows = belief.Rows(leaf.Rows)
	}
	return nil
}

// syntheticTable is the released table of made-up rows.
func syntheticTable(leaf *plans.Leaf, cells privacy.Released[[]int32]) sandbox.Table {
	return sandbox.Table{Name: leaf.Name, Rows: privacy.PostProcess(cells, func(cells []int32) sandbox.Rows {
		data := make([][]policy.Value, 0, len(cells))
		for i, c := range cells {
			if values := leaf.Synthetic.Values(i, c); values != nil {
				data = append(data, values)
			}
		}
		return sandbox.Rows{Columns: leafColumns(leaf), Data: data}
	})}
}
