package semantics

import (
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// steps are the functions that are monotone in their only argument that is not constant.
var steps = map[string]bool{
	"floor": true, "ceil": true, "ceiling": true, "round": true, "trunc": true, "trim_scale": true, "date_trunc": true, "width_bucket": true,
	"+": true, "-": true, "*": true, "/": true, "timezone": true, "date": true, "date_bin": true, "sqrt": true, "exp": true, "ln": true,
	"int2": true, "int4": true, "int8": true, "float4": true, "float8": true, "numeric": true, "to_timestamp": true, "coalesce": true,
	"<": true, "<=": true, ">": true, ">=": true,
}

// granules give, for a field that EXTRACT takes, the unit of date_trunc within which it cannot change.
var granules = map[string]string{
	"year": "year", "decade": "year", "century": "year", "millennium": "year", "quarter": "quarter", "month": "month",
	"isoyear": "week", "week": "week", "day": "day", "doy": "day", "dow": "day", "isodow": "day", "julian": "day",
	"hour": "hour", "minute": "minute", "second": "second",
}

// finerThanHours are fields that no zone's clock keeps to steps of hours.
var finerThanHours = []string{"minute", "second", "millisecond", "milliseconds", "microsecond", "microseconds", "epoch"}

// varying is the only argument of op that is not constant, −1 where there is none; ok: op is monotone in it. Division
// needs the constant below.
func varying(op string, args []*Expr) (at int, ok bool) {
	at = -1
	for i, a := range args {
		if a.IsConstant() {
			continue
		}
		if at >= 0 || len(a.Cols) > 1 {
			return at, false
		}
		at = i
	}
	below := (op == "/" || op == "width_bucket") && at > 0
	return at, steps[op] && !below
}

// clock is what a function does with the wall clock of a zone: it reads it off an instant, or finds the instant that it
// shows. The first goes back where the clocks do, the second is out of order where they change at all; so the function
// is monotone only over values between which that does not happen.
type clock struct {
	zone *time.Location
	from *Expr // the instant, or the wall clock's time
}

// order sets whether e, which is op over its arguments, is monotone.
func (e *Expr) order(env scalar.Env, op string) {
	at, ok := varying(op, e.Args)
	e.Monotone = ok && (at < 0 || e.Args[at].Monotone)
	if e.within = withinOf(op, e.Args); e.Type() == policy.TimeT && (op == "+" || op == "-") {
		e.Monotone, e.within = false, nil // past midnight a clock begins again
	}
	if e.Monotone && at >= 0 && e.Args[at].Type().Moment() {
		e.orderMoments(op, e.Args[at], env.Zone)
	}
}

// orderMoments notes by which clock e, which is op over a moment or a day and constants, is monotone, if it reads one,
// and unsets Monotone where no clock keeps the order.
func (e *Expr) orderMoments(op string, from *Expr, zone *time.Location) {
	switch op {
	case "+", "-":
		for _, a := range e.Args {
			e.Monotone = e.Monotone && (a.Type() != policy.IntervalT || keepsOrder(from, a, zone))
		}
		if sameClock(e, from) || from.Type() == policy.TimestampTZ {
			return
		}
	case "date_bin", "to_timestamp":
		return
	case "date_trunc":
		if len(e.Args) == 3 {
			zone, e.Monotone = zoneOf(e.Args[2])
		}
		if from.Type() != policy.TimestampTZ {
			return
		}
	case "timezone":
		if e.Args[0].Type() == policy.IntervalT {
			return
		}
		zone, e.Monotone = zoneOf(e.Args[0])
	default:
		if sameClock(e, from) {
			return
		}
	}
	e.setClock(zone, from)
}

// setClock notes the clock that e reads for an argument. Midnights stay in order whatever the clock does.
func (e *Expr) setClock(zone *time.Location, from *Expr) {
	if !IsFixed(zone) && from.Type() != policy.DateType {
		e.clock = &clock{zone, from}
	}
}

// IsFixed reports whether a zone's clock never changes.
func IsFixed(zone *time.Location) bool {
	if zone == nil || zone == time.UTC {
		return true
	}
	_, end := time.Unix(-1<<40, 0).In(zone).ZoneBounds()
	return end.IsZero()
}

// sameClock tells that a comparison, a cast or COALESCE leaves its varying argument the instant, or the wall clock's
// time, that it is.
func sameClock(e, from *Expr) bool {
	local := from.Type() != policy.TimestampTZ
	for _, a := range append(slices.Clone(e.Args), e) {
		switch a.Type() {
		case policy.TimestampTZ:
			if local {
				return false
			}
		case policy.DateType, policy.TimestampT:
			if !local && e.Form != FormCompare { // a comparison turns the constant into an instant
				return false
			}
		}
	}
	return true
}

// keepsOrder reports whether adding a constant interval keeps the order of times: months do not, since they end on days
// of their own, and of instants in a zone days do not either.
func keepsOrder(from, interval *Expr, zone *time.Location) bool {
	if !interval.IsConstant() {
		return false
	}
	v, err := interval.Eval(nil)
	i, ok := v.(policy.Interval)
	switch {
	case err != nil || !ok:
		return true // it fails, or is NULL, for every row
	case from.Type() == policy.DateType:
		return true
	case from.Type() == policy.TimestampTZ:
		return i.Months == 0 && (i.Days == 0 || IsFixed(zone))
	}
	return i.Months == 0
}

// zoneOf is the zone of a constant name.
func zoneOf(name *Expr) (zone *time.Location, known bool) {
	v, err := name.Eval(nil)
	text, ok := v.(string)
	if !name.IsConstant() || err != nil || !ok {
		return nil, false
	}
	return scalar.ZoneAt(text)
}

// offSteps names the first zone that e reads a clock of, of those whose offset at the end of a column's domain is no
// whole number of its steps; "" if there is none.
func offSteps(e *Expr, session *time.Location, d *policy.Domain) string {
	for _, a := range e.Args {
		if zone := offSteps(a, session, d); zone != "" {
			return zone
		}
	}
	end, ok := d.Max.(policy.Timestamptz)
	zone, known := e.reads(session)
	if !ok || !known {
		return ""
	}
	if _, seconds := time.UnixMicro(int64(end)).In(zone).Zone(); int64(seconds)*1_000_000%d.Step.Whole == 0 {
		return ""
	}
	return zone.String()
}

// reads is the zone off whose clock e reads an instant, to the hour or coarser.
func (e *Expr) reads(session *time.Location) (zone *time.Location, known bool) {
	if !slices.ContainsFunc(e.Args, func(a *Expr) bool { return a.Type() == policy.TimestampTZ && !a.IsConstant() }) {
		return nil, false
	}
	zone, known = session, session != nil
	var fields []string
	switch e.Op {
	case "timezone":
		return zoneOf(e.Args[0])
	case "extract", "date_part", "date_trunc":
		fields = []string{strings.ToLower(predicate.Text(MustConstant(e.Args[0])))}
		if len(e.Args) == 3 {
			zone, known = zoneOf(e.Args[2])
		}
	case "to_char":
		fields = scalar.TemplateFields(predicate.Text(MustConstant(e.Args[1])))
	default:
		known = known && (e.Op == "date" || strings.HasPrefix(e.Op, "cast:") && e.Type() != policy.TimestampTZ)
	}
	return zone, known && !slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(finerThanHours, f) })
}

// calm reports whether e is monotone between two rows: no clock that it reads changes out of order between them.
func (e *Expr) calm(low, high scalar.Row) bool {
	for _, a := range e.Args {
		if !a.calm(low, high) {
			return false
		}
	}
	return e.clock == nil || len(e.clock.turns(low, high)) == 0
}

// breaks collects the values of the only column of e, between two rows, at which e may begin to be out of order with
// what is below them. It is false where it cannot tell them.
func (e *Expr) breaks(low, high scalar.Row, into *[]policy.Value) bool {
	for _, a := range e.Args {
		if !a.breaks(low, high, into) {
			return false
		}
	}
	if e.clock == nil {
		return true
	}
	turns := e.clock.turns(low, high)
	*into = append(*into, turns...)
	return len(turns) == 0 || e.clock.from.Form == FormColumn
}

// turns are the times between two rows' at which the clock is set: instants at which it is set back, or both ends of
// what it skips and repeats.
func (c *clock) turns(low, high scalar.Row) []policy.Value {
	from, err := c.from.Eval(low)
	to, failed := c.from.Eval(high)
	if err != nil || failed != nil || from == nil || to == nil {
		return nil // the same refusal, or NULL, comes of the expression itself
	}
	begin, local := microsOf(from)
	end, _ := microsOf(to)
	begin, end = min(begin, end), max(begin, end)
	var out []policy.Value
	first, last := time.UnixMicro(begin), time.UnixMicro(end)
	if local {
		first, last = first.AddDate(0, 0, -8), last.AddDate(0, 0, 8) // no zone is a week off, so that an instant that shows it is among them
	}
	scalar.Turns(c.zone, first, last, func(at time.Time, before, after int) {
		switch {
		case local:
			for _, seconds := range []int{before, after} {
				if turn := at.UnixMicro() + int64(seconds)*1e6; begin < turn && turn <= end {
					out = append(out, policy.Timestamp(turn))
				}
			}
		case after < before && begin < at.UnixMicro():
			out = append(out, policy.Timestamptz(at.UnixMicro()))
		}
	})
	return out
}

// microsOf are the microseconds of an instant, or of a wall clock's time as if it were UTC's.
func microsOf(v policy.Value) (micros int64, local bool) {
	switch v := v.(type) {
	case policy.Timestamptz:
		return int64(v), false
	case policy.Timestamp:
		return int64(v), true
	}
	return 0, true
}

// before is the value just below a turn.
func before(turn policy.Value) policy.Value {
	if t, ok := turn.(policy.Timestamptz); ok {
		return t - 1
	}
	micros, _ := microsOf(turn)
	return policy.Timestamp(micros - 1)
}

// Parted reports whether an expression over one column of times, or of what lies between two, changes at both ends of
// the box: none of its values in there is another box's too.
func (b *Box) Parted(e *Expr) bool {
	at := e.Cols[0]
	d := b.Table.Columns[at].Domain
	if !b.changes(e, momentBeside(b.Low[at], -1), b.Low[at]) {
		return false
	}
	return scalar.Compare(d.Type, b.High[at], d.Max) >= 0 || b.changes(e, b.High[at], momentBeside(b.High[at], 1))
}

// momentBeside is a moment, or what lies between two, moved by the least there is.
func momentBeside(v policy.Value, by int64) policy.Value {
	switch v := v.(type) {
	case policy.Date:
		return v + policy.Date(by)
	case policy.Timestamp:
		return v + policy.Timestamp(by)
	case policy.Timestamptz:
		return v + policy.Timestamptz(by)
	case int64:
		return v + by
	}
	return nil
}

// changes reports whether an expression over one column differs between two of its values.
func (b *Box) changes(e *Expr, from, to policy.Value) bool {
	if from == nil || to == nil {
		return false
	}
	row := slices.Clone(b.Low)
	row[e.Cols[0]] = from
	before, err := e.Eval(row)
	row[e.Cols[0]] = to
	after, failed := e.Eval(row)
	return err == nil && failed == nil && !Same(e.Type(), before, after)
}
