package semantics

import (
	"fmt"
	"iter"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Comparisons of two columns that the database makes, because they are below a join, or because the columns' cells
// are not looked at together: price may have a million cells or wide steps. There are three ways, the first of which
// that there is is taken:
//
//   - a sum: valid_to >= valid_from + 30 is valid_to - valid_from >= 30, whatever the domains are (predicate.Sum);
//   - by shifts: valid_to >= valid_from + interval '1 month' is the same with 28, 29, 30 or 31 in the place of 30, in those cells of valid_from in which a
//     month has so many days;
//   - by values: of price > (SELECT 1.2 * avg(o.price) FROM sales o WHERE o.item = s.item), whose right side is one number for each item once the averages are
//     known (ADR 127), it is item IN (…) AND price > 41.7 OR item IN (…) AND price > 39.2 …: for each value of the right side the cells of item that have it, and
//     a comparison with a constant.

// maxAgainst bounds the values of such a right side, and the runs of cells that have them: each is a part of the SQL,
// and engines take more than a part's time for each of many. Cells that another part of the condition rules out do not
// count: of p_brand = 'Brand#23' AND p_partkey = l_partkey AND quantity < (…) those of the brand do.
const maxAgainst = 1 << 11

// maxAnswered bounds the cells of what is answered first (docs/adr/0117), whatever is released of them: what is planned
// before that is known is not refused after it was paid for, and of so many parts each engine makes a plan in seconds.
const maxAnswered = 1 << 9

// maxShifts bounds the shifts of the second way: a month has four, and six with the days that it has not.
const maxShifts = 32

// sum is a comparison that is one of a sum with a constant; not ok: it is another one, or nothing keeps the cells from
// being looked at together.
func (l *Lowerer) sum(e *Expr) (t truth, ok bool) {
	if !l.Box.Below || len(e.Cols) < 2 || alikeColumns(e) {
		return truth{}, false
	}
	r := affineReader{l.Table, l.Env.Zone}
	f, op := r.difference(l.Env, e)
	if f == nil {
		return truth{}, false
	}
	return l.sumOf(r, f, op)
}

// alikeColumns tells a comparison of two bare columns of one type, which are compared as they are (between).
func alikeColumns(e *Expr) bool {
	a, b := uncast(e.Args[0]), uncast(e.Args[1])
	return a.Form == FormColumn && b.Form == FormColumn && a.Type() == b.Type() && a.Typmod() == b.Typmod()
}

// sumOf is f op 0.
func (l *Lowerer) sumOf(r affineReader, f *Affine, op string) (t truth, ok bool) {
	sum, op, constant, ok := r.comparison(f, op, false)
	if !ok || sum.Column() == nil {
		return truth{}, false
	}
	holds := predicate.Sum{Terms: sum, Op: op, Value: constant}
	fails := holds
	fails.Op = predicate.Opposite[op]
	return truth{Holds: holds, Fails: fails}, true
}

// against is a comparison of two columns by shifts or by values; not ok: it is another one, or cells can be looked at
// together.
func (l *Lowerer) against(e *Expr) (t truth, ok bool, refusal *refuse.Refusal) {
	if len(e.Args) != 2 || len(e.Cols) != 2 || len(e.Args[0].Cols) != 1 || len(e.Args[1].Cols) != 1 || alikeColumns(e) {
		return truth{}, false, nil
	}
	for at := range e.Args {
		if t, ok, refusal = l.byShifts(e, at); ok || refusal != nil {
			return t, ok, refusal
		}
	}
	return l.byValues(e)
}

// byValues is the third way, of the side that has fewer values.
func (l *Lowerer) byValues(e *Expr) (t truth, ok bool, refusal *refuse.Refusal) {
	size := func(i int) int {
		c := l.Table.Columns[e.Args[i].Cols[0]]
		if c.Domain == nil || c.Open != nil || e.Args[i].Form == FormColumn {
			return plans.MaxCells + 1
		}
		return c.Domain.Size()
	}
	at := 1 // the side whose values are listed
	if size(0) < size(1) {
		at = 0
	}
	by := e.Args[at]
	if size(at) > plans.MaxCells || l.together(size(at), e.Args[1-at]) {
		return truth{}, false, nil
	}
	values, cells, refusal := l.valuesOf(by)
	if values == nil || refusal != nil {
		return truth{}, false, refusal
	}
	column := l.Table.Columns[by.Cols[0]]
	holds, fails := make([]predicate.Pred, 0, len(values)), make([]predicate.Pred, 0, len(values))
	for i, v := range values {
		args := []*Expr{e.Args[1-at], ConstantExpr(v, by.Type(), e.Pos)}
		if at == 0 {
			slices.Reverse(args)
		}
		s, err := l.Env.Call(e.Op, args[0].Expr, args[1].Expr)
		if err != nil {
			return truth{}, false, ScalarRefusal(err, e.Pos)
		}
		one := Node(FormCompare, e.Op, s, e.Pos, args...)
		one.order(l.Env, e.Op)
		own, ok, refusal := l.Lower(one)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		in := predicate.Cells(column, cells[i])
		holds, fails = append(holds, predicate.All(in, own.Holds)), append(fails, predicate.All(in, own.Fails))
	}
	return truth{Holds: predicate.Any(holds...), Fails: predicate.Any(fails...)}, true, nil
}

// together reports whether so many cells are looked at beside those of a side's column, or whether there is nothing to
// compare with.
func (l *Lowerer) together(cells int, other *Expr) bool {
	c := l.Table.Columns[other.Cols[0]]
	return c.Domain == nil || c.Domain.Single() && c.Domain.Size() <= plans.MaxCells/cells && !l.Box.Below
}

// byShifts is the second way, where the side at reads a column of days, moments or whole numbers by single values, of
// which it is so much more or less, and the other side is the sum of another column and a constant.
func (l *Lowerer) byShifts(e *Expr, at int) (t truth, ok bool, refusal *refuse.Refusal) {
	by, r := e.Args[at], affineReader{l.Table, l.Env.Zone}
	x := by.Cols[0]
	c := l.Table.Columns[x]
	if by.Answered || c.Domain == nil || !c.Domain.Ordered() || !c.Domain.Single() || c.Open != nil || c.Domain.Size() > plans.MaxCells || c.Domain.Ladder != nil || l.together(c.Domain.Size(), e.Args[1-at]) {
		return truth{}, false, nil
	}
	other, unit := r.of(e.Args[1-at]), e.Args[1-at].Type()
	if other == nil {
		return truth{}, false, nil
	}
	switch t := by.Type(); {
	case t.Integer() && unit.Integer() && c.Type.Integer(), t == policy.DateType && unit == policy.DateType && c.Type == policy.DateType:
	case t.Moment() && unit.Moment() && c.Type.Moment():
		both := policy.TimestampT
		if t == policy.TimestampTZ || unit == policy.TimestampTZ {
			both = policy.TimestampTZ
		}
		if other = r.asInstant(other, unit, both); other == nil {
			return truth{}, false, nil
		}
		if unit = both; t != unit {
			s, err := l.Env.Cast(by.Expr, unit, -1)
			if err != nil {
				return truth{}, false, nil
			}
			by = Node(FormOther, "cast:"+unit.Name(), s, by.Pos, by)
		}
	default:
		return truth{}, false, nil
	}
	length := int64(1) // of a unit of the column, in units of the comparison
	if c.Type == policy.DateType && unit != policy.DateType {
		length = dayMicros
	}
	shifts, cells, refusal := l.shiftsOf(by, length)
	if shifts == nil || refusal != nil {
		return truth{}, false, refusal
	}
	var holds, fails []predicate.Pred
	for i, shift := range shifts {
		own := &Affine{terms: []affineTerm{{x, big.NewRat(length, 1)}}, plus: new(big.Rat).SetInt64(shift)}
		op := e.Op
		if at == 0 {
			op = predicate.Mirrored[op]
		}
		one, ok := l.sumOf(r, other.plusOf(own.scaled(big.NewRat(-1, 1))), op)
		if !ok {
			return truth{}, false, nil
		}
		in := predicate.Cells(c, cells[i])
		holds, fails = append(holds, predicate.All(in, one.Holds)), append(fails, predicate.All(in, one.Fails))
	}
	return truth{Holds: predicate.Any(holds...), Fails: predicate.Any(fails...)}, true, nil
}

// shiftsOf are by how much an expression is more than its column, and the cells where it is; nil means there are too
// many, or it varies within a cell.
func (l *Lowerer) shiftsOf(e *Expr, length int64) (shifts []int64, cells []SpansOf, refusal *refuse.Refusal) {
	shifts = []int64{}
	for cell := range l.each(l.thatMatter(e.Cols[0])) {
		l.Box.Set(e.Cols[0], cell)
		v, steady, refusal := l.Box.Value(e)
		if refusal != nil || !steady {
			return nil, nil, refusal
		}
		value, isWhole := wholeOf(v)
		own, also := wholeOf(l.Box.Low[e.Cols[0]])
		if v == nil || l.Box.Low[e.Cols[0]] == nil {
			continue
		}
		if !isWhole || !also {
			return nil, nil, nil
		}
		i := slices.Index(shifts, value-own*length)
		if i < 0 {
			i = len(shifts)
			shifts, cells = append(shifts, value-own*length), append(cells, nil)
		}
		if cells[i].Add(cell); len(shifts) > maxShifts {
			return nil, nil, nil
		}
	}
	return shifts, cells, nil
}

// thatMatter are the cells of a column at which a condition can change what is around it.
func (l *Lowerer) thatMatter(column int) SpansOf {
	if spans, narrowed := l.matter[column]; narrowed {
		return spans
	}
	return predicate.FromTo(0, l.Table.Columns[column].Domain.Size())
}

// each visits cells one by one.
func (l *Lowerer) each(spans SpansOf) iter.Seq[int] {
	return func(yield func(cell int) bool) {
		for _, span := range spans {
			for cell := span.From; cell < span.To; cell++ {
				if l.Env.Work.Step(1); !yield(cell) {
					return
				}
			}
		}
	}
}

// valuesOf are the different values of an expression over one column but for NULL, and the cells that have each; nil:
// they are too many, or it varies within a cell.
func (l *Lowerer) valuesOf(e *Expr) (values []policy.Value, cells []SpansOf, refusal *refuse.Refusal) {
	spans := l.thatMatter(e.Cols[0])
	if e.Answered && mechanisms.CellsIn(spans) > maxAnswered {
		return nil, nil, nil
	}
	at, runs := map[string]int{}, 0
	values = []policy.Value{}
	for cell := range l.each(spans) {
		l.Box.Set(e.Cols[0], cell)
		v, steady, refusal := l.Box.Value(e)
		if refusal != nil || !steady {
			return nil, nil, refusal
		}
		if v == nil {
			continue
		}
		text := KeyText([]policy.Value{v})
		i, known := at[text]
		if !known {
			i = len(values)
			at[text], values, cells = i, append(values, v), append(cells, nil)
		}
		before := len(cells[i])
		if cells[i].Add(cell); len(cells[i]) > before {
			runs++
		}
		if runs > maxAgainst {
			return nil, nil, nil
		}
	}
	return values, cells, nil
}

// Cells whose looked-up values are the same are alike. Of
//
//	SELECT count(*) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_brand = 'Brand#23' AND p_size < 5
//
// each condition reads l_partkey through what is looked up by it alone, and is evaluated once for each brand and once
// for each size, not on 100,000 parts.
//
// Claim: on all cells of a column to which numbers gives one number, an expression that it is made for is the same
// value, or fails alike. Proof: the expression is made of constants, of looked-up values, each a function of the row
// that the cell's value finds, and of comparisons of a key with the value that it is found by, which are those of equal
// numbers where a row is found, and NULL elsewhere; it reads the column in no other way. A cell holds one value, and
// cells of one number find, lookup by lookup, values that are the same to the last digit (derived.Places), so that
// evaluation goes the same way. Limits: a column's cells of one value each, none of which holds values that nobody
// knows.

// Looked is a column of a public table's row that is found by a key.
type Looked struct {
	Rows   *derived.Keyed
	Column int  // −1: whether there is a row
	Key    bool // it is what it is found by
}

// found is in which column is looked whether there is a row.
const found = -1

// MaxAlike bounds the numbers, each of which takes a byte while a condition is looked at. Tests set it to 0, to look at
// all cells.
var MaxAlike = 1 << 20

// numbers tell a column's cells apart by what some expression finds by them.
type numbers struct {
	d     *policy.Domain
	parts []*derived.Places
	count int // numbers are below it
}

// alike are the numbers of a column's cells for an expression over it alone; nil means it is to be evaluated cell by
// cell.
func (b *Box) alike(e *Expr, column int) *numbers {
	c := b.Table.Columns[column]
	if _, whole := c.Domain.Min.(int64); !whole || c.Open != nil || !c.Domain.Single() {
		return nil
	}
	n := &numbers{d: c.Domain, count: 1}
	met := map[string]bool{}
	if !n.read(e, met) || len(n.parts) == 0 {
		return nil
	}
	return n
}

// read adds what an expression looks up; false means it reads the column otherwise, or there are too many numbers.
func (n *numbers) read(e *Expr, met map[string]bool) bool {
	switch {
	case e.IsConstant() || met[e.Canon]:
		return true
	case e.Form == FormColumn:
		return false
	case e.Looked != nil && e.Args[0].Form == FormColumn:
		return n.looks(e, e.Looked.Rows, e.Looked.Column, met)
	case len(e.Args) == 2 && predicate.Mirrored[e.Op] != "": // p_partkey = l_partkey holds wherever a row is found by l_partkey
		for i, a := range e.Args {
			if own := e.Args[1-i]; a.Looked != nil && a.Looked.Key && own.Form == FormColumn && a.Args[0].Canon == own.Canon {
				return n.looks(e, a.Looked.Rows, found, met)
			}
		}
	}
	for _, a := range e.Args {
		if !n.read(a, met) {
			return false
		}
	}
	return len(e.Args) > 0
}

// looks adds one column of a public table, of which alone an expression is a function; false means there are too many
// numbers.
func (n *numbers) looks(e *Expr, rows *derived.Keyed, column int, met map[string]bool) bool {
	p := rows.Places(column)
	if p == nil || p.Count > MaxAlike/n.count {
		return false
	}
	met[e.Canon] = true
	n.parts, n.count = append(n.parts, p), n.count*p.Count
	return true
}

// of is the number of a cell. What no key is finds nothing.
func (n *numbers) of(cell int) int {
	number := 0
	if cell >= n.d.Regular {
		return number
	}
	key := n.d.Min.(int64) + int64(cell)*n.d.Step.Whole
	for _, p := range n.parts {
		number = number*p.Count + p.Of(key)
	}
	return number
}

// byNumbers evaluates a condition once for each number of the cells, at the first cell that has it.
func (l *Lowerer) byNumbers(e *Expr, i int, cells SpansOf, n *numbers) (holds, fails SpansOf, ok bool, refusal *refuse.Refusal) {
	const unseen, holding, failing, unknown = 0, 1, 2, 3
	l.Env.Work.Take(n.count, 1)
	for _, p := range n.parts { // whoever made them: what is refused must not depend on who planned before
		if made := fmt.Sprintf("places %p", p); l.Env.Work.Kept(made) == nil {
			l.Env.Work.Step(p.Keys())
			l.Env.Work.Take(p.Keys(), 4)
			l.Env.Work.Keep(made, p)
		}
	}
	truths := make([]uint8, n.count)
	for _, s := range cells {
		l.Env.Work.Step(s.To - s.From)
		for cell := s.From; cell < s.To; cell++ {
			at := n.of(cell)
			if truths[at] == unseen {
				l.Box.Set(i, cell)
				v, steady, refusal := l.Box.Value(e)
				if refusal != nil || !steady {
					return nil, nil, false, refusal
				}
				switch v {
				case true:
					truths[at] = holding
				case false:
					truths[at] = failing
				default:
					truths[at] = unknown
				}
			}
			switch truths[at] {
			case holding:
				holds.Add(cell)
			case failing:
				fails.Add(cell)
			}
		}
	}
	return holds, fails, true, nil
}
