package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Reading tells how a question is read from a measure: by measured counter and cell of the question, the measure's
// cells whose sum it is.
type Reading struct {
	Spans    [][][]mechanisms.Span
	Counters []int               // the measure's counter to sum, by the question's
	rows     [][]mechanisms.Span // of marginals: what is looked at, cells by themselves not being read; nil means the cells
	Open     map[int32]bool      // the question's cells of which days are left out, as they are not closed
	Note     string              // that says so
	Mix      *Combination        // it is read from several instead
}

// Looked are the sums that a counter is read for.
func (r *Reading) Looked(counter int) [][]mechanisms.Span {
	if r.rows != nil {
		return r.rows
	}
	return r.Spans[counter]
}

// OwnReading reads a question from the measure made for it.
func OwnReading(s *linear.Query) *Reading {
	r := &Reading{Spans: make([][][]mechanisms.Span, len(s.Counts)), Counters: make([]int, len(s.Counts))}
	cells, each := make([][]mechanisms.Span, s.Cells), make([]mechanisms.Span, s.Cells)
	for i := range cells {
		each[i] = mechanisms.Span{From: i, To: i + 1}
		cells[i] = each[i : i+1 : i+1]
	}
	for c := range r.Spans {
		r.Spans[c], r.Counters[c] = cells, c
	}
	if s.Marginals != nil {
		r.rows = s.Marginals.Rows
	}
	return r
}

// Cover reports whether the counts of every row by the cells of m answer s: each cell of m must lie whole inside one
// cell of s, for each counter, or outside all of them.
func Cover(s, m *linear.Query) *Reading {
	columns, ok := s.Columns()
	if !ok || s.Table != m.Table || s.Summed() != nil || m.Filter != nil {
		return nil
	}
	for _, c := range columns {
		if !slices.ContainsFunc(m.Grain, func(g int) bool { return m.Table.Columns[g] == c }) {
			return nil
		}
	}
	if s.Divides(m) {
		return nil
	}
	w := newWalk(s, m)
	if starts := w.lastPieces(); starts != nil {
		return w.byRuns(starts)
	}
	w.assignEach()
	if !w.all() {
		return nil
	}
	r := w.reading()
	if r.Open = w.open; len(w.open) > 0 {
		r.Note = m.Unclosed()
	}
	return r
}

// walk goes over all combinations of the cells of a measure's columns.
type walk struct {
	s, m     *linear.Query
	sizes    []int
	cells    []int
	byColumn map[*policy.Column]int // place in cells
	assigned [][]int32              // by counter and cell of m: cell of s, −1 outside, −2 not seen
	places   [][]int                // by factor of s: places of its columns in cells
	first    [][]int                // by place: the first cell of each piece of cells that are not distinguished here; nil means each cell
	open     map[int32]bool         // cells of s of which some of m's are not closed
}

func newWalk(s, m *linear.Query) *walk {
	w := &walk{s: s, m: m, byColumn: map[*policy.Column]int{}, open: map[int32]bool{}}
	for _, p := range m.Factors {
		for i, c := range p.Columns {
			w.byColumn[m.Table.Columns[c]] = len(w.sizes)
			first := s.Together(p, i, m.Table.Columns[c])
			if w.first = append(w.first, first); first != nil {
				w.sizes = append(w.sizes, len(first))
			} else {
				w.sizes = append(w.sizes, p.End(i))
			}
		}
	}
	w.cells = make([]int, len(w.sizes))
	for _, p := range s.Factors {
		places := make([]int, len(p.Columns))
		for i, c := range p.Columns {
			places[i] = w.byColumn[s.Table.Columns[c]]
		}
		w.places = append(w.places, places)
	}
	return w
}

// assignEach prepares to assign the measure's cells one by one.
func (w *walk) assignEach() {
	w.assigned = make([][]int32, len(w.s.Counts))
	for c := range w.assigned {
		w.s.Work.Take(w.m.Cells, 4)
		w.assigned[c] = make([]int32, w.m.Cells)
		for i := range w.assigned[c] {
			w.assigned[c][i] = -2
		}
	}
}

// lastPieces cuts the measure's last column into pieces of which the question says the same; nil means the measure does
// not tell each combination of its columns' cells apart, or the question does so in that column.
func (w *walk) lastPieces() []int {
	last := len(w.m.Factors) - 1
	if last < 0 || w.m.Continual {
		return nil
	}
	for _, p := range w.m.Factors {
		if len(p.Columns) != 1 || p.Cuts != nil || !derived.IsIdentity(p.Class) {
			return nil
		}
	}
	size := w.sizes[last]
	starts, ok := w.s.ToldApart(w.m.Table.Columns[w.m.Factors[last].Columns[0]])
	if !ok {
		return nil
	}
	starts = slices.DeleteFunc(append(starts, 0), func(cell int) bool { return cell >= size })
	slices.Sort(starts)
	if starts = slices.Compact(starts); len(starts) > size/2 {
		return nil
	}
	return starts
}

// byRuns reads a question from a measure that tells each combination of its columns' cells apart, a run of its last
// column's cells at a time: of a release of 4,096 cells WHERE income BETWEEN 20 AND 3000 has three. It reads what
// assigning each cell reads.
func (w *walk) byRuns(starts []int) *Reading {
	last := len(w.sizes) - 1
	end := w.sizes[last]
	w.first[last], w.sizes[last] = starts, len(starts)
	combinations := 1
	for _, size := range w.sizes {
		combinations *= size
	}
	rows := make([][]semantics.SpansOf, len(w.s.Counts))
	for c := range rows {
		w.s.Work.Take(w.s.Cells, 24)
		rows[c] = make([]semantics.SpansOf, w.s.Cells)
	}
	for at := range combinations {
		linear.Decode(at, w.sizes, w.cells)
		w.s.Work.Step(1 + len(w.s.Counts))
		piece, to := w.cells[last], w.cellOfQuestion()
		next := end
		if piece+1 < len(starts) {
			next = starts[piece+1]
		}
		from := w.cellOfMeasure()
		for c := range rows {
			if target := w.counted(c, to); target >= 0 {
				rows[c][target].AddRange(from, from+next-starts[piece])
			}
		}
	}
	return readingOf(rows)
}

// visit assigns one combination; false means the measure does not answer the question.
func (w *walk) visit(at int) bool {
	linear.Decode(at, w.sizes, w.cells)
	return w.assign()
}

// assign assigns the combination of the present cells.
func (w *walk) assign() bool {
	w.s.Work.Step(1 + len(w.s.Counts))
	from, to := w.cellOfMeasure(), w.cellOfQuestion()
	for c := range w.s.Counts {
		target := w.counted(c, to)
		if from < 0 {
			if target >= 0 {
				return false
			}
			continue
		}
		if w.m.Continual && from >= w.m.Closed {
			if target >= 0 && w.m.Table.Appends.Count {
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

// counted is the cell of s that a counter counts the present cells in, which are of one; −1: in none.
func (w *walk) counted(c int, of int32) int32 {
	if pred := w.s.Counts[c]; of >= 0 && (!w.masked(c) || pred != nil && !predicate.Satisfied(pred, w.cell)) {
		return -1
	}
	return of
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
	for _, p := range w.m.Factors {
		at := 0
		for k, size := range p.Sizes {
			at = at*size + p.PieceOf(k, w.cellAt(i))
			i++
		}
		class := p.Class[at]
		if class < 0 {
			return -1
		}
		out = out*p.Classes + int(class)
	}
	return out
}

func (w *walk) cellOfQuestion() int32 {
	if w.s.Filter != nil && !predicate.Satisfied(w.s.Filter, w.cell) {
		return -1
	}
	out := int32(0)
	for n, p := range w.s.Factors {
		class := p.Class[w.combination(n, p)]
		if class < 0 {
			return -1
		}
		out = out*int32(p.Classes) + class
	}
	return out
}

func (w *walk) combination(n int, p *linear.Factor) int {
	at := 0
	for i, place := range w.places[n] {
		at = at*p.Sizes[i] + p.PieceOf(i, w.cellAt(place))
	}
	return at
}

// masked reports whether counter c counts at the present cells.
func (w *walk) masked(c int) bool {
	for n, p := range w.s.Factors {
		if p.Masks[c] != nil && !p.Masks[c][w.combination(n, p)] {
			return false
		}
	}
	return true
}

func (w *walk) reading() *Reading {
	rows := make([][]semantics.SpansOf, len(w.assigned))
	for c, assigned := range w.assigned {
		rows[c] = spansTo(assigned, w.s.Cells)
	}
	return readingOf(rows)
}

// spansTo are, for each of so many rows, the places of a list that name it. They lie in one piece of memory, as there
// are thousands of them where hours of a day are read from hours of years.
func spansTo(assigned []int32, rows int) []semantics.SpansOf {
	lists, sizes, ends := make([]semantics.SpansOf, rows), make([]int, rows), make([]int, rows)
	total := 0
	for from, to := range assigned {
		if to >= 0 {
			if sizes[to] == 0 || ends[to] != from {
				sizes[to]++
				total++
			}
			ends[to] = from + 1
		}
	}
	all := make([]mechanisms.Span, total)
	for to, size := range sizes {
		if size > 0 {
			lists[to], all = all[:0:size], all[size:]
		}
	}
	for from, to := range assigned {
		if to >= 0 {
			lists[to].Add(from)
		}
	}
	return lists
}

// readingOf reads cells of a question, by counter, from these cells of a measure.
func readingOf(rows [][]semantics.SpansOf) *Reading {
	r := &Reading{Spans: make([][][]mechanisms.Span, len(rows)), Counters: make([]int, len(rows))}
	for c := range rows {
		r.Spans[c] = make([][]mechanisms.Span, len(rows[c]))
		for i, s := range rows[c] {
			r.Spans[c][i] = s
		}
	}
	return r
}

// AttributesOf are the factors of a query, by their numbers, that are over some of the columns.
func AttributesOf(columns []*policy.Column, m *linear.Query) (attributes []int) {
	for i, p := range m.Factors {
		if slices.ContainsFunc(p.Columns, func(c int) bool { return slices.Contains(columns, m.Table.Columns[c]) }) {
			attributes = append(attributes, i)
		}
	}
	return attributes
}

// ContainsAll reports whether all that are wanted are in a list.
func ContainsAll[S ~[]E, E comparable](list, wanted S) bool {
	return !slices.ContainsFunc(wanted, func(e E) bool { return !slices.Contains(list, e) })
}

// CoverHeld is cover for a release that is held. Of a cube that need not have been observed cell by cell the question
// must be about attributes that can be read together.
func CoverHeld(s *linear.Query, h HeldOn) *Reading {
	if !h.Holding.Spec.Counts().Strategy.IsCube() {
		if r := Cover(s, h.Measure.Query); r != nil || h.Measure.Continual {
			return r
		}
		return CoverCube(s, h.Measure.Query)
	}
	columns, ok := s.Columns()
	if !ok {
		return nil
	}
	if !h.Holding.Spec.Reads(AttributesOf(columns, h.Measure.Query)) {
		return nil
	}
	return CoverCube(s, h.Measure.Query)
}

// CoverCube is cover for a measure each of whose factors is one column, in classes of its cells that all questions of a
// workload treat alike: what is looked at are classes, of which there may be far fewer than cells.
func CoverCube(s, m *linear.Query) *Reading {
	columns, ok := s.Columns()
	if told := func(p *linear.Factor) bool { return p.PiecesInSQL }; !ok || s.Table != m.Table || s.Summed() != nil || slices.ContainsFunc(s.Factors, told) || slices.ContainsFunc(m.Factors, told) {
		return nil
	}
	if slices.ContainsFunc(m.Factors, func(p *linear.Factor) bool { return len(p.Columns) != 1 || slices.Contains(p.Class, -1) }) {
		return nil
	}
	of := func(p *linear.Factor) *policy.Column { return m.Table.Columns[p.Columns[0]] }
	if slices.ContainsFunc(columns, func(c *policy.Column) bool {
		return !slices.ContainsFunc(m.Factors, func(p *linear.Factor) bool { return of(p) == c })
	}) {
		return nil
	}
	w := newWalk(s, m)
	w.assignEach()
	first := make([][]int, len(m.Factors)) // by factor and class: a piece of the walk in it
	sizes := make([]int, len(m.Factors))
	for i, p := range m.Factors {
		sizes[i], first[i] = p.Classes, make([]int, p.Classes)
		class := make([]int32, w.sizes[i])
		for cell := len(class) - 1; cell >= 0; cell-- {
			class[cell] = p.Class[p.PieceOf(0, w.firstAt(i, cell))]
			first[i][class[cell]] = cell
		}
		if c := of(p); slices.Contains(columns, c) && !refines(class, s.Distinctions(c, w.sizes[i], func(piece int) int { return w.firstAt(i, piece) })) {
			return nil
		}
	}
	at := make([]int, len(m.Factors))
	for cell := range m.Cells {
		linear.Decode(cell, sizes, at)
		for i, class := range at {
			w.cells[i] = first[i][class]
		}
		if !w.assign() {
			return nil
		}
	}
	return w.reading()
}

// refines reports whether cells of one class are of one kind.
func refines(class []int32, kinds []int32) bool {
	of := map[int32]int32{}
	for cell, k := range class {
		if have, ok := of[k]; ok && have != kinds[cell] {
			return false
		}
		of[k] = kinds[cell]
	}
	return true
}

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
