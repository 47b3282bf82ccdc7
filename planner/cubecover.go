package planner

import (
	"slices"
)

// coverHeld is cover for a release that is held. Of a cube that need not have been observed cell by cell the question must
// be about attributes that can be read together.
func coverHeld(s *solved, h heldOn) *reading {
	if !h.holding.Spec.Strategy.IsCube() {
		if r := cover(s, h.measure.solved); r != nil || h.measure.grows {
			return r
		}
		return coverCube(s, h.measure.solved)
	}
	columns, ok := s.columns()
	if !ok {
		return nil
	}
	if !h.holding.Spec.Reads(attributesOf(columns, h.measure.solved)) {
		return nil
	}
	return coverCube(s, h.measure.solved)
}

// coverCube is cover for a measure each of whose parts is one column, in classes of its cells that all questions of a
// workload treat alike: what is looked at are classes, of which there may be far fewer than cells.
func coverCube(s, m *solved) *reading {
	columns, ok := s.columns()
	if told := func(p *part) bool { return p.told }; !ok || s.table != m.table || s.summed() != nil || slices.ContainsFunc(s.parts, told) || slices.ContainsFunc(m.parts, told) {
		return nil
	}
	for _, c := range columns {
		if !slices.ContainsFunc(m.parts, func(p *part) bool { return len(p.columns) == 1 && m.table.Columns[p.columns[0]] == c }) {
			return nil
		}
	}
	if slices.ContainsFunc(m.parts, func(p *part) bool { return len(p.columns) != 1 || slices.Contains(p.class, -1) }) {
		return nil
	}
	w := newWalk(s, m)
	first := make([][]int, len(m.parts)) // by part and class: a piece of the walk in it
	sizes := make([]int, len(m.parts))
	for i, p := range m.parts {
		sizes[i], first[i] = p.classes, make([]int, p.classes)
		class := make([]int32, w.sizes[i])
		for cell := len(class) - 1; cell >= 0; cell-- {
			class[cell] = p.class[p.pieceOf(0, w.firstAt(i, cell))]
			first[i][class[cell]] = cell
		}
		if c := m.table.Columns[p.columns[0]]; slices.Contains(columns, c) && !refines(class, s.distinctions(c, w.sizes[i], func(piece int) int { return w.firstAt(i, piece) })) {
			return nil
		}
	}
	at := make([]int, len(m.parts))
	for cell := range m.cells {
		decode(cell, sizes, at)
		for i, class := range at {
			w.cells[i] = first[i][class]
		}
		if !w.assign() {
			return nil
		}
	}
	return w.reading()
}

// refines tells whether cells of one class are of one kind.
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
