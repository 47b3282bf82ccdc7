package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// To see what releases add up to, the rows of a table are divided into atoms: combinations of blocks of each column's
// cells that no condition and no release tells apart. What conditions select is a union of atoms, and so is each sum of
// a release's cells that is looked at.
//
// A column's cells lie on an axis. A constant that lies inside a cell has a place of its own there, with places below
// and above it, so that comparisons off the grid are unions of places too. Cuts divide the axis into runs, in each of
// which every condition holds everywhere or nowhere, and the cells of values are apart from those behind them, in which
// no comparison holds. Runs are put into blocks: a block is split by each condition that holds in part of it, and by
// each cell of a release that lies in several blocks but is not made up of whole ones.
type axis struct {
	column    *policy.Column
	constants []policy.Value // sorted
	per       int            // places a cell
	cuts      []int          // places, sorted; the runs lie between
	block     []int          // by run
	blocks    int
	first     []int // by block: a place in it
}

// Bounds of the search for sums and differences.
const (
	maxConstants  = 4   // on an axis
	maxCuts       = 160 // of an axis
	maxAtoms      = 512
	maxGenerators = 64
	maxMixed      = 24 // releases that are looked at together
	MaxMixedRows  = 64 // of an answer
)

// place is where a constant lies; false means in no cell.
func (a *axis) place(v policy.Value) (int, bool) {
	cell, ok := a.column.Domain.Cell(v)
	j, known := slices.BinarySearchFunc(a.constants, v, func(x, y policy.Value) int { return scalar.Compare(a.column.Type, x, y) })
	return cell*a.per + 2*j + 1, ok && known && cell < a.column.Domain.Regular
}

func (a *axis) cut(at int) {
	if i, known := slices.BinarySearch(a.cuts, at); !known {
		a.cuts = slices.Insert(a.cuts, i, at)
	}
}

// runs is the number of runs.
func (a *axis) runs() int { return len(a.cuts) - 1 }

// cells are the cells that a run is of.
func (a *axis) cells(run int) mechanisms.Span {
	return mechanisms.Span{From: a.cuts[run] / a.per, To: (a.cuts[run+1] + a.per - 1) / a.per}
}

// split divides the blocks by whether a run is in a set.
func (a *axis) split(in func(run int) bool) {
	renamed := make([][2]int, a.blocks)
	next := 0
	for run, b := range a.block {
		side := 0
		if in(run) {
			side = 1
		}
		if renamed[b][side] == 0 {
			next++
			renamed[b][side] = next
		}
		a.block[run] = renamed[b][side] - 1
	}
	a.blocks = next
}

// finish finds a place in each block.
func (a *axis) finish() {
	a.first = make([]int, a.blocks)
	for run := len(a.block) - 1; run >= 0; run-- {
		a.first[a.block[run]] = a.cuts[run]
	}
}

// axes are those of a table's columns that conditions and releases read.
type axes struct {
	list     []*axis
	byColumn map[*policy.Column]int
}

// newAxes makes the axes for conditions and for the factors of releases; nil means there would be too many runs or
// atoms.
func newAxes(conditions []predicate.Pred, parts []*ofPart) *axes {
	x := &axes{byColumn: map[*policy.Column]int{}}
	for _, p := range conditions {
		if !x.constants(p) {
			return nil
		}
	}
	for _, p := range parts {
		x.of(p.column)
	}
	for _, a := range x.list {
		a.per = 2*len(a.constants) + 1
		a.cuts = []int{0, a.column.Domain.Size() * a.per}
		a.cut(a.column.Domain.Regular * a.per) // where comparisons end: none holds for NULL
		for _, v := range a.constants {
			at, ok := a.place(v)
			if !ok {
				return nil
			}
			for _, place := range []int{at / a.per * a.per, at, at + 1, at/a.per*a.per + a.per} {
				a.cut(place)
			}
		}
	}
	for _, p := range conditions {
		for q := range predicate.Leaves(p) {
			if in, ok := q.(predicate.InCells); ok {
				a := x.of(in.Column)
				for _, s := range in.Spans {
					a.cut(s.From * a.per)
					a.cut(s.To * a.per)
				}
			}
		}
	}
	for _, p := range parts {
		a := x.of(p.column)
		for piece := 1; piece < len(p.class); piece++ {
			if p.changes(piece) {
				if a.cut(p.cells(piece).From * a.per); len(a.cuts) > maxCuts {
					return nil
				}
			}
		}
	}
	return x.blocked(conditions, parts)
}

// of finds the axis of a column, making it at first use.
func (x *axes) of(c *policy.Column) *axis {
	i, known := x.byColumn[c]
	if !known {
		i = len(x.list)
		x.byColumn[c] = i
		x.list = append(x.list, &axis{column: c})
	}
	return x.list[i]
}

// constants collects the constants of a condition; false means it compares columns with each other, or places within
// cells, or with too many constants.
func (x *axes) constants(p predicate.Pred) bool {
	for q := range predicate.Leaves(p) {
		switch q := q.(type) {
		case predicate.InCells:
			x.of(q.Column)
		case predicate.Compare:
			a := x.of(q.Column)
			i, known := slices.BinarySearchFunc(a.constants, q.Value, func(v, w policy.Value) int { return scalar.Compare(q.Column.Type, v, w) })
			if !known {
				a.constants = slices.Insert(a.constants, i, q.Value)
			}
			if len(a.constants) > maxConstants {
				return false
			}
		case predicate.Between, predicate.Past, predicate.Sum:
			return false
		}
	}
	return true
}

// blocked puts the runs into blocks.
func (x *axes) blocked(conditions []predicate.Pred, parts []*ofPart) *axes {
	for _, a := range x.list {
		if len(a.cuts) > maxCuts {
			return nil
		}
		a.block, a.blocks = make([]int, a.runs()), 1
	}
	for _, p := range conditions {
		x.splitBy(p)
	}
	for _, p := range parts {
		a := x.of(p.column)
		p.read(a)
		a.split(func(run int) bool { return p.label[run] == noClass })
	}
	for changed := true; changed; {
		changed = false
		for _, p := range parts {
			changed = p.isolate(x.of(p.column)) || changed
		}
	}
	atoms := 1
	for _, a := range x.list {
		a.finish()
		if atoms *= a.blocks; atoms > maxAtoms {
			return nil
		}
	}
	return x
}

// splitBy splits blocks where some part of a condition changes.
func (x *axes) splitBy(p predicate.Pred) {
	for q := range predicate.Leaves(p) {
		var a *axis
		switch q := q.(type) {
		case predicate.InCells:
			a = x.of(q.Column)
		case predicate.Compare:
			a = x.of(q.Column)
		default:
			continue
		}
		a.split(func(run int) bool { return x.holds(q, func(*axis) int { return a.cuts[run] }) })
	}
}

// holds evaluates a condition at a place of each axis.
func (x *axes) holds(p predicate.Pred, place func(*axis) int) bool {
	return predicate.Evaluated(p, func(p predicate.Pred) bool {
		switch p := p.(type) {
		case predicate.InCells:
			a := x.of(p.Column)
			return predicate.Contains(p.Spans, place(a)/a.per)
		case predicate.Compare:
			a := x.of(p.Column)
			at, _ := a.place(p.Value)
			d := place(a) - at
			if place(a) >= a.column.Domain.Regular*a.per {
				return false
			}
			return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
		}
		return false
	})
}

// eachAtom visits the atoms, with the block on each axis.
func (x *axes) eachAtom(visit func(blocks []int)) {
	sizes, blocks, atoms := make([]int, len(x.list)), make([]int, len(x.list)), 1
	for i, a := range x.list {
		sizes[i] = a.blocks
		atoms *= a.blocks
	}
	for at := range atoms {
		linear.Decode(at, sizes, blocks)
		visit(blocks)
	}
}

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
