package policy

import (
	"cmp"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
)

// Size is the number of cells.
func (d *Domain) Size() int {
	size := d.Regular
	if d.Other >= d.Regular {
		size++
	}
	if d.Null >= 0 {
		size++
	}
	return size
}

// Valued is the number of cells that are not NULL's, which is the last one.
func (d *Domain) Valued() int {
	if d.Null >= 0 {
		return d.Null
	}
	return d.Size()
}

// Ordered reports whether the declared cells are steps of an ordered type.
func (d *Domain) Ordered() bool { return d.Min != nil }

// Single reports whether each cell holds a single value, so that any expression over the column is a function of the
// cell.
func (d *Domain) Single() bool {
	if !d.Ordered() {
		return true
	}
	if d.Ladder != nil {
		return false
	}
	if _, ok := UnitsOf(d.Min); ok {
		return d.Step.Whole == 1 || d.Min == d.Max
	}
	if d.Regular == 1 {
		return compare(d.Min, d.Max) == 0
	}
	if d.Type != NumericType || d.Scale < 0 {
		return false
	}
	if step := d.Step.Decimal; step.Scale == d.Scale { // as most are written: this is asked at each cell
		return step.Coefficient.IsInt64() && step.Coefficient.Int64() == 1
	}
	return d.Step.Decimal.Cmp(Numeric{big.NewInt(1), d.Scale}) == 0
}

// Cell returns the cell of a normalised value (nil means NULL), and false for a value that the rules never produce.
func (d *Domain) Cell(v Value) (int, bool) {
	if v == nil {
		return d.Null, d.Null >= 0
	}
	if !d.Ordered() {
		return d.enumerated(v)
	}
	if !sameKind(v, d.Min) || compare(v, d.Min) < 0 || compare(v, d.Max) > 0 {
		return -1, false
	}
	if d.Ladder != nil {
		return d.Ladder.cell(v), true
	}
	switch v := v.(type) {
	case Numeric:
		return d.numericCell(v), true
	case float64:
		return d.floatCell(v), true
	default:
		n, _ := UnitsOf(v)
		least, _ := UnitsOf(d.Min)
		return int((uint64(n) - uint64(least)) / uint64(d.Step.Whole)), true
	}
}

// enumerated is Cell for declared values.
func (d *Domain) enumerated(v Value) (int, bool) {
	_, isBool := v.(bool)
	if _, isWhole := v.(int64); isWhole != d.Type.Integer() || isBool != (d.Type == Bool) {
		return -1, false
	}
	text := textOf(v)
	cell, found := d.index[text]
	if d.index == nil {
		cell = slices.Index(d.Values, text)
		found = cell >= 0
	}
	if !found && text == OtherValue && d.Other >= 0 {
		return d.Other, true
	}
	if !found {
		return -1, false
	}
	return cell, true
}

// Low returns the least value of a cell: the value itself where cells are single, nil for the NULL cell.
func (d *Domain) Low(cell int) Value {
	switch {
	case cell < 0 || cell >= d.Size() || cell == d.Null:
		return nil
	case cell >= d.Regular && d.Type.Integer():
		return d.none
	case cell >= d.Regular:
		return OtherValue
	case d.Type == Bool:
		return d.Values[cell] == "true"
	case d.Type.Integer() && !d.Ordered():
		return number(d.Values[cell])
	case !d.Ordered():
		return d.Values[cell]
	case d.Ladder != nil:
		return d.Ladder.Lows[cell]
	}
	switch d.Min.(type) {
	case Numeric:
		return d.numericLow(cell)
	case float64:
		return d.floatLow(cell)
	}
	least, _ := UnitsOf(d.Min)
	return d.wrap(int64(uint64(least) + uint64(cell)*uint64(d.Step.Whole)))
}

// High returns the largest value of a cell (for continuous types: the supremum within Max, see HighOpen).
func (d *Domain) High(cell int) Value {
	low := d.Low(cell)
	if low == nil || !d.Ordered() || cell >= d.Regular {
		return low
	}
	if cell == d.Regular-1 {
		return d.Max
	}
	if d.Ladder != nil {
		return d.Low(cell + 1)
	}
	if n, ok := UnitsOf(low); ok {
		return d.wrap(int64(uint64(n) + uint64(d.Step.Whole) - 1))
	}
	if d.Type == NumericType && d.Scale >= 0 {
		next := d.numericLow(cell + 1)
		return Numeric{new(big.Int).Sub(next.Coefficient, big.NewInt(1)), next.Scale}
	}
	return d.Low(cell + 1)
}

// HighOpen reports whether High(cell) is the first value after the cell rather than its last one.
func (d *Domain) HighOpen(cell int) bool {
	if !d.Ordered() || cell < 0 || cell >= d.Regular-1 {
		return false
	}
	if d.Ladder != nil {
		return true
	}
	return d.Type.Floating() || d.Type == NumericType && d.Scale < 0
}

// Edge is the inner cell of an ordered domain that begins at v, or right after it; false means v lies within a cell. A
// whole number is one of decimals too.
func (d *Domain) Edge(v Value, after bool) (int, bool) {
	if n, ok := v.(int64); ok && d.Type == NumericType {
		v = Numeric{Coefficient: big.NewInt(n)}
	}
	cell, ok := d.Cell(v)
	switch {
	case !ok || v == nil || cell >= d.Regular:
		return 0, false
	case after:
		return cell + 1, !d.HighOpen(cell) && compare(d.High(cell), v) == 0
	}
	return cell, compare(d.Low(cell), v) == 0
}

// wrap gives a whole number the domain's kind of value.
func (d *Domain) wrap(n int64) Value {
	switch d.Min.(type) {
	case Date:
		return Date(n)
	case Timestamp:
		return Timestamp(n)
	case Timestamptz:
		return Timestamptz(n)
	default:
		return n
	}
}

// UnitsOf returns a value of a type that counts in integers as one: a number, days since 1970 of a date, microseconds
// since then of a moment.
func UnitsOf(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case Date:
		return int64(v), true
	case Timestamp:
		return int64(v), true
	case Timestamptz:
		return int64(v), true
	}
	return 0, false
}

func sameKind(a, b Value) bool {
	switch a.(type) {
	case Numeric:
		_, ok := b.(Numeric)
		return ok
	case float64:
		f, ok := b.(float64)
		return ok && a == a && f == f // NaN lies in no cell
	}
	_, ok := UnitsOf(a)
	return ok && reflect.TypeOf(a) == reflect.TypeOf(b)
}

// compare orders two values of one ordered kind.
func compare(a, b Value) int {
	switch a := a.(type) {
	case Numeric:
		return a.Cmp(b.(Numeric))
	case float64:
		return cmp.Compare(a, b.(float64))
	}
	m, _ := UnitsOf(a)
	n, _ := UnitsOf(b)
	return cmp.Compare(m, n)
}

// WithNull returns the domain with a cell for NULL: itself where it has one.
func (d *Domain) WithNull() *Domain {
	if d.Null >= 0 || d.Size() >= MaxDomain {
		return d
	}
	same := *d
	same.Null = d.Size()
	return &same
}

// Listed reports whether it is a column of whole numbers whose domain is a list of values.
func (c *Column) Listed() bool { return c.Type.Integer() && c.Domain != nil && !c.Domain.Ordered() }

// HiddenCell is the cell that no row of a GROUP BY shows by itself, −1: there is none.
func (c *Column) HiddenCell() int {
	switch {
	case !c.Hide || c.Domain == nil:
		return -1
	case c.Domain.Other >= 0:
		return c.Domain.Other
	}
	return c.Domain.Null
}

// before is the greatest value of a type that is less than v; not ok: there is none.
func before(t Type, typmod int32, v Value) (Value, bool) {
	switch v := v.(type) {
	case int64:
		return v - 1, v > math.MinInt64
	case Date:
		return v - 1, true
	case Timestamp:
		return v - 1, true
	case Timestamptz:
		return v - 1, true
	case Numeric:
		if _, scale := NumericTypmod(typmod); t == NumericType && scale >= 0 && v.Scale <= scale {
			return Numeric{new(big.Int).Sub(v.At(scale), big.NewInt(1)), scale}, true
		}
	}
	return nil, false
}

// MaxCells is the largest number of cells of a release, and of the combinations of cells that a plan looks at one by
// one.
const MaxCells = 1 << 20

// MaxDomain is the largest number of cells of a domain: a cell's number is an int4 in every dialect. A domain is its
// two ends and its step, so that its size costs nothing where nothing goes over its cells (docs/adr/0052).
const MaxDomain = 1 << 30

// OtherValue is the text value that replaces every value outside an enumerated text domain under `outside: other`.
const OtherValue = "other"

// Domain is the finite, public set of cells that a column's values fall into. Each raw value is first normalised by the
// column's rules for NULL and for values outside the domain; the normalised value lies in exactly one cell.
//
// Cells are numbered 0 … Size()−1: first the declared values or steps in order, then, where the rules make them
// reachable, one cell for the text value 'other' (unless 'other' is itself declared) and one cell for NULL, last.
// An ordered column has no spare value, so under `outside: other` its outside values are NULL and share that cell
// (docs/adr/0004); so do those of an enumerated column of whole numbers or uuids. A domain is made by Enumerate or by
// Steps.
type Domain struct {
	Type    Type
	Values  []string // enumerated domains: the values as text, in order ("false", "true" for boolean; numbers by size)
	Min     Value    // ordered domains: the least value (Int8-ish int64, Numeric, float64, Date, Timestamp, Timestamptz)
	Max     Value    // ordered domains: the largest value, inclusive
	Below   Value    // ordered domains that are declared so: the least value beyond Max, for people; nil means Max is declared
	Step    Step     // ordered domains
	Scale   int32    // numeric(p,s) columns: s, so that values come in units of 10^−s; −1: any number of digits
	Regular int      // number of declared cells
	Other   int      // cell of 'other' (under `outside: other`, a declared 'other' included), or −1
	Null    int      // cell of NULL, or −1
	Ladder  *Ladder  // ordered domains without a step, of columns whose bounds are not known yet: their cells; nil means Step makes them

	none     int64          // of an open column of whole numbers: one that is not in Values
	index    map[string]int // Values by text; nil in a Domain written by hand
	prepared *decimals      // of numeric and floating domains; nil in a Domain written by hand
}

// Step is the width of an ordered domain's cells: cell i holds the values v with Min + i·Step ≤ v < Min + (i+1)·Step,
// v ≤ Max. Dates step in days, timestamps in microseconds, numbers in their own unit.
type Step struct {
	Whole   int64   // integers: the step; dates: days; timestamps: microseconds
	Decimal Numeric // numeric and floating columns
}

// Numeric and floating domains have decimal steps. Their boundaries are Min + i·Step, computed in integers at the
// domain's common scale; those of a floating domain are then rounded once, to the nearest value of the column's type.

// decimals are Min and Step at their common scale, read once: a boundary is then one multiplication and one addition.
type decimals struct {
	step  Numeric // Domain.Step.Decimal, of which the rest was made: a copy of the domain may be given another
	scale int32
	least *big.Int
	each  *big.Int
	power float64 // 10^scale, where a floating boundary is one exact division; else 0
}

// decimals returns those that Steps has prepared, or makes them for a Domain written by hand.
func (d *Domain) decimals() *decimals {
	if d.prepared != nil && d.prepared.step == d.Step.Decimal {
		return d.prepared
	}
	least := d.decimal(d.Min)
	scale := max(least.Scale, d.Step.Decimal.Scale, d.Scale)
	out := &decimals{step: d.Step.Decimal, scale: scale, least: least.At(scale), each: d.Step.Decimal.At(scale)}
	if d.Type == Float8 && scale >= 0 && scale <= 22 {
		out.power = math.Pow10(int(scale))
	}
	return out
}

// decimal returns the shortest decimal that denotes a numeric or floating value.
func (d *Domain) decimal(v Value) Numeric {
	if f, ok := v.(float64); ok {
		n, err := ParseNumeric(strconv.FormatFloat(f, 'f', -1, 8*int(d.Type.Length())))
		if err != nil {
			return Numeric{}
		}
		return n
	}
	n, _ := v.(Numeric)
	return n
}

// boundary is Min + i·Step at the common scale.
func (d *Domain) boundary(i int) (*big.Int, *decimals) {
	of := d.decimals()
	at := new(big.Int).Mul(of.each, big.NewInt(int64(i)))
	return at.Add(at, of.least), of
}

func (d *Domain) numericLow(cell int) Numeric {
	at, of := d.boundary(cell)
	return Numeric{at, of.scale}
}

// numericCell is floor((v − Min)/Step); v lies within Min and Max.
func (d *Domain) numericCell(v Numeric) int {
	of := d.decimals()
	scale := max(of.scale, v.Scale)
	above := v.At(scale)
	above.Sub(above, Numeric{of.least, of.scale}.At(scale))
	return int(above.Quo(above, Numeric{of.each, of.scale}.At(scale)).Int64())
}

// maxExact is 2^53: whole numbers up to it, and powers of ten up to 10^22, are float64s, so that their quotient is
// rounded once.
const maxExact = 1 << 53

func (d *Domain) floatLow(cell int) float64 {
	at, of := d.boundary(cell)
	if of.power != 0 && at.IsInt64() && at.Int64() >= -maxExact && at.Int64() <= maxExact {
		return float64(at.Int64())/of.power + 0 // no negative zero
	}
	f, err := strconv.ParseFloat(at.String()+"e-"+strconv.Itoa(int(of.scale)), 8*int(d.Type.Length()))
	if err != nil {
		return math.NaN()
	}
	return f + 0 // no negative zero
}

// floatCell finds the last boundary that is not above v, starting from the quotient, which is off by rounding alone.
func (d *Domain) floatCell(v float64) int {
	step, _ := strconv.ParseFloat(d.Step.Decimal.String(), 64)
	cell := int(math.Floor((v - d.Min.(float64)) / step))
	cell = min(max(cell, 0), d.Regular-1)
	for cell > 0 && d.floatLow(cell) > v {
		cell--
	}
	for cell+1 < d.Regular && d.floatLow(cell+1) <= v {
		cell++
	}
	return cell
}
