package scalar

import (
	"math"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// Monotone tells whether e is, on values that are not NULL, a non-decreasing function of column col alone. Where such an
// expression has equal values at both ends of a range of the column, it is constant on the range.
func Monotone(e Expr, col int) bool {
	d := directionOf(e, col)
	return d == rising || d == flat
}

// Steady proves that e has one value on all rows between low and high, which differ in column col at most: e is built
// from parts that are monotone with equal values at both ends. It answers false where it finds no proof.
func Steady(e Expr, col int, low, high Row) bool {
	if !reads(e, col) {
		return true
	}
	if d := directionOf(e, col); d == rising || d == falling {
		a, err := e.Eval(low)
		if err != nil {
			return false
		}
		b, err := e.Eval(high)
		if err != nil {
			return false
		}
		return a != nil && b != nil && identical(e.Type(), a, b)
	}
	if c, ok := e.(*caseOf); ok {
		return steadyCase(c, col, low, high)
	}
	parts := childrenOf(e)
	for _, part := range parts {
		if !Steady(part, col, low, high) {
			return false
		}
	}
	return len(parts) > 0
}

// steadyCase looks at the arms up to the one that is taken.
func steadyCase(c *caseOf, col int, low, high Row) bool {
	last := len(c.arms) - 1
	for i := 0; i < last; i += 2 {
		if !Steady(c.arms[i], col, low, high) {
			return false
		}
		v, err := c.arms[i].Eval(low)
		if err != nil {
			return false
		}
		if v == true {
			return Steady(c.arms[i+1], col, low, high)
		}
	}
	return Steady(c.arms[last], col, low, high)
}

// identical is equality that also sees the scale of a numeric.
func identical(t policy.Type, a, b policy.Value) bool {
	if x, ok := a.(numeric); ok && x.Scale != b.(numeric).Scale {
		return false
	}
	return Compare(t, a, b) == 0
}

// reads tells whether e depends on a column.
func reads(e Expr, col int) bool {
	switch e := e.(type) {
	case *constant:
		return false
	case *column:
		return e.index == col
	case parent:
		for _, part := range e.children() {
			if reads(part, col) {
				return true
			}
		}
		return false
	}
	return true
}

// direction is how an expression follows a column. Rough ones follow it up to roundings of numeric quotients, whose
// number of digits changes with their size: 3.9…9/3 shows more digits than 4/3 and is then larger. Whole numbers below
// and above are not affected, so floor, ceil and trunc make a rough direction a true one.
type direction uint8

const (
	crooked direction = iota // not monotone, or not known to be
	flat
	rising
	falling
	roughRising
	roughFalling
)

func (d direction) flip() direction {
	return [...]direction{crooked, flat, falling, rising, roughFalling, roughRising}[d]
}

func (d direction) rough() direction {
	return [...]direction{crooked, flat, roughRising, roughFalling, roughRising, roughFalling}[d]
}

func (d direction) whole() direction {
	return [...]direction{crooked, flat, rising, falling, rising, falling}[d]
}

// exact forgets rough directions, which only few functions may see.
func (d direction) exact() direction {
	if d >= roughRising {
		return crooked
	}
	return d
}

// with is the direction of a function that rises in both arguments.
func (d direction) with(e direction) direction {
	switch {
	case d == flat:
		return e.exact()
	case e == flat || d == e:
		return d.exact()
	}
	return crooked
}

func directionOf(e Expr, col int) direction {
	switch e := e.(type) {
	case *constant:
		return flat
	case *column:
		if e.index == col {
			return rising
		}
		return crooked // of that column alone
	case *relabel:
		return directionOf(e.arg, col)
	case *extremum:
		d := flat
		for _, arg := range e.args {
			d = d.with(directionOf(arg, col))
		}
		return d
	case *coalesce:
		return directionOf(e.args[0], col).exact()
	case *call:
		if !hasColumn(e) {
			return flat
		}
		return callDirection(e, col)
	}
	if !hasColumn(e) {
		return flat
	}
	return crooked
}

func callDirection(c *call, col int) direction {
	if len(c.args) == 0 {
		return flat
	}
	if crossesZones(c) && !fixedZone(c.env.zone()) {
		return crooked
	}
	first := directionOf(c.args[0], col)
	switch c.name {
	case "floor", "ceil", "ceiling", "trunc":
		if len(c.args) == 1 {
			return first.whole()
		}
		return onlyFirst(c, first)
	case "round", "width_bucket", "left":
		return onlyFirst(c, first)
	case "sign", "exp", "ln", "log", "log10", "sqrt":
		if len(c.args) > 1 {
			return crooked
		}
		if c.typ == policy.NumericType && c.name != "sign" {
			return first.exact().rough()
		}
		return first.exact()
	case "typmod", "::", "date", "int2", "int4", "int8", "float4", "float8", "numeric", "timestamp", "timestamptz":
		if len(c.args) > 1 || c.typ == policy.Bool {
			return crooked
		}
		return first.exact()
	case "date_trunc", "extract", "date_part":
		return fieldDirection(c, col)
	}
	if len(c.args) == 1 {
		return unaryDirection(c, first)
	}
	return binaryDirection(c, first, directionOf(c.args[1], col))
}

func unaryDirection(c *call, first direction) direction {
	switch c.name {
	case "-":
		return first.exact().flip()
	case "+":
		return first.exact()
	}
	return crooked
}

// onlyFirst is for functions of a column and constants.
func onlyFirst(c *call, first direction) direction {
	values := make([]policy.Value, len(c.args))
	for i, arg := range c.args[1:] {
		v, ok := constantOf(arg)
		if !ok {
			return crooked
		}
		values[i+1] = v
	}
	switch c.name {
	case "left":
		if values[1].(int64) < 0 {
			return crooked
		}
	case "width_bucket":
		if Compare(c.args[1].Type(), values[1], values[2]) > 0 {
			return first.exact().flip()
		}
	}
	return first.exact()
}

// constantOf evaluates an expression that reads no row; ok is false for others, for NULL and for errors.
func constantOf(e Expr) (policy.Value, bool) {
	if hasColumn(e) {
		return nil, false
	}
	v, err := e.Eval(nil)
	return v, err == nil && v != nil
}

func binaryDirection(c *call, a, b direction) direction {
	switch c.name {
	case "+", "-":
		if !plainSum(c) {
			return crooked
		}
		if c.name == "-" {
			b = b.flip()
		}
		return a.with(b)
	case "<", "<=":
		return a.flip().with(b)
	case ">", ">=":
		return a.with(b.flip())
	case "*", "/":
		return scaled(c, a, b)
	}
	return crooked
}

// plainSum tells whether a sum is one of numbers, of days, or of times without months: shorter months make
// timestamps with months of their own.
func plainSum(c *call) bool {
	for _, arg := range c.args {
		if arg.Type() != policy.IntervalT {
			continue
		}
		v, ok := constantOf(arg)
		if !ok || c.typ == policy.IntervalT {
			return false
		}
		by := v.(interval)
		if by.Months != 0 || by.Days != 0 && c.typ == policy.TimestampTZ && !fixedZone(c.env.zone()) {
			return false
		}
	}
	return true
}

// scaled is a product with, or a quotient by, a constant.
func scaled(c *call, a, b direction) direction {
	factor, along := c.args[1], a
	if c.name == "*" && a == flat {
		factor, along = c.args[0], b
	}
	if c.typ == policy.IntervalT {
		return crooked
	}
	v, ok := constantOf(factor)
	if !ok {
		return crooked
	}
	along = along.exact()
	if c.name == "/" && c.typ == policy.NumericType {
		along = along.rough()
	}
	switch signOf(v) {
	case 1:
		return along
	case -1:
		return along.flip()
	}
	return crooked
}

// signOf is the sign of a number, 0 also of what is no number.
func signOf(v policy.Value) int {
	switch v := v.(type) {
	case int64:
		return int(max(-1, min(v, 1)))
	case float64:
		if math.IsInf(v, 0) {
			return 0
		}
		return int(floatSign(v))
	case numeric:
		return v.Coefficient.Sign()
	}
	return 0
}

// fieldDirection is of date_trunc and of the fields that grow with time.
func fieldDirection(c *call, col int) direction {
	unit, ok := constantOf(c.args[0])
	t := c.args[1].Type()
	if !ok || t == policy.IntervalT || len(c.args) > 2 {
		return crooked
	}
	d := directionOf(c.args[1], col).exact()
	if c.name == "date_trunc" {
		return d
	}
	switch fieldNamed(unit.(string)) {
	case "epoch", "year", "isoyear", "decade", "century", "millennium":
		return d
	}
	return crooked
}

// crossesZones tells whether a call reads the wall clock of a timestamp with a zone, or makes one from a wall clock.
func crossesZones(c *call) bool {
	zoned, local := c.typ == policy.TimestampTZ, c.typ == policy.TimestampT || c.typ == policy.DateType
	for _, arg := range c.args {
		switch arg.Type() {
		case policy.TimestampTZ:
			zoned = true
		case policy.TimestampT, policy.DateType:
			local = true
		}
	}
	truncated := c.name == "date_trunc" || c.name == "extract" || c.name == "date_part"
	return zoned && (local || truncated)
}

// fixedZone tells whether a zone has had one offset for ever, so that its wall clock never goes back.
func fixedZone(zone *time.Location) bool {
	start, end := time.Unix(0, 0).In(zone).ZoneBounds()
	return start.IsZero() && end.IsZero()
}
