package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// mixed is how a question is read from several releases.
type mixed struct {
	from  []*stocked
	terms [][][]Term // by measured counter and cell; a term's Measure is an index of from
}

// mixing is one row of a question, to be combined.
type mixing struct {
	counter, cell int
	wanted        predicate.Pred
	adds          string
	limit         float64 // the variance that would do
	near          []*stocked
}

// mixedReading is a question read from several releases.
type mixedReading struct {
	reading  *reading
	counts   *solved    // what is counted, where that is more than the question
	measures []*Measure // all that is read
	holding  Holding    // the first of them
	variance float64
	order    int  // by age: the youngest that is read
	released bool // it is read from releases alone
	enough   bool // it is as exact as asked
}

// epochsOf lists the epochs of which some release is near each row.
func epochsOf(rows []mixing) (list []string) {
	if len(rows) == 0 {
		return nil
	}
	for _, s := range rows[0].near {
		if e := s.epoch(); !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// epoch names what a release may be combined with: what was drawn from the same rows. These are all releases of a table that
// does not change, the draws of releases bought anew at the same times, and the cells of one draw.
func (s *stocked) epoch() string {
	switch r := s.declared; {
	case s.measure.table.Static:
		return "static"
	case r != nil && r.Refresh > 0:
		return fmt.Sprint(r.Refresh, epochOf(s.holding.At, r.Refresh))
	}
	return fmt.Sprint("draw ", s.holding.ID)
}

// within combines releases of one epoch: the oldest that do as exactly as asked; otherwise all that are near, or,
// where these are too many, the oldest or the most exact.
func (t *combining) within(q *solved, rows []mixing, epoch string) *mixedReading {
	var all []*stocked
	own := make([]mixing, len(rows))
	for i, r := range rows {
		own[i] = r
		own[i].near = slices.DeleteFunc(slices.Clone(r.near), func(s *stocked) bool { return s.epoch() != epoch })
		for _, s := range own[i].near {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	byAge := func(a, b *stocked) int { return a.order - b.order }
	slices.SortFunc(all, byAge)
	if first, ok := t.enough(own, all); ok {
		return readMixed(q, own, first)
	}
	if mixtures := t.mixtures(own, nil); mixtures != nil {
		return readMixed(q, own, mixtures)
	}
	return nil
}

// enough finds the fewest of the oldest releases that do as exactly as asked.
func (t *combining) enough(rows []mixing, all []*stocked) ([]*mixture, bool) {
	does := func(n int) ([]*mixture, bool) {
		m := t.mixtures(rows, all[:n])
		if m == nil {
			return nil, false
		}
		for i, one := range m {
			if one.variance > rows[i].limit*(1+1e-9) {
				return nil, false
			}
		}
		return m, true
	}
	n := min(len(all), mostMixed)
	found, ok := does(n)
	if !ok {
		return nil, false
	}
	low := 0 // of so many it is known that they do not
	for n-low > 1 {
		middle := low + (n-low)/2
		if m, ok := does(middle); ok {
			found, n = m, middle
		} else {
			low = middle
		}
	}
	return found, true
}

// mixtures combines each row from those of some releases that are near it; nil: from the oldest and the most exact near it.
func (t *combining) mixtures(rows []mixing, some []*stocked) []*mixture {
	out := make([]*mixture, len(rows))
	for i, r := range rows {
		near := r.near
		if some != nil {
			near = slices.DeleteFunc(slices.Clone(near), func(s *stocked) bool { return !slices.Contains(some, s) })
		} else if len(near) > mostMixed {
			near = slices.Clone(near)
			slices.SortStableFunc(near, func(a, b *stocked) int { return int(math.Copysign(1, a.inexact-b.inexact)) })
			near = near[:mostMixed]
		}
		if len(near) == 0 {
			return nil
		}
		if out[i] = combination(t, r.wanted, r.adds, near); out[i] == nil {
			return nil
		}
	}
	return out
}

// readMixed reads a question whose rows are combined.
func readMixed(q *solved, rows []mixing, found []*mixture) *mixedReading {
	m := &mixed{terms: make([][][]Term, len(q.counts))}
	for c := range m.terms {
		m.terms[c] = make([][]Term, q.cells)
	}
	c := &mixedReading{enough: true, released: true}
	for i, one := range found {
		for _, t := range one.terms {
			at := slices.Index(m.from, t.from)
			if at < 0 {
				at = len(m.from)
				m.from = append(m.from, t.from)
				c.order, c.released = max(c.order, t.from.order), c.released && t.from.measure.isRelease()
			}
			row := &m.terms[rows[i].counter][rows[i].cell]
			*row = append(*row, Term{at, t.counter, t.spans, t.weight.Num().Int64(), t.weight.Denom().Int64()})
		}
		c.variance = max(c.variance, one.variance)
		c.enough = c.enough && one.variance <= rows[i].limit*(1+1e-9)
	}
	if len(m.from) == 0 {
		return nil
	}
	c.reading = &reading{mix: m}
	why := "what you have paid for adds up to it"
	if plain := m.plain(); plain != nil {
		c.reading, c.counts, why = plain, m.from[0].measure.plain(), "you have paid for "+m.from[0].measure.kind+" "+m.from[0].measure.name+", whose cells add up to it"
	}
	for _, s := range m.from {
		own := s.measure.held()
		own.Declared, own.Spec, own.Held, own.HeldID, own.Why = s.declared, s.holding.Spec, true, s.holding.ID, why
		c.measures = append(c.measures, own)
	}
	c.holding = m.from[0].holding
	return c
}

// plain is the reading of sums of cells of one release, nil where there is more to it.
func (m *mixed) plain() *reading {
	if len(m.from) != 1 {
		return nil
	}
	r := &reading{spans: make([][][]mechanisms.Span, len(m.terms)), counters: make([]int, len(m.terms))}
	for c, rows := range m.terms {
		r.spans[c], r.counters[c] = make([][]mechanisms.Span, len(rows)), -1
		for cell, row := range rows {
			for _, t := range row {
				if t.Num != 1 || t.Den != 1 || r.counters[c] >= 0 && t.Counter != r.counters[c] {
					return nil
				}
				r.counters[c], r.spans[c][cell] = t.Counter, predicate.Unite(r.spans[c][cell], t.Spans)
			}
		}
		r.counters[c] = max(r.counters[c], 0)
	}
	return r
}

// off is the largest error over the rows of a question.
func (m *mixed) off(c mechanisms.Confidence) mechanisms.Error {
	var rows [][]mechanisms.Weighted
	for _, cells := range m.terms {
		for _, row := range cells {
			rows = append(rows, m.weighted(row))
		}
	}
	return mechanisms.WidestMixed(rows, c)
}

// weighted are the parts of a row for package mechanisms.
func (m *mixed) weighted(row []Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: m.from[t.Measure].holding.Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.weight()}
	}
	return parts
}
