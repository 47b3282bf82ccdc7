package linear

import (
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What a factor says of its combinations of pieces, written as runs of combinations of cells, which are what the SQL
// tells apart where pieces are not numbered: a description, its digest and the SQL do not depend on how pieces were
// found. Spread reads what was written.

// End is how many cells the i-th column has; where pieces are numbered, how many of them.
func (p *Factor) End(i int) int {
	if p.PiecesInSQL || p.Cuts == nil {
		return p.Sizes[i]
	}
	return p.Ends[i]
}

// combinations is how many combinations the SQL tells apart.
func (p *Factor) combinations() int {
	n := 1
	for i := range p.Sizes {
		n *= p.End(i)
	}
	return n
}

// combination is the combination of pieces of the cells at the head of a list, as the SQL tells them apart; −1: there
// are none.
func (p *Factor) combination(cells []int32) int {
	at := 0
	if len(cells) < len(p.Sizes) {
		return -1
	}
	for i, size := range p.Sizes {
		piece := int(cells[i])
		if piece < 0 || piece >= p.End(i) {
			return -1
		}
		if !p.PiecesInSQL {
			piece = p.PieceOf(i, piece)
		}
		at = at*size + piece
	}
	return at
}

// eachRun visits the runs of equal neighbours of a list by combination, in the order of the combinations that the SQL
// tells apart, the first column's slowest.
func eachRun[T bool | int32 | int64](p *Factor, list []T, visit func(n int, v T)) {
	n := 0
	var last T
	add := func(more int, v T) {
		if n > 0 && v != last {
			visit(n, last)
			n = 0
		}
		n, last = n+more, v
	}
	if len(list) > 0 {
		spreadRuns(p, list, 0, p.combinations(), add)
	}
	if n > 0 {
		visit(n, last)
	}
}

// spreadRuns adds the combinations of a list from one column on, cells of them. Of what is all equal none is looked at
// again.
func spreadRuns[T bool | int32 | int64](p *Factor, list []T, column, cells int, add func(n int, v T)) {
	if p.PiecesInSQL || p.Cuts == nil || column == len(p.Sizes) {
		for _, v := range list {
			add(1, v)
		}
		return
	}
	inner, within := len(list)/p.Sizes[column], cells/p.Ends[column]
	for piece := range p.Sizes[column] {
		own := list[piece*inner : (piece+1)*inner]
		s := p.CellsOf(column, piece, p.Ends[column])
		if length := s.To - s.From; !slices.ContainsFunc(own[1:], func(v T) bool { return v != own[0] }) {
			add(length*within, own[0])
		} else {
			for range length {
				spreadRuns(p, own, column+1, within, add)
			}
		}
	}
}

// byCell is a list by combination of what the SQL tells apart.
func (p *Factor) byCell(list []int32) []int32 {
	if p.PiecesInSQL || p.Cuts == nil {
		return list
	}
	out := make([]int32, 0, p.combinations())
	eachRun(p, list, func(n int, v int32) {
		for range n {
			out = append(out, v)
		}
	})
	return out
}

// What a piece of a column takes, and a class with its arm in the SQL, in bytes.
const (
	bytesOfFirst = 16
	bytesOfClass = 512
)

// valuesText is a text of what expressions are on a box, the same where they are.
func valuesText(b *semantics.Box, exprs []*semantics.Expr) (string, *refuse.Refusal) {
	values := make([]policy.Value, len(exprs))
	for k, e := range exprs {
		value, refusal := b.Steady(e)
		if refusal != nil {
			return "", refusal
		}
		values[k] = value
	}
	return semantics.KeyText(values), nil
}

// FirstCellsOf puts the cells of a column into classes on which all expressions over it are the same, each named by its
// first cell: of SELECT date_trunc('month', at), count(DISTINCT customer), each month's cells by the month's first one.
// What is no key of an open column has a class of its own.
func FirstCellsOf(b *semantics.Box, column int, exprs []*semantics.Expr) (runs []derived.ClassRun, refusal *refuse.Refusal) {
	c, seen := b.Table.Columns[column], map[string]int32{}
	d := c.Domain
	starts, ok := b.FewPieces(column, exprs, nil)
	if !ok {
		b.Env.Work.Take(d.Size(), bytesOfFirst+8)
		starts = semantics.IdentityOf(d.Size())
	}
	for i, cell := range starts {
		b.Env.Work.Take(1, bytesOfFirst)
		b.Set(column, cell)
		unknown := func(e *semantics.Expr) bool { return !c.Any || !b.Knows(e) }
		name := "hidden " + predicate.Text(int64(cell))
		if isKey(c, cell) || !slices.ContainsFunc(exprs, unknown) {
			if name, refusal = valuesText(b, exprs); refusal != nil {
				return nil, refusal
			}
		}
		if _, known := seen[name]; !known {
			b.Env.Work.Take(1, bytesOfClass)
			seen[name] = int32(cell)
		}
		end := d.Size()
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if n := len(runs); n > 0 && runs[n-1].Class == seen[name] {
			runs[n-1].Length += end - cell
		} else {
			runs = append(runs, derived.ClassRun{Length: end - cell, Class: seen[name]})
		}
	}
	return runs, nil
}

// runs are the runs of classes; nil means each combination is a class of its own, in their order.
func (p *Factor) runs() (list []derived.ClassRun) {
	if p.isIdentity(p.Class) {
		return nil
	}
	eachRun(p, p.Class, func(n int, class int32) { list = append(list, derived.ClassRun{Length: n, Class: class}) })
	return list
}

// isIdentity reports whether combinations have their own numbers.
func (p *Factor) isIdentity(class []int32) bool {
	if !p.PiecesInSQL && p.Pieced() {
		return false
	}
	return derived.IsIdentity(class)
}

// encodeClasses writes runs of equal steps: the identity over any number of cells is one run.
func (p *Factor) encodeClasses(b []byte, class []int32) []byte {
	if p.isIdentity(class) {
		return append(b, 'i')
	}
	b = append(b, 'r')
	eachRun(p, class, func(n int, class int32) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n)), uint64(class+1))
	})
	return b
}

func (p *Factor) encodeMask(b []byte, mask []bool) []byte {
	if mask == nil {
		return append(b, 't')
	}
	b = append(b, 'm')
	packed, at := make([]byte, (p.combinations()+7)/8), 0
	eachRun(p, mask, func(n int, on bool) {
		for end := at + n; on && at < end; at++ {
			if at%8 == 0 && end-at >= 8 {
				packed[at/8] = 0xff
				at += 7
				continue
			}
			packed[at/8] |= 1 << (at % 8)
		}
		if !on {
			at += n
		}
	})
	return predicate.EncodeText(b, string(packed))
}

// Spread gives each combination its class and masks, or, where one column is made of long runs of cells, each of these.
func (p *Factor) Spread(runs []derived.ClassRun, masks []string, combinations int) {
	on := func(mask string, at int) bool { return mask[at/8]>>(at%8)&1 == 1 }
	starts, at := []int{}, 0
	for _, run := range runs {
		starts = append(starts, at)
		at += run.Length
	}
	for _, mask := range masks {
		for at := 1; at < combinations && mask != ""; at++ {
			if at%8 == 0 && at+8 < combinations && mask[at/8] == mask[at/8-1] && (mask[at/8] == 0 || mask[at/8] == 0xff) {
				at += 7
				continue
			}
			if on(mask, at) != on(mask, at-1) {
				starts = append(starts, at)
			}
		}
	}
	slices.Sort(starts)
	if starts = slices.Compact(starts); p.PiecesInSQL || len(p.Columns) != 1 || len(runs) == 0 || len(starts) > combinations/2 {
		starts = semantics.IdentityOf(combinations)
	} else {
		p.Cuts, p.Ends, p.Sizes = [][]int{starts}, []int{combinations}, []int{len(starts)}
	}
	p.Class = make([]int32, len(starts))
	for c, mask := range masks {
		if mask != "" {
			p.Masks[c] = make([]bool, len(starts))
		}
	}
	run, end := -1, 0 // the run of a combination, and where it ends
	for i, at := range starts {
		for len(runs) > 0 && at >= end {
			run++
			end += runs[run].Length
		}
		if p.Class[i] = int32(i); run >= 0 {
			p.Class[i] = runs[run].Class
		}
		for c, mask := range masks {
			if mask != "" {
				p.Masks[c][i] = on(mask, at)
			}
		}
	}
	if !p.PiecesInSQL && len(p.Columns) > 1 {
		p.coarsen()
	}
}

// coarsen cuts columns into the longest runs of cells of which all lists say the same, where these are long.
func (p *Factor) coarsen() {
	for i, size := range p.Sizes {
		if size <= semantics.FewRegular {
			continue
		}
		starts := []int{0}
		for cell := 1; cell < size && len(starts) <= size/2; cell++ {
			if !p.likeTheOneBefore(i, cell) {
				starts = append(starts, cell)
			}
		}
		if len(starts) > size/2 {
			continue
		}
		if p.Cuts == nil {
			p.Cuts, p.Ends = make([][]int, len(p.Columns)), slices.Clone(p.Sizes)
		}
		p.recut(nil, i, starts)
	}
}

// likeTheOneBefore reports whether all lists say the same of a cell of the i-th column as of the one before it,
// whatever the cells of the others are.
func (p *Factor) likeTheOneBefore(i, cell int) bool {
	inner := p.inner(i)
	for outside := 0; outside < len(p.Class); outside += p.Sizes[i] * inner {
		at := outside + cell*inner
		if !slices.Equal(p.Class[at:at+inner], p.Class[at-inner:at]) {
			return false
		}
		for _, mask := range p.Masks {
			if mask != nil && !slices.Equal(mask[at:at+inner], mask[at-inner:at]) {
				return false
			}
		}
	}
	return true
}

// WeightOf is how much the squared error of a measured counter matters.
func (s *Query) WeightOf(counter int) float64 {
	if sums := s.Summed(); sums != nil && sums[counter] != nil && !sums[counter].IsNumberOfValues() {
		large := float64(max(-sums[counter].Bound.Low, sums[counter].Bound.High))
		return 1 / (large * large)
	}
	return countWeight
}

// CellsWhere is the number of cells in which a condition holds.
func (s *Query) CellsWhere(condition int) int {
	if condition < 0 {
		return s.Cells
	}
	p, at := s.factorOf(condition)
	if p == nil || p.Classes == 0 {
		return 0
	}
	n := 0
	for _, values := range p.Values {
		if values[at] == true {
			n++
		}
	}
	return s.Cells / p.Classes * n
}

// Summand is what a counter of a question adds up: a sum of products of factors, or an expression by its columns'
// cells.
type Summand struct {
	Terms   []plans.SumTerm
	Over    int64            // see Sum
	Bound   mechanisms.Bound // of terms, divided
	Expr    *semantics.Expr
	Weights Weights  // of expr, by combination of its columns' cells
	Unit    *big.Rat // what one of the whole numbers is worth in the sum that the analyst sees
	canon   string
}

// Weights are the values of an expression on combinations of cells, on one grid.
type Weights struct {
	grid   semantics.Grid
	values []int64
	Bound  mechanisms.Bound
	pieces *Factor // whose combinations they are of
}

// weigh puts values (of NULL nothing is added) on a grid.
func weigh(values []semantics.Number, least, most *big.Rat, centred bool, exponent int, largest int64) Weights {
	w := Weights{values: make([]int64, len(values))}
	var low, high int64
	w.grid, low, high = semantics.GridOf(least, most, exponent, centred, largest)
	w.Bound = mechanisms.Bound{Low: low, High: high}
	for i, v := range values {
		if !v.IsNull() {
			w.values[i] = min(max(v.Nearest10(w.grid.Exponent)-w.grid.Centre, low), high)
		}
	}
	return w
}

// squared are the weights' squares, divided.
func (w Weights) squared(over int64) Weights {
	most := max(-w.Bound.Low, w.Bound.High)
	out := Weights{pieces: w.pieces, grid: w.grid, values: make([]int64, len(w.values)), Bound: mechanisms.Bound{Low: 0, High: semantics.NearestOf(most*most, over)}}
	for i, v := range w.values {
		out.values[i] = semantics.NearestOf(v*v, over)
	}
	return out
}

// columns are those that a sum's argument reads.
func (s *Summand) columns() []int {
	if s == nil || s.Expr == nil {
		return nil
	}
	return s.Expr.Cols
}

// Name tells summands from others; nil, which counts rows, has none.
func (s *Summand) Name() string {
	if s == nil {
		return ""
	}
	return s.canon
}
