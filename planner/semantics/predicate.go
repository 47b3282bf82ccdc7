package semantics

import (
	"iter"
	"sort"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Lowerer folds three-valued conditions on the rows of one table into predicates on cells.
type Lowerer struct {
	Table *policy.Table
	Env   scalar.Env
	Box   *Box
	Notes *Notes

	OffGrid plans.OffGrid

	matter map[int]SpansOf // the cells of columns at which the condition that is lowered now can change a conjunction or disjunction around it; of other columns: all
}

// snaps reports whether a bound between two steps of a column moves to the step.
func (l *Lowerer) snaps(c *policy.Column, op string) bool {
	return op != "=" && op != "<>" && (l.OffGrid == plans.OffGridSnap || l.OffGrid == plans.OffGridPolicy && c.Snap)
}

// truth says where a condition is true and where it is false; elsewhere it is NULL.
type truth = derived.Condition

// Lower finds the truth of e; ok is false when some part reads several columns at once or varies within a step.
func (l *Lowerer) Lower(e *Expr) (t truth, ok bool, refusal *refuse.Refusal) {
	if e.IsConstant() {
		v, refusal := e.Value(nil)
		return truthOf(v), true, refusal
	}
	if len(e.Cols) == 1 {
		if t, ok, refusal = l.overCells(e); ok || refusal != nil {
			return t, ok, refusal
		}
	}
	switch e.Form {
	case FormAnd, FormOr:
		return l.junction(e)
	case formNot:
		t, ok, refusal = l.Lower(e.Args[0])
		return truth{Holds: t.Fails, Fails: t.Holds}, ok, refusal
	case FormIs:
		return l.is(e)
	case FormIsNull: // of a condition
		if e.Args[0].Type() == policy.Bool {
			return l.is(e)
		}
	case formIn:
		return l.member(e)
	case FormCompare:
		if t, ok = l.sum(e); ok {
			return t, true, nil
		}
		if t, ok, refusal = l.against(e); ok || refusal != nil {
			return t, ok, refusal
		}
		return l.compare(e)
	}
	return truth{}, false, nil
}

// Decided are where a condition is true and where it is false, if the database can test it, which ok reports; within
// reports whether it does so within a step, or a bound of it has moved to one, or may once it is known.
func (l *Lowerer) Decided(e *Expr) (of derived.Condition, ok, within bool, refusal *refuse.Refusal) {
	own, notes := *l, Notes{}
	own.Notes = &notes
	if of, ok, refusal = own.Lower(e); !ok || refusal != nil {
		return of, false, false, refusal
	}
	_, onGrid := predicate.Columns(predicate.AllOf{of.Holds, of.Fails}, nil)
	l.Notes.AddAll(notes)
	return of, true, !onGrid || len(notes) > 0 || l.Box.waits(e), nil
}

// truthOf is the truth of a constant.
func truthOf(v policy.Value) truth {
	switch v {
	case true:
		return truth{Holds: nil, Fails: predicate.Never{}}
	case false:
		return truth{Holds: predicate.Never{}, Fails: nil}
	}
	return truth{Holds: predicate.Never{}, Fails: predicate.Never{}}
}

// is folds IS TRUE, IS FALSE and IS UNKNOWN, which are never NULL.
func (l *Lowerer) is(e *Expr) (truth, bool, *refuse.Refusal) {
	t, ok, refusal := l.Lower(e.Args[0])
	if !ok || refusal != nil {
		return truth{}, ok, refusal
	}
	holds := predicate.All(predicate.Not(t.Holds), predicate.Not(t.Fails))
	switch e.Want {
	case true:
		holds = t.Holds
	case false:
		holds = t.Fails
	}
	return truth{Holds: holds, Fails: predicate.Not(holds)}, true, nil
}

// member is IN over steps: a disjunction of equalities.
func (l *Lowerer) member(e *Expr) (truth, bool, *refuse.Refusal) {
	or := &Expr{Form: FormOr, Cols: e.Cols, Pos: e.Pos}
	for _, v := range e.Args[1:] {
		s, err := l.Env.Call("=", e.Args[0].Expr, v.Expr)
		if err != nil {
			return truth{}, false, ScalarRefusal(err, e.Pos)
		}
		or.Args = append(or.Args, Node(FormCompare, "=", s, e.Pos, e.Args[0], v))
	}
	return l.junction(or)
}

// compare is a comparison of a bare column with a constant that lies inside a step: the database makes it.
func (l *Lowerer) compare(e *Expr) (truth, bool, *refuse.Refusal) {
	if bare := l.bare(e); bare != nil {
		return l.Lower(bare)
	}
	column, constant, op := e.constantLast()
	column, constant = uncast(column), uncast(constant)
	if column.Form == FormColumn && constant.Form == FormColumn {
		t, ok := l.between(column.Cols[0], constant.Cols[0], op)
		return t, ok, nil
	}
	if column.Form != FormColumn || !constant.IsConstant() {
		return truth{}, false, nil
	}
	c := l.Table.Columns[column.Cols[0]]
	v, exact := l.atMost(c, constant)
	if v == nil || !c.Domain.Ordered() {
		return truth{}, false, nil
	}
	if !exact { // income > 57891.5 where incomes are whole: income > 57891
		switch op {
		case "=", "<>":
			never, always := predicate.Pred(predicate.Never{}), predicate.Any(predicate.Compare{Column: c, Op: "<=", Value: v}, predicate.Compare{Column: c, Op: ">", Value: v})
			if op == "=" {
				return truth{Holds: never, Fails: always}, true, nil
			}
			return truth{Holds: always, Fails: never}, true, nil
		case "<":
			op = "<="
		case ">=":
			op = ">"
		}
	}
	if cell, inside := c.Domain.Cell(v); inside && l.snaps(c, op) {
		return l.snap(c, op, cell), true, nil
	}
	l.noteOffGrid(c, c.Name+" "+op)
	holds := predicate.Compare{Column: c, Op: op, Value: v}
	fails := holds
	fails.Op = predicate.Opposite[op]
	return truth{Holds: holds, Fails: fails}, true, nil
}

// noteOffGrid notes that a comparison is made by the database, of the values as they are stored.
func (l *Lowerer) noteOffGrid(c *policy.Column, compared string) {
	l.Notes.Add(compared + " a value inside a step of " + StepOf(c) + ": each row is compared with the value itself, in a count of its own where none is held")
}

// maxCompared is how many combinations of cells two columns may have to be compared cell by cell, which releases can
// answer.
const maxCompared = 1 << 16

// between is a comparison of two bare columns of one type: the database makes it where they have many cells, and where
// there is nothing above that could make it.
func (l *Lowerer) between(a, b int, op string) (truth, bool) {
	left, right := l.Table.Columns[a], l.Table.Columns[b]
	if left.Domain == nil || right.Domain == nil || !left.Domain.Ordered() || left.Type != right.Type || left.Typmod != right.Typmod ||
		!l.Box.Below && left.Domain.Size()*right.Domain.Size() <= maxCompared {
		return truth{}, false
	}
	if left.Name > right.Name {
		left, right, op = right, left, predicate.Mirrored[op]
	}
	holds := predicate.Between{Left: left, Right: right, Op: op}
	return truth{Holds: holds, Fails: predicate.Between{Left: left, Right: right, Op: predicate.Opposite[op]}}, true
}

// uncast takes casts off a column that keep each value, and how it compares with others: income::numeric of whole
// incomes.
func uncast(e *Expr) *Expr {
	for !e.IsConstant() && len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:") && e.Args[0].Type().Integer() && (e.Type() == policy.Int8 || e.Type() == policy.NumericType && e.Typmod() < 0) {
		e = e.Args[0]
	}
	return e
}

// atMost is the largest value of a column's type that is no larger than a constant, and whether it is the constant
// itself: 3 for 3.5 compared with an integer column, the day for a moment compared with a date. nil means there is
// none, or it is not known.
func (l *Lowerer) atMost(c *policy.Column, constant *Expr) (v policy.Value, exact bool) {
	floor := constant.Expr
	if t := constant.Type(); c.Type.Integer() && (t == policy.NumericType || t.Floating()) {
		var err error
		if floor, err = l.Env.Call("floor", floor); err != nil {
			return nil, false
		}
	}
	typed, err := l.Env.Cast(floor, c.Type, -1)
	if err != nil {
		return nil, false
	}
	if v, err = typed.Eval(nil); err != nil || v == nil {
		return nil, false
	}
	holds := func(op string) bool {
		s, err := l.Env.Call(op, typed, constant.Expr)
		if err != nil {
			return false
		}
		is, err := s.Eval(nil)
		return err == nil && is == true
	}
	if holds("=") {
		return v, true
	}
	whole := c.Type.Integer() || c.Type == policy.DateType && constant.Type() == policy.TimestampT
	if !whole || !holds("<") {
		return nil, false
	}
	return v, false
}

// snap moves the constant down to the start of its step.
func (l *Lowerer) snap(c *policy.Column, op string, cell int) truth {
	l.Notes.Add("bounds on " + c.Name + " snap to its steps of " + StepOf(c))
	below := predicate.Cells(c, predicate.FromTo(0, cell))
	above := predicate.Cells(c, predicate.FromTo(cell, c.Domain.Regular))
	if op == "<" || op == "<=" {
		return truth{Holds: below, Fails: above}
	}
	return truth{Holds: above, Fails: below}
}

// overCells evaluates a condition on one column on each of its cells; ok is false when it varies within one.
func (l *Lowerer) overCells(e *Expr) (truth, bool, *refuse.Refusal) {
	i := e.Cols[0]
	c := l.Table.Columns[i]
	if c.Domain == nil {
		return truth{}, false, DomainMissing.At(e.Pos, c.Name)
	}
	if e.Form == FormIsNull && e.Args[0].Form == FormColumn && c.Open == nil {
		return nulls(c), true, nil
	}
	if c.Domain.Regular > FewRegular {
		return l.overManyCells(e, i)
	}
	return l.byPieces(e, i)
}

// overManyCells finds the cells by the form of a condition, and by pieces where its form says nothing of them.
func (l *Lowerer) overManyCells(e *Expr, i int) (truth, bool, *refuse.Refusal) {
	d := l.Table.Columns[i].Domain
	if e.Form == FormCompare && d.Ordered() && withinOf("<", e.Args) == nil {
		if e.Op == "=" || e.Op == "<>" {
			return l.equality(e)
		}
		if e.Monotone && (!e.Awaited || d.Single()) && l.Box.Calm(e, i) {
			return l.threshold(e, i, d)
		}
	}
	if t, ok := l.byParts(e); ok {
		return t, true, nil
	}
	if e.Form == formIn && d.Ordered() && e.Args[0].Monotone && !e.Args[0].IsConstant() {
		return l.list(e)
	}
	return l.byPieces(e, i)
}

// byPieces evaluates a condition on one column on each piece of its cells, or on each cell where it has no pieces. Of
// more cells than a plan looks at one by one it is not ok then. Where it matters in few of them it is evaluated there
// alone, and NULL elsewhere: of
//
//	p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX')
//
// the second on the parts of that brand.
func (l *Lowerer) byPieces(e *Expr, i int) (truth, bool, *refuse.Refusal) {
	c := l.Table.Columns[i]
	var starts []int
	alike := l.Box.alike(e, i)
	cells := SpansOf(predicate.FromTo(0, c.Domain.Size()))
	if matter, narrowed := l.matter[i]; narrowed && c.Domain.Regular > FewRegular && mechanisms.CellsIn(matter) < min(c.Domain.Size()/8, fewCells) {
		cells = matter
	} else {
		pieced := false
		if c.Domain.Regular > FewRegular && alike == nil {
			starts, pieced = l.Box.Pieces(i, []*Expr{e}, nil, min(plans.MaxCells, c.Domain.Regular/4))
		}
		if !pieced && c.Domain.Size() > plans.MaxCells {
			return truth{}, false, nil
		}
	}
	var holds, fails SpansOf
	if alike != nil {
		var steady bool
		var refusal *refuse.Refusal
		if holds, fails, steady, refusal = l.byNumbers(e, i, cells, alike); refusal != nil || !steady {
			return truth{}, false, refusal
		}
		l.Env.Work.Take(len(holds)+len(fails), 16)
		return truth{Holds: predicate.Cells(c, holds), Fails: predicate.Cells(c, fails)}, true, nil
	}
	divided, at := dividedCells{lowerer: l, column: i, compare: e}, l.Box.Truths(e)
	for from, to := range piecesOf(cells, starts) {
		v, steady, refusal := at(from)
		if refusal != nil || !steady && !divided.add(from, &holds, &fails) {
			return truth{}, false, refusal
		}
		if steady {
			addTruth(v, from, to, &holds, &fails)
		}
	}
	l.Env.Work.Take(len(holds)+len(fails), 16)
	return divided.with(truth{Holds: predicate.Cells(c, holds), Fails: predicate.Cells(c, fails)}), true, nil
}

// addTruth adds cells to those in which a condition holds, or to those in which it fails; NULL is neither.
func addTruth(v policy.Value, from, to int, holds, fails *SpansOf) {
	switch v {
	case true:
		holds.AddRange(from, to)
	case false:
		fails.AddRange(from, to)
	}
}

// fewCells is in how many cells at most a condition is evaluated one by one though pieces might be fewer.
const fewCells = 1 << 14

// piecesOf are the pieces that begin with starts, or, where there are none, single cells.
func piecesOf(cells SpansOf, starts []int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for n, from := range starts {
			to := cells[0].To
			if n+1 < len(starts) {
				to = starts[n+1]
			}
			if !yield(from, to) {
				return
			}
		}
		if starts != nil {
			return
		}
		for _, s := range cells {
			for cell := s.From; cell < s.To; cell++ {
				if !yield(cell, cell+1) {
					return
				}
			}
		}
	}
}

// list is x IN (…) for an x that rises or falls with a column: the cells of each equality, put together once.
func (l *Lowerer) list(e *Expr) (truth, bool, *refuse.Refusal) {
	c := l.Table.Columns[e.Cols[0]]
	var all []mechanisms.Span
	null := false
	for _, v := range e.Args[1:] {
		s, err := l.Env.Call("=", e.Args[0].Expr, v.Expr)
		if err != nil {
			return truth{}, false, ScalarRefusal(err, e.Pos)
		}
		t, ok, refusal := l.equality(Node(FormCompare, "=", s, e.Pos, e.Args[0], v))
		if !ok || refusal != nil {
			return truth{}, false, refusal
		}
		switch holds := t.Holds.(type) {
		case nil:
			all = append(all, mechanisms.Span{From: 0, To: c.Domain.Size()})
		case predicate.InCells:
			all = append(all, holds.Spans...)
		}
		if _, never := t.Fails.(predicate.Never); never {
			null = true // in no cell is it another value
		}
	}
	all = predicate.Unite(all, nil)
	fails := predicate.Intersect(predicate.Outside(all, c.Domain.Size()), predicate.FromTo(0, c.Domain.Regular))
	if null {
		return l.byPieces(e, e.Cols[0])
	}
	return truth{Holds: predicate.Cells(c, all), Fails: predicate.Cells(c, fails)}, true, nil
}

// byParts folds AND, OR and NOT of conditions on one column part by part, so that thresholds spare the walk over a long
// domain; false where a part fails, or varies within a cell, though the whole might not.
func (l *Lowerer) byParts(e *Expr) (truth, bool) {
	part := func(a *Expr) (truth, bool, *refuse.Refusal) {
		if a.IsConstant() {
			v, refusal := a.Value(nil)
			return truthOf(v), true, refusal
		}
		return l.overCells(a)
	}
	switch e.Form {
	case FormAnd, FormOr:
		t, ok, refusal := l.joined(e.Form, e.Args, part)
		return t, ok && refusal == nil
	case formNot:
		t, ok, refusal := part(e.Args[0])
		return truth{Holds: t.Fails, Fails: t.Holds}, ok && refusal == nil
	}
	return truth{}, false
}

// nulls is IS NULL of a column: one cell at most holds NULL, so that the others need not be walked.
func nulls(c *policy.Column) truth {
	null := predicate.Pred(predicate.Never{})
	if at := c.Domain.Null; at >= 0 {
		null = predicate.Cells(c, predicate.FromTo(at, at+1))
	}
	return truth{Holds: null, Fails: predicate.Not(null)}
}

// equality is = or <> as two thresholds, so that long domains need not be walked.
func (l *Lowerer) equality(e *Expr) (truth, bool, *refuse.Refusal) {
	least := *e
	parts := make([]*Expr, 2)
	for n, op := range []string{">=", "<="} {
		s, err := l.Env.Call(op, e.Args[0].Expr, e.Args[1].Expr)
		if err != nil {
			return truth{}, false, ScalarRefusal(err, e.Pos)
		}
		parts[n] = Node(FormCompare, op, s, e.Pos, e.Args...)
		parts[n].order(l.Env, op)
		if !parts[n].Monotone {
			least.Form = FormOther
			return l.overCells(&least)
		}
	}
	both := &Expr{Form: FormAnd, Cols: e.Cols, Args: parts, Pos: e.Pos}
	for _, p := range parts {
		if _, ok, refusal := l.overCells(p); !ok || refusal != nil {
			return truth{}, false, refusal
		}
	}
	t, ok, refusal := l.junction(both)
	if e.Op == "<>" {
		t = truth{Holds: t.Fails, Fails: t.Holds}
	}
	return t, ok, refusal
}

// threshold finds the only cell where a monotone comparison changes.
func (l *Lowerer) threshold(e *Expr, i int, d *policy.Domain) (truth, bool, *refuse.Refusal) {
	var failure *refuse.Refusal
	unsteady := false
	at := func(cell int) policy.Value {
		l.Box.Set(i, cell)
		v, steady, refusal := l.Box.Value(e)
		if refusal != nil && failure == nil {
			failure = refusal
		}
		unsteady = unsteady || !steady
		return v
	}
	last := d.Regular - 1
	first, end := at(0), at(last)
	turn := d.Regular
	if !Same(policy.Bool, first, end) {
		turn = sort.Search(last, func(cell int) bool { return !Same(policy.Bool, at(cell), first) })
		unsteady = false
		at(turn - 1)
		at(turn)
		at(last)
	}
	if failure != nil || unsteady {
		return truth{}, false, failure
	}
	var holds, fails SpansOf
	addTruth(first, 0, turn, &holds, &fails)
	addTruth(end, turn, d.Regular, &holds, &fails)
	for cell := d.Regular; cell < d.Size(); cell++ {
		addTruth(at(cell), cell, cell+1, &holds, &fails)
	}
	c := l.Table.Columns[i]
	return truth{Holds: predicate.Cells(c, holds), Fails: predicate.Cells(c, fails)}, failure == nil, failure
}
