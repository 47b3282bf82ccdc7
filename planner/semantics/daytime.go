package semantics

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Times of the day. Of
//
//	WHERE visited_at::time BETWEEN '09:00' AND '17:00'
//
// visited_at::time rises within each day and falls at midnight: it, and what is monotone in it, is constant on a run of
// cells that lies in one day and has one value at both ends. So the condition is a set of cells, which comes round
// after a day (period.go), but for the cells of five o'clock, which it divides: in them the database asks how far a row
// lies past the start of its cell.

// dayTime notes of a cast from or to a time in which days, if any, it is monotone.
func (t *Translator) dayTime(e, arg *Expr) *refuse.Refusal {
	switch from := arg.Type(); {
	case isInstant(from) && arg.Monotone:
		wall, refusal := t.As(arg, policy.TimestampT, -1, arg.Pos)
		if refusal != nil {
			return refusal
		}
		e.within, refusal = t.As(wall, policy.DateType, -1, arg.Pos)
		return refusal
	case from == policy.TimeT && (e.Type() == policy.TimeT || e.Type() == policy.IntervalT):
		e.Monotone, e.within = arg.Monotone, arg.within
	}
	return nil
}

// isDayTime tells a time of the day, or what has become of one, that is monotone over all of a column or within each
// day.
func isDayTime(e *Expr) bool { return e.within != nil || e.Type() == policy.TimeT && e.Monotone }

// withinOf is the day within each of which op over its arguments is monotone; nil means it is in none.
func withinOf(op string, args []*Expr) *Expr {
	if at, ok := varying(op, args); ok && at >= 0 {
		return args[at].within
	}
	return nil
}

// steadyWithin reports whether the box lies in one day, throughout which no clock is set, and e is the same at both
// ends.
func (b *Box) steadyWithin(e *Expr) (bool, *refuse.Refusal) {
	if same, refusal := b.steady(e.within); !same || refusal != nil || !e.within.calm(b.Low, b.High) {
		return false, refusal
	}
	low, refusal := e.Value(b.Low)
	if refusal != nil {
		return false, refusal
	}
	high, refusal := e.Value(b.High)
	return refusal == nil && Same(e.Type(), low, high), refusal
}

// dividedCells are the cells within which a comparison of a time of the day changes.
type dividedCells struct {
	lowerer *Lowerer
	column  int
	compare *Expr
	op      string
	cells   map[int64]SpansOf // by how far past their start they are divided
}

// add divides one cell, or moves the constant to its start where the policy has that; false means it cannot be said of
// the column itself where the comparison changes.
func (d *dividedCells) add(cell int, holds, fails *SpansOf) bool {
	l, e := d.lowerer, d.compare
	if e.Form != FormCompare {
		return false
	}
	shown, constant, op := e.constantLast()
	if !showsTime(shown) || constant.Type() != policy.TimeT && constant.Type() != policy.Unknown {
		return false
	}
	within := shown.within
	if same, refusal := l.Box.steady(within); !same || refusal != nil || !within.calm(l.Box.Low, l.Box.High) {
		return false
	}
	c := l.Table.Columns[d.column]
	if c.Domain.Ladder != nil { // whose cells have many lengths
		return false
	}
	if l.snaps(c, op) {
		l.Notes.Add("bounds on " + c.Name + " snap to its steps of " + StepOf(c))
		addTruth(strings.HasPrefix(op, ">"), cell, cell+1, holds, fails)
		return true
	}
	begins, ends, at := timeAt(shown, l.Box.Low), timeAt(shown, l.Box.High), constantTime(l.Env, constant)
	from, _ := microsOf(l.Box.Low[d.column])
	to, _ := microsOf(l.Box.High[d.column])
	if begins < 0 || at < 0 || int64(ends-begins) != to-from { // a clock that is set forward skips times
		return false
	}
	if d.op == "" {
		d.op, d.cells = op, map[int64]SpansOf{}
		l.noteOffGrid(c, c.Name+"::time "+op)
	}
	spans := d.cells[int64(at-begins)]
	spans.Add(cell)
	d.cells[int64(at-begins)] = spans
	return true
}

// with adds the divided cells to whole ones.
func (d *dividedCells) with(whole truth) truth {
	c := d.lowerer.Table.Columns[d.column]
	for by, spans := range d.cells {
		op := d.op
		if by == 0 { // nothing of a cell is before its start
			op = map[string]string{"<=": "=", ">": "<>", "=": "=", "<>": "<>"}[op]
		}
		in := predicate.Cells(c, spans)
		whole.Holds = predicate.Any(whole.Holds, predicate.All(in, predicate.Past{Column: c, Op: op, By: by}))
		whole.Fails = predicate.Any(whole.Fails, predicate.All(in, predicate.Past{Column: c, Op: predicate.Opposite[op], By: by}))
	}
	return whole
}

// showsTime reports whether e is the time of the day of a column, or of what is so much later as the column is.
func showsTime(e *Expr) bool {
	return e.within != nil && e.Type() == policy.TimeT && e.Typmod() < 0 && len(e.Args) == 1 && goesAlong(e.Args[0])
}

// readsDayTime tells that some part of e is a time of the day that a moment shows.
func readsDayTime(e *Expr) bool { return e.within != nil || slices.ContainsFunc(e.Args, readsDayTime) }

// timeAt is the time that e shows of a row; below 0: none.
func timeAt(e *Expr, row scalar.Row) policy.Time {
	if v, err := e.Eval(row); err == nil {
		if at, ok := v.(policy.Time); ok {
			return at
		}
	}
	return -1
}

// constantTime is the time that a constant is; below 0: it is none.
func constantTime(env scalar.Env, constant *Expr) policy.Time {
	typed, err := env.Coerce(constant.Expr, policy.TimeT)
	if err != nil {
		return -1
	}
	return timeAt(&Expr{Expr: typed}, nil)
}

// goesAlong reports whether e is so much later as its column is, as long as no clock is set: the column itself, or the
// column in a zone.
func goesAlong(e *Expr) bool {
	switch {
	case e.Form == FormColumn:
		return true
	case e.Op == "timezone" && len(e.Args) == 2 && e.Args[0].IsConstant():
		return goesAlong(e.Args[1])
	}
	return strings.HasPrefix(e.Op, "cast:") && e.Typmod() < 0 && isInstant(e.Type()) && goesAlong(e.Args[0])
}
