package rewrite

import (
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// A sum adds up whole numbers that are bounded row by row, in a type that no number of rows overflows, and is cut at what
// a release may say. Nothing here depends on the order of rows, and nothing can fail: a normalised value lies within its
// domain, whose ends are known to fit.

// mostExponent bounds the digits that a grid shifts the point by.
const mostExponent = 30

func (w *writer) sum(factors []planner.Factor, filter string) string {
	parts := make([]string, len(factors))
	for i, f := range factors {
		parts[i] = w.factor(f)
	}
	product := parts[0]
	for _, p := range parts[1:] {
		product = w.operate(product, "*", p)
	}
	most, kind := strconv.FormatInt(mechanisms.MostCount, 10), "numeric"
	if w.dialect == DuckDB {
		kind = "hugeint"
	}
	total := "COALESCE(" + w.call("sum", product) + filter + ", " + w.literal("0", kind) + ")"
	return "GREATEST(LEAST(" + total + ", " + w.literal(most, kind) + "), " + w.literal("-"+most, kind) + ")"
}

// factor is round(n·10^−e) − centre, NULL for NULL.
func (w *writer) factor(f planner.Factor) string {
	n := w.use(f.Column)
	if w.err != nil {
		return "NULL"
	}
	if f.Exponent > mostExponent || f.Exponent < -mostExponent || f.Low > f.High {
		w.fail("a grid that is too fine, too coarse, or empty")
		return "NULL"
	}
	k := w.onGrid(f.Column, n, f.Exponent)
	if f.Centre != 0 {
		k = w.operate(k, "-", w.whole(f.Centre))
	}
	return "CASE WHEN " + n + " IS NOT NULL THEN GREATEST(LEAST(" + k + ", " + w.whole(f.High) + "), " + w.whole(f.Low) + ") END"
}

func (w *writer) onGrid(c *policy.Column, n string, exponent int) string {
	power := "1" + strings.Repeat("0", max(exponent, -exponent))
	switch {
	case c.Type.Integer():
		if exponent > 0 {
			return w.operate(w.cast(n, "int8"), "/", w.whole(tenTo(exponent)))
		}
		return w.cast(n, "int8")
	case c.Type == policy.NumericType && w.dialect == PostgreSQL:
		if exponent > 0 {
			return w.cast(w.call("round", w.operate(n, "/", w.literal(power, "numeric"))), "int8")
		}
		return w.cast(w.call("round", w.operate(n, "*", w.literal(power, "numeric"))), "int8")
	case c.Type == policy.NumericType || c.Type.Floating():
		n = w.cast(n, "float8")
		if exponent > 0 {
			// Below 1 the quotient rounds to 0. PostgreSQL would fail where it underflows.
			quotient := w.cast(w.call("round", w.divide(n, w.literal(power, "float8"))), "int8")
			return "CASE WHEN " + w.operate(w.call("abs", n), "<", w.float(1)) + " THEN " + w.whole(0) + " ELSE " + quotient + " END"
		}
		return w.cast(w.call("round", w.operate(n, "*", w.literal(power, "float8"))), "int8")
	}
	w.fail("a sum of values that are no numbers")
	return "NULL"
}

// tenTo is 10^n where that fits.
func tenTo(n int) int64 {
	p := int64(1)
	for range min(n, 18) {
		p *= 10
	}
	return p
}
