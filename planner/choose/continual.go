package choose

import (
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A range release over the column by which rows are added grows: it is paid for once, with all days of the domain, and
// answers from those that are closed (docs/adr/0027). Which are, the plan's time says, and nothing else: what has been
// drawn already is for the ledger to know, and does not show (privacy rule 1).

// growing is the measure of a release that grows over a column of t, as it stands at a time. Its cells are the column's
// but for NULL; closed is 0 where there is nothing to read yet.
func growing(t *policy.Table, c *policy.Column, at time.Time) *linear.Query {
	s := linear.Identity(t, []*policy.Column{c})
	p := s.Factors[0]
	p.Classes = c.Domain.Regular
	for i := p.Classes; i < len(p.Class); i++ {
		p.Class[i] = -1
	}
	s.Cells, s.Continual, s.Closed = p.Classes, true, t.Appends.Closed(at)
	return s
}

// ofRelease is the measure of a release of the policy, and its Spec; nil where nothing can be read of it yet.
func (ch *Optimizer) ofRelease(r *policy.Release) (*linear.Query, mechanisms.Spec) {
	s := linear.Identity(r.Table, r.Columns)
	if r.Grows() {
		if s = growing(r.Table, r.Columns[0], ch.Now()); s.Closed == 0 {
			return nil, mechanisms.Spec{}
		}
	}
	spec, err := reuse.ReleaseSpec(r, s.Cells)
	if err != nil {
		return nil, mechanisms.Spec{}
	}
	return s, spec
}

// readable prepares a held release that grows for reading, and reports whether it can be read.
func (ch *Optimizer) readable(h *reuse.HeldOn) bool {
	m := h.Measure
	if m.Continual != h.Holding.Spec.Grows() {
		return false
	}
	if !m.Continual {
		return true
	}
	c := m.Table.Columns[m.Grain[0]]
	if len(m.Grain) != 1 || !m.Table.Grows(c) {
		return false
	}
	m.Closed = m.Table.Appends.Closed(ch.Now())
	return m.Closed > 0
}

// holdOn reads a question from what is held.
func (w *Path) holdOn(h reuse.HeldOn, why string) {
	w.hold(h.Holding, why)
	h.Measure.Sold(w.Measure, h.Holding.Spec)
}

// continual finds the releases that grow among what she has paid for. They go before the answers that she has kept:
// those are of the days that had passed when they were counted.
func (ch *Optimizer) continual(q *goal) []alternative {
	if q.Table.Appends == nil {
		return nil
	}
	return settled(ch.reused(q, true))
}

// NoteUnclosed notes what the paths leave out of the cells that are shown.
func NoteUnclosed(leaves []*LeafPlan, paths [][]*Path, notes *semantics.Notes) {
	for i, list := range paths {
		for j, w := range list {
			if w == nil || w.Reading == nil || len(w.Reading.Open) == 0 {
				continue
			}
			a := leaves[i].Requests[j]
			for cell := range w.Reading.Open {
				if a.Chooses() || slices.ContainsFunc(a.Projections, func(f Projection) bool { return f.condition < 0 || a.KeyValue(f.condition, int(cell)) == true }) {
					notes.Add(w.Reading.Note)
				}
			}
		}
	}
}
