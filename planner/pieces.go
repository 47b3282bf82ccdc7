package planner

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Planning follows the pieces of what a statement asks and not the cells of a domain (docs/adr/0052). date_trunc('month', t)
// is constant on long runs of cells, and so are CASE WHEN price < 100 …, width_bucket(…) and extract(year FROM t): a piece is
// a run of cells on which every expression over the column alone is constant. Pieces are found by asking box.steady of longer
// and longer runs, so that ten years of seconds take some thousand evaluations instead of 315 million.
//
// A run is taken only where steady has said that each expression is constant on it, and neighbouring runs are put together
// where all values are equal: an expression has on all cells of a piece the value that it has on the first, so that classes,
// masks and weights by piece are those by cell, and the first cell is the only one that is looked at again. A cell within
// which some expression varies is a piece of its own, on which that is found.
//
// Where a part's columns have at most maxCells combinations of cells, the SQL tells cells apart, and the plan, its SQL and its
// digest are those of a walk over all cells (runs.go). Where they have more, it tells pieces apart (part.told): it groups by
// the number of a row's piece, which is a function of its cell.

// Bounds of pieces.
const (
	mostCases = 1 << 12 // pieces of a column of uneven lengths, which the SQL tells apart one by one
	earlyLook = 1 << 11 // pieces after which it is asked whether there will be too many
)

// fewRegular is up to how many cells of a domain are sooner walked than cut into pieces. Tests set it, to walk over all.
var fewRegular = 16

// pieces cuts the cells of an ordered column into pieces: the first cell of each, 0 first. Those of forced begin one of their
// own, and so do cells that are not regular. It is not ok where some expression reads the column as it is, or where there
// would be more than most.
func (b *box) pieces(column int, exprs []*expr, forced []int, most int) (starts []int, ok bool) {
	d := b.table.Columns[column].Domain
	if !d.Ordered() || b.table.Columns[column].Open != nil || slices.ContainsFunc(exprs, b.readsEach) {
		return nil, false
	}
	forced = append([]int{0, d.Regular}, forced...)
	slices.Sort(forced)
	forced = slices.Compact(forced)
	var last []policy.Value
	for i := 0; i+1 < len(forced) && forced[i] < d.Regular; i++ {
		length := 1
		for at, end := forced[i], min(forced[i+1], d.Regular); at < end; at += length {
			steady := false
			length, steady = b.run(column, exprs, at, end, length)
			var values []policy.Value
			if steady {
				values = b.valuesAt(column, exprs, at)
			}
			if at > forced[i] && b.sameValues(exprs, values, last) {
				continue
			}
			starts, last = append(starts, at), values
			if n := len(starts); n > most || n == earlyLook && n*(d.Regular/(at+1)) > 2*most {
				return nil, false
			}
		}
	}
	for cell := d.Regular; cell < d.Size(); cell++ {
		starts = append(starts, cell)
	}
	return starts, true
}

// fewPieces are pieces where they are so few that they are worth while.
func (b *box) fewPieces(column int, exprs []*expr, forced []int) (starts []int, ok bool) {
	regular := b.table.Columns[column].Domain.Regular
	if regular <= fewRegular {
		return nil, false
	}
	return b.pieces(column, exprs, forced, min(regular/4, maxCells))
}

// run is how many cells from one on, to an end, have each expression constant on them. It looks near a guess first, since
// runs are often as long as the one before. Not steady: some expression varies within the first cell, which stands alone.
func (b *box) run(column int, exprs []*expr, from, end, guess int) (length int, steady bool) {
	constant := func(n int) bool {
		b.setRun(column, from, from+n)
		for _, e := range exprs {
			if ok, refusal := b.steady(e); !ok || refusal != nil {
				return false
			}
		}
		return true
	}
	if !constant(1) {
		return 1, false
	}
	good, bad := 1, end-from+1
	if guess = min(guess, end-from); guess > 1 {
		if constant(guess) {
			good = guess
		} else {
			bad = guess
		}
	}
	for step := 1; good+1 < bad; step *= 2 {
		try := min(good+step, bad-1)
		if bad <= end-from {
			try = good + (bad-good)/2
		}
		if constant(try) {
			good = try
		} else {
			bad = try
		}
	}
	return good, true
}

// setRun puts one column into any of neighbouring regular cells.
func (b *box) setRun(column, from, to int) {
	b.set(column, from)
	d := b.table.Columns[column].Domain
	if to-from <= 1 || from >= d.Regular {
		return
	}
	b.high[column] = lastOf(d, to-1)
	b.inner[column] = innerOf(d, to-1, b.high[column])
	b.wide[column] = true
}

// valuesAt are the expressions' values at a cell's low end; nil: one has none.
func (b *box) valuesAt(column int, exprs []*expr, cell int) []policy.Value {
	b.set(column, cell)
	values := make([]policy.Value, len(exprs))
	for i, e := range exprs {
		b.env.Work.Step(max(e.nodes, 1))
		v, refusal := e.value(b.low)
		if refusal != nil {
			return nil
		}
		values[i] = v
	}
	return values
}

func (b *box) sameValues(exprs []*expr, values, others []policy.Value) bool {
	if values == nil || others == nil {
		return false
	}
	for i, e := range exprs {
		if !same(e.Type(), values[i], others[i]) {
			return false
		}
	}
	return true
}

// readsEach tells expressions in which some cell of a long run always differs from the next, as far as steady can tell.
func (b *box) readsEach(e *expr) bool {
	switch {
	case e.isConstant():
		return false
	case e.form == formColumn:
		return true
	case e.monotone, e.form == formIsNull && e.args[0].monotone:
		return false
	case e.form == formExtract:
		granule := b.granule(e)
		return granule == nil || b.readsEach(granule)
	case b.sidesOf(e) != nil:
		return false
	}
	return slices.ContainsFunc(e.args, b.readsEach)
}

// sidesOf turns equality of a monotone expression with constants into comparisons, each of which changes once: where they
// are all constant, so is it. Nil: e is none.
func (b *box) sidesOf(e *expr) []*expr {
	equal := e.form == formCompare && (e.op == "=" || e.op == "<>")
	if !equal && e.form != formIn {
		return nil
	}
	if sides, known := b.sides[e]; known {
		return sides
	}
	b.sides[e] = nil
	of, constants := e.args[0], e.args[1:]
	if equal && of.isConstant() {
		of, constants = e.args[1], e.args[:1]
	}
	var sides []*expr
	for _, c := range constants {
		for _, op := range []string{">=", "<="} {
			s, err := b.env.Call(op, of.Expr, c.Expr)
			if err != nil || !c.isConstant() {
				return nil
			}
			side := node(formCompare, op, s, e.pos, of, c)
			if side.order(b.env, op); !side.monotone {
				return nil
			}
			sides = append(sides, side)
		}
	}
	b.sides[e] = sides
	return sides
}

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
	if i >= len(p.cuts) || p.cuts[i] == nil {
		return cell
	}
	at, starts := slices.BinarySearch(p.cuts[i], cell)
	if starts {
		return at
	}
	return at - 1
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
		if i < 0 || p.cuts[i] == nil {
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
func (b *box) cutFor(e *expr) *part {
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
