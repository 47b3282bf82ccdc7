package semantics

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// What a chart groups by often comes round again (docs/adr/0109). Of
//
//	SELECT extract(hour FROM placed_at), count(*) FROM orders GROUP BY 1
//
// over two years of hours the key is the same every 24 cells, so that it is evaluated on 24 of the 17,520. An
// expression comes round in a column after a number of its units (microseconds, days, ones) where it reads the column
// only by
//
//	extract(field FROM at), of a field that comes round itself: an hour after a day, a weekday after a week; to_char(at, …) of such fields
//	n % constant, of what is not below 0
//	at::time, after a day
//
// and goes along by a number of units where a value that is that much later gives a result that is as much later: the
// column itself, + and − a constant without months, at time zone, date_trunc of a length that is always the same, casts
// between dates and times. at and n above go along.
//
// Claim. Let a Stretch have a period of p cells. On two of its cells that are p apart each expression has the same
// value, or fails alike, and is constant within both or within neither; of MovesOrRepeats: the same in one as in the
// other, as far as equal and different values go. Proof. By induction over the expression: it is a function of its
// arguments, as steady has it too, and these have, on values that are p cells apart, the same values or such as are p
// cells apart. The calendar's days and weeks have one length, and so have hours, as long as the offset of the zone does
// not change; where it does a stretch ends. No + fails between two ends of a domain at neither of which it fails. The
// last cell of a domain may be shorter than the others: what is constant within those is so within it, and where the
// others are not constant a statement has been refused that needs it.

// Stretch is cells of a column, from one to below another, on which some expressions come round after Period cells; 0:
// none is known.
type Stretch struct{ From, To, Period int }

// Stretches cuts the regular cells of a column into stretches, at the cells forced and where a clock changes. With
// moves what goes along may be among the expressions, besides what comes round. Nil: there is no period.
func (b *Box) Stretches(column int, exprs []*Expr, forced []int, moves bool) []Stretch {
	d := b.Table.Columns[column].Domain
	if !d.Ordered() || d.Regular <= FewRegular || d.Step.Whole <= 0 || b.Table.Columns[column].Open != nil {
		return nil
	}
	p := periods{box: b, column: column, unit: unitOf(d.Type)}
	if p.unit == 0 {
		return nil
	}
	period, ok := commonPeriod(exprs, func(e *Expr) (int64, bool) {
		own, ok := p.repeats(e)
		if !ok && moves {
			return p.moves(e)
		}
		return own, ok
	})
	if period = common(period, d.Step.Whole); !ok || period == 0 || period/d.Step.Whole > int64(d.Regular/2) {
		return nil
	}
	ends := append([]int{0, d.Regular}, forced...)
	least, _ := wholeOf(d.Min)
	for _, turn := range p.turns {
		at := int((turn - least) / d.Step.Whole)
		if ends = append(ends, at); (turn-least)%d.Step.Whole != 0 {
			ends = append(ends, at+1)
		}
	}
	slices.Sort(ends)
	ends = slices.DeleteFunc(slices.Compact(ends), func(cell int) bool { return cell < 0 || cell > d.Regular })
	list := make([]Stretch, len(ends)-1)
	for i := range list {
		list[i] = Stretch{ends[i], ends[i+1], int(period / d.Step.Whole)}
	}
	return list
}

// unitOf is the length of a column's unit, in microseconds of time, or 1 of a number; 0 means it has none.
func unitOf(t policy.Type) int64 {
	switch {
	case t == policy.DateType:
		return dayMicros
	case t == policy.TimestampT || t == policy.TimestampTZ || t.Integer():
		return 1
	}
	return 0
}

// dayMicros is a day without a change of the clock.
const dayMicros = 86_400_000_000

// wholeOf is a value of a domain in its units.
func wholeOf(v policy.Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case policy.Date:
		return int64(v), true
	}
	n, _ := microsOf(v)
	return n, true
}

// periods finds in how many units of a column expressions come round.
type periods struct {
	box    *Box
	column int
	unit   int64   // in microseconds
	turns  []int64 // values of the column at which a clock that is read changes
}

// common is the least common multiple of two lengths, 0 where it is of no use.
func common(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	rest := plans.Divisor(a, b)
	if a/rest > math.MaxInt64/4/b {
		return 0
	}
	return a / rest * b
}

// commonPeriod is after how many units all of some expressions come round, each after its own period.
func commonPeriod(list []*Expr, periodOf func(*Expr) (int64, bool)) (period int64, ok bool) {
	period = 1
	for _, e := range list {
		own, ok := periodOf(e)
		if period = common(period, own); !ok || period == 0 {
			return 0, false
		}
	}
	return period, true
}

// inUnits is a length of time in units of the column; what is shorter than a unit, or no multiple, comes round with
// several.
func (p *periods) inUnits(micros int64) int64 { return common(micros, p.unit) / p.unit }

// repeats is after how many units e comes round.
func (p *periods) repeats(e *Expr) (period int64, ok bool) {
	switch {
	case !slices.Contains(e.Cols, p.column):
		return 1, true
	case e.Form == FormColumn:
		return 0, false
	case e.Form == formExtract && !slices.ContainsFunc(e.Args, isDayTime):
		return p.field(e)
	case e.Type() == policy.TimeT && len(e.Args) == 1 && isInstant(e.Args[0].Type()):
		return p.fields(e.Args[0], []string{"hour"})
	case (e.Op == "%" || e.Op == "mod") && len(e.Args) == 2 && e.Args[1].Form == formConstant && e.Type().Integer():
		return p.remainder(e.Args[0], MustConstant(e.Args[1]))
	}
	if len(e.Args) == 0 {
		return 0, false
	}
	return commonPeriod(e.Args, p.repeats)
}

// remainder is after how many units n modulo a constant comes round.
func (p *periods) remainder(n *Expr, constant policy.Value) (period int64, ok bool) {
	by, isWhole := constant.(int64)
	along, goes := p.moves(n)
	if low, fine := p.least(n); !isWhole || by == 0 || by == math.MinInt64 || !goes || !fine || low < 0 {
		return 0, false
	}
	return common(along, max(by, -by)), true
}

// field is after how many units a field of a time comes round, or a text of such fields.
func (p *periods) field(e *Expr) (period int64, ok bool) {
	name, at := e.Args[0], e.Args[1]
	fields := []string{}
	if e.Op == "to_char" {
		name, at = at, name
		fields = scalar.TemplateFields(predicate.Text(MustConstant(name)))
	} else {
		fields = append(fields, strings.ToLower(predicate.Text(MustConstant(name))))
	}
	return p.fields(at, fields)
}

// fields is after how many units some fields of a time come round. Its time of the day does so with its hour.
func (p *periods) fields(at *Expr, fields []string) (period int64, ok bool) {
	along, ok := p.moves(at)
	if !ok || !at.Type().Moment() || len(fields) == 0 || at.Type() == policy.TimestampTZ && !p.fixed(p.box.Env.Zone, at) {
		return 0, false
	}
	period = along
	for _, f := range fields {
		period = common(period, p.inUnits(rounds[f]))
	}
	return period, period > 0
}

// rounds are the microseconds after which a field of a time comes round.
var rounds = map[string]int64{"dow": 7 * dayMicros, "isodow": 7 * dayMicros, "hour": dayMicros, "minute": 3_600_000_000, "second": 60_000_000}

// lengths are those of what date_trunc cuts to. Weeks begin on Mondays, all of them.
var lengths = map[string]int64{"week": 7 * dayMicros, "day": dayMicros, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}

// moves is by how many units e goes along with the column: that much later, it is as much later.
func (p *periods) moves(e *Expr) (along int64, ok bool) {
	if e.Form == FormColumn {
		return 1, e.Cols[0] == p.column
	}
	at := slices.IndexFunc(e.Args, func(a *Expr) bool { return !a.IsConstant() })
	if !e.Monotone || at < 0 || len(e.Cols) != 1 {
		return 0, false
	}
	from := e.Args[at]
	if along, ok = p.moves(from); !ok {
		return 0, false
	}
	dated := from.Type().Moment() && e.Type().Moment()
	if !dated && !(from.Type().Integer() && e.Type().Integer()) {
		return 0, false
	}
	switch {
	case e.Op == "+" && len(e.Args) == 2, e.Op == "-" && len(e.Args) == 2 && at == 0:
		if e.clock != nil || dated && e.Type() == policy.TimestampTZ && !IsFixed(p.box.Env.Zone) {
			return 0, false
		}
		if by, of := MustConstant(e.Args[1-at]).(policy.Interval); of && by.Months != 0 {
			return 0, false
		}
		_, fine := p.least(e)
		return along, fine
	case e.Op == "timezone" && at == 1:
		zone, known := zoneOf(e.Args[0])
		if e.Args[0].Type() == policy.IntervalT || !known || !p.fixed(zone, from) {
			return 0, false
		}
		return along, true
	case e.Op == "date_trunc" && at == 1 && e.clock == nil:
		if len(e.Args) > 2 || from.Type() == policy.TimestampTZ && !IsFixed(p.box.Env.Zone) {
			return 0, false
		}
		length, known := lengths[strings.ToLower(predicate.Text(MustConstant(e.Args[0])))]
		along = common(along, p.inUnits(length))
		return along, known && along > 0
	case (strings.HasPrefix(e.Op, "cast:") || e.Op == "date") && dated && len(e.Args) == 1 && e.Typmod() < 0:
		if from.Type() != e.Type() && (from.Type() == policy.TimestampTZ || e.Type() == policy.TimestampTZ) && !IsFixed(p.box.Env.Zone) {
			return 0, false
		}
		if e.Type() == policy.DateType {
			along = common(along, p.inUnits(dayMicros))
		}
		return along, along > 0
	}
	return 0, false
}

// fixed reports whether a zone's offset is one and the same for the times of an expression, but for changes that it
// notes: those of an instant that is the column itself.
func (p *periods) fixed(zone *time.Location, of *Expr) bool {
	if IsFixed(zone) {
		return true
	}
	d := p.box.Table.Columns[p.column].Domain
	if of.Form != FormColumn || d.Type != policy.TimestampTZ {
		return false
	}
	least, _ := wholeOf(d.Min)
	most, _ := wholeOf(d.Max)
	scalar.Turns(zone, time.UnixMicro(least), time.UnixMicro(most), func(at time.Time, _, _ int) { p.turns = append(p.turns, at.UnixMicro()) })
	return true
}

// least is an expression's value, an integer, at the lower end of the column's domain; it is not fine where it is none
// at one of the ends.
func (p *periods) least(e *Expr) (low int64, fine bool) {
	d := p.box.Table.Columns[p.column].Domain
	row := make(scalar.Row, len(p.box.Table.Columns))
	for _, end := range []policy.Value{d.Max, d.Min} {
		row[p.column] = end
		v, err := e.Eval(row)
		if err != nil || v == nil {
			return 0, false
		}
		if low, fine = wholeOf(v); !fine {
			return 0, false
		}
	}
	return low, true
}

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
