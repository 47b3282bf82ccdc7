package rewrite

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A sum adds up whole numbers that are bounded row by row, in a type that no number of rows overflows, and is cut at
// what a release may say. Nothing here depends on the order of rows, and nothing can fail: a normalised value lies
// within its domain, whose ends are known to fit.

// maxExponent bounds the digits that a grid shifts the point by.
const maxExponent = 30

// maxAdded bounds what one row adds, and each part of it: far from the ends of int8.
const maxAdded = 1 << 61

// maxOver bounds what a square is divided by.
const maxOver = 1 << 60

// sum writes what the rows add up to, in the type wide.
func (w *writer) sum(sum *plans.Sum, filter string) string {
	if derived.IsLaddered(w.table) { // of many units each, which checkLaddered lets nothing else be asked of
		return w.summed(w.use(w.table.Columns[len(w.table.Columns)-1]), 0) + filter
	}
	if total := w.total(sum, filter); total != "" || w.err != nil {
		return total
	}
	terms, size := sum.Terms, new(big.Int)
	parts := make([]string, len(terms))
	for i, t := range terms {
		own := new(big.Int).Abs(big.NewInt(t.Times))
		for _, f := range t.Factors {
			own.Mul(own, big.NewInt(max(-f.Low, f.High, 1)))
		}
		size.Add(size, own)
		parts[i] = w.term(t)
	}
	if size.Cmp(big.NewInt(maxAdded)) > 0 || sum.Over < 0 || sum.Over > maxOver {
		w.fail("a sum of numbers that are too large")
		return "NULL"
	}
	total := parts[0]
	for _, p := range parts[1:] {
		total = w.operate(total, "+", p)
	}
	if sum.Over > 1 {
		total = w.nearest(total, sum, size.Int64())
	}
	return w.summed(w.timesRows(total, false), 0) + filter
}

// summed adds up whole numbers, or decimals with so many digits after the point.
func (w *composed) summed(n string, scale int32) string {
	return dialect.Fill(w.dialect.Sum, n, strconv.Itoa(int(scale)))
}

// nearest is n/Over to the nearest whole number, up at the half, of an n from −size to size. Division cuts, and so it
// is of numbers that are not below 0: n is where the bound begins at 0, and else is moved there by a multiple of Over.
func (w cells) nearest(n string, sum *plans.Sum, size int64) string {
	moved := int64(0)
	if sum.Bound.Low < 0 {
		moved = size/sum.Over + 1
	}
	quotient := w.operate(w.operate(n, "+", w.whole(sum.Over/2+moved*sum.Over)), "/", w.whole(sum.Over))
	if moved == 0 {
		return quotient
	}
	return w.operate(quotient, "-", w.whole(moved))
}

// term is its whole number times the product of its factors, NULL where one of them is.
func (w *writer) term(t plans.SumTerm) string {
	var product string
	for i, f := range t.Factors {
		if i == 0 {
			product = w.factor(f)
			continue
		}
		product = w.operate(product, "*", w.factor(f))
	}
	switch {
	case product == "":
		return w.whole(t.Times)
	case t.Times == 1:
		return product
	}
	return w.operate(w.whole(t.Times), "*", product)
}

// cut ends a sum where a release does; without rows it is 0.
func (w *composed) cut(total string) string {
	most := strconv.FormatInt(mechanisms.MaxCount, 10)
	total = "COALESCE(" + total + ", " + w.literal("0", "wide") + ")"
	return "GREATEST(LEAST(" + total + ", " + w.literal(most, "wide") + "), " + w.literal("-"+most, "wide") + ")"
}

// factor is round(n·10^−e) − centre; of NULL it is what the factor says of it.
func (w *writer) factor(f plans.Factor) string {
	n := w.use(f.Column)
	if w.err != nil {
		return "NULL"
	}
	if f.Exponent > maxExponent || f.Exponent < -maxExponent || f.Low > f.High || f.Filled && (f.Fill < f.Low || f.Fill > f.High) {
		w.fail("a grid that is too fine, too coarse, or empty")
		return "NULL"
	}
	if k := w.bounded(f, n); k != "" {
		if f.Filled {
			k = "COALESCE(" + k + ", " + w.whole(f.Fill) + ")"
		}
		return k
	}
	absent := ""
	if f.Filled {
		absent = " ELSE " + w.whole(f.Fill)
	}
	k := w.onGrid(f.Column, n, f.Exponent)
	if f.Centre != 0 {
		k = w.operate(k, "-", w.whole(f.Centre))
	}
	return "CASE WHEN " + n + " IS NOT NULL THEN GREATEST(LEAST(" + k + ", " + w.whole(f.High) + "), " + w.whole(f.Low) + ")" + absent + " END"
}

// bounded is the factor of a normalised value where its domain bounds it: nothing of a row is compared, and no decimal
// becomes a floating number. It is empty where the ends must be written, or the grid is not one that decimals are
// rounded to at once.
//
//	variance(fee) of numeric(10,2) from 0 to 1000, from its middle: the sum of squares of CAST(round(b.n5) AS BIGINT) - 500
//
// Claim. It is factor's. Proof. A normalised value is NULL, for which every operator here is, or lies in its domain.
// round(x·10^−e) − c grows with x, and at both ends of the domain lies between Low and High: cutting it there changes
// nothing. Decimals are rounded half away from zero, as PostgreSQL rounds numeric; a decimal of the domain has no
// digits that its type has not. Floating numbers are multiplied and rounded as gridAt does.
func (w cells) bounded(f plans.Factor, n string) string {
	if !onlyWithin(f) {
		return ""
	}
	return w.uncut(f, n)
}

// uncut is round(n·10^−e) − centre.
func (w cells) uncut(f plans.Factor, n string) string {
	c, k := f.Column, ""
	switch _, decimal := c.Domain.Min.(policy.Numeric); {
	case decimal && w.dialect.Digits > 0:
		k = w.decimalOnGrid(c, n, f.Exponent)
	default:
		k = w.onGrid(c, n, f.Exponent)
	}
	if k != "" && f.Centre != 0 {
		k = w.operate(k, "-", w.whole(f.Centre))
	}
	return k
}

// decimalOnGrid is round(n·10^−exponent) of a decimal of limited digits; empty means not of this grid.
func (w cells) decimalOnGrid(c *policy.Column, n string, exponent int) string {
	held, err := fixedOf(c, w.dialect)
	held.cells = w
	switch more := -exponent - int(held.scale); {
	case err != nil || exponent > 0:
		return ""
	case exponent == 0 && held.scale == 0:
		return w.cast(n, "int8")
	case exponent == 0:
		return w.cast(w.call("round", n), "int8")
	case more < 0 || more > 18:
		return ""
	default:
		k, kind := held.units(n)
		least, _ := held.ends()
		if kind != "int8" {
			return ""
		}
		if least.Sign() != 0 {
			k = w.operate(k, "+", w.literal(least.String(), kind))
		}
		if more > 0 {
			k = w.operate(k, "*", w.whole(tenTo(more)))
		}
		return k
	}
}

// gridAt is round(v·10^−exponent), half away from zero, of a whole number at exponent 0 or a decimal; of a whole number
// on a coarser grid whatever it may be rounded to; of a floating number what the engines' multiplication rounds to, be
// it to the even one at the half or away from zero; nil of other values.
func gridAt(v policy.Value, exponent int) []*big.Int {
	switch v := v.(type) {
	case policy.Numeric:
		if exponent > 0 {
			return nil
		}
		scale := max(v.Scale, 0)
		n, ten := v.At(scale), derived.Tens(scale)
		n.Mul(n, derived.Tens(int32(-exponent)))
		half := new(big.Int).Quo(ten, big.NewInt(2))
		if n.Sign() < 0 {
			half.Neg(half)
		}
		return []*big.Int{n.Quo(n.Add(n, half), ten)}
	case float64:
		product := v * math.Pow10(-exponent)
		if exponent > 0 || exponent < -22 || math.Abs(product) > exactFloat { // 10^22 is the last that is a floating number
			return nil
		}
		return []*big.Int{big.NewInt(int64(math.Round(product))), big.NewInt(int64(math.RoundToEven(product)))}
	}
	n, ok := policy.UnitsOf(v)
	if _, integer := v.(int64); integer && exponent > 0 && exponent <= 18 && max(n, -n) < 1<<62 {
		half := tenTo(exponent) / 2
		return []*big.Int{big.NewInt(n / tenTo(exponent)), big.NewInt((n - half) / tenTo(exponent)), big.NewInt((n + half) / tenTo(exponent))}
	}
	if _, moment := v.(policy.Timestamp); !ok || moment || exponent != 0 {
		return nil
	}
	return []*big.Int{big.NewInt(n)}
}

func (w cells) onGrid(c *policy.Column, n string, exponent int) string {
	power := "1" + strings.Repeat("0", max(exponent, -exponent))
	switch {
	case c.Type == policy.DateType: // days since 1970
		if exponent != 0 {
			w.fail("a grid of days that is not whole")
		}
		return w.cast(w.days(n, w.constant(c, policy.Date(0))), "int8")
	case c.Type.Integer():
		if exponent > 0 {
			return w.nearestTo(c, w.cast(n, "int8"), tenTo(exponent))
		}
		return w.cast(n, "int8")
	case c.Type == policy.NumericType && w.dialect.Digits == 0:
		if exponent > 0 {
			return w.rounded(w.operate(n, "/", w.literal(power, "numeric")))
		}
		return w.rounded(w.operate(n, "*", w.literal(power, "numeric")))
	case c.Type == policy.NumericType || c.Type.Floating():
		rounded := w.rounded
		if c.Type == policy.NumericType { // whose halves are rounded away from zero
			rounded = func(n string) string { return w.cast(w.call("round", n), "int8") }
		}
		n = w.cast(n, "float8")
		if exponent > 0 {
			// Below 1 the quotient rounds to 0. PostgreSQL would fail where it underflows.
			quotient := rounded(w.divide(n, w.literal(power, "float8")))
			return "CASE WHEN " + w.operate(w.call("abs", n), "<", w.float(1)) + " THEN " + w.whole(0) + " ELSE " + quotient + " END"
		}
		return rounded(w.operate(n, "*", w.literal(power, "float8")))
	}
	w.fail("a sum of values that are no numbers")
	return "NULL"
}

// nearestTo is n/power to the nearest whole number, up at the half, of a normalised whole number n. Division cuts
// towards 0, and so it is of numbers that are not below 0: n is moved there by a multiple of power. Where a number of
// the domain has no room for that it is cut.
func (w cells) nearestTo(c *policy.Column, n string, power int64) string {
	least, most, _ := wholeEnds(c.Domain)
	moved := int64(0)
	if least < 0 {
		moved = -(least / power) + 1
	}
	added := new(big.Int).Add(new(big.Int).Mul(big.NewInt(moved), big.NewInt(power)), big.NewInt(power/2))
	if !added.IsInt64() || !new(big.Int).Add(added, big.NewInt(most)).IsInt64() {
		return w.operate(n, "/", w.whole(power))
	}
	quotient := w.operate(w.operate(n, "+", w.whole(added.Int64())), "/", w.whole(power))
	if moved == 0 {
		return quotient
	}
	return w.operate(quotient, "-", w.whole(moved))
}

// tenTo is 10^n where that fits.
func tenTo(n int) int64 {
	p := int64(1)
	for range min(n, 18) {
		p *= 10
	}
	return p
}

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
		if n, whole := policy.UnitsOf(v); whole {
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
