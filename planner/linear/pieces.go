package linear

import (
	"math/big"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// How the columns of a factor are cut into the pieces that pieces.go finds, and which piece a cell is in.

// Pieced reports whether some column of the factor is cut into pieces.
func (p *Factor) Pieced() bool {
	return slices.ContainsFunc(p.Cuts, func(cuts []int) bool { return cuts != nil })
}

// firstOf is the first cell of a piece of the i-th column.
func (p *Factor) firstOf(i, piece int) int {
	if p != nil && i < len(p.Cuts) && p.Cuts[i] != nil {
		return p.Cuts[i][piece]
	}
	return piece
}

// PieceOf is the piece of the i-th column that a cell is in.
func (p *Factor) PieceOf(i, cell int) int {
	if i >= len(p.Cuts) {
		return cell
	}
	return plans.PieceIn(p.Cuts[i], cell)
}

// CellsOf are the cells of a piece of the i-th column of so many cells.
func (p *Factor) CellsOf(i, piece, size int) mechanisms.Span {
	if i >= len(p.Cuts) || p.Cuts[i] == nil {
		return mechanisms.Span{From: piece, To: piece + 1}
	}
	if piece+1 < len(p.Cuts[i]) {
		size = p.Cuts[i][piece+1]
	}
	return mechanisms.Span{From: p.Cuts[i][piece], To: size}
}

// over collects the largest expressions within some that read a column alone.
func over(column int, exprs []*semantics.Expr, into []*semantics.Expr) []*semantics.Expr {
	for _, e := range exprs {
		switch {
		case !slices.Contains(e.Cols, column):
		case len(e.Cols) > 1:
			into = over(column, e.Args, into)
		case !slices.ContainsFunc(into, func(have *semantics.Expr) bool { return have.Canon == e.Canon }):
			into = append(into, e)
		}
	}
	return into
}

// decided are the expressions that a factor's classes, masks and shown values are made of.
func (v *Solver) decided(p *Factor) []*semantics.Expr {
	list := slices.Clone(p.filters)
	for _, k := range p.Keys {
		list = append(list, v.Query.Keys[k])
	}
	for c := range v.Query.Counts {
		list = append(list, p.only[c]...)
	}
	for _, values := range v.Query.Values {
		if shares(p.Columns, values.columns()) {
			list = append(list, values.parts()...)
		}
	}
	return list
}

// exprs are those, and what is added up of a factor's cells.
func (v *Solver) exprs(p *Factor) []*semantics.Expr {
	list := v.decided(p)
	for _, sum := range v.Query.Sums {
		if shares(p.Columns, sum.columns()) {
			list = append(list, sum.Expr)
		}
	}
	return list
}

// forced are the cells of a column at which conditions begin or end.
func (p *Factor) forced(c *policy.Column) (at []int) {
	for _, q := range p.within {
		forEachCells(q, c, func(spans []mechanisms.Span) {
			for _, s := range spans {
				at = append(at, s.From, s.To)
			}
		})
	}
	return slices.DeleteFunc(at, func(cell int) bool { return cell >= c.Domain.Regular })
}

// cut cuts the factor's columns into pieces where they have some, and reports whether few enough combinations are left.
// Of a factor whose cells are too many the SQL tells the pieces apart.
func (v *Solver) cut(p *Factor, tooMany bool) bool {
	exprs, combinations := v.decided(p), 1
	if tooMany {
		exprs = v.exprs(p)
	}
	p.Cuts, p.Ends, p.PiecesInSQL = make([][]int, len(p.Columns)), slices.Clone(p.Sizes), tooMany
	for i, at := range p.Columns {
		c := v.Table.Columns[at]
		starts, ok := v.Box.FewPieces(at, over(at, exprs, nil), p.forced(c))
		if !ok && tooMany {
			starts, ok = p.left(c)
		}
		if ok && tooMany {
			starts, ok = evened(starts, c.Domain.Regular)
		}
		if ok {
			p.Cuts[i], p.Sizes[i] = starts, len(starts)
		}
		if combinations *= p.Sizes[i]; combinations > plans.MaxCells {
			return false
		}
	}
	if !p.Pieced() {
		p.Cuts, p.Ends, p.PiecesInSQL = nil, nil, false
	}
	return true
}

// left are the cells of an ordered column that a condition on it alone leaves, each a piece, and what is between them,
// where no row of the question is: WHERE code IN (1204, 1306) GROUP BY code. It is not ok where they are too many.
func (p *Factor) left(c *policy.Column) (starts []int, ok bool) {
	at := slices.IndexFunc(p.within, func(q predicate.Pred) bool {
		in, alone := q.(predicate.InCells)
		return alone && in.Column == c
	})
	if at < 0 || !c.Domain.Ordered() || c.Open != nil {
		return nil, false
	}
	starts = []int{0}
	for _, s := range p.within[at].(predicate.InCells).Spans {
		for cell := s.From; cell < min(s.To+1, c.Domain.Regular); cell++ {
			if len(starts) > plans.MaxCells {
				return nil, false
			}
			starts = append(starts, cell)
		}
	}
	for cell := c.Domain.Regular; cell < c.Domain.Size(); cell++ {
		starts = append(starts, cell)
	}
	slices.Sort(starts)
	return slices.Compact(starts), true
}

// refine cuts a factor as finely as what is added up of its cells asks for, where the SQL does not tell its pieces
// apart. What is known of a combination holds for those that it is cut into.
func (v *Solver) refine(p *Factor, sum *Summand) {
	if p.PiecesInSQL || p.Cuts == nil || sum == nil || sum.Expr == nil {
		return
	}
	for k, c := range sum.Expr.Cols {
		i := slices.Index(p.Columns, c)
		if i < 0 || p.Cuts == nil || p.Cuts[i] == nil { // of cells: cut so already, perhaps by the column before
			continue
		}
		var starts []int // nil: each cell
		if of := sum.Weights.pieces; of != nil && of.Cuts[k] != nil {
			starts = unitedStarts(p.Cuts[i], of.Cuts[k])
		}
		p.recut(v.Env.Work, i, starts)
	}
}

// inner is how many combinations the columns after the i-th have: as many follow one another in a list with one piece
// of it.
func (p *Factor) inner(i int) int {
	n := 1
	for _, size := range p.Sizes[i+1:] {
		n *= size
	}
	return n
}

// recut cuts one column into other pieces, each within one of those that it has; nil means into cells. Of what is no
// work of a statement's, work is nil.
func (p *Factor) recut(work *scalar.Work, i int, starts []int) {
	size := len(starts)
	if starts == nil {
		size = p.Ends[i]
	}
	inner := p.inner(i)
	outer := len(p.Class) / p.Sizes[i] / inner
	work.Take(outer*size*inner, 12+len(p.Masks))
	from := make([]int32, 0, outer*size*inner) // the combination so far
	for o := range outer {
		for n := range size {
			cell := n
			if starts != nil {
				cell = starts[n]
			}
			at := (o*p.Sizes[i] + p.PieceOf(i, cell)) * inner
			for k := range inner {
				from = append(from, int32(at+k))
			}
		}
	}
	p.Class, p.beyond = written(p.Class, from), written(p.beyond, from)
	for c := range p.Masks {
		p.Masks[c] = written(p.Masks[c], from)
	}
	for c := range p.Shows {
		p.Shows[c] = written(p.Shows[c], from)
	}
	p.Sizes[i], p.Cuts[i] = size, starts
	if !p.Pieced() {
		p.Cuts, p.Ends = nil, nil
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

// cutFor cuts the columns of an expression that is added up into pieces, where it has some; nil means it has too many.
func cutFor(b *semantics.Box, e *semantics.Expr) *Factor {
	p, combinations := &Factor{Columns: e.Cols}, 1
	for _, at := range e.Cols {
		p.Ends = append(p.Ends, b.Table.Columns[at].Domain.Size())
	}
	tooMany := CombinationsOf(p.Ends) > plans.MaxCells
	for i, at := range e.Cols {
		size := p.Ends[i]
		starts, ok := []int(nil), false
		if of := over(at, []*semantics.Expr{e}, nil); tooMany {
			starts, ok = b.Pieces(at, of, nil, plans.MaxCells)
		} else {
			starts, ok = b.FewPieces(at, of, nil)
		}
		if !ok {
			starts = nil
		} else {
			size = len(starts)
		}
		p.Sizes, p.Cuts = append(p.Sizes, size), append(p.Cuts, starts)
		if size > plans.MaxCells/combinations {
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

// evened are pieces that the SQL can tell apart: few, or in few runs of one length. Others are cut into pieces of
// the largest length that they are made of.
func evened(starts []int, regular int) ([]int, bool) {
	end, _ := slices.BinarySearch(starts, regular)
	if len(plans.EvenRuns(starts[:end], regular)) <= semantics.MaxCases {
		return starts, true
	}
	length := 0
	for i := 2; i < len(starts) && starts[i] < regular; i++ {
		length = plans.Divisor(starts[i]-starts[i-1], length)
	}
	if length < 2 || regular/length > plans.MaxCells {
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

// put sets the box to the first cells of a combination of the factor's pieces.
func (v *Solver) put(p *Factor, pieces []int) {
	for i, at := range p.Columns {
		v.Box.Set(at, p.firstOf(i, pieces[i]))
	}
}

// again are, for each column of a factor, which of its pieces each is like: all that is asked of the factor's
// combinations is the same on both, and no other one before is looked at. Nil: of no column is that known.
func (v *Solver) again(p *Factor) (of [][]int32) {
	exprs := slices.Clone(p.filters)
	for _, k := range p.Keys {
		exprs = append(exprs, v.Query.Keys[k])
	}
	for _, list := range p.only {
		exprs = append(exprs, list...)
	}
	for i, at := range p.Columns {
		stretches := v.Box.Stretches(at, exprs, p.forced(v.Table.Columns[at]), false)
		if stretches == nil {
			continue
		}
		if of == nil {
			of = make([][]int32, len(p.Columns))
		}
		v.Env.Work.Take(p.Sizes[i], 4)
		of[i] = make([]int32, p.Sizes[i])
		s := -1
		for piece := range p.Sizes[i] {
			cell := p.firstOf(i, piece)
			for s+1 < len(stretches) && cell >= stretches[s+1].From {
				s++
			}
			like := piece
			if own := stretches[s]; own.Period > 0 && cell < own.To {
				like = p.PieceOf(i, own.From+(cell-own.From)%own.Period)
			}
			of[i][piece] = int32(like)
		}
	}
	return of
}

// tile numbers the steps of an ordered column around a condition that holds in a run of them: in tiles as wide as the
// run, or as many months wide where it is whole months, since who asks for one May asks for June next. A run that
// begins or ends the domain has one tile beside it. Steps that it does not number keep the numbers that they have.
func tile(d *policy.Domain, class, number []int32) {
	if !d.Ordered() {
		return
	}
	from, to := 0, 0
	for i := 0; i < d.Regular; i++ {
		switch {
		case class[i] < 0:
		case to == 0:
			from, to = i, i+1
		case i == to:
			to++
		default:
			return // two runs
		}
	}
	if to-from <= 1 {
		return
	}
	months := monthsOf(d, from, to)
	for i := range d.Regular {
		switch {
		case from == 0 || to == d.Regular:
			number[i] = 0
		case months > 0:
			number[i] = int32(scalar.FloorDiv(monthAt(d, i)-monthAt(d, from), months) + 1<<20)
		default:
			number[i] = int32(scalar.FloorDiv(i-from, to-from) + 1<<20)
		}
	}
}

// monthsOf is the number of months that a run of days, or of parts of them, is; 0 means it is not whole months.
func monthsOf(d *policy.Domain, from, to int) int {
	begin, ok := timeOf(d.Low(from))
	if !ok || to >= d.Regular || !isMonthStart(begin) {
		return 0
	}
	end, _ := timeOf(d.Low(to))
	if !isMonthStart(end) {
		return 0
	}
	return monthAt(d, to) - monthAt(d, from)
}

// monthAt counts months up to that of a step.
func monthAt(d *policy.Domain, cell int) int {
	t, _ := timeOf(d.Low(cell))
	return t.Year()*12 + int(t.Month())
}

func isMonthStart(t time.Time) bool {
	return t.Day() == 1 && t.Equal(time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC))
}

// timeOf reads a date or a timestamp; the zone of a timestamptz is taken as UTC, which only makes other tiles.
func timeOf(v policy.Value) (time.Time, bool) {
	switch v := v.(type) {
	case policy.Date:
		return time.Unix(int64(v)*86400, 0).UTC(), true
	case policy.Timestamp:
		return time.UnixMicro(int64(v)).UTC(), true
	case policy.Timestamptz:
		return time.UnixMicro(int64(v)).UTC(), true
	}
	return time.Time{}, false
}
