package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// CoverWithin is cover where m may count the rows of a condition that s has too.
func CoverWithin(s, m *linear.Query) *Reading {
	if !countsEachRow(m) || m.Summed() != nil {
		return nil
	}
	if m.Filter != nil {
		if !slices.Equal(predicate.Encode(nil, m.Filter), predicate.Encode(nil, s.Filter)) {
			return nil
		}
		same, every := *s, *m
		same.Filter, every.Filter = nil, nil
		s, m = &same, &every
	}
	return Cover(s, m)
}

// countsEachRow reports whether the only counter counts each row that the filter admits.
func countsEachRow(m *linear.Query) bool {
	return len(m.Counts) == 1 && m.Counts[0] == nil && !slices.ContainsFunc(m.Factors, func(p *linear.Factor) bool { return p.Masks[0] != nil })
}

// MeanCells is the mean number of cells that a count is read from.
func (r *Reading) MeanCells() float64 {
	cells, counts := 0, 0
	for _, rows := range r.Spans {
		for _, spans := range rows {
			cells, counts = cells+mechanisms.CellsIn(spans), counts+1
		}
	}
	return float64(cells) / float64(max(1, counts))
}
