package rewrite

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// computed writes the rows of its input with sums of their columns. Nothing can fail: an operand is NULL or within its domain,
// whose ends have been held against what whole numbers and decimals hold (derived.Computed), and NULL makes a sum NULL.
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
	if w.table.Dataset.Unit.Row { // whose rows name no unit
		if items = items[1:]; len(items) == 0 {
			items = []string{"1 AS one"}
		}
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + ")"
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
			value = w.operate(w.times(times, decimal), "*", value)
		}
		if i == 0 {
			total = value
			continue
		}
		total = w.operate(total, op, value)
	}
	if size.Cmp(big.NewInt(mostAdded)) > 0 {
		w.fail("a sum of numbers that are too large")
		return "NULL"
	}
	if decimal && w.dialect == dialect.DuckDB {
		kind, err := ColumnType(c)
		if err != nil {
			w.fail("%v", err)
		}
		return w.cast(total, kind)
	}
	return total
}

// operand is a normalised value as it is added up: as it is, in days since 1970, or in microseconds.
func (w *writer) operand(c *policy.Column, n string, sum *policy.Column) string {
	decimal := sum.Type == policy.NumericType
	switch {
	case decimal && w.dialect == dialect.DuckDB && (c.Type.Integer() || c.Type == policy.NumericType):
		return w.cast(n, fmt.Sprintf("DECIMAL(%d,%d)", maxWidth, w.decimal(sum).scale)) // wide enough for every sum on the way
	case decimal && c.Type.Integer():
		return w.cast(n, "numeric")
	case decimal && c.Type == policy.NumericType:
		return n
	case decimal:
	case c.Type.Integer() || c.Type == policy.DateType:
		return w.onGrid(c, n, 0)
	case c.Type == policy.TimestampT || c.Type == policy.TimestampTZ:
		return w.micros(n)
	}
	w.fail("a sum of values that are no numbers")
	return "NULL"
}

// times writes a constant that a sum multiplies by.
func (w *writer) times(n int64, decimal bool) string {
	switch {
	case !decimal:
		return w.whole(n)
	case w.dialect == dialect.DuckDB:
		return w.cast("'"+strconv.FormatInt(n, 10)+"'", "DECIMAL(19,0)")
	}
	return w.literal(strconv.FormatInt(n, 10), "numeric")
}

// sizeOf is the largest size of a column's values, in units of the ends of a sum's domain.
func sizeOf(c *policy.Column, of *policy.Domain) (*big.Int, bool) {
	size, scale := new(big.Int), int32(0)
	if least, ok := of.Min.(policy.Numeric); ok {
		scale = least.Scale
	}
	for _, v := range []policy.Value{c.Domain.Min, c.Domain.Max} {
		own := new(big.Int)
		switch v := v.(type) {
		case int64:
			own.SetInt64(v)
		case policy.Date:
			own.SetInt64(int64(v))
		case policy.Timestamp:
			own.SetInt64(int64(v))
		case policy.Timestamptz:
			own.SetInt64(int64(v))
		case policy.Numeric:
			if v.Scale > scale {
				return nil, false
			}
			if own = v.At(scale); own.CmpAbs(size) > 0 {
				size.Abs(own)
			}
			continue
		default:
			return nil, false
		}
		if own.Mul(own, power(scale)).CmpAbs(size) > 0 {
			size.Abs(own)
		}
	}
	return size, true
}
