package linear

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// implied reports whether a condition holds of every pair that there is, by its columns' cells.
func (v *Solver) implied(e *semantics.Expr) bool {
	m := derived.MatchedIn(v.Table)
	if m == nil || m.Outer || !slices.Contains(e.Cols, m.Row()) {
		return false
	}
	args := argumentsOf(m.From, m.Args)
	if slices.ContainsFunc(e.Cols, func(c int) bool { return c != m.Row() && !slices.Contains(args.places, c) }) {
		return false
	}
	for _, match := range m.Matches {
		args.set(v.Box, match.Combination)
		v.Box.Set(m.Row(), int(match.Row))
		if !v.holds(e) {
			return false
		}
	}
	return true
}

// arguments are columns by whose cells something is looked up.
type arguments struct{ places, sizes, cells []int }

func argumentsOf(t *policy.Table, columns []*policy.Column) (a arguments) {
	for _, c := range columns {
		a.places, a.sizes = append(a.places, slices.Index(t.Columns, c)), append(a.sizes, c.Domain.Size())
	}
	a.cells = make([]int, len(columns))
	return a
}

// set sets a box to a combination of their cells.
func (a arguments) set(b *semantics.Box, combination int32) {
	Decode(int(combination), a.sizes, a.cells)
	for i, c := range a.places {
		b.Set(c, a.cells[i])
	}
}

// holds reports whether a condition holds in all of the box.
func (v *Solver) holds(e *semantics.Expr) bool {
	holds, steady, refusal := v.Box.Value(e)
	return refusal == nil && steady && holds == true
}

// listed reports whether a condition holds of every combination of cells that a list has, by these and its numbers,
// where known says that a row has one: FROM a, b WHERE b.x = a.x AND b.y = a.y looks b up by both equations, which then
// hold of what is found.
func (v *Solver) listed(e *semantics.Expr, known predicate.Pred) bool {
	for t := v.Table; t != nil; t = derived.Widened(t) {
		d, ok := t.Derived.(*derived.Tabulated)
		if !ok {
			continue
		}
		from := len(d.From.Columns)
		var read []int // of the list's columns
		there := false
		for at := from; at < len(t.Columns); at++ {
			if slices.Contains(e.Cols, at) {
				read = append(read, at)
			}
			there = there || slices.ContainsFunc(predicate.Conjuncts(known), func(q predicate.Pred) bool {
				in, ok := q.(predicate.InCells)
				return ok && in.Column == v.Table.Columns[at] && !slices.ContainsFunc(in.Spans, func(s mechanisms.Span) bool { return s.To > in.Column.Domain.Null })
			})
		}
		if len(read) > 0 && there {
			return v.holdsOfAll(e, d, read)
		}
	}
	return false
}

// holdsOfAll evaluates a condition over a list's arguments and some of its columns on each combination.
func (v *Solver) holdsOfAll(e *semantics.Expr, d *derived.Tabulated, read []int) bool {
	args := argumentsOf(d.From, d.Args)
	if slices.ContainsFunc(e.Cols, func(c int) bool { return !slices.Contains(args.places, c) && !slices.Contains(read, c) }) {
		return false
	}
	for n, at := range d.Combinations {
		args.set(v.Box, at)
		for _, c := range read {
			cell, ok := v.Table.Columns[c].Domain.Cell(d.Columns[c-len(d.From.Columns)].Of(n))
			if !ok {
				return false
			}
			v.Box.Set(c, cell)
		}
		if !v.holds(e) {
			return false
		}
	}
	return true
}

// multiply bounds the rows of a unit that are placed, and those placed into one cell, where each row is there once for
// each match: by the most matches that the conditions on public columns leave, and the most of them that have equal
// keys.
//
// Proof. A unit has at most R rows in From. A row of combination x becomes one row for each match (x, j), of which
// those are placed whose j satisfies every conjunct of the filter that reads j alone, and whose class, by j and the
// cells of the factor's other columns, is not −1. Their number is at most that over all j and all cells of the other
// columns, and so is the number of them in one class. A cell is in one class of each factor.
func (v *Solver) multiply() {
	m := derived.MatchedIn(v.Table)
	if m == nil || v.Query.PerGroup > 0 || v.Query.Empty {
		return
	}
	row := v.Table.Columns[m.Row()]
	var filters []predicate.Pred
	for _, q := range predicate.Conjuncts(v.Query.Filter) {
		if columns, onGrid := predicate.Columns(q, nil); onGrid && len(columns) == 1 && columns[0] == row {
			filters = append(filters, q)
		}
	}
	allowed := func(j int32) bool {
		return !slices.ContainsFunc(filters, func(q predicate.Pred) bool {
			return !predicate.Satisfied(q, func(*policy.Column) int { return int(j) })
		})
	}
	placed := m.Most(allowed)
	each := placed
	if p := v.partOfColumn(m.Row()); p != nil && !p.PiecesInSQL && p.combinations()/max(row.Domain.Size(), 1)*max(len(m.Matches), 1) <= plans.MaxCells {
		placed, each = matchClasses(m, p, slices.Index(p.Columns, m.Row()), allowed)
	}
	v.Query.Rows, v.Query.PerGroup = m.From.MaxRowsPerUnit*max(placed, 1), m.From.MaxRowsPerUnit*max(each, 1)
}

func (v *Solver) partOfColumn(column int) *Factor {
	for _, p := range v.Query.Factors {
		if slices.Contains(p.Columns, column) {
			return p
		}
	}
	return nil
}

// matchClasses is the most matches of one combination that are in some class, and the most in one, over all cells of
// the factor's other columns; at is the place of the public row among its columns.
func matchClasses(m *derived.Matched, p *Factor, at int, allowed func(int32) bool) (placed, each int64) {
	inner, class := 1, p.byCell(p.Class) // combinations of the columns after it
	for i := at + 1; i < len(p.Sizes); i++ {
		inner *= p.End(i)
	}
	rows := p.End(at)
	for other := range len(class) / rows {
		outside, within := other/inner, other%inner
		for from := 0; from < len(m.Matches); {
			to := from
			all, counts := int64(0), map[int32]int64{}
			for ; to < len(m.Matches) && m.Matches[to].Combination == m.Matches[from].Combination; to++ {
				j := m.Matches[to].Row
				class := class[(outside*rows+int(j))*inner+within]
				if class < 0 || !allowed(j) {
					continue
				}
				all++
				counts[class]++
				each = max(each, counts[class])
			}
			placed = max(placed, all)
			from = to
		}
	}
	if m.Outer {
		placed, each = max(placed, 1), max(each, 1)
	}
	return placed, each
}

// OfRow evaluates a column of the public table by the number of its row.
type OfRow struct {
	Rows   [][]policy.Value
	At     int // the number's column
	Typ    policy.Type
	Mod    int32
	Column int
}

func (k OfRow) Type() policy.Type { return k.Typ }
func (k OfRow) Typmod() int32     { return k.Mod }

func (k OfRow) Eval(row scalar.Row) (policy.Value, error) {
	n, ok := row[k.At].(int64)
	if !ok || n < 0 || n >= int64(len(k.Rows)) {
		return nil, nil
	}
	return k.Rows[n][k.Column], nil
}
