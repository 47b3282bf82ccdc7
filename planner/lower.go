package planner

import (
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// lowerer folds three-valued conditions on the rows of one table into predicates on cells.
type lowerer struct {
	table *policy.Table
	env   scalar.Env
	box   *box
	notes *notes

	offGrid OffGrid
}

// snaps tells whether bounds between two steps of a column move to the step.
func (l *lowerer) snaps(c *policy.Column) bool {
	return l.offGrid == OffGridSnap || l.offGrid == OffGridPolicy && c.Snap
}

// truth says where a condition is true and where it is false; elsewhere it is NULL.
type truth struct{ holds, fails predicate.Pred }

// lower finds the truth of e; ok is false when some part reads several columns at once or varies within a step.
func (l *lowerer) lower(e *expr) (t truth, ok bool, refusal *refuse.Refusal) {
	if e.isConstant() {
		v, refusal := e.value(nil)
		return truthOf(v), true, refusal
	}
	if len(e.cols) == 1 {
		if t, ok, refusal = l.overCells(e); ok || refusal != nil {
			return t, ok, refusal
		}
	}
	switch e.form {
	case formAnd, formOr:
		return l.junction(e)
	case formNot:
		t, ok, refusal = l.lower(e.args[0])
		return truth{t.fails, t.holds}, ok, refusal
	case formIs:
		return l.is(e)
	case formIn:
		return l.member(e)
	case formCompare:
		return l.compare(e)
	}
	return truth{}, false, nil
}

// truthOf is the truth of a constant.
func truthOf(v policy.Value) truth {
	switch v {
	case true:
		return truth{nil, predicate.Never{}}
	case false:
		return truth{predicate.Never{}, nil}
	}
	return truth{predicate.Never{}, predicate.Never{}}
}

func (l *lowerer) junction(e *expr) (truth, bool, *refuse.Refusal) {
	holds, fails := make([]predicate.Pred, len(e.args)), make([]predicate.Pred, len(e.args))
	for i, a := range e.args {
		t, ok, refusal := l.lower(a)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		holds[i], fails[i] = t.holds, t.fails
	}
	if e.form == formAnd {
		return truth{predicate.All(holds...), predicate.Any(fails...)}, true, nil
	}
	return truth{predicate.Any(holds...), predicate.All(fails...)}, true, nil
}

// is folds IS TRUE, IS FALSE and IS UNKNOWN, which are never NULL.
func (l *lowerer) is(e *expr) (truth, bool, *refuse.Refusal) {
	t, ok, refusal := l.lower(e.args[0])
	if !ok || refusal != nil {
		return truth{}, ok, refusal
	}
	holds := predicate.All(predicate.Not(t.holds), predicate.Not(t.fails))
	switch e.want {
	case true:
		holds = t.holds
	case false:
		holds = t.fails
	}
	return truth{holds, predicate.Not(holds)}, true, nil
}

// member is IN over steps: a disjunction of equalities.
func (l *lowerer) member(e *expr) (truth, bool, *refuse.Refusal) {
	or := &expr{form: formOr, cols: e.cols, pos: e.pos}
	for _, v := range e.args[1:] {
		s, err := l.env.Call("=", e.args[0].Expr, v.Expr)
		if err != nil {
			return truth{}, false, scalarRefusal(err, e.pos)
		}
		or.args = append(or.args, node(formCompare, "=", s, e.pos, e.args[0], v))
	}
	return l.junction(or)
}

// compare is a comparison of a bare column with a constant that lies inside a step: the database makes it.
func (l *lowerer) compare(e *expr) (truth, bool, *refuse.Refusal) {
	column, constant, op := e.args[0], e.args[1], e.op
	if column.isConstant() {
		column, constant, op = constant, column, predicate.Mirrored[op]
	}
	if column.form == formColumn && constant.form == formColumn {
		t, ok := l.between(column.cols[0], constant.cols[0], op)
		return t, ok, nil
	}
	if column.form != formColumn || !constant.isConstant() {
		return truth{}, false, nil
	}
	c := l.table.Columns[column.cols[0]]
	typed, err := l.env.Cast(constant.Expr, c.Type, -1)
	if err != nil {
		return truth{}, false, nil
	}
	v, evalErr := typed.Eval(nil)
	if evalErr != nil || v == nil || !c.Domain.Ordered() || !l.equal(constant, typed) {
		return truth{}, false, nil
	}
	if cell, inside := c.Domain.Cell(v); inside && l.snaps(c) && op != "=" && op != "<>" {
		return l.snap(c, op, cell), true, nil
	}
	l.notes.add(c.Name + " " + op + " a value inside a step of " + stepOf(c) + ": counted exactly and afresh, releases over " + c.Name + " cannot answer it")
	holds := predicate.Compare{Column: c, Op: op, Value: v}
	fails := holds
	fails.Op = predicate.Opposite[op]
	return truth{holds, fails}, true, nil
}

// mostCompared is how many combinations of cells two columns may have to be compared cell by cell, which releases can answer.
const mostCompared = 1 << 16

// between is a comparison of two bare columns of one type: the database makes it where they have many cells, and where
// nothing stands above that could make it.
func (l *lowerer) between(a, b int, op string) (truth, bool) {
	left, right := l.table.Columns[a], l.table.Columns[b]
	if left.Domain == nil || right.Domain == nil || !left.Domain.Ordered() || left.Type != right.Type || left.Typmod != right.Typmod ||
		!l.box.below && left.Domain.Size()*right.Domain.Size() <= mostCompared {
		return truth{}, false
	}
	if left.Name > right.Name {
		left, right, op = right, left, predicate.Mirrored[op]
	}
	return truth{predicate.Between{Left: left, Right: right, Op: op}, predicate.Between{Left: left, Right: right, Op: predicate.Opposite[op]}}, true
}

// equal tells that a constant keeps its value in the column's type: 3.5 compared with an integer column does not.
func (l *lowerer) equal(a *expr, b scalar.Expr) bool {
	s, err := l.env.Call("=", a.Expr, b)
	if err != nil {
		return false
	}
	v, err := s.Eval(nil)
	return err == nil && v == true
}

// snap moves the constant down to the start of its step.
func (l *lowerer) snap(c *policy.Column, op string, cell int) truth {
	l.notes.add("bounds on " + c.Name + " snap to its steps of " + stepOf(c))
	below := predicate.Cells(c, predicate.FromTo(0, cell))
	above := predicate.Cells(c, predicate.FromTo(cell, c.Domain.Regular))
	if op == "<" || op == "<=" {
		return truth{below, above}
	}
	return truth{above, below}
}

// overCells evaluates a condition on one column on each of its cells; ok is false when it varies within one.
func (l *lowerer) overCells(e *expr) (truth, bool, *refuse.Refusal) {
	i := e.cols[0]
	c := l.table.Columns[i]
	if c.Domain == nil {
		return truth{}, false, domainMissing.At(e.pos, c.Name)
	}
	if e.form == formCompare && c.Domain.Ordered() && c.Domain.Regular > fewRegular {
		if e.op == "=" || e.op == "<>" {
			return l.equality(e)
		}
		if e.monotone && l.box.calm(e, i) {
			return l.threshold(e, i, c.Domain)
		}
	}
	if e.form == formIsNull && e.args[0].form == formColumn && c.Open == nil {
		return nulls(c), true, nil
	}
	if c.Domain.Regular > fewRegular {
		if t, ok := l.byParts(e); ok {
			return t, true, nil
		}
		if e.form == formIn && c.Domain.Ordered() && e.args[0].monotone {
			return l.list(e)
		}
	}
	return l.byPieces(e, i)
}

// byPieces evaluates a condition on one column on each piece of its cells, or on each cell where it has no pieces. Of more
// cells than a plan looks at one by one it is not ok then.
func (l *lowerer) byPieces(e *expr, i int) (truth, bool, *refuse.Refusal) {
	c := l.table.Columns[i]
	var starts []int
	pieced := false
	if c.Domain.Regular > fewRegular {
		starts, pieced = l.box.pieces(i, []*expr{e}, nil, min(maxCells, c.Domain.Regular/4))
	}
	size := c.Domain.Size()
	pieces := size
	if pieced {
		pieces = len(starts)
	} else if size > maxCells {
		return truth{}, false, nil
	}
	var holds, fails spansOf
	for n := range pieces {
		from, to := n, n+1
		if pieced {
			if from, to = starts[n], size; n+1 < pieces {
				to = starts[n+1]
			}
		}
		l.box.set(i, from)
		v, steady, refusal := l.box.value(e)
		if refusal != nil || !steady {
			return truth{}, false, refusal
		}
		switch v {
		case true:
			holds.addRange(from, to)
		case false:
			fails.addRange(from, to)
		}
	}
	l.env.Work.Take(len(holds)+len(fails), 16)
	return truth{predicate.Cells(c, holds), predicate.Cells(c, fails)}, true, nil
}

// list is x IN (…) for an x that rises or falls with a column: the cells of each equality, put together once.
func (l *lowerer) list(e *expr) (truth, bool, *refuse.Refusal) {
	c := l.table.Columns[e.cols[0]]
	var all []mechanisms.Span
	null := false
	for _, v := range e.args[1:] {
		s, err := l.env.Call("=", e.args[0].Expr, v.Expr)
		if err != nil {
			return truth{}, false, scalarRefusal(err, e.pos)
		}
		t, ok, refusal := l.equality(node(formCompare, "=", s, e.pos, e.args[0], v))
		if !ok || refusal != nil {
			return truth{}, false, refusal
		}
		switch holds := t.holds.(type) {
		case nil:
			all = append(all, mechanisms.Span{From: 0, To: c.Domain.Size()})
		case predicate.InCells:
			all = append(all, holds.Spans...)
		}
		if _, never := t.fails.(predicate.Never); never {
			null = true // in no cell is it another value
		}
	}
	all = predicate.Unite(all, nil)
	fails := predicate.Intersect(predicate.Outside(all, c.Domain.Size()), predicate.FromTo(0, c.Domain.Regular))
	if null {
		return l.byPieces(e, e.cols[0])
	}
	return truth{predicate.Cells(c, all), predicate.Cells(c, fails)}, true, nil
}

// byParts folds AND, OR and NOT of conditions on one column part by part, so that thresholds spare the walk over a long
// domain; false where a part fails, or varies within a cell, though the whole might not.
func (l *lowerer) byParts(e *expr) (truth, bool) {
	if e.form != formAnd && e.form != formOr && e.form != formNot {
		return truth{}, false
	}
	holds, fails := make([]predicate.Pred, len(e.args)), make([]predicate.Pred, len(e.args))
	for i, a := range e.args {
		t, ok := truth{}, true
		if a.isConstant() {
			v, refusal := a.value(nil)
			t, ok = truthOf(v), refusal == nil
		} else if of, steady, refusal := l.overCells(a); refusal != nil || !steady {
			ok = false
		} else {
			t = of
		}
		if !ok {
			return truth{}, false
		}
		holds[i], fails[i] = t.holds, t.fails
	}
	switch e.form {
	case formNot:
		return truth{fails[0], holds[0]}, true
	case formAnd:
		return truth{predicate.All(holds...), predicate.Any(fails...)}, true
	}
	return truth{predicate.Any(holds...), predicate.All(fails...)}, true
}

// nulls is IS NULL of a column: one cell at most holds NULL, so that the others need not be walked.
func nulls(c *policy.Column) truth {
	null := predicate.Pred(predicate.Never{})
	if at := c.Domain.Null; at >= 0 {
		null = predicate.Cells(c, predicate.FromTo(at, at+1))
	}
	return truth{null, predicate.Not(null)}
}

// equality is = or <> as two thresholds, so that long domains need not be walked.
func (l *lowerer) equality(e *expr) (truth, bool, *refuse.Refusal) {
	least := *e
	parts := make([]*expr, 2)
	for n, op := range []string{">=", "<="} {
		s, err := l.env.Call(op, e.args[0].Expr, e.args[1].Expr)
		if err != nil {
			return truth{}, false, scalarRefusal(err, e.pos)
		}
		parts[n] = node(formCompare, op, s, e.pos, e.args...)
		parts[n].order(l.env, op)
		if !parts[n].monotone {
			least.form = formOther
			return l.overCells(&least)
		}
	}
	both := &expr{form: formAnd, cols: e.cols, args: parts, pos: e.pos}
	for _, p := range parts {
		if _, ok, refusal := l.overCells(p); !ok || refusal != nil {
			return truth{}, false, refusal
		}
	}
	t, ok, refusal := l.junction(both)
	if e.op == "<>" {
		t = truth{t.fails, t.holds}
	}
	return t, ok, refusal
}

// threshold finds the only cell where a monotone comparison changes.
func (l *lowerer) threshold(e *expr, i int, d *policy.Domain) (truth, bool, *refuse.Refusal) {
	var failure *refuse.Refusal
	unsteady := false
	at := func(cell int) policy.Value {
		l.box.set(i, cell)
		v, steady, refusal := l.box.value(e)
		if refusal != nil && failure == nil {
			failure = refusal
		}
		unsteady = unsteady || !steady
		return v
	}
	last := d.Regular - 1
	first, end := at(0), at(last)
	turn := d.Regular
	if !same(policy.Bool, first, end) {
		turn = sort.Search(last, func(cell int) bool { return !same(policy.Bool, at(cell), first) })
		unsteady = false
		at(turn - 1)
		at(turn)
		at(last)
	}
	if failure != nil || unsteady {
		return truth{}, false, failure
	}
	var holds, fails spansOf
	put := func(v policy.Value, from, to int) {
		switch v {
		case true:
			holds.addRange(from, to)
		case false:
			fails.addRange(from, to)
		}
	}
	put(first, 0, turn)
	put(end, turn, d.Regular)
	for cell := d.Regular; cell < d.Size(); cell++ {
		put(at(cell), cell, cell+1)
	}
	c := l.table.Columns[i]
	return truth{predicate.Cells(c, holds), predicate.Cells(c, fails)}, failure == nil, failure
}
