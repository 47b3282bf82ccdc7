package derived

import (
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Computed are the rows of From, each with further columns: sums of From's columns times whole numbers (docs/adr/0059).
//
//	SELECT count(*) FROM lineitem WHERE l_receiptdate - l_shipdate > 10
//
// asks for cells of one column, l_receiptdate - l_shipdate, of which there are 5,116, and not for pairs of days, of
// which there are 6,543,364. From then on it is a column like others: it has pieces, classes, releases.
//
// Claim: a row of Computed is a function of one row of From, which it replaces; each further column is NULL where one
// of its operands is, and else a value within its domain; no whole number on the way to it is beyond 2^60. Neighbours:
// a unit's rows of the result are as many as its rows of From, and follow from them alone, so that what a unit moves is
// bounded as before, by From's rows a unit. Proof: an operand is a normalised value, which is NULL or between the ends
// of its domain (rewrite/column.go). So the product with a whole number t lies between the products with both ends, and
// a sum of such between the sums of the lesser and of the greater ones: sumSpan. Partial sums are not larger than the
// sum of all products' sizes, which is held against 2^60 (MaxMagnitude) before there is such a column. Where no operand
// can be NULL in a row that is counted, no sum is. Exactness: values are added up and not cells, so that operands may
// have steps of any lengths: the sum's own cells, of the greatest step that all operands' steps are multiples of, only
// say where releases can be read; what compares inside of one is compared with the value itself (Compare), as it is of
// a column of the policy.
type Computed struct {
	From    *policy.Table
	Columns []ComputedColumn
}

// ComputedColumn is the sum of its terms, in the order of their columns' names: of numbers, of days since 1970 for
// dates, of microseconds for moments.
type ComputedColumn []ComputedTerm

// ComputedTerm is a column of the input times a whole number that is not 0.
type ComputedTerm = predicate.Term

func (c *Computed) Inputs() []*policy.Table { return []*policy.Table{c.From} }

// Meaning: see Paired. The columns are in the order of the statement, and mean the same in any.
func (c *Computed) Meaning(f policy.Fingerprints) []byte {
	b := encodeInputs([]byte("computed"), c, f)
	list := slices.Clone(c.Columns)
	slices.SortFunc(list, func(a, b ComputedColumn) int { return strings.Compare(a.name(), b.name()) })
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, terms := range list {
		b = binary.AppendUvarint(b, uint64(len(terms)))
		for _, t := range terms {
			b = predicate.EncodeText(binary.AppendVarint(b, t.Times), t.Column.Name)
		}
	}
	return b
}

// name is how the column is shown: lineitem.l_receiptdate - lineitem.l_shipdate, 1000 * people.age - people.income.
func (c ComputedColumn) name() string {
	var b strings.Builder
	for _, above := range []bool{true, false} {
		for _, t := range c {
			if t.Times > 0 != above {
				continue
			}
			switch {
			case b.Len() > 0 && above:
				b.WriteString(" + ")
			case b.Len() > 0:
				b.WriteString(" - ")
			case !above:
				b.WriteString("-")
			}
			if times := max(t.Times, -t.Times); times != 1 {
				b.WriteString(strconv.FormatInt(times, 10) + " * ")
			}
			if in := t.Column.Table; in != nil && in.Derived == nil { // as derived tables name what they take over
				b.WriteString(in.Name + ".")
			}
			b.WriteString(t.Column.Name)
		}
	}
	return b.String()
}

// Decimal tells a sum of which some column is a numeric: it is one. Others are whole numbers.
func (c ComputedColumn) Decimal() bool {
	return slices.ContainsFunc(c, func(t ComputedTerm) bool { return t.Column.Type == policy.NumericType })
}

// scale is how many digits after the point the values have; −1: as many as they are stored with.
func (c ComputedColumn) scale() int32 {
	scale := int32(0)
	for _, t := range c {
		if d := t.Column.Domain; d.Type == policy.NumericType {
			if d.Scale < 0 {
				return -1
			}
			scale = max(scale, d.Scale)
		}
	}
	return scale
}

// stepOf is the step of an ordered domain in units of so many digits after the point.
func stepOf(d *policy.Domain, digits int32) *big.Int {
	if d.Type == policy.NumericType {
		return d.Step.Decimal.At(digits)
	}
	return new(big.Int).Mul(big.NewInt(d.Step.Whole), Tens(digits))
}

// coarsen makes a step so large that a domain with it has room for all cells from low to high, and for those of other
// values.
func coarsen(step, low, high *big.Int) {
	room := big.NewInt(policy.MaxDomain - 3)
	for width := new(big.Int).Sub(high, low); new(big.Int).Quo(width, step).Cmp(room) >= 0; {
		step.Mul(step, big.NewInt(10))
	}
}

// domain is what the sum may be; nil means it may be too much. Its least cell begins at a multiple of its step.
func (c ComputedColumn) domain() *policy.Domain {
	digits := int32(0)
	for _, t := range c {
		digits = max(digits, DomainDigits(t.Column.Domain))
	}
	low, high, size, step := new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	nulls, single := policy.NullExclude, true
	for _, t := range c {
		d := t.Column.Domain
		least, ok := UnitsOf(d.Min, digits)
		most, also := UnitsOf(d.Max, digits)
		if !ok || !also {
			return nil
		}
		times := big.NewInt(t.Times)
		from, to := SpanOf(least, most, times, times)
		low.Add(low, from)
		high.Add(high, to)
		size.Add(size, MaxAbs(from, to))
		own := stepOf(d, digits)
		step.GCD(nil, nil, step, own.Mul(own, times).Abs(own))
		single = single && d.Single()
		if d.Null >= 0 {
			nulls = policy.NullCell
		}
	}
	if size.Cmp(big.NewInt(MaxMagnitude)) > 0 {
		return nil
	}
	if single || step.Sign() == 0 {
		step.SetInt64(1)
	}
	coarsen(step, low, high)
	low.Sub(low, new(big.Int).Mod(low, step))
	typ, typmod := policy.Int8, int32(-1)
	if c.Decimal() {
		if typ = policy.NumericType; c.scale() >= 0 {
			typmod = typmodOf(digits)
		}
	}
	return spaced(typ, typmod, digits, low, high, step, policy.Rules{Nulls: nulls, Outside: policy.OutsideExclude})
}

// Column is a column of such a sum, of no table; nil means it is too large.
func (c ComputedColumn) Column() *policy.Column {
	domain := c.domain()
	if domain == nil {
		return nil
	}
	nulls := policy.NullExclude
	if domain.Null >= 0 {
		nulls = policy.NullCell
	}
	extreme := !slices.ContainsFunc(c, func(t ComputedTerm) bool { return !t.Column.Extreme })
	return &policy.Column{Name: c.name(), Type: domain.Type, Typmod: -1, Domain: domain, Nulls: nulls, Outside: policy.OutsideExclude, Extreme: extreme}
}

// NewComputed makes the table of a Computed: the columns and keys of From, then the sums. It is nil where one is too
// large.
func NewComputed(c *Computed) *policy.Table {
	t := newExtended(c, c.From.MaxRowsPerUnit)
	for _, terms := range c.Columns {
		column := terms.Column()
		if column == nil {
			return nil
		}
		column.Table = t
		t.Columns = append(t.Columns, column)
	}
	return t
}

// ComputedIn is the position of the column that a sum of t's columns is already, or false.
func ComputedIn(t *policy.Table, terms ComputedColumn) (at int, ok bool) {
	for from := t; from != nil; from = extended(from) {
		d, is := from.Derived.(*Computed)
		if !is {
			continue
		}
		for i, have := range d.Columns {
			if slices.EqualFunc(have, terms, func(a, b ComputedTerm) bool {
				return a.Times == b.Times && slices.Index(d.From.Columns, a.Column) == slices.Index(t.Columns, b.Column)
			}) {
				return len(d.From.Columns) + i, true
			}
		}
	}
	return 0, false
}

// OperandsOf are the columns of inputs that a computed column, a condition, one that a window function says, or one of
// a union is made of; none of any other.
func OperandsOf(c *policy.Column) (list []*policy.Column) {
	if c.Table == nil {
		return nil
	}
	at := slices.Index(c.Table.Columns, c)
	if at < 0 { // a key, whose values are those of its origin
		return nil
	}
	switch d := c.Table.Derived.(type) {
	case *Computed:
		if at -= len(d.From.Columns); at >= 0 {
			for _, t := range d.Columns[at] {
				list = append(list, t.Column)
			}
		}
	case *Windowed:
		if at -= len(d.From.Columns); at >= 0 {
			f := d.Columns[at]
			for _, c := range []*policy.Column{f.Column, f.Aggregate.Column} {
				if c != nil {
					list = append(list, c)
				}
			}
		}
	case *Tabulated:
		if at >= len(d.From.Columns) {
			list = slices.Clone(d.Args)
		}
	case *Tested:
		if at >= len(d.From.Columns) {
			list = d.columns()
		}
	case *United:
		for _, b := range d.Branches {
			if c := b.Values[at].Column; c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// DecidedBy are the columns of inputs that a derived column's values depend on: the one that it is, its operands, what
// an aggregate is over, what a window function orders and parts rows by.
func DecidedBy(c *policy.Column) (list []*policy.Column) {
	if list = OperandsOf(c); c.Input != nil {
		list = append(list, c.Input)
	}
	if c.Table == nil {
		return list
	}
	at := slices.Index(c.Table.Columns, c)
	switch d := c.Table.Derived.(type) {
	case *PerUnit:
		if at -= len(d.Keys); at >= 0 && d.Aggregates[at].Column != nil {
			list = append(list, d.Aggregates[at].Column)
		}
	case *Windowed:
		if at -= len(d.From.Columns); at >= 0 {
			list = append(list, d.Columns[at].ordering()...)
		}
	}
	return list
}

// Deciding are the columns of inputs, at any depth, by which the rows of a derived table are grouped, chosen or
// matched.
func Deciding(t *policy.Table) (list []*policy.Column) {
	if t.Derived == nil {
		return nil
	}
	for _, in := range t.Derived.Inputs() {
		list = append(list, Deciding(in)...)
	}
	switch d := t.Derived.(type) {
	case *PerUnit:
		for _, k := range d.Keys {
			list = append(list, k.Column)
		}
	case *Windowed:
		if d.First > 0 {
			list = append(list, d.Columns[d.By].ordering()...)
		}
	case *Matched:
		list = append(list, d.Args...)
	}
	return list
}

// ordering are the columns that a window function orders and parts rows by.
func (c WindowColumn) ordering() (list []*policy.Column) {
	for _, k := range c.Keys {
		list = append(list, k.Column)
	}
	for _, o := range c.Order {
		list = append(list, o.Column)
	}
	return list
}
