package rewrite

import (
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// cell writes the number of the cell of a normalised value n; it agrees with policy.Domain.Cell.
func (w cells) cell(c *policy.Column, n string) string {
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
func (w cells) number(c *policy.Column, n string) string {
	d := c.Domain
	if !d.Ordered() {
		return n
	}
	if d.Ladder != nil {
		starts, each := make([]int, d.Regular), make([]plans.EvenRun, d.Regular)
		for i := range starts {
			starts[i], each[i].From = i, i
		}
		number := w.compared(c, n, starts, each, func(r plans.EvenRun) string { return strconv.Itoa(r.From) })
		return "CASE WHEN " + n + " IS NOT NULL THEN " + number + " END"
	}
	least, most, _ := wholeEnds(d)
	switch d.Min.(type) {
	case int64:
		return w.steps(n, least, most, d.Step.Whole)
	case policy.Date:
		return w.quotient(w.days(n, w.constant(c, d.Min)), d.Step.Whole)
	case policy.Timestamp, policy.Timestamptz:
		return w.steps(w.micros(n), least, most, d.Step.Whole)
	case policy.Numeric:
		if step := d.Step.Decimal.Coefficient; step != nil && step.Sign() > 0 {
			return w.decimals(c).cell(n)
		}
		w.fail("a step that is not positive")
		return "NULL"
	case float64:
		return w.floatCell(c, n)
	}
	w.fail("a domain of a type that is not ordered")
	return "NULL"
}

// steps is floor((n − least)/step) for an integer n from least to most. Where the public width of the domain exceeds 64
// bits the difference is taken in a wider type.
func (w cells) steps(n string, least, most, step int64) string {
	if new(big.Int).Sub(big.NewInt(most), big.NewInt(least)).IsInt64() {
		return w.quotient(w.above(n, least), step)
	}
	return dialect.Fill(w.dialect.WideSteps, n, strconv.FormatInt(least, 10), strconv.FormatInt(step, 10))
}

// quotient is floor(above/step) for integers above ≥ 0 and step ≥ 1.
func (w cells) quotient(above string, step int64) string {
	if step == 1 {
		return above
	}
	if step < 1 {
		w.fail("a step that is not positive")
	}
	return w.operate(above, "/", w.whole(step))
}

// days is the number of days from one to another.
func (w cells) days(n, from string) string { return dialect.Fill(w.dialect.Days, n, from) }

// micros is the number of microseconds from 1970 to a finite moment, in UTC for a moment with a zone: the session's
// zone has no part in it.
func (w cells) micros(n string) string { return dialect.Fill(w.dialect.Micros, n) }
