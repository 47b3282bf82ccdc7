package planner

import (
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// coverHeld is cover for a release that is held. Of a cube that need not have been observed cell by cell the question must
// be about attributes that can be read together.
func coverHeld(s *solved, h heldOn) *reading {
	if !h.holding.Spec.Counts().Strategy.IsCube() {
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

// distinctions numbers the pieces of a column, of each of which a cell is known, so that those with one number are alike to
// the question, whatever the cells of other columns are.
func (s *solved) distinctions(c *policy.Column, size int, cell func(piece int) int) []int32 {
	keys := make([][]byte, size)
	mark := func(p predicate.Pred) {
		forEachCells(p, c, func(spans []mechanisms.Span) {
			for i := range keys {
				keys[i] = append(keys[i], bit(predicate.Contains(spans, cell(i))))
			}
		})
	}
	mark(s.filter)
	for _, p := range s.counts {
		mark(p)
	}
	for _, p := range s.parts {
		at := slices.IndexFunc(p.columns, func(i int) bool { return s.table.Columns[i] == c })
		if at < 0 {
			continue
		}
		inner := 1
		for _, size := range p.sizes[at+1:] {
			inner *= size
		}
		for n := range keys {
			piece := p.pieceOf(at, cell(n))
			for outside := range len(p.class) / inner / p.sizes[at] {
				for i := range inner {
					i += (outside*p.sizes[at] + piece) * inner
					keys[n] = binary.AppendVarint(keys[n], int64(p.class[i]))
					for _, mask := range p.masks {
						if mask != nil {
							keys[n] = append(keys[n], bit(mask[i]))
						}
					}
				}
			}
		}
	}
	out, seen := make([]int32, len(keys)), map[string]int32{}
	for i, key := range keys {
		n, ok := seen[string(key)]
		if !ok {
			n = int32(len(seen))
			seen[string(key)] = n
		}
		out[i] = n
	}
	return out
}

// forEachCells calls f for each condition on cells of a column in a predicate.
func forEachCells(p predicate.Pred, c *policy.Column, f func([]mechanisms.Span)) {
	switch p := p.(type) {
	case predicate.AllOf:
		for _, q := range p {
			forEachCells(q, c, f)
		}
	case predicate.AnyOf:
		for _, q := range p {
			forEachCells(q, c, f)
		}
	case predicate.InCells:
		if p.Column == c {
			f(p.Spans)
		}
	}
}
