package planner

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// How the columns of a part are cut into the pieces that pieces.go finds, and which piece a cell is in.

// pieced tells whether some column of the part is cut into pieces.
func (p *part) pieced() bool {
	return slices.ContainsFunc(p.cuts, func(cuts []int) bool { return cuts != nil })
}

// firstOf is the first cell of a piece of the i-th column.
func (p *part) firstOf(i, piece int) int {
	if p != nil && i < len(p.cuts) && p.cuts[i] != nil {
		return p.cuts[i][piece]
	}
	return piece
}

// pieceOf is the piece of the i-th column that a cell is in.
func (p *part) pieceOf(i, cell int) int {
	if i >= len(p.cuts) {
		return cell
	}
	return pieceIn(p.cuts[i], cell)
}

// cellsOf are the cells of a piece of the i-th column of so many cells.
func (p *part) cellsOf(i, piece, size int) mechanisms.Span {
	if i >= len(p.cuts) || p.cuts[i] == nil {
		return mechanisms.Span{From: piece, To: piece + 1}
	}
	if piece+1 < len(p.cuts[i]) {
		size = p.cuts[i][piece+1]
	}
	return mechanisms.Span{From: p.cuts[i][piece], To: size}
}

// over collects the largest expressions within some that read a column alone.
func over(column int, exprs []*expr, into []*expr) []*expr {
	for _, e := range exprs {
		switch {
		case !slices.Contains(e.cols, column):
		case len(e.cols) > 1:
			into = over(column, e.args, into)
		case !slices.ContainsFunc(into, func(have *expr) bool { return have.canon == e.canon }):
			into = append(into, e)
		}
	}
	return into
}

// decided are the expressions that a part's classes, masks and shown values are made of.
func (v *solver) decided(p *part) []*expr {
	list := slices.Clone(p.filters)
	for _, k := range p.keys {
		list = append(list, v.s.keys[k])
	}
	for c := range v.s.counts {
		list = append(list, p.only[c]...)
	}
	for _, values := range v.s.values {
		if shares(p.columns, values.columns()) {
			list = append(list, values.parts()...)
		}
	}
	return list
}

// exprs are those, and what is added up of a part's cells.
func (v *solver) exprs(p *part) []*expr {
	list := v.decided(p)
	for _, sum := range v.s.sums {
		if sum != nil && sum.expr != nil && shares(p.columns, sum.expr.cols) {
			list = append(list, sum.expr)
		}
	}
	return list
}

// forced are the cells of a column at which conditions begin or end.
func (p *part) forced(c *policy.Column) (at []int) {
	for _, q := range p.within {
		forEachCells(q, c, func(spans []mechanisms.Span) {
			for _, s := range spans {
				at = append(at, s.From, s.To)
			}
		})
	}
	return slices.DeleteFunc(at, func(cell int) bool { return cell >= c.Domain.Regular })
}

// cut cuts the part's columns into pieces where they have some, and tells whether few enough combinations are left. Of a
// part whose cells are too many the SQL tells the pieces apart.
func (v *solver) cut(p *part, tooMany bool) bool {
	exprs, combinations := v.decided(p), 1
	if tooMany {
		exprs = v.exprs(p)
	}
	p.cuts, p.ends, p.told = make([][]int, len(p.columns)), slices.Clone(p.sizes), tooMany
	for i, at := range p.columns {
		c := v.table.Columns[at]
		starts, ok := v.box.fewPieces(at, over(at, exprs, nil), p.forced(c))
		if ok && tooMany {
			starts, ok = evened(starts, c.Domain.Regular)
		}
		if ok {
			p.cuts[i], p.sizes[i] = starts, len(starts)
		}
		if combinations *= p.sizes[i]; combinations > maxCells {
			return false
		}
	}
	if !p.pieced() {
		p.cuts, p.ends, p.told = nil, nil, false
	}
	return true
}

// refine cuts a part as finely as what is added up of its cells asks for, where the SQL does not tell its pieces apart.
// What is known of a combination holds for those that it is cut into.
func (v *solver) refine(p *part, sum *summand) {
	if p.told || p.cuts == nil || sum == nil || sum.expr == nil {
		return
	}
	for k, c := range sum.expr.cols {
		i := slices.Index(p.columns, c)
		if i < 0 || p.cuts == nil || p.cuts[i] == nil { // of cells: cut so already, perhaps by the column before
			continue
		}
		var starts []int // nil: each cell
		if of := sum.weights.pieces; of != nil && of.cuts[k] != nil {
			starts = unitedStarts(p.cuts[i], of.cuts[k])
		}
		p.recut(v.env.Work, i, starts)
	}
}

// recut cuts one column into other pieces, each within one of those that it has; nil: into cells.
func (p *part) recut(work *scalar.Work, i int, starts []int) {
	size := len(starts)
	if starts == nil {
		size = p.ends[i]
	}
	inner := 1
	for _, n := range p.sizes[i+1:] {
		inner *= n
	}
	outer := len(p.class) / p.sizes[i] / inner
	work.Take(outer*size*inner, 12+len(p.masks))
	from := make([]int32, 0, outer*size*inner) // the combination so far
	for o := range outer {
		for n := range size {
			cell := n
			if starts != nil {
				cell = starts[n]
			}
			at := (o*p.sizes[i] + p.pieceOf(i, cell)) * inner
			for k := range inner {
				from = append(from, int32(at+k))
			}
		}
	}
	p.class, p.beyond = written(p.class, from), written(p.beyond, from)
	for c := range p.masks {
		p.masks[c] = written(p.masks[c], from)
	}
	for c := range p.shows {
		p.shows[c] = written(p.shows[c], from)
	}
	p.sizes[i], p.cuts[i] = size, starts
	if !p.pieced() {
		p.cuts, p.ends = nil, nil
	}
}

func written[T any](of []T, from []int32) []T {
	if of == nil {
		return nil
	}
	out := make([]T, len(from))
	for at, n := range from {
		out[at] = of[n]
	}
	return out
}

// unitedStarts are the first cells of the pieces that two ways to cut a column have in common.
func unitedStarts(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// cutFor cuts the columns of an expression that is added up into pieces, where it has some; nil: it has too many.
func cutFor(b *box, e *expr) *part {
	p, combinations := &part{columns: e.cols}, 1
	for _, at := range e.cols {
		p.ends = append(p.ends, b.table.Columns[at].Domain.Size())
	}
	tooMany := combinationsOf(p.ends) > maxCells
	for i, at := range e.cols {
		size := p.ends[i]
		starts, ok := []int(nil), false
		if of := over(at, []*expr{e}, nil); tooMany {
			starts, ok = b.pieces(at, of, nil, maxCells)
		} else {
			starts, ok = b.fewPieces(at, of, nil)
		}
		if !ok {
			starts = nil
		} else {
			size = len(starts)
		}
		p.sizes, p.cuts = append(p.sizes, size), append(p.cuts, starts)
		if size > maxCells/combinations {
			return nil
		}
		combinations *= size
	}
	return p
}

// combinationsText is how many combinations of cells columns have.
func combinationsText(t *policy.Table, columns []int) string {
	product := big.NewInt(1)
	for _, c := range columns {
		product.Mul(product, big.NewInt(int64(t.Columns[c].Domain.Size())))
	}
	return product.String()
}

// evened are pieces that the SQL can tell apart: few, or all of one length but for the first and the last. Others are cut
// into pieces of the largest length that they are made of.
func evened(starts []int, regular int) ([]int, bool) {
	if len(starts) <= mostCases {
		return starts, true
	}
	length := 0
	for i := 2; i < len(starts) && starts[i] < regular; i++ {
		length = divisor(starts[i]-starts[i-1], length)
	}
	if length < 2 || regular/length > maxCells {
		return nil, false
	}
	even := []int{0}
	for at := starts[1] % length; at < regular; at += length {
		if at > 0 {
			even = append(even, at)
		}
	}
	for _, cell := range starts {
		if cell >= regular {
			even = append(even, cell)
		}
	}
	return even, true
}

// divisor is the greatest that both have.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// put sets the box to the first cells of a combination of the part's pieces.
func (v *solver) put(p *part, pieces []int) {
	for i, at := range p.columns {
		v.box.set(at, p.firstOf(i, pieces[i]))
	}
}
