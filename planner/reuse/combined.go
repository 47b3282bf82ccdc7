package reuse

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
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

// combines reports whether a measure's cells can be used in sums and differences: each of its columns is put into
// classes by itself, and what is counted of a unit does not depend on how the rows are grouped.
func (m *HeldMeasure) combines() bool {
	if m.Continual || m.Table.MaxGroups > 0 || m.Cells > maxStockedCells {
		return false
	}
	return !slices.ContainsFunc(m.Factors, func(p *linear.Factor) bool { return len(p.Columns) != 1 })
}

// maxStockedCells bounds the cells of a release that is used in sums and differences.
const maxStockedCells = 1 << 17

// maxConjuncts bounds the conditions of which each combination is looked up.
const maxConjuncts = 4

// Near lists the releases that the rows of a condition may be combined from, oldest first: those whose conditions are
// some of its own, or its own with the cells of one column changed, or its own turned about by the rules of AND, OR and
// NOT.
func (s *Views) Near(wanted predicate.Pred) []*View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	parts := predicate.Conjuncts(wanted)
	columns, _ := predicate.Columns(wanted, nil)
	f := &finder{s: s, columns: ColumnsKey(PositionsOf(s.table, columns))}
	f.turned(parts)
	for _, some := range subsets(parts) {
		f.filter(predicate.All(some...))
		f.lines(some)
	}
	slices.SortFunc(f.found, func(a, b *View) int { return a.Order - b.Order })
	return f.found
}

// finder collects releases, each once.
type finder struct {
	s       *Views
	columns string
	found   []*View
	seen    map[*View]bool
}

func (f *finder) add(list []*View) {
	if f.seen == nil {
		f.seen = map[*View]bool{}
	}
	for _, s := range list {
		if !f.seen[s] {
			f.seen[s] = true
			f.found = append(f.found, s)
		}
	}
}

// lines adds the neighbours on the lines of conditions: with the cells of one of them changed, or one more.
func (f *finder) lines(parts []predicate.Pred) {
	rest := predicate.Encode(nil, predicate.All(parts...))
	var columns []*policy.Column
	for i, p := range parts {
		columns, _ = predicate.Columns(p, columns)
		if in, ok := p.(predicate.InCells); ok {
			if l := f.s.lines[lineKey(without(parts, i), in.Column)]; l != nil {
				f.add(l.near(in.Spans, in.Column.Domain.Size()))
			}
		}
	}
	for _, c := range f.s.table.Columns {
		if l := f.s.lines[string(append(predicate.EncodeText(nil, c.Name), rest...))]; l != nil && !slices.Contains(columns, c) {
			f.add(l.near(nil, c.Domain.Size()))
		}
	}
}

// maxColumnSets is how many sets of columns are looked at of one condition: those with the fewest columns that do not
// matter.
const maxColumnSets = 6

// filter adds the releases with a condition.
func (f *finder) filter(p predicate.Pred) {
	byColumns := f.s.byFilter[string(predicate.Encode(nil, p))]
	sets := make([]string, 0, len(byColumns))
	for set := range byColumns {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(a, b string) int {
		if d := beside(a, f.columns) - beside(b, f.columns); d != 0 {
			return d
		}
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	for _, set := range sets[:min(len(sets), maxColumnSets)] {
		f.add(byColumns[set].all())
	}
}

// beside is how many columns of a set are not in another.
func beside(set, other string) (n int) {
	for i := 0; i < len(set); i += 2 {
		if !hasColumns(other, set[i:i+2]) {
			n++
		}
	}
	return n
}

// turned looks up NOT of the conditions and of each, and both sides of each OR, and the OR of each two.
func (f *finder) turned(parts []predicate.Pred) {
	f.filter(predicate.Not(predicate.All(parts...)))
	if len(parts) > maxConjuncts {
		return
	}
	for i, p := range parts {
		rest := without(parts, i)
		f.filter(predicate.All(append(slices.Clone(rest), predicate.Not(p))...))
		if or, ok := p.(predicate.AnyOf); ok && len(or) <= maxConjuncts {
			for _, some := range subsets(or) {
				f.filter(predicate.All(append(slices.Clone(rest), some...)...))
			}
		}
		for j := range i {
			others := without(rest, j)
			f.filter(predicate.All(append(others, predicate.Any(p, parts[j]))...))
		}
	}
}

// subsets are all subsets of a few conditions; of many those of none, one, all but one, and all.
func subsets(parts []predicate.Pred) (out [][]predicate.Pred) {
	if n := len(parts); n > maxConjuncts {
		out = append(out, nil, parts)
		for i := range parts {
			out = append(out, parts[i:i+1], without(parts, i))
		}
		return out
	}
	for bits := range 1 << len(parts) {
		var some []predicate.Pred
		for i, p := range parts {
			if bits>>i&1 == 1 {
				some = append(some, p)
			}
		}
		out = append(out, some)
	}
	return out
}

// all assigns all combinations; false means the measure does not answer the question, or there are too many to find
// out. Of cells of a column that nothing tells apart one is looked at, which makes a fine domain as small as what is
// asked of it.
func (w *walk) all() bool {
	combinations := linear.CombinationsOf(w.sizes)
	if combinations <= linear.MaxPlain {
		for at := range combinations {
			if !w.visit(at) {
				return false
			}
		}
		return true
	}
	lists, sizes := w.unlike(), make([]int, len(w.sizes))
	for i, list := range lists {
		sizes[i] = len(list)
	}
	if combinations = linear.CombinationsOf(sizes); combinations > plans.MaxCells {
		return false
	}
	at := make([]int, len(sizes))
	for n := range combinations {
		linear.Decode(n, sizes, at)
		for i, list := range lists {
			w.cells[i] = list[at[i]]
		}
		if !w.assign() {
			return false
		}
	}
	return true
}

// unlike lists, for each column, one of each kind of its cells. Two are of a kind if the measure has them in one class,
// every predicate of the question says the same of both, and every factor of the question has them in one class, under
// the same counters: assign, which looks at no more of a cell, does the same then. Columns of factors with several keep
// all cells.
func (w *walk) unlike() [][]int {
	lists := make([][]int, len(w.sizes))
	column := 0
	for _, p := range w.m.Factors {
		for _, c := range p.Columns {
			lists[column] = w.kinds(column, w.m.Table.Columns[c], p)
			column++
		}
	}
	return lists
}

func (w *walk) kinds(at int, column *policy.Column, of *linear.Factor) (list []int) {
	parts, alone := []*linear.Factor{of}, len(of.Columns) == 1
	for n, p := range w.s.Factors {
		if slices.Contains(w.places[n], at) {
			parts, alone = append(parts, p), alone && len(p.Columns) == 1
		}
	}
	preds := linear.InCells(w.s.Filter, column, nil)
	for _, p := range w.s.Counts {
		preds = linear.InCells(p, column, preds)
	}
	seen := map[string]bool{}
	w.s.Work.Step(w.sizes[at] * (1 + len(parts) + len(preds)))
	if !alone || of.Cuts == nil && derived.IsIdentity(of.Class) { // each is a kind of its own
		return semantics.IdentityOf(w.sizes[at])
	}
	var kind []byte
	for cell := range w.sizes[at] {
		kind = kind[:0]
		for i, p := range parts {
			own := p.PieceOf(0, w.firstAt(at, cell))
			kind = binary.AppendVarint(kind, int64(p.Class[own]))
			for _, mask := range p.Masks {
				kind = append(kind, linear.Bit(i > 0 && mask != nil && mask[own]))
			}
		}
		for _, p := range preds {
			kind = append(kind, linear.Bit(predicate.Contains(p.Spans, w.firstAt(at, cell))))
		}
		if !seen[string(kind)] {
			seen[string(kind)] = true
			list = append(list, cell)
		}
	}
	return list
}
