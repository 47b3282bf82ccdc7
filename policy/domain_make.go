package policy

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Rules are what a column does with NULL and with values outside its domain.
type Rules struct {
	Nulls   NullRule
	Outside OutsideRule
}

// Enumerate makes the domain of the declared values of a boolean, text, varchar or uuid column, or of one of whole
// numbers, whose values are put in order. A boolean column's values are false and true, whatever is given.
func Enumerate(t Type, values []string, rules Rules) (*Domain, error) {
	if err := rules.check(); err != nil {
		return nil, err
	}
	switch {
	case t == Bool:
		values = []string{"false", "true"}
	case !t.Textual() && t != UUID && !t.Integer():
		return nil, fmt.Errorf("values are for columns of text, whole numbers, uuids and booleans; a column of %s takes min, "+
			"max and step", t)
	case rules.Outside == OutsideClamp:
		return nil, fmt.Errorf("outside is clamp, which needs an ordered column")
	case len(values) == 0:
		return nil, fmt.Errorf("values is empty, must name at least one")
	}
	d := &Domain{Type: t, Scale: -1, Regular: len(values), Other: -1, Null: -1, index: make(map[string]int, len(values))}
	for _, text := range values {
		v, err := ParseValue(t, text)
		if err != nil {
			return nil, fmt.Errorf("value %w", err)
		}
		text = textOf(v)
		if _, twice := d.index[text]; twice {
			return nil, fmt.Errorf("value %.40q occurs twice", text)
		}
		d.index[text] = len(d.Values)
		d.Values = append(d.Values, text)
	}
	if t.Integer() {
		slices.SortFunc(d.Values, byNumber)
		for i, text := range d.Values {
			d.index[text] = i
		}
	}
	return d.spare(rules)
}

// textOf is a value of an enumerated domain as Domain.Values has it, "" for a value of another kind.
func textOf(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// number is the whole number that textOf has written.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// byNumber orders what textOf has written of whole numbers.
func byNumber(a, b string) int { return cmp.Compare(number(a), number(b)) }

// Steps makes the domain of an ordered column, from min to max, both inclusive, in cells of step. Typmod is the
// column's; values of a numeric(p,s) column come in units of 10^−s.
func Steps(t Type, typmod int32, least, most Value, step Step, rules Rules) (*Domain, error) {
	if err := rules.check(); err != nil {
		return nil, err
	}
	d := &Domain{Type: t, Min: least, Max: most, Step: step, Scale: -1, Other: -1, Null: -1}
	if t == NumericType {
		_, d.Scale = NumericTypmod(typmod)
	}
	if !sameKind(least, most) || !d.kindOfType() {
		return nil, fmt.Errorf("min and max must be values of %s", t)
	}
	if compare(least, most) > 0 {
		return nil, fmt.Errorf("min is %s, must be at most max, which is %s", FormatValue(t, least), FormatValue(t, most))
	}
	cells, err := d.count()
	if err != nil {
		return nil, err
	}
	if !cells.IsInt64() || cells.Int64() > MaxDomain {
		return nil, fmt.Errorf("domain has %s cells, must have at most %d: use a larger step", cells, MaxDomain)
	}
	d.Regular = int(cells.Int64())
	if t.Floating() {
		if err := d.checkFloat(); err != nil {
			return nil, err
		}
	}
	if t == NumericType && d.Scale >= 0 {
		d.Min, d.Max = least.(Numeric).Rescale(d.Scale), most.(Numeric).Rescale(d.Scale)
	}
	if t.Floating() || t == NumericType {
		d.prepared = d.decimals()
	}
	return d.spare(rules)
}

// kindOfType reports whether Min is a value of the domain's type.
func (d *Domain) kindOfType() bool {
	switch d.Min.(type) {
	case int64:
		return d.Type.Integer()
	case float64:
		return d.Type.Floating()
	case Numeric:
		return d.Type == NumericType
	case Date:
		return d.Type == DateType
	case Timestamp:
		return d.Type == TimestampT
	case Timestamptz:
		return d.Type == TimestampTZ
	}
	return false
}

// count is the number of steps from Min to Max.
func (d *Domain) count() (*big.Int, error) {
	one := big.NewInt(1)
	if least, ok := UnitsOf(d.Min); ok {
		most, _ := UnitsOf(d.Max)
		if d.Step.Whole < 1 {
			return nil, fmt.Errorf("step is %d, must be at least 1", d.Step.Whole)
		}
		if (d.Type == TimestampT || d.Type == TimestampTZ) && d.Step.Whole < 1000000 {
			return nil, fmt.Errorf("step is %d microseconds, must be at least one second", d.Step.Whole)
		}
		steps := (uint64(most) - uint64(least)) / uint64(d.Step.Whole)
		return one.Add(one, new(big.Int).SetUint64(steps)), nil
	}
	if d.Step.Decimal.Coefficient == nil || d.Step.Decimal.Coefficient.Sign() <= 0 {
		return nil, fmt.Errorf("step is %s, must be greater than 0", d.Step.Decimal)
	}
	least, most, step := d.decimal(d.Min), d.decimal(d.Max), d.Step.Decimal
	if d.Scale >= 0 && max(least.Scale, most.Scale, step.Scale) > d.Scale {
		return nil, fmt.Errorf("min, max and step must have at most %d digits after the point, as the column has", d.Scale)
	}
	scale := max(least.Scale, most.Scale, step.Scale)
	width := most.At(scale)
	width.Sub(width, least.At(scale))
	return one.Add(one, width.Quo(width, step.At(scale))), nil
}

// checkFloat makes sure that boundaries of a floating domain stay apart after rounding: a step is at least four times
// the distance between neighbouring numbers at the far end of the domain.
func (d *Domain) checkFloat() error {
	far := math.Max(math.Abs(d.Min.(float64)), math.Abs(d.Max.(float64)))
	gap := math.Nextafter(far, math.Inf(1)) - far
	if d.Type == Float4 {
		gap = float64(math.Nextafter32(float32(far), float32(math.Inf(1)))) - far
	}
	step, err := strconv.ParseFloat(d.Step.Decimal.String(), 64)
	if err != nil || !(step >= 4*gap) || math.IsInf(gap, 0) {
		return fmt.Errorf("step is %s, too small for %s at the ends of this domain", d.Step.Decimal, d.Type)
	}
	return nil
}

// spare adds the cells of 'other' and NULL where the rules make them reachable.
func (d *Domain) spare(rules Rules) (*Domain, error) {
	next := d.Regular
	if rules.Outside == OutsideOther && d.Type.Textual() {
		declared, ok := d.index[OtherValue]
		if d.Other = declared; !ok {
			d.Other = next
			next++
		}
	}
	if rules.Nulls == NullCell || rules.Outside == OutsideOther && !d.Type.Textual() && d.Type != Bool {
		d.Null = next
		next++
	}
	if next > MaxDomain {
		return nil, fmt.Errorf("domain has %d cells, must have at most %d", next, MaxDomain)
	}
	return d, nil
}

func (r Rules) check() error {
	if r.Nulls < NullCell || r.Nulls > NullExclude {
		return fmt.Errorf("nulls is not set, must be cell or exclude")
	}
	if r.Outside < OutsideClamp || r.Outside > OutsideExclude {
		return fmt.Errorf("outside is not set, must be clamp, other or exclude")
	}
	return nil
}

// checkLength refuses enumerated values that a varchar(n) column cannot hold.
func (d *Domain) checkLength(typmod int32) error {
	if d.Type != Varchar || typmod < 4 {
		return nil
	}
	for _, v := range d.Values {
		if utf8.RuneCountInString(v) > int(typmod-4) {
			return fmt.Errorf("value %.40q is longer than %s allows", v, d.Type.Format(typmod))
		}
	}
	return nil
}
