package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// What was paid for single questions by cells of the same columns since a release over these columns: see rents. It is
// added up as releases are read, so that it need not be for each plan.
type rentViews struct {
	open []Rents                 // by columns
	last map[string]privacy.Cost // of her own release over exactly these columns
}

// add notes a count of every row by cells.
func (r *rentViews) add(s *View) {
	var columns []*policy.Column
	for _, g := range s.Measure.Grain {
		columns = append(columns, s.Measure.Table.Columns[g])
	}
	if !s.Measure.isRent() {
		r.open = slices.DeleteFunc(slices.Clone(r.open), func(have Rents) bool { return ContainsAll(columns, have.Columns) })
		if !s.Measure.Shared {
			if r.last == nil {
				r.last = map[string]privacy.Cost{}
			}
			r.last[s.columns] = s.Holding.Cost
		}
		return
	}
	r.open = slices.Clone(r.open)
	at := slices.IndexFunc(r.open, func(have Rents) bool {
		return len(have.Columns) == len(columns) && ContainsAll(columns, have.Columns)
	})
	if at < 0 {
		at = len(r.open)
		r.open = append(r.open, Rents{Columns: columns})
	}
	r.open[at].Paid, r.open[at].Count = r.open[at].Paid.Plus(s.Holding.Cost), r.open[at].Count+1
}

// Rented is what has been paid so.
func (s *Views) Rented() ([]Rents, map[string]privacy.Cost) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last := map[string]privacy.Cost{}
	for key, cost := range s.rents.last {
		last[key] = cost
	}
	return s.rents.open, last
}

// PositionsOf are the places of columns in their table.
func PositionsOf(t *policy.Table, columns []*policy.Column) []int {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = plans.ColumnIndex(t, c)
	}
	return at
}
