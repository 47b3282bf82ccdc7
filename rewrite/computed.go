package rewrite

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// computed writes the rows of its input with sums of their columns. Nothing can fail: an operand is NULL or within its
// domain, whose ends have been held against what whole numbers and decimals hold (derived.Computed), and NULL makes a
// sum NULL.
func (w *writer) computed(c *derived.Computed) string {
	a := w.sub(c.From, "a")
	items := w.passed(a, len(c.From.Columns))
	for i, sum := range c.Columns {
		at := len(c.From.Columns) + i
		if at >= len(w.table.Columns) {
			w.fail("a computed column that the table does not have")
			return "()"
		}
		if column := w.table.Columns[at]; slices.Contains(w.used, column) {
			items = append(items, a.computedColumn(sum, column)+" AS n"+strconv.Itoa(at+1))
		}
	}
	return "(SELECT " + w.named(items) + "\n  FROM " + a.input() + ")"
}

// computedColumn is the sum, in whole numbers or decimals.
func (w *writer) computedColumn(sum derived.ComputedColumn, c *policy.Column) string {
	decimal, size, total := c.Type == policy.NumericType, new(big.Int), ""
	for i, t := range sum {
		n := w.use(t.Column)
		if w.err != nil {
			return "NULL"
		}
		value := w.operand(t.Column, n, c)
		own, ok := sizeOf(t.Column, c.Domain)
		if !ok {
			w.fail("a sum of values that are no numbers")
			return "NULL"
		}
		size.Add(size, own.Mul(own, new(big.Int).Abs(big.NewInt(t.Times))))
		op := "+"
		if t.Times < 0 && i > 0 {
			op = "-"
		}
		times := t.Times
		if i > 0 {
			times = max(times, -times)
		}
		if times != 1 {
			factor := w.whole(times)
			if decimal {
				factor = w.decimals(c).times(times)
			}
			value = w.operate(factor, "*", value)
		}
		if i == 0 {
			total = value
			continue
		}
		total = w.operate(total, op, value)
	}
	if size.Cmp(big.NewInt(maxAdded)) > 0 {
		w.fail("a sum of numbers that are too large")
		return "NULL"
	}
	if decimal {
		return w.decimals(c).settled(total)
	}
	return total
}

// operand is a normalised value as it is added up: as it is, in days since 1970, or in microseconds.
func (w cells) operand(c *policy.Column, n string, sum *policy.Column) string {
	switch decimal := sum.Type == policy.NumericType; {
	case decimal && (c.Type.Integer() || c.Type == policy.NumericType):
		return w.decimals(sum).operand(c, n)
	case decimal:
	case c.Type.Integer() || c.Type == policy.DateType:
		return w.onGrid(c, n, 0)
	case c.Type == policy.TimestampT || c.Type == policy.TimestampTZ:
		return w.micros(n)
	}
	w.fail("a sum of values that are no numbers")
	return "NULL"
}

// sizeOf is the largest size of a column's values, in units of the ends of a sum's domain.
func sizeOf(c *policy.Column, of *policy.Domain) (*big.Int, bool) {
	size, scale := new(big.Int), int32(0)
	if least, ok := of.Min.(policy.Numeric); ok {
		scale = least.Scale
	}
	for _, v := range []policy.Value{c.Domain.Min, c.Domain.Max} {
		own, ok := v.(policy.Numeric)
		if n, whole := wholeOf(v); whole {
			own, ok = policy.NewNumeric(n, 0), true
		}
		if !ok || own.Scale > scale {
			return nil, false
		}
		if units := own.At(scale); units.CmpAbs(size) > 0 {
			size.Abs(units)
		}
	}
	return size, true
}
