package derived

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// maxName is how long the name of a derived table may be: the ledger keeps it with that of the measure.
const maxName = 1 << 10

// derivedName is the name under which analysts know a derived table in messages.
func derivedName(inputs ...*policy.Table) string {
	names := make([]string, len(inputs))
	for i, t := range inputs {
		names[i] = t.Name
	}
	name := strings.Join(names, " with ")
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + " …"
	}
	return name
}

// newDerived makes the table of a derivation; its columns are added by the caller.
func newDerived(d policy.Derivation, rows int64) *policy.Table {
	from, places := d.Inputs()[0], 1
	for _, in := range d.Inputs() {
		places = min(places+max(in.Places, 1), 1<<20)
	}
	anyRows := rows > 1 && slices.ContainsFunc(d.Inputs(), func(t *policy.Table) bool { return t.AnyRows })
	return &policy.Table{Places: places, Dataset: from.Dataset, Name: derivedName(d.Inputs()...), Schema: from.Schema, ExpectedRows: from.ExpectedRows, MaxRowsPerUnit: rows, Derived: d,
		AnyRows: anyRows,
		Static:  !slices.ContainsFunc(d.Inputs(), func(t *policy.Table) bool { return !t.Static }),
		Extreme: !slices.ContainsFunc(d.Inputs(), func(t *policy.Table) bool { return !t.Extreme })}
}

// newExtended makes the table of a derivation of rows of its first input, with that one's columns and keys.
func newExtended(d policy.Derivation, rows int64) *policy.Table {
	t, from := newDerived(d, rows), d.Inputs()[0]
	t.Name, t.AnyRows = from.Name, rows > 1 && from.AnyRows
	for _, c := range from.Columns {
		addColumn(t, c, from, c.Domain)
	}
	for _, k := range from.Keys {
		addKey(t, k, from)
	}
	return t
}

// MaxRows is the largest bound of rows per unit that a derived table may have.
const MaxRows = 1 << 20

// atMost is a bound of rows of some tables together, and whether it is not too large: where one of them has none, of
// rows that are read it is MaxRows, and calibrates nothing.
func atMost(rows int64, of ...*policy.Table) (int64, bool) {
	if slices.ContainsFunc(of, func(t *policy.Table) bool { return t.AnyRows }) {
		rows = min(rows, MaxRows)
	}
	return rows, rows <= MaxRows
}

// NewPaired makes the table of a Paired. It is nil where the bound of rows a unit grows too large.
func NewPaired(p *Paired) *policy.Table {
	rows, relied := p.rows()
	p.Unique = relied
	rows, ok := atMost(rows, p.Left, p.Right)
	if !ok || (p.Left.AnyRows || p.Right.AnyRows) && !p.fewPairs() {
		return nil
	}
	t := newDerived(p, rows)
	for side, in := range p.Inputs() {
		for _, c := range in.Columns {
			domain := c.Domain
			if side == 1 && p.Outer {
				domain = domain.WithNull()
			}
			p.Origins = append(p.Origins, Origin{side == 1, c})
			addColumn(t, c, in, domain)
			if own := t.Columns[len(t.Columns)-1]; side == 1 && p.Outer && own.HiddenCell() == domain.Null { // rows that met none are NULL too
				own.Hide = false
			}
		}
		for _, k := range in.Keys {
			p.KeyOrigins = append(p.KeyOrigins, Origin{side == 1, k})
			addKey(t, k, in)
		}
	}
	if p.Outer {
		addColumn(t, &policy.Column{Name: "has " + p.Right.Name, Type: policy.Bool, Typmod: -1}, p.Left, truths())
	}
	return t
}

// truths is the domain of a condition that is never NULL.
func truths() *policy.Domain {
	d, err := policy.Enumerate(policy.Bool, nil, policy.Rules{Nulls: policy.NullExclude, Outside: policy.OutsideExclude})
	if err != nil {
		panic("planner: the domain of a boolean: " + err.Error())
	}
	return d
}

// NewMarked makes the table of a Marked.
func NewMarked(m *Marked) *policy.Table {
	t := newExtended(m, m.From.MaxRowsPerUnit)
	addColumn(t, &policy.Column{Name: "has " + m.Other.Name, Type: policy.Bool, Typmod: -1}, m.From, truths())
	return t
}

// NewPerUnit makes the table of a PerUnit. It is nil where an aggregate has more values than a domain may have cells.
func NewPerUnit(u *PerUnit) *policy.Table {
	rows := u.groups()
	if len(u.JoinKeys) == 0 && !slices.ContainsFunc(u.Keys, func(k UnitKey) bool { return !sole(u.From, k.Column) }) {
		rows = 1
	}
	t := newDerived(u, rows)
	t.Name = u.From.Name
	for _, k := range u.Keys {
		addColumn(t, k.Column, u.From, k.Column.Domain)
	}
	for _, a := range u.Aggregates {
		c, domain := a.Shown(u.From.MaxRowsPerUnit)
		if domain == nil {
			return nil
		}
		if c.Type == policy.NumericType && a.Kind == UnitSum {
			c.Typmod = -1
		}
		c.Extreme = extreme(u.From, a.Column)
		addColumn(t, c, u.From, domain)
	}
	for _, k := range u.KeysOf() {
		addKey(t, k, u.From)
	}
	return t
}

// KeysOf are the keys of the input that the table has too, in their order there.
func (u *PerUnit) KeysOf() (list []*policy.Column) {
	for _, k := range u.From.Keys {
		if k.Unit || slices.Contains(u.JoinKeys, k) {
			list = append(list, k)
		}
	}
	return list
}

// groups bounds how many groups a unit has: no more than it has rows of which Of holds, each of which is in one group.
//
//	SELECT person_id, day FROM web_visits INTERSECT SELECT person_id, day FROM shop_visits
//
// groups the rows of both tables (a United) and leaves groups that have a row of the first: no more than the first has.
//
// Claim. A unit has at most groups() rows of which Of holds. Proof. A row of a union is one row of one branch. In a
// branch whose values of the columns that Of reads are constants, Of holds of all rows or of none.
func (u *PerUnit) groups() int64 {
	d, ok := u.From.Derived.(*United)
	if !ok || u.Of == nil {
		return u.From.MaxRowsPerUnit
	}
	columns, onGrid := predicate.Columns(u.Of, nil)
	rows := int64(0)
	for _, b := range d.Branches {
		none := onGrid
		cells := map[*policy.Column]int{}
		for _, c := range columns {
			v := b.Values[slices.Index(u.From.Columns, c)]
			cell, known := c.Domain.Cell(v.Constant)
			none = none && known && v.Column == nil
			cells[c] = cell
		}
		if !none || predicate.Satisfied(u.Of, func(c *policy.Column) int { return cells[c] }) {
			rows += b.From.MaxRowsPerUnit
		}
	}
	return rows
}

// extreme reports whether the policy permits min and max of what is made of a table's rows and of a column of it, or
// of its rows alone where of is nil.
func extreme(t *policy.Table, of *policy.Column) bool {
	if of == nil {
		return t.Extreme
	}
	return of.Extreme
}

// Shown is the column of an aggregate over at most so many rows, and its domain.
func (a UnitAggregate) Shown(rows int64) (*policy.Column, *policy.Domain) {
	if a.Kind == UnitMin || a.Kind == UnitMax {
		word := map[UnitAggregateKind]string{UnitMin: "min ", UnitMax: "max "}[a.Kind]
		return &policy.Column{Name: word + a.Column.Name, Type: a.Column.Type, Typmod: a.Column.Typmod}, a.Column.Domain.WithNull()
	}
	if a.Kind == UnitMean {
		mean := &policy.Column{Name: "mean " + a.Column.Name, Type: policy.NumericType, Typmod: -1}
		return mean, meanDomain(a.Column, rows)
	}
	if a.Kind == UnitSum {
		domain, typ := sumDomain(a.Column, rows), policy.Int8
		if a.Column.Type == policy.NumericType {
			typ = a.Column.Type
		}
		return &policy.Column{Name: "sum " + a.Column.Name, Type: typ, Typmod: a.Column.Typmod}, domain
	}
	name, least := "count", int64(0)
	switch {
	case a.Kind == UnitDistinct:
		name = "distinct " + a.Column.Name
	case a.Kind == UnitDistinctKeys:
		name = "distinct keys " + a.Key.Name
	case a.Where == nil:
		least = 1 // a group has a row
	}
	return &policy.Column{Name: name, Type: policy.Int8, Typmod: -1}, steppedDomain(policy.Int8, -1, least, rows, policy.NullExclude)
}

// How a mean of a unit's values is a column. Of
//
//	SELECT count(*) FROM (SELECT person_id, avg(minutes) AS a FROM visits GROUP BY person_id) t WHERE a > 60
//
// it is a number with nine digits after the point, or fewer where the values are larger: the nearest one.
//
// Claim. Let values have s digits after the point, be n at most, and the mean be in units of 10^−d. Of a constant c of k
// digits, n · 10^max(s, k) ≤ 10^d, the unit's mean is above, at or below c as what it is rounded to is. Proof. A mean is
// m / (i · 10^s) of a whole m and an i ≤ n. If it is not c it is off by a whole multiple of 1 / (i · 10^max(s, k)), that
// is by 10^−d at least, and rounding moves it by half of that at most, c being a multiple of 10^−d. Theorem. It lies
// between the ends of the column's domain, which are multiples of 10^−d.

// maxMeanDigits is how many digits a mean has at most.
const maxMeanDigits = 9

// MeanDigits is how many digits after the point the mean of at most so many values of a column has, or −1 where they
// are too large. No number on the way to it is beyond 2^62, nor is their sum beyond 2^50.
func MeanDigits(c *policy.Column, rows int64) int32 {
	scale := max(c.Domain.Scale, 0)
	least, ok := UnitsOf(c.Domain.Min, scale)
	most, also := UnitsOf(c.Domain.Max, scale)
	size := MaxAbs(least, most)
	if !ok || !also || new(big.Int).Mul(size, big.NewInt(rows)).BitLen() > 50 {
		return -1
	}
	size.Mul(size, big.NewInt(4))
	size.Add(size, big.NewInt(1)).Mul(size, big.NewInt(rows))
	for digits := int32(maxMeanDigits); digits >= scale; digits-- {
		if new(big.Int).Mul(size, Tens(digits-scale)).BitLen() <= 62 {
			return digits
		}
	}
	return -1
}

// meanDomain is what the mean of 1 to rows values of a column may be, nil where that is too far. Its cells are as fine
// as their number allows.
func meanDomain(c *policy.Column, rows int64) *policy.Domain {
	digits := MeanDigits(c, rows)
	if digits < 0 {
		return nil
	}
	low, _ := UnitsOf(c.Domain.Min, digits)
	high, _ := UnitsOf(c.Domain.Max, digits)
	step := big.NewInt(1)
	coarsen(step, low, high)
	low.Sub(low, new(big.Int).Mod(low, step))
	rules := policy.Rules{Nulls: policy.NullCell, Outside: policy.OutsideExclude}
	return spaced(policy.NumericType, typmodOf(digits), digits, low, high, step, rules)
}

// sumDomain is what the sum of 1 to rows values of a column may be, nil where that is too far.
func sumDomain(c *policy.Column, rows int64) *policy.Domain {
	ends := [2]int64{}
	for i, v := range []policy.Value{c.Domain.Min, c.Domain.Max} {
		switch v := v.(type) {
		case int64:
			ends[i] = v
		case policy.Numeric:
			units := v.At(max(c.Domain.Scale, 0))
			if !units.IsInt64() {
				return nil
			}
			ends[i] = units.Int64()
		default:
			return nil
		}
		if max(-ends[i], ends[i]) > (1<<50)/rows {
			return nil
		}
	}
	least, most := min(ends[0]*rows, ends[0]), max(ends[1]*rows, ends[1])
	if c.Type != policy.NumericType {
		return steppedDomain(policy.Int8, -1, least, most, policy.NullCell)
	}
	return steppedDomain(c.Type, typmodOf(c.Domain.Scale), least, most, policy.NullCell)
}

// steppedDomain is the domain from least to most, in units of 10^−scale, in cells as fine as their number allows.
func steppedDomain(t policy.Type, typmod int32, least, most int64, nulls policy.NullRule) *policy.Domain {
	step := int64(1)
	for (most-least)/step >= int64(policy.MaxDomain/2) {
		step *= 2
	}
	digits := int32(0)
	if t == policy.NumericType {
		if _, digits = policy.NumericTypmod(typmod); digits < 0 { // whole hundreds are no cells
			return nil
		}
	}
	rules := policy.Rules{Nulls: nulls, Outside: policy.OutsideExclude}
	return spaced(t, typmod, digits, big.NewInt(least), big.NewInt(most), big.NewInt(step), rules)
}

// spaced is the domain of numbers, days or moments from low to high in cells of step, all in units of 10^−digits, or nil
// if there is none.
func spaced(t policy.Type, typmod, digits int32, low, high, step *big.Int, rules policy.Rules) *policy.Domain {
	value := func(n *big.Int) policy.Value {
		switch t {
		case policy.NumericType:
			return policy.Numeric{Coefficient: n, Scale: digits}
		case policy.DateType:
			return policy.Date(n.Int64())
		case policy.TimestampT:
			return policy.Timestamp(n.Int64())
		case policy.TimestampTZ:
			return policy.Timestamptz(n.Int64())
		}
		return n.Int64()
	}
	width := policy.Step{Whole: step.Int64()}
	if t == policy.NumericType {
		width = policy.Step{Decimal: policy.Numeric{Coefficient: step, Scale: digits}}
	}
	domain, err := policy.Steps(t, typmod, value(low), value(high), width, rules)
	if err != nil {
		return nil
	}
	return domain
}

// typmodOf is the modifier of a numeric with so many digits after the point.
func typmodOf(digits int32) int32 { return int32((38<<16)|int(digits)) + 4 }

// addColumn gives t a column like c of an input, under a name of its own.
func addColumn(t *policy.Table, c *policy.Column, in *policy.Table, domain *policy.Domain) {
	same := *c
	same.Table, same.Source, same.Domain, same.Name, same.Input, same.Beside = t, "", domain, ownName(t, c, in), c, nil
	for _, have := range slices.Backward(t.Columns) { // what is asked of a text stays beside that text, of the same input
		if c.Beside != nil && have.Input == c.Beside {
			same.Beside = have
			break
		}
	}
	t.Columns = append(t.Columns, &same)
}

func addKey(t *policy.Table, k *policy.Column, in *policy.Table) {
	same := *k
	same.Table, same.Source, same.Name = t, "", ownName(t, k, in)
	if same.Refers == nil {
		same.Refers = k
	}
	t.Keys = append(t.Keys, &same)
}

// ownName says which input's column it is, by the name of the table of the policy, and numbers what would be the same.
func ownName(t *policy.Table, c *policy.Column, in *policy.Table) string {
	name := c.Name
	switch {
	case in.Derived == nil && c.Reading != nil:
		name = c.Reading.Of(in.Name + "." + c.Beside.Name)
	case in.Derived == nil:
		name = in.Name + "." + name
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(append(t.Columns[:len(t.Columns):len(t.Columns)], t.Keys...), func(c *policy.Column) bool { return c.Name == name })
	}
	if !taken(name) {
		return name
	}
	for n := 2; ; n++ {
		if next := name + " (" + strconv.Itoa(n) + ")"; !taken(next) {
			return next
		}
	}
}

// CompareNames orders columns by name: a policy may list them in any order.
func CompareNames(a, b *policy.Column) int { return strings.Compare(a.Name, b.Name) }

// NullableUnit reports whether rows of a table may name no unit: then each is a unit of its own.
func NullableUnit(t *policy.Table) bool {
	switch d := t.Derived.(type) {
	case *Paired:
		return d.Outer && NullableUnit(d.Left)
	case *Computed, *Tabulated, *Tested, *Marked, *Matched:
		return NullableUnit(t.Derived.Inputs()[0])
	case *United:
		return slices.ContainsFunc(d.Inputs(), NullableUnit)
	case nil:
		return t.NullEach
	}
	return false
}
