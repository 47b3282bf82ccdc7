package planner

import (
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// A range release over the column by which rows are added grows: it is paid for once, with all days of the domain, and
// answers from those that are closed (docs/adr/0027). Which are, the plan's time says, and nothing else: what has been
// drawn already is for the ledger to know, and does not show (privacy rule 1).

// growing is the measure of a release that grows over a column of t, as it stands at a time. Its cells are the column's
// but for NULL; closed is 0 where there is nothing to read yet.
func growing(t *policy.Table, c *policy.Column, at time.Time) *solved {
	s := identity(t, []*policy.Column{c})
	p := s.parts[0]
	p.classes = c.Domain.Regular
	for i := p.classes; i < len(p.class); i++ {
		p.class[i] = -1
	}
	s.cells, s.grows, s.closed = p.classes, true, t.Appends.Closed(at)
	return s
}

// ofRelease is the measure of a release of the policy, and its Spec; nil where nothing can be read of it yet.
func (ch *chooser) ofRelease(r *policy.Release) (*solved, mechanisms.Spec) {
	s := identity(r.Table, r.Columns)
	if r.Grows() {
		if s = growing(r.Table, r.Columns[0], ch.now()); s.closed == 0 {
			return nil, mechanisms.Spec{}
		}
	}
	spec, err := releaseSpec(r, s.cells)
	if err != nil {
		return nil, mechanisms.Spec{}
	}
	return s, spec
}

// readable prepares a held release that grows for reading, and tells whether it can be read.
func (ch *chooser) readable(h *heldOn) bool {
	m := h.measure
	if m.grows != h.holding.Spec.Grows() {
		return false
	}
	if !m.grows {
		return true
	}
	c := m.table.Columns[m.grain[0]]
	if len(m.grain) != 1 || !m.table.Grows(c) {
		return false
	}
	m.closed = m.table.Appends.Closed(ch.now())
	return m.closed > 0
}

// holdOn reads a question from what is held.
func (w *way) holdOn(h heldOn, why string) {
	w.hold(h.holding, why)
	h.measure.sold(w.measure, h.holding.Spec)
}

// grown finds the releases that grow among what she has paid for. They go before the answers that she has kept: those are
// of the days that had passed when they were counted.
func (ch *chooser) grown(q *asking) []candidate {
	if q.table.Appends == nil {
		return nil
	}
	return settled(ch.reused(q, true))
}

// tellUnclosed notes what the ways leave out of the cells that are shown.
func tellUnclosed(sheets []*sheet, ways [][]*way, said *notes) {
	for i, list := range ways {
		for j, w := range list {
			if w == nil || w.reading == nil || len(w.reading.open) == 0 {
				continue
			}
			a := sheets[i].asks[j]
			for cell := range w.reading.open {
				if a.chosen != nil || slices.ContainsFunc(a.fills, func(f fill) bool { return f.condition < 0 || a.keyValue(f.condition, int(cell)) == true }) {
					said.add(w.reading.note)
				}
			}
		}
	}
}
