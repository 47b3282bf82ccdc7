package linear

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Columns are all columns that a question reads; ok is false when it compares off the grid.
func (s *Query) Columns() (columns []*policy.Column, ok bool) {
	columns, ok = predicate.Columns(s.Filter, nil)
	for _, p := range s.Counts {
		var onGrid bool
		columns, onGrid = predicate.Columns(p, columns)
		ok = ok && onGrid
	}
	for _, c := range s.Grain {
		columns = predicate.WithColumn(columns, s.Table.Columns[c])
	}
	return columns, ok
}

// Together cuts a column into the pieces of a measure's factor, and of what the question says of it: of the cells of a
// piece either says the same. Nil: one of them tells each cell apart.
func (s *Query) Together(of *Factor, i int, c *policy.Column) []int {
	if of.PiecesInSQL || of.Cuts == nil || of.Cuts[i] == nil {
		return of.startsOf(i)
	}
	own, ok := s.ToldApart(c)
	if !ok {
		return nil
	}
	starts := slices.DeleteFunc(append(slices.Clone(of.Cuts[i]), own...), func(cell int) bool { return cell >= of.Ends[i] })
	slices.Sort(starts)
	return slices.Compact(starts)
}

// ToldApart are the cells of a column at which what the question says of it may change, in no order; false means it
// tells each cell apart. The question compares on the grid.
func (s *Query) ToldApart(c *policy.Column) (starts []int, ok bool) {
	for _, p := range s.Factors {
		k := slices.Index(p.Columns, plans.ColumnIndex(s.Table, c))
		if k < 0 {
			continue
		}
		own := p.startsOf(k)
		if own == nil {
			return nil, false
		}
		starts = append(starts, own...)
	}
	for _, q := range append([]predicate.Pred{s.Filter}, s.Counts...) {
		forEachCells(q, c, func(spans []mechanisms.Span) {
			for _, span := range spans {
				starts = append(starts, span.From, span.To)
			}
		})
	}
	return starts, true
}

// startsOf are the first cells of the pieces of the i-th column; nil means each cell is one.
func (p *Factor) startsOf(i int) []int {
	if p.Cuts == nil {
		return nil
	}
	return p.Cuts[i]
}

// Divides reports whether a question asks for a part of some piece of cells that the measure does not tell apart: then
// the measure does not answer it.
func (s *Query) Divides(m *Query) bool {
	for _, p := range m.Factors {
		for i, at := range p.Columns {
			if p.PiecesInSQL && p.Cuts[i] != nil && s.dividesPieces(p, i, m.Table.Columns[at]) {
				return true
			}
		}
	}
	return false
}

// dividesPieces reports whether what the question says of a column changes within a piece of a measure's factor, whose
// i-th column it is.
func (s *Query) dividesPieces(p *Factor, i int, c *policy.Column) bool {
	starts, ok := s.ToldApart(c)
	return !ok || slices.ContainsFunc(starts, func(cell int) bool {
		return cell < c.Domain.Size() && p.Cuts[i][p.PieceOf(i, cell)] != cell
	})
}

// Distinctions numbers the pieces of a column, of each of which a cell is known, so that those with one number are
// alike to the question, whatever the cells of other columns are.
func (s *Query) Distinctions(c *policy.Column, size int, cell func(piece int) int) []int32 {
	keys := make([][]byte, size)
	mark := func(p predicate.Pred) {
		forEachCells(p, c, func(spans []mechanisms.Span) {
			for i := range keys {
				keys[i] = append(keys[i], Bit(predicate.Contains(spans, cell(i))))
			}
		})
	}
	mark(s.Filter)
	for _, p := range s.Counts {
		mark(p)
	}
	for _, p := range s.Factors {
		at := slices.IndexFunc(p.Columns, func(i int) bool { return s.Table.Columns[i] == c })
		if at < 0 {
			continue
		}
		for n := range keys {
			keys[n] = p.appendPiece(keys[n], at, p.PieceOf(at, cell(n)))
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

// appendPiece adds what a factor says of all combinations that have one piece of its i-th column.
func (p *Factor) appendPiece(key []byte, i, piece int) []byte {
	inner := p.inner(i)
	for outside := range len(p.Class) / inner / p.Sizes[i] {
		from := (outside*p.Sizes[i] + piece) * inner
		for at := from; at < from+inner; at++ {
			key = binary.AppendVarint(key, int64(p.Class[at]))
			for _, mask := range p.Masks {
				if mask != nil {
					key = append(key, Bit(mask[at]))
				}
			}
		}
	}
	return key
}

// forEachCells calls f for each condition on cells of a column in a predicate.
func forEachCells(p predicate.Pred, c *policy.Column, f func([]mechanisms.Span)) {
	for q := range predicate.Leaves(p) {
		if in, ok := q.(predicate.InCells); ok && in.Column == c {
			f(in.Spans)
		}
	}
}

// ConditionOf is the condition of a counter's row in a cell of a question; false where it is not one on each of its
// columns.
func (s *Query) ConditionOf(counter, cell int) (predicate.Pred, bool) {
	p := predicate.All(s.Filter, s.Counts[counter])
	for i := len(s.Factors) - 1; i >= 0; i-- {
		part := s.Factors[i]
		if len(part.Columns) != 1 {
			return nil, false
		}
		class := int32(cell % part.Classes)
		cell /= part.Classes
		var in semantics.SpansOf
		for c, of := range part.Class {
			if of == class && (part.Masks[counter] == nil || part.Masks[counter][c]) {
				s := part.CellsOf(0, c, s.Table.Columns[part.Columns[0]].Domain.Size())
				in.AddRange(s.From, s.To)
			}
		}
		p = predicate.All(p, predicate.Cells(s.Table.Columns[part.Columns[0]], in))
	}
	return p, true
}

// AddsUp is what a counter adds up, as releases tell it: nothing but rows, or a product of factors. False: something
// else.
func (s *Query) AddsUp(counter int) (string, bool) {
	if s.Values[counter] != nil || s.Sums[counter] != nil && s.Sums[counter].Expr != nil {
		return "", false
	}
	if s.Sums[counter] == nil {
		return "", true
	}
	return string(plans.EncodeSum(nil, s.Summed()[counter])), true
}

// MaxPlain is up to how many combinations each is looked at, without a thought whether some are alike. Tests set it.
var MaxPlain = 1 << 12

// CombinationsOf is the product of sizes, or more than maxCells.
func CombinationsOf(sizes []int) int {
	n := 1
	for _, size := range sizes {
		if n *= size; n > plans.MaxCells {
			return plans.MaxCells + 1
		}
	}
	return n
}

// Bit is 1 where something is so, and 0 where it is not.
func Bit(yes bool) byte {
	if yes {
		return 1
	}
	return 0
}

// InCells lists the predicates over one column within another.
func InCells(p predicate.Pred, column *policy.Column, list []predicate.InCells) []predicate.InCells {
	forEachCells(p, column, func(spans []mechanisms.Span) { list = append(list, predicate.InCells{Column: column, Spans: spans}) })
	return list
}

// Kind is how a measure of the question's own cells is called.
func (s *Query) Kind() string {
	if s.Marginals != nil {
		return plans.MarginalsKind
	}
	if len(s.Grain) > 0 {
		return "histogram"
	}
	return "count"
}

// About names the columns of a question.
func (s *Query) About() string {
	columns, _ := s.Columns()
	if len(columns) == 0 {
		return ""
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return ": " + strings.Join(names, ", ")
}

// evaluated is what a factor's conditions and keys come to on combinations of its columns' cells. An expression that
// reads some of the columns is evaluated once on each combination of theirs: of
//
//	SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) END) FROM lineitem JOIN part ON l_partkey = p_partkey
//
// the condition, which looks a part up, is evaluated once a part, not once a part and a discount. The first combination
// on which an expression fails is the same as if all were evaluated.
type evaluated struct {
	v      *Solver
	p      *Factor
	pieces []int // of the combination that is looked at
	set    []int // what the box is set to; −1: nothing yet
	known  map[*semantics.Expr]*valuesOf
}

// valuesOf are the values of an expression by the pieces of the columns that it reads.
type valuesOf struct {
	columns []int // places among the factor's
	done    []bool
	values  []policy.Value
}

func (v *Solver) evaluated(p *Factor) *evaluated {
	e := &evaluated{v: v, p: p, pieces: make([]int, len(p.Columns)), set: make([]int, len(p.Columns)), known: map[*semantics.Expr]*valuesOf{}}
	for i := range e.set {
		e.set[i] = -1
	}
	return e
}

// value is an expression's on the combination that is looked at; evaluate finds it on the box.
func (e *evaluated) value(x *semantics.Expr, evaluate func(*semantics.Expr) (policy.Value, *refuse.Refusal)) (policy.Value, *refuse.Refusal) {
	table := e.tableOf(x)
	if table == nil {
		return e.onBox(x, evaluate)
	}
	at := 0
	for _, i := range table.columns {
		at = at*e.p.Sizes[i] + e.pieces[i]
	}
	if !table.done[at] {
		value, refusal := e.onBox(x, evaluate)
		if refusal != nil {
			return nil, refusal
		}
		table.done[at], table.values[at] = true, value
	}
	return table.values[at], nil
}

// tableOf is where the values of an expression are kept; nil means it reads all columns, or others than the factor's.
func (e *evaluated) tableOf(x *semantics.Expr) *valuesOf {
	table, met := e.known[x]
	if met {
		return table
	}
	if len(x.Cols) < len(e.p.Columns) {
		table = &valuesOf{}
		size := 1
		for _, c := range x.Cols {
			i := slices.Index(e.p.Columns, c)
			if i < 0 {
				table = nil
				break
			}
			table.columns = append(table.columns, i)
			size *= e.p.Sizes[i]
		}
		if table != nil {
			e.v.Env.Work.Take(size, 17)
			table.done, table.values = make([]bool, size), make([]policy.Value, size)
		}
	}
	e.known[x] = table
	return table
}

// onBox sets the box to the combination, as far as it is not set so, and evaluates.
func (e *evaluated) onBox(x *semantics.Expr, evaluate func(*semantics.Expr) (policy.Value, *refuse.Refusal)) (policy.Value, *refuse.Refusal) {
	for i, piece := range e.pieces {
		if e.set[i] != piece {
			e.v.Box.Set(e.p.Columns[i], e.p.firstOf(i, piece))
			e.set[i] = piece
		}
	}
	return evaluate(x)
}

func (e *evaluated) decide(x *semantics.Expr) (bool, *refuse.Refusal) {
	value, refusal := e.value(x, func(x *semantics.Expr) (policy.Value, *refuse.Refusal) {
		holds, refusal := e.v.decide(x)
		return holds, refusal
	})
	return value == true, refusal
}

func (e *evaluated) key(x *semantics.Expr) (policy.Value, *refuse.Refusal) {
	return e.value(x, e.v.key)
}
