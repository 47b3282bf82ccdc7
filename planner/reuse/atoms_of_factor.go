package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// ofPart is how the cells of one column are put into classes by a counter of a release.
type ofPart struct {
	column  *policy.Column
	pieces  *linear.Factor // of the column
	class   []int32        // by piece; −1: not counted
	classes int
	own     bool    // each counted cell is a class of its own
	label   []int32 // by run
	groups  []classGroup
}

// What a run's label is where it is no class: none of its cells is counted, or each is a class of its own.
const (
	noClass   = -1
	eachClass = -2
)

// classGroup is some classes of a factor, which together make up whole blocks.
type classGroup struct {
	classes []mechanisms.Span
	blocks  []bool
}

// newOfFactor reads a factor of a release's counter.
func newOfFactor(t *policy.Table, p *linear.Factor, counter int) *ofPart {
	o := &ofPart{column: t.Columns[p.Columns[0]], pieces: p, class: p.Class, classes: p.Classes, own: true}
	if mask := p.Masks[counter]; mask != nil {
		o.class = slices.Clone(p.Class)
		for piece, in := range mask {
			if !in {
				o.class[piece] = noClass
			}
		}
	}
	last := int32(-1)
	for piece, c := range o.class {
		if c < 0 {
			continue
		}
		if s := o.cells(piece); c <= last || s.To-s.From > 1 {
			o.own = false
		}
		last = c
	}
	return o
}

// cells are those of a piece.
func (o *ofPart) cells(piece int) mechanisms.Span {
	return o.pieces.CellsOf(0, piece, o.column.Domain.Size())
}

// at is the class of a cell.
func (o *ofPart) at(cell int) int32 { return o.class[o.pieces.PieceOf(0, cell)] }

// changes reports whether the axis must be cut before a piece.
func (o *ofPart) changes(piece int) bool {
	a, b := o.class[piece-1], o.class[piece]
	if o.own {
		return (a < 0) != (b < 0) || a >= 0 && b != a+1
	}
	return a != b
}

// read labels the runs.
func (o *ofPart) read(a *axis) {
	o.label = make([]int32, a.runs())
	for run := range o.label {
		s := a.cells(run)
		if o.label[run] = o.at(s.From); o.own && s.To-s.From > 1 && o.label[run] >= 0 {
			o.label[run] = eachClass
		}
	}
}

// spread reports whether a class lies in several blocks.
func (o *ofPart) spread(a *axis, class int32) bool {
	in := -1
	for run, l := range o.label {
		if l == class {
			if in >= 0 && a.block[run] != in {
				return true
			}
			in = a.block[run]
		}
	}
	return false
}

// eachLabel visits the classes that runs are labelled with, each once.
func (o *ofPart) eachLabel(visit func(class int32)) {
	seen := map[int32]bool{}
	for _, l := range o.label {
		if l >= 0 && !seen[l] {
			seen[l] = true
			visit(l)
		}
	}
}

// isolate gives classes that lie in several blocks whole blocks; it reports whether blocks were split.
func (o *ofPart) isolate(a *axis) bool {
	before := a.blocks
	o.eachLabel(func(class int32) {
		if o.spread(a, class) {
			a.split(func(run int) bool { return o.label[run] == class })
		}
	})
	return a.blocks > before
}

// group finds the groups of classes that make up whole blocks: the classes inside a block together, and each class that
// is made up of several.
func (o *ofPart) group(a *axis) {
	o.groups = nil
	o.eachLabel(func(class int32) {
		if o.spread(a, class) {
			g := classGroup{[]mechanisms.Span{{From: int(class), To: int(class) + 1}}, make([]bool, a.blocks)}
			for run, l := range o.label {
				if l == class {
					g.blocks[a.block[run]] = true
				}
			}
			o.groups = append(o.groups, g)
		}
	})
	taken := make([]bool, a.blocks)
	for _, g := range o.groups {
		for b, in := range g.blocks {
			taken[b] = taken[b] || in
		}
	}
	for b := range a.blocks {
		if taken[b] {
			continue
		}
		g := classGroup{nil, make([]bool, a.blocks)}
		g.blocks[b] = true
		for run, l := range o.label {
			if a.block[run] != b || l == noClass {
				continue
			}
			s := a.cells(run)
			g.classes = append(g.classes, mechanisms.Span{From: int(o.at(s.From)), To: int(o.at(s.To-1)) + 1})
		}
		if len(g.classes) > 0 {
			g.classes = predicate.Unite(g.classes, nil)
			o.groups = append(o.groups, g)
		}
	}
}
