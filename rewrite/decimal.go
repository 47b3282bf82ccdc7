package rewrite

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A decimal of limited digits has a type DECIMAL(width, scale), whose arithmetic fails on overflow. A numeric column is
// read with its declared precision; its bounds, and the differences between values within them, are public and are
// checked here, so that no stored value can overflow.

// looseScale is the number of digits after the point that a numeric column without a declared precision keeps: it is
// read as DECIMAL(38,9), or with the domain's digits where those are more. A number that does not fit is NULL.
const looseScale = 9

// decimals writes arithmetic on the numbers of a column of type numeric, as far as the engine's limit of digits is seen
// in it.
type decimals interface {
	constant(v policy.Numeric) string
	compare(n, op string, v policy.Numeric) string // of a normalised value n, as below
	cell(n string) string                          // the number of its cell
	limb(n string) limb                            // its part of a row's hash, which counts the last digits that it has on every engine
	operand(c *policy.Column, n string) string     // another column's number as a part of a sum of this column's type
	times(n int64) string                          // what such a part is multiplied by
	settled(sum string) string                     // a sum as a value of the column
	digits() int32                                 // after the point, where an engine's type limits them
	tenths(n string, digits int32) string          // a whole number times 10^−digits, as a value of the column
}

func (w cells) decimals(c *policy.Column) decimals {
	if w.dialect.Digits == 0 {
		return numeric{w, c}
	}
	d, err := fixedOf(c, w.dialect)
	if err != nil {
		w.fail("%v", err)
	}
	d.cells = w
	return d
}

// numeric is PostgreSQL's type, whose digits have no limit.
type numeric struct {
	cells
	column *policy.Column
}

func (d numeric) constant(v policy.Numeric) string { return d.literal(v.String(), "numeric") }

func (d numeric) compare(n, op string, v policy.Numeric) string {
	return d.operate(n, op, d.constant(v))
}

func (d numeric) above(n string) string {
	return d.operate(n, "-", d.constant(d.column.Domain.Min.(policy.Numeric)))
}

func (d numeric) cell(n string) string {
	return d.call("div", d.above(n), d.constant(d.column.Domain.Step.Decimal))
}

func (d numeric) limb(n string) limb {
	held, err := fixedOf(d.column, dialect.DuckDB)
	if err != nil { // more digits than DuckDB holds, whose order nobody compares with
		return limb{}
	}
	least, most := held.ends()
	units := d.operate(d.above(n), "*", d.literal(derived.Tens(held.scale).String(), "numeric"))
	if width := most.Sub(most, least); width.IsInt64() {
		return d.within(d.cast(units, "int8"), width.Int64())
	}
	return d.orNull(limb{d.cast(d.operate(d.call("div", units, d.literal("1", "numeric")), "%", d.literal(strconv.Itoa(hashPrime), "numeric")), "int8"), hashPrime})
}

func (d numeric) operand(c *policy.Column, n string) string {
	if c.Type.Integer() {
		return d.cast(n, "numeric")
	}
	return n
}

func (d numeric) times(n int64) string      { return d.literal(strconv.FormatInt(n, 10), "numeric") }
func (d numeric) settled(sum string) string { return sum }
func (d numeric) digits() int32             { return 0 }

func (d numeric) tenths(n string, digits int32) string {
	return d.operate(d.cast(n, "numeric"), "*", d.constant(policy.Numeric{Coefficient: big.NewInt(1), Scale: digits}))
}

// fixed is how an engine of limited digits holds a numeric column.
type fixed struct {
	cells
	column       *policy.Column
	width, scale int32 // of the raw column
	wide         int32 // at least width, so that the domain's bounds fit
}

// ColumnType is the type in which an engine reads a column's values.
func ColumnType(c *policy.Column, in dialect.Dialect) (string, error) {
	if c.Type == policy.NumericType && in.Digits > 0 {
		d, err := fixedOf(c, in)
		return in.DecimalOf(d.width, d.scale), err
	}
	kind, ok := kinds[c.Type]
	if !ok {
		return "", fmt.Errorf("column %s: type %s cannot be read in %s", c.Name, c.Type, in)
	}
	return in.Type(kind), nil
}

func (w cells) columnType(c *policy.Column) string {
	kind, err := ColumnType(c, w.dialect)
	if err != nil {
		w.fail("%v", err)
	}
	return kind
}

func fixedOf(c *policy.Column, in dialect.Dialect) (fixed, error) {
	width, scale := policy.NumericTypmod(c.Typmod)
	d := fixed{column: c, width: width, scale: scale}
	if width < 0 {
		d.width, d.scale = in.Digits, looseScale
	}
	if d.width > in.Digits {
		return d, fmt.Errorf("column %s: %s holds at most %d digits", c.Name, in, in.Digits)
	}
	d.wide = d.width
	if c.Domain == nil {
		return d, nil
	}
	least, _ := c.Domain.Min.(policy.Numeric)
	most, _ := c.Domain.Max.(policy.Numeric)
	d.scale = max(d.scale, least.Scale, most.Scale, c.Domain.Step.Decimal.Scale)
	if width >= 0 && d.scale > scale || d.scale > in.Digits {
		return d, fmt.Errorf("column %s: its domain has more digits after the point than %s would hold", c.Name, in)
	}
	for _, bound := range []policy.Numeric{least, most} {
		if digits(bound.At(d.scale)) > d.width {
			d.wide = in.Digits
		}
		if digits(bound.At(d.scale)) > in.Digits {
			return d, fmt.Errorf("column %s: its domain has more than %d digits", c.Name, in.Digits)
		}
	}
	return d, nil
}

// ends are those of the domain, in units of 10^−scale.
func (d fixed) ends() (least, most *big.Int) {
	return d.column.Domain.Min.(policy.Numeric).At(d.scale), d.column.Domain.Max.(policy.Numeric).At(d.scale)
}

// constant writes a constant at the column's own scale, which it must fit.
func (d fixed) constant(v policy.Numeric) string {
	fits := v.Rescale(d.scale)
	if fits.Cmp(v) != 0 || digits(fits.Coefficient) > d.dialect.Digits {
		d.fail("a numeric constant with more digits than %s holds", d.dialect)
	}
	return d.literal(fits.String(), d.dialect.DecimalOf(d.wide, d.scale))
}

// compare writes a comparison whose constant may have more digits than the column: then it lies between two of
// the column's values, the lower of which takes its place.
func (d fixed) compare(n, op string, v policy.Numeric) string {
	lower := floorAt(v, d.scale)
	if lower.Cmp(v) == 0 {
		return d.operate(n, op, d.constant(lower))
	}
	switch op {
	case "<", "<=":
		return d.operate(n, "<=", d.constant(lower))
	case ">", ">=":
		return d.operate(n, ">", d.constant(lower))
	case "=":
		return "false"
	}
	return n + " IS NOT NULL"
}

// units writes the distance of a normalised value from the domain's least one as an integer of 10^−scale units. The
// narrowest decimal that holds the domain keeps the arithmetic within 64 bits where it can be.
func (d fixed) units(n string) (above, kind string) {
	least, most := d.ends()
	width := max(digits(least), digits(most), d.scale)
	var shifted string
	switch product := width + d.scale + 1; {
	case product > d.dialect.Digits: // no decimal holds n · 10^scale, so the point is taken out of its text
		shifted = d.call("replace", d.cast(n, "text"), "'.'", "''")
	case product > d.dialect.Narrow: // a product of two narrow decimals would overflow rather than become a wide one
		width = d.dialect.Digits
		fallthrough
	default:
		shifted = dialect.Fill(d.dialect.Read, n, d.dialect.DecimalOf(width, d.scale))
		if d.scale > 0 {
			power := d.literal(derived.Tens(d.scale).String(), d.dialect.DecimalOf(d.scale+1, 0))
			shifted = d.operate(shifted, "*", power)
		}
	}
	kind = "wide"
	if least.IsInt64() && most.IsInt64() && new(big.Int).Sub(most, least).IsInt64() {
		kind = "int8"
	}
	above = dialect.Fill(d.dialect.Read, shifted, d.dialect.Type(kind))
	if least.Sign() != 0 {
		above = d.operate(above, "-", d.literal(least.String(), kind))
	}
	return above, kind
}

func (d fixed) cell(n string) string {
	units := d.column.Domain.Step.Decimal.At(d.scale)
	above, kind := d.units(n)
	if units.Cmp(big.NewInt(1)) == 0 {
		return above
	}
	if !units.IsInt64() {
		kind = "wide"
	}
	return d.operate(above, "/", d.literal(units.String(), kind))
}

func (d fixed) limb(n string) limb {
	above, _ := d.units(n)
	least, most := d.ends()
	if width := most.Sub(most, least); width.IsInt64() && width.Int64() < hashPrime-1 {
		return d.within(d.cast(above, "int8"), width.Int64())
	}
	return d.orNull(limb{d.cast(d.operate(above, "%", d.literal(strconv.Itoa(hashPrime), "wide")), "int8"), hashPrime})
}

// operand is wide enough for every sum on the way.
func (d fixed) operand(_ *policy.Column, n string) string {
	return d.cast(n, d.dialect.DecimalOf(d.dialect.Digits, d.scale))
}

func (d fixed) times(n int64) string {
	return d.literal(strconv.FormatInt(n, 10), d.dialect.DecimalOf(19, 0))
}

func (d fixed) settled(sum string) string { return d.cast(sum, d.columnType(d.column)) }
func (d fixed) digits() int32             { return d.scale }

func (d fixed) tenths(n string, digits int32) string {
	tenth := policy.Numeric{Coefficient: big.NewInt(1), Scale: digits}
	by := d.literal(tenth.String(), d.dialect.DecimalOf(digits+1, digits))
	return d.settled(d.operate(d.cast(n, d.dialect.DecimalOf(19, 0)), "*", by))
}

func digits(n *big.Int) int32 { return int32(len(new(big.Int).Abs(n).String())) }

// The cells of a floating domain begin at low(i) = (a + i·b)/10^s, rounded once to the column's type, where a and b are
// whole numbers below 2^50 and s ≤ 22. Then a + i·b and 10^s are floating numbers without error, so the single division
// rounds correctly and both databases find the boundary that policy.Domain.Low names. The cell of a value is guessed as
// g = ⌊(v·10^s − a)/b⌋, which is off by at most one, and corrected by comparing with low(g) and low(g + 1).
//
// PostgreSQL fails on overflow and on underflow to zero. No step here overflows, because all of them stay below 2^51 or
// within the domain; the division by b cannot underflow, because it is reached only where v ≥ low(1).

// exactFloat bounds a and a + n·b.
const exactFloat = 1 << 50

// grid holds a, b and 10^s.
type grid struct {
	least, step, power float64
}

func (w cells) grid(c *policy.Column) grid {
	bits := 64
	if c.Type == policy.Float4 {
		bits = 32
	}
	least, err := policy.ParseNumeric(strconv.FormatFloat(c.Domain.Min.(float64), 'f', -1, bits))
	step := c.Domain.Step.Decimal
	if err != nil || step.Coefficient == nil || step.Coefficient.Sign() <= 0 {
		w.fail("column %s: a floating domain without bounds or step", c.Name)
		return grid{}
	}
	scale := max(least.Scale, step.Scale)
	a, b := least.At(scale), step.At(scale)
	end := new(big.Int).Mul(b, big.NewInt(int64(c.Domain.Regular)+1))
	end.Add(end, a)
	limit := big.NewInt(exactFloat)
	if scale > 22 || a.CmpAbs(limit) > 0 || b.CmpAbs(limit) > 0 || end.CmpAbs(limit) > 0 {
		w.fail("column %s: its bounds and step have too many digits together; use a coarser step or the type numeric", c.Name)
		return grid{}
	}
	return grid{float64(a.Int64()), float64(b.Int64()), math.Pow10(int(scale))}
}

func (w cells) floatCell(c *policy.Column, n string) string {
	regular := c.Domain.Regular
	if regular == 1 {
		return "CASE WHEN " + n + " IS NOT NULL THEN 0 END"
	}
	g := w.grid(c)
	scaled := n
	if g.power != 1 {
		scaled = w.operate(n, "*", w.float(g.power))
	}
	if g.least != 0 {
		scaled = w.operate(scaled, "-", w.float(g.least))
	}
	guess := w.call("floor", w.divide(scaled, w.float(g.step)))
	next := w.operate(guess, "+", w.float(1))
	corrected := "CASE WHEN " + w.operate(n, "<", w.low(c, g, guess)) + " THEN " + w.operate(guess, "-", w.float(1)) +
		" WHEN " + w.operate(n, ">=", w.low(c, g, next)) + " THEN " + next + " ELSE " + guess + " END"
	first, _ := c.Domain.Low(1).(float64)
	return "CASE WHEN " + w.operate(n, ">=", w.float(first)) + " THEN LEAST(" + corrected + ", " +
		w.float(float64(regular-1)) + ") WHEN " + n + " IS NOT NULL THEN " + w.float(0) + " END"
}

// low is the boundary below the cell of that number.
func (w cells) low(c *policy.Column, g grid, number string) string {
	at := w.operate(number, "*", w.float(g.step))
	if g.least != 0 {
		at = w.operate(at, "+", w.float(g.least))
	}
	if g.power != 1 {
		at = w.divide(at, w.float(g.power))
	}
	if c.Type == policy.Float4 {
		at = w.cast(at, "float4")
	}
	return at
}

// wholeEnds are the ends of a domain of such a type.
func wholeEnds(d *policy.Domain) (least, most int64, ok bool) {
	least, _ = policy.UnitsOf(d.Min)
	most, ok = policy.UnitsOf(d.Max)
	return least, most, ok
}

// floorAt is the largest number of that scale that is at most v.
func floorAt(v policy.Numeric, scale int32) policy.Numeric {
	cut := v.Rescale(scale)
	if cut.Cmp(v) > 0 {
		cut.Coefficient = new(big.Int).Sub(cut.Coefficient, big.NewInt(1))
	}
	return cut
}
