package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// reading tells how a question is read from a measure: by measured counter and cell of the question, the measure's cells
// whose sum it is.
type reading struct {
	spans    [][][]mechanisms.Span
	counters []int               // the measure's counter to sum, by the question's
	rows     [][]mechanisms.Span // of marginals: what is looked at, cells by themselves not being read; nil: the cells
	open     map[int32]bool      // the question's cells of which days are left out, as they are not closed
	note     string              // that says so
	mix      *mixed              // it is read from several instead
}

// looked are the sums that a counter is read for.
func (r *reading) looked(counter int) [][]mechanisms.Span {
	if r.rows != nil {
		return r.rows
	}
	return r.spans[counter]
}

// ownReading reads a question from the measure made for it.
func ownReading(s *solved) *reading {
	r := &reading{spans: make([][][]mechanisms.Span, len(s.counts)), counters: make([]int, len(s.counts))}
	cells := make([][]mechanisms.Span, s.cells)
	for i := range cells {
		cells[i] = predicate.One(i)
	}
	for c := range r.spans {
		r.spans[c], r.counters[c] = cells, c
	}
	if s.marginals != nil {
		r.rows = s.marginals.rows
	}
	return r
}

// cover tells whether the counts of every row by the cells of m answer s: each cell of m must lie whole inside one cell of
// s, for each counter, or outside all of them.
func cover(s, m *solved) *reading {
	columns, ok := s.columns()
	if !ok || s.table != m.table || s.summed() != nil || m.filter != nil {
		return nil
	}
	for _, c := range columns {
		if !slices.ContainsFunc(m.grain, func(g int) bool { return m.table.Columns[g] == c }) {
			return nil
		}
	}
	if s.divides(m) {
		return nil
	}
	w := newWalk(s, m)
	if !w.all() {
		return nil
	}
	r := w.reading()
	if r.open = w.open; len(w.open) > 0 {
		r.note = m.unclosed()
	}
	return r
}

// walk goes over all combinations of the cells of a measure's columns.
type walk struct {
	s, m     *solved
	sizes    []int
	cells    []int
	byColumn map[*policy.Column]int // place in cells
	assigned [][]int32              // by counter and cell of m: cell of s, −1 outside, −2 not seen
	places   [][]int                // by part of s: places of its columns in cells
	first    [][]int                // by place: the first cell of each piece of cells of which nothing is told apart here; nil: each cell
	open     map[int32]bool         // cells of s of which some of m's are not closed
}

func newWalk(s, m *solved) *walk {
	w := &walk{s: s, m: m, byColumn: map[*policy.Column]int{}, open: map[int32]bool{}}
	for _, p := range m.parts {
		for i, c := range p.columns {
			w.byColumn[m.table.Columns[c]] = len(w.sizes)
			first := s.together(p, i, m.table.Columns[c])
			if w.first = append(w.first, first); first != nil {
				w.sizes = append(w.sizes, len(first))
			} else {
				w.sizes = append(w.sizes, p.end(i))
			}
		}
	}
	w.cells = make([]int, len(w.sizes))
	w.assigned = make([][]int32, len(s.counts))
	for c := range w.assigned {
		s.work.Take(m.cells, 4)
		w.assigned[c] = make([]int32, m.cells)
		for i := range w.assigned[c] {
			w.assigned[c][i] = -2
		}
	}
	for _, p := range s.parts {
		places := make([]int, len(p.columns))
		for i, c := range p.columns {
			places[i] = w.byColumn[s.table.Columns[c]]
		}
		w.places = append(w.places, places)
	}
	return w
}

// visit assigns one combination; false: the measure does not answer the question.
func (w *walk) visit(at int) bool {
	decode(at, w.sizes, w.cells)
	return w.assign()
}

// assign assigns the combination of the present cells.
func (w *walk) assign() bool {
	w.s.work.Step(1 + len(w.s.counts))
	from, to := w.cellOfMeasure(), w.cellOfQuestion()
	for c, pred := range w.s.counts {
		target := to
		if to >= 0 && (!w.masked(c) || pred != nil && !predicate.Satisfied(pred, w.cell)) {
			target = -1
		}
		if from < 0 {
			if target >= 0 {
				return false
			}
			continue
		}
		if w.m.grows && from >= w.m.closed {
			if target >= 0 && w.m.table.Appends.Count {
				return false
			}
			if target >= 0 {
				w.open[target] = true
			}
			continue
		}
		if have := w.assigned[c][from]; have != -2 && have != target {
			return false
		}
		w.assigned[c][from] = target
	}
	return true
}

func (w *walk) cell(c *policy.Column) int { return w.cellAt(w.byColumn[c]) }

func (w *walk) cellAt(place int) int { return w.firstAt(place, w.cells[place]) }

// firstAt is a cell at a place: the first one of a piece.
func (w *walk) firstAt(place, piece int) int {
	if starts := w.first[place]; starts != nil {
		return starts[piece]
	}
	return piece
}

func (w *walk) cellOfMeasure() int {
	out, i := 0, 0
	for _, p := range w.m.parts {
		at := 0
		for k, size := range p.sizes {
			at = at*size + p.pieceOf(k, w.cellAt(i))
			i++
		}
		class := p.class[at]
		if class < 0 {
			return -1
		}
		out = out*p.classes + int(class)
	}
	return out
}

func (w *walk) cellOfQuestion() int32 {
	if w.s.filter != nil && !predicate.Satisfied(w.s.filter, w.cell) {
		return -1
	}
	out := int32(0)
	for n, p := range w.s.parts {
		class := p.class[w.combination(n, p)]
		if class < 0 {
			return -1
		}
		out = out*int32(p.classes) + class
	}
	return out
}

func (w *walk) combination(n int, p *part) int {
	at := 0
	for i, place := range w.places[n] {
		at = at*p.sizes[i] + p.pieceOf(i, w.cellAt(place))
	}
	return at
}

// masked tells whether counter c counts at the present cells.
func (w *walk) masked(c int) bool {
	for n, p := range w.s.parts {
		if p.masks[c] != nil && !p.masks[c][w.combination(n, p)] {
			return false
		}
	}
	return true
}

func (w *walk) reading() *reading {
	r := &reading{spans: make([][][]mechanisms.Span, len(w.assigned)), counters: make([]int, len(w.assigned))}
	for c, assigned := range w.assigned {
		rows := make([]spansOf, w.s.cells)
		for from, to := range assigned {
			if to >= 0 {
				rows[to].add(from)
			}
		}
		r.spans[c] = make([][]mechanisms.Span, len(rows))
		for i, s := range rows {
			r.spans[c][i] = s
		}
	}
	return r
}

func attributesOf(columns []*policy.Column, m *solved) (attributes []int) {
	for i, p := range m.parts {
		if slices.ContainsFunc(p.columns, func(c int) bool { return slices.Contains(columns, m.table.Columns[c]) }) {
			attributes = append(attributes, i)
		}
	}
	return attributes
}

func containsAll(list, wanted []*policy.Column) bool {
	for _, c := range wanted {
		if !slices.Contains(list, c) {
			return false
		}
	}
	return true
}
