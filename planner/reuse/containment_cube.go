package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/policy"
)

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
