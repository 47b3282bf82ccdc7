package derived

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// United are the rows of several tables one below the other, as UNION ALL has them (docs/adr/0121). Of
//
//	SELECT shop, sum(price) FROM (SELECT 'web' AS shop, price FROM web_sales UNION ALL SELECT 'store', price FROM store_sales) s GROUP BY shop
//
// it is a table with the columns of the union, each with one domain that holds what any branch may have in it.
//
// Claim: a unit's rows of United are a function of its own rows of the branches, and no more than the sum of their
// bounds. Neighbours: a unit that is absent, or has other rows, in any branches moves its own rows alone. Proof: each
// row is one row of one branch for which that branch's condition holds, with that row's unit; so the unit's rows are as
// many as its rows of all branches together. A value is a value of the branch's column, NULL or a constant, and the
// domain of the union holds them all (ordered: from the least end to the largest; else: all values), so that none is
// outside of it. Exactness: values are passed on as they are; cells of the union are parts of cells of each branch,
// where their number allows.
type United struct {
	Branches []UnitedBranch
	Full     bool // of a FULL JOIN: the first branch are the pairs of an outer join, the second the right rows without a partner
}

// UnitedBranch is one part: a value for each column of the union, and a key for each key.
type UnitedBranch struct {
	From   *policy.Table
	Where  predicate.Pred
	Values []UnitedValue
	Keys   []*policy.Column
}

// UnitedValue is a column of the branch's table or, without one, a constant, in which nil is NULL.
type UnitedValue struct {
	Column   *policy.Column
	Constant policy.Value
}

func (u *United) Inputs() (list []*policy.Table) {
	for _, b := range u.Branches {
		list = append(list, b.From)
	}
	return list
}

// Meaning: see Paired. The order of the branches decides the order of values, and no more.
func (u *United) Meaning(f policy.Fingerprints) []byte {
	b := encodeInputs([]byte("united"), u, f)
	for _, br := range u.Branches {
		b = predicate.Encode(append(b, 'b'), br.Where)
		b = binary.AppendUvarint(b, uint64(len(br.Values)))
		for _, v := range br.Values {
			if v.Column != nil {
				b = predicate.EncodeText(append(b, 'c'), v.Column.Name)
			} else {
				b = predicate.EncodeText(append(b, 'v'), v.text())
			}
		}
		b = encodeNames(b, br.Keys)
	}
	if u.Full {
		b = append(b, 'f')
	}
	return b
}

func (v UnitedValue) text() string {
	if n, ok := v.Constant.(policy.Numeric); ok {
		return n.String()
	}
	return fmt.Sprintf("%T %v", v.Constant, v.Constant)
}

// NewUnited makes the table of a United, whose columns have these types. It is nil where a unit could have too many
// rows, or a column's values have no domain together.
func NewUnited(u *United, types []policy.Type) *policy.Table {
	rows, expected := int64(0), int64(0)
	for _, b := range u.Branches {
		rows += b.From.MaxRowsPerUnit
		expected += b.From.ExpectedRows
	}
	if p := u.pairs(); p != nil {
		rows = u.fullRows(p)
	}
	rows, ok := atMost(rows, u.Inputs()...)
	if !ok {
		return nil
	}
	t := newDerived(u, rows)
	t.ExpectedRows = expected
	for i, typ := range types {
		c := u.column(i, typ)
		if c == nil {
			return nil
		}
		c.Table, c.Name = t, ownName(t, c, t)
		t.Columns = append(t.Columns, c)
	}
	for i, k := range u.Branches[0].Keys {
		same := *k
		same.Table, same.Source, same.Name = t, "", ownName(t, &policy.Column{Name: u.name(func(b UnitedBranch) string { return b.Keys[i].Name })}, t)
		same.Refers = k
		for _, b := range u.Branches[1:] {
			if b.Keys[i].Origin() != k.Origin() && !k.Unit { // values of several keys lead to none of them
				same.Refers = nil
			}
		}
		t.Keys = append(t.Keys, &same)
	}
	return t
}

// pairs are those of a FULL JOIN; nil means it is none.
func (u *United) pairs() *Paired {
	if !u.Full || len(u.Branches) != 2 {
		return nil
	}
	p, _ := u.Branches[0].From.Derived.(*Paired)
	return p
}

// name is what the branches call something, each name once.
func (u *United) name(of func(UnitedBranch) string) string {
	var names []string
	for _, b := range u.Branches {
		if n := of(b); n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "constant"
	}
	return strings.Join(names, " or ")
}

// column is what the i-th values of all branches are together; nil means they have no domain.
func (u *United) column(i int, typ policy.Type) *policy.Column {
	c := &policy.Column{Type: typ, Typmod: -1, Hide: true, Outside: policy.OutsideExclude, Nulls: policy.NullExclude}
	c.Name = u.name(func(b UnitedBranch) string {
		if b.Values[i].Column == nil {
			return ""
		}
		return b.Values[i].Column.Name
	})
	first := true
	rules := policy.Rules{Nulls: policy.NullExclude, Outside: policy.OutsideExclude}
	for _, b := range u.Branches {
		v := b.Values[i]
		if v.Column == nil {
			c.Hide = false
			if v.Constant == nil {
				rules.Nulls = policy.NullCell
			}
			if text, ok := v.Constant.(string); ok && text == "" {
				return nil // which no domain declares
			}
			continue
		}
		if v.Column.Domain.Null >= 0 {
			rules.Nulls = policy.NullCell
		}
		if d := v.Column.Domain; !d.Ordered() && d.Other >= 0 {
			rules.Outside = policy.OutsideOther
		}
		if first {
			c.Blanks, c.Typmod, first = v.Column.Blanks, v.Column.Typmod, false
		}
		if c.Typmod != v.Column.Typmod || v.Column.Type != typ {
			c.Typmod = -1
		}
		if c.Blanks != v.Column.Blanks {
			return nil
		}
		c.Hide, c.Snap = c.Hide && v.Column.Hide, c.Snap || v.Column.Snap
	}
	for _, b := range u.Branches {
		if text, ok := b.Values[i].Constant.(string); ok && c.Blanks > 0 && strings.HasSuffix(text, " ") {
			return nil // equal to another text
		}
	}
	if first && rules.Nulls == policy.NullCell && !typ.Textual() && typ != policy.Bool {
		return nil // NULL alone
	}
	c.Hide = c.Hide && !first
	c.Nulls = rules.Nulls
	if typ == policy.Bool || typ.Textual() || typ == policy.UUID || u.listed(i) {
		c.Domain = u.values(i, typ, rules)
	} else {
		c.Domain = u.span(i, typ, rules)
	}
	if c.Domain == nil {
		return nil
	}
	if typ == policy.NumericType {
		c.Typmod = -1
	}
	return c
}

// listed reports whether a branch shows a column whose values are a list.
func (u *United) listed(i int) bool {
	return slices.ContainsFunc(u.Branches, func(b UnitedBranch) bool {
		return b.Values[i].Column != nil && b.Values[i].Column.Listed()
	})
}

// values is the domain of all values of the branches; nil where one has values that no list holds.
func (u *United) values(i int, typ policy.Type, rules policy.Rules) *policy.Domain {
	var all []string
	for _, b := range u.Branches {
		v := b.Values[i]
		list := []string{}
		switch {
		case v.Column != nil && v.Column.Domain.Ordered():
			return nil
		case v.Column != nil:
			list = v.Column.Domain.Values
		case v.Constant != nil:
			list = []string{policy.FormatValue(typ, v.Constant)}
		}
		for _, text := range list {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	if typ != policy.Bool && len(all) == 0 {
		return nil
	}
	d, err := policy.Enumerate(typ, all, rules)
	if err != nil {
		return nil
	}
	return d
}

// CellIn is the cell of the union's column that a branch's cell, or its constant, is; −1: NULL.
func (v UnitedValue) CellIn(d *policy.Domain, cell int) int {
	text, known := "", false
	switch {
	case v.Column == nil:
		text, known = policy.FormatValue(d.Type, v.Constant), v.Constant != nil
	case cell < v.Column.Domain.Regular:
		text, known = v.Column.Domain.Values[cell], true
	case cell == v.Column.Domain.Other:
		return d.Other
	}
	if at := slices.Index(d.Values, text); known && at >= 0 {
		return at
	}
	return -1
}

// lattice is a range of whole numbers, in units of the last of some decimals, and the widest step on which all that was
// taken into it lies.
type lattice struct {
	digits    int32
	low, high *big.Int // nil: nothing is in it
	step      big.Int
}

// take widens it to hold the numbers from least to most, which are own apart; nil means they are one. False: they are
// no numbers.
func (l *lattice) take(least, most policy.Value, own *big.Int) bool {
	from, ok := UnitsOf(least, l.digits)
	to, also := UnitsOf(most, l.digits)
	if !ok || !also {
		return false
	}
	if l.low == nil {
		l.low, l.high = from, to
	}
	l.step.GCD(nil, nil, &l.step, new(big.Int).Abs(new(big.Int).Sub(from, l.low)))
	if own != nil {
		l.step.GCD(nil, nil, &l.step, own)
	}
	if from.Cmp(l.low) < 0 {
		l.low = from
	}
	if to.Cmp(l.high) > 0 {
		l.high = to
	}
	return true
}

// digits are the most after the point of a column's numerics; a scale below 0: a branch has none that is fixed.
func (u *United) digits(i int) (digits, scale int32) {
	for _, b := range u.Branches {
		switch v := b.Values[i]; {
		case v.Column != nil && v.Column.Type == policy.NumericType:
			digits, scale = max(digits, DomainDigits(v.Column.Domain)), min(scale, v.Column.Domain.Scale)
		case v.Column == nil:
			if n, ok := v.Constant.(policy.Numeric); ok {
				digits = max(digits, n.Scale)
			}
		}
	}
	return digits, scale
}

// span is the domain from the least value of all branches to the largest.
func (u *United) span(i int, typ policy.Type, rules policy.Rules) *policy.Domain {
	digits, scale := u.digits(i)
	all := &lattice{digits: digits}
	for _, b := range u.Branches {
		v := b.Values[i]
		if v.Column == nil {
			if v.Constant != nil && !all.take(v.Constant, v.Constant, nil) {
				return nil
			}
			continue
		}
		d := v.Column.Domain
		if !d.Ordered() {
			return nil
		}
		if !all.take(d.Min, d.Max, stepOf(d, digits)) {
			return nil
		}
	}
	low, high, step := all.low, all.high, &all.step
	if low == nil || MaxAbs(low, high).Cmp(big.NewInt(MaxMagnitude)) > 0 {
		return nil
	}
	if step.Sign() == 0 {
		step.SetInt64(1)
	}
	coarsen(step, low, high)
	typmod := int32(-1)
	if typ == policy.NumericType && scale >= 0 {
		typmod = typmodOf(digits)
	}
	return spaced(typ, typmod, digits, low, high, step, rules)
}
