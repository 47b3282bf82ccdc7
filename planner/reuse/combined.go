package reuse

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// Combination is how a question is read from several releases.
type Combination struct {
	from  []*View
	Terms [][][]plans.Term // by measured counter and cell; a term's Measure is an index of from
}

// Mixing is one row of a question, to be combined.
type Mixing struct {
	Counter, Cell int
	Wanted        predicate.Pred
	Adds          string
	Limit         float64 // the variance that would do
	Near          []*View
}

// CombinedReading is a question read from several releases.
type CombinedReading struct {
	Reading  *Reading
	Counts   *linear.Query    // what is counted, where that is more than the question
	Measures []*plans.Measure // all that is read
	Holding  Holding          // the first of them
	Variance float64
	Order    int  // by age: the youngest that is read
	Enough   bool // it is as exact as asked
}

// EpochsOf lists the epochs of which some release is near each row.
func EpochsOf(rows []Mixing) (list []string) {
	if len(rows) == 0 {
		return nil
	}
	for _, s := range rows[0].Near {
		if e := s.epoch(); !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// epoch names what a release may be combined with: what was drawn from the same rows. These are all releases of a table
// that does not change, those of one snapshot's table, the draws of releases bought anew at the same times, and the
// cells of one draw. Public rows that are joined are of no snapshot.
func (s *View) epoch() string {
	switch r := s.Declared; {
	case s.Measure.Table.Static:
		return "static"
	case s.Holding.AsOf != 0 && s.Measure.Table.Derived == nil:
		return fmt.Sprint("as of ", s.Holding.AsOf)
	case r != nil && r.Refresh > 0:
		return fmt.Sprint(r.Refresh, EpochOf(s.Holding.At, r.Refresh))
	}
	return fmt.Sprint("draw ", s.Holding.ID)
}

// Within combines releases of one epoch: the oldest that do as exactly as asked; otherwise all that are near, or,
// where these are too many, the oldest or the most exact.
func (t *Combining) Within(q *linear.Query, rows []Mixing, epoch string) *CombinedReading {
	var all []*View
	own := make([]Mixing, len(rows))
	for i, r := range rows {
		own[i] = r
		own[i].Near = slices.DeleteFunc(slices.Clone(r.Near), func(s *View) bool { return s.epoch() != epoch })
		for _, s := range own[i].Near {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	byAge := func(a, b *View) int { return a.Order - b.Order }
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
func (t *Combining) enough(rows []Mixing, all []*View) ([]*mixture, bool) {
	does := func(n int) ([]*mixture, bool) {
		m := t.mixtures(rows, all[:n])
		if m == nil {
			return nil, false
		}
		for i, one := range m {
			if one.variance > rows[i].Limit*(1+1e-9) {
				return nil, false
			}
		}
		return m, true
	}
	n := min(len(all), maxMixed)
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

// mixtures combines each row from those of some releases that are near it; nil means from the oldest and the most exact
// near it.
func (t *Combining) mixtures(rows []Mixing, some []*View) []*mixture {
	out := make([]*mixture, len(rows))
	for i, r := range rows {
		near := r.Near
		if some != nil {
			near = slices.DeleteFunc(slices.Clone(near), func(s *View) bool { return !slices.Contains(some, s) })
		} else if len(near) > maxMixed {
			near = slices.Clone(near)
			slices.SortStableFunc(near, func(a, b *View) int { return int(math.Copysign(1, a.inexact-b.inexact)) })
			near = near[:maxMixed]
		}
		if len(near) == 0 {
			return nil
		}
		if out[i] = combination(t, r.Wanted, r.Adds, near); out[i] == nil {
			return nil
		}
	}
	return out
}

// readMixed reads a question whose rows are combined.
func readMixed(q *linear.Query, rows []Mixing, found []*mixture) *CombinedReading {
	m := &Combination{Terms: make([][][]plans.Term, len(q.Counts))}
	for c := range m.Terms {
		m.Terms[c] = make([][]plans.Term, q.Cells)
	}
	c := &CombinedReading{Enough: true}
	for i, one := range found {
		for _, t := range one.terms {
			at := slices.Index(m.from, t.from)
			if at < 0 {
				at = len(m.from)
				m.from = append(m.from, t.from)
				c.Order = max(c.Order, t.from.Order)
			}
			row := &m.Terms[rows[i].Counter][rows[i].Cell]
			*row = append(*row, plans.Term{Measure: at, Counter: t.counter, Spans: t.spans, Num: t.weight.Num().Int64(), Den: t.weight.Denom().Int64()})
		}
		c.Variance = max(c.Variance, one.variance)
		c.Enough = c.Enough && one.variance <= rows[i].Limit*(1+1e-9)
	}
	if len(m.from) == 0 {
		return nil
	}
	c.Reading = &Reading{Mix: m}
	why := "what you have paid for adds up to it"
	if plain := m.plain(); plain != nil {
		c.Reading, c.Counts, why = plain, m.from[0].Measure.Plain(), "you have paid for "+m.from[0].Measure.Kind+" "+m.from[0].Measure.Name+", whose cells add up to it"
	}
	for _, s := range m.from {
		own := s.Measure.Held()
		own.Declared, own.Spec, own.Held, own.HeldID, own.Why = s.Declared, s.Holding.Spec, true, s.Holding.ID, why
		c.Measures = append(c.Measures, own)
	}
	c.Holding = m.from[0].Holding
	return c
}

// plain is the reading of sums of cells of one release, nil where there is more to it.
func (m *Combination) plain() *Reading {
	if len(m.from) != 1 {
		return nil
	}
	r := &Reading{Spans: make([][][]mechanisms.Span, len(m.Terms)), Counters: make([]int, len(m.Terms))}
	for c, rows := range m.Terms {
		r.Spans[c], r.Counters[c] = make([][]mechanisms.Span, len(rows)), -1
		for cell, row := range rows {
			for _, t := range row {
				if t.Num != 1 || t.Den != 1 || r.Counters[c] >= 0 && t.Counter != r.Counters[c] {
					return nil
				}
				r.Counters[c], r.Spans[c][cell] = t.Counter, predicate.Unite(r.Spans[c][cell], t.Spans)
			}
		}
		r.Counters[c] = max(r.Counters[c], 0)
	}
	return r
}

// Off is the largest error over the rows of a question.
func (m *Combination) Off(c mechanisms.Confidence) mechanisms.Error {
	var rows [][]mechanisms.Weighted
	for _, cells := range m.Terms {
		for _, row := range cells {
			rows = append(rows, m.Weighted(row))
		}
	}
	return mechanisms.WidestMixed(rows, c)
}

// Weighted are the parts of a row for package mechanisms.
func (m *Combination) Weighted(row []plans.Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: m.from[t.Measure].Holding.Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.Weight()}
	}
	return parts
}
