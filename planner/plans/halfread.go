package plans

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// HalfRead is the column of which a measure's rows in at least half of its domain are counted, where what is outside it
// is NULL; nil means there is none. Either the measure's condition says so, or the cells that are read of it.
func (p *Plan) HalfRead(measure int) *policy.Column {
	m := p.Measures[measure]
	for _, condition := range append(slices.Clone(m.Counters), m.Where) {
		for q := range predicate.Leaves(condition) {
			in, ok := q.(predicate.InCells)
			if ok && mostOf(in.Column, func(cell int) bool { return within(in.Spans, cell) }) {
				return in.Column
			}
		}
	}
	if len(m.Grain) != 1 || m.Place == nil {
		return nil
	}
	for _, leaf := range p.Leaves {
		for _, count := range leaf.Counts {
			for _, r := range count.Runs {
				read := func(cell int) bool {
					return within(r.Spans[0], m.Place([]int32{int32(m.Piece(0, cell))}, r.Counter))
				}
				if r.Measure == measure && r.IsSum() && len(r.Spans) == 1 && mostOf(m.Grain[0], read) {
					return m.Grain[0]
				}
			}
		}
	}
	return nil
}

// looks is how many cells of a domain are looked at, evenly.
const looks = 64

// mostOf reports whether at least half of a column's domain is read, outside of which it is NULL.
func mostOf(c *policy.Column, read func(cell int) bool) bool {
	if c.Outside != policy.OutsideOther || c.Domain == nil || !c.Domain.Ordered() {
		return false
	}
	n := 0
	for i := range looks {
		if read(i * c.Domain.Regular / looks) {
			n++
		}
	}
	return 2*n >= looks
}

func within(spans []mechanisms.Span, cell int) bool {
	return slices.ContainsFunc(spans, func(s mechanisms.Span) bool { return s.From <= cell && cell < s.To })
}
