package rewrite

import (
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// cell writes the number of the cell of a normalised value n; it agrees with policy.Domain.Cell.
func (w *writer) cell(c *policy.Column, n string) string {
	if c.Domain == nil {
		w.fail("a column without a domain")
		return "NULL"
	}
	number := w.number(c, n)
	if c.Domain.Null < 0 {
		return number
	}
	return "COALESCE(" + number + ", " + strconv.Itoa(c.Domain.Null) + ")"
}

// number is the cell of a value that is not NULL; NULL for NULL.
func (w *writer) number(c *policy.Column, n string) string {
	d := c.Domain
	if !d.Ordered() {
		return n
	}
	switch least := d.Min.(type) {
	case int64:
		return w.steps(n, least, d.Max.(int64), d.Step.Whole)
	case policy.Date:
		return w.quotient(w.operate(n, "-", w.constant(c, least)), d.Step.Whole)
	case policy.Timestamp:
		return w.steps(w.micros(n), int64(least), int64(d.Max.(policy.Timestamp)), d.Step.Whole)
	case policy.Timestamptz:
		return w.steps(w.micros(n), int64(least), int64(d.Max.(policy.Timestamptz)), d.Step.Whole)
	case policy.Numeric:
		return w.decimalCell(c, n)
	case float64:
		return w.floatCell(c, n)
	}
	w.fail("a domain of a type that is not ordered")
	return "NULL"
}

// steps is floor((n − least)/step) for an integer n from least to most. Where the public width of the domain exceeds 64
// bits the difference is taken in a wider type.
func (w *writer) steps(n string, least, most, step int64) string {
	if new(big.Int).Sub(big.NewInt(most), big.NewInt(least)).IsInt64() {
		if least != 0 {
			n = w.operate(n, "-", w.whole(least))
		}
		return w.quotient(n, step)
	}
	if w.dialect == dialect.PostgreSQL {
		above := w.operate(n, "-", w.literal(strconv.FormatInt(least, 10), "numeric"))
		return w.call("div", above, w.literal(strconv.FormatInt(step, 10), "numeric"))
	}
	return w.quotient(w.operate(w.cast(n, "hugeint"), "-", w.cast(w.whole(least), "hugeint")), step)
}

// quotient is floor(above/step) for integers above ≥ 0 and step ≥ 1.
func (w *writer) quotient(above string, step int64) string {
	if step == 1 {
		return above
	}
	if step < 1 {
		w.fail("a step that is not positive")
	}
	return w.operate(above, "/", w.whole(step))
}

// micros is the number of microseconds from 1970 to a finite moment, in UTC for a moment with a zone: the session's
// zone has no part in it.
func (w *writer) micros(n string) string {
	if w.dialect == dialect.DuckDB {
		return "epoch_us(" + n + ")"
	}
	return w.cast(w.operate("EXTRACT(EPOCH FROM "+n+")", "*", w.literal("1000000", "numeric")), "int8")
}

func (w *writer) decimalCell(c *policy.Column, n string) string {
	least, step := c.Domain.Min.(policy.Numeric), c.Domain.Step.Decimal
	if step.Coefficient == nil || step.Coefficient.Sign() <= 0 {
		w.fail("a step that is not positive")
		return "NULL"
	}
	if w.dialect == dialect.PostgreSQL {
		return w.call("div", w.operate(n, "-", w.constant(c, least)), w.constant(c, step))
	}
	d := w.decimal(c)
	units := step.At(d.scale)
	above, kind := d.units(w, c, n)
	if units.Cmp(big.NewInt(1)) == 0 {
		return above
	}
	if !units.IsInt64() {
		kind = "hugeint"
	}
	return w.operate(above, "/", w.cast("'"+units.String()+"'", kind))
}
