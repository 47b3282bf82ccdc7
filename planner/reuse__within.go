package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
)

// coverWithin is cover where m may count the rows of a condition that s has too.
func coverWithin(s, m *solved) *reading {
	if len(m.counts) != 1 || m.counts[0] != nil || m.summed() != nil || slices.ContainsFunc(m.parts, func(p *part) bool { return p.masks[0] != nil }) {
		return nil
	}
	if m.filter != nil {
		if !slices.Equal(predicate.Encode(nil, m.filter), predicate.Encode(nil, s.filter)) {
			return nil
		}
		same, every := *s, *m
		same.filter, every.filter = nil, nil
		s, m = &same, &every
	}
	return cover(s, m)
}

// meanCells is the mean number of cells that a count is read from.
func (r *reading) meanCells() float64 {
	cells, counts := 0, 0
	for _, rows := range r.spans {
		for _, spans := range rows {
			counts++
			for _, s := range spans {
				cells += s.To - s.From
			}
		}
	}
	return float64(cells) / float64(max(1, counts))
}
