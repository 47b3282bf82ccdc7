package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// What was paid for single questions by cells of the same columns since a release over these columns: see rents. It is added
// up as releases are read, so that it need not be for each plan.
type stockRents struct {
	open []rents                 // by columns
	last map[string]privacy.Cost // of her own release over exactly these columns
}

// add notes a count of every row by cells.
func (r *stockRents) add(s *stocked) {
	var columns []*policy.Column
	for _, g := range s.measure.grain {
		columns = append(columns, s.measure.table.Columns[g])
	}
	if !s.measure.isRent() {
		r.open = slices.DeleteFunc(slices.Clone(r.open), func(have rents) bool { return containsAll(columns, have.columns) })
		if !s.measure.shared {
			if r.last == nil {
				r.last = map[string]privacy.Cost{}
			}
			r.last[s.columns] = s.holding.Cost
		}
		return
	}
	r.open = slices.Clone(r.open)
	at := slices.IndexFunc(r.open, func(have rents) bool {
		return len(have.columns) == len(columns) && containsAll(columns, have.columns)
	})
	if at < 0 {
		at = len(r.open)
		r.open = append(r.open, rents{columns: columns})
	}
	r.open[at].paid, r.open[at].count = r.open[at].paid.Plus(s.holding.Cost), r.open[at].count+1
}

// rented is what has been paid so.
func (s *Stock) rented() ([]rents, map[string]privacy.Cost) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last := map[string]privacy.Cost{}
	for key, cost := range s.rents.last {
		last[key] = cost
	}
	return s.rents.open, last
}

// positionsOf are the places of columns in their table.
func positionsOf(t *policy.Table, columns []*policy.Column) []int {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = columnIndex(t, c)
	}
	return at
}
