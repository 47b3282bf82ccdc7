package planner

import (
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Derived tables (docs/adr/0012). In each of them a unit's rows are a function of that unit's own rows of the inputs, which
// are normalised and bounded first; so a unit moves nothing but its own rows, of which the bound below says how many there
// are at most. Columns of a derived table are named for good, by their inputs: digests do not depend on aliases.

// Paired are the pairs of rows of one unit, one of Left and one of Right, that are equal in further keys.
type Paired struct {
	Left, Right *policy.Table
	On          []Equal
	Where       Pred     // on Right's columns: the rows of Right that are looked at
	Only        Pred     // Outer: on Left's columns: the rows that find partners
	Unique      []Unique // what the bound of rows relies on, which the SQL enforces where no constraint proves it
	Outer       bool     // rows of Left without a partner stay, with NULL in Right's columns; a last column says which do not
	Origins     []Origin
	KeyOrigins  []Origin
}

// Unique says that of a table's rows within its bounds no two of one unit have the same values of Keys, none of them NULL.
type Unique struct {
	Table *policy.Table
	Keys  []*policy.Column // of Table.Keys, in the order of their source columns; never empty
}

// Equal asks that a key of the left input equals one of the right input.
type Equal struct{ Left, Right *policy.Column }

// Origin says which input's column a derived column is.
type Origin struct {
	Right  bool
	Column *policy.Column
}

// Marked are the rows of From with one more column, the last: whether Other has a row of the same unit that is equal in
// further keys and for which Where holds.
type Marked struct {
	From, Other *policy.Table
	On          []Equal
	Where       Pred // on Other's columns
}

// PerUnit has one row for each unit and combination of keys that its rows have.
type PerUnit struct {
	From       *policy.Table
	Where      Pred
	Keys       []UnitKey
	JoinKeys   []*policy.Column
	Present    bool // rows with NULL in a join key are left out
	Aggregates []UnitAggregate
}

// UnitKey groups a unit's rows by classes of one column's cells; a class is shown by its first cell.
type UnitKey struct {
	Column *policy.Column
	First  []ClassRun // of cells: the first cell of their class; nil: each cell is its own
}

// UnitAggregateKind names an aggregate over a unit's rows.
type UnitAggregateKind uint8

// The aggregates over a unit's rows. The zero value is invalid.
const (
	UnitCount    UnitAggregateKind = 1 + iota // rows
	UnitDistinct                              // different cells of the column
	UnitSum                                   // of a column of integers
	UnitMin
	UnitMax
)

// UnitAggregate is one aggregate over the rows for which Where holds.
type UnitAggregate struct {
	Kind   UnitAggregateKind
	Column *policy.Column // nil: UnitCount
	Where  Pred
}

func (p *Paired) Inputs() []*policy.Table  { return []*policy.Table{p.Left, p.Right} }
func (m *Marked) Inputs() []*policy.Table  { return []*policy.Table{m.From, m.Other} }
func (u *PerUnit) Inputs() []*policy.Table { return []*policy.Table{u.From} }

// Meaning is canonical, as are those below: names of inputs' columns, predicates in their canonical order.
func (p *Paired) Meaning() []byte {
	b := encodeInputs([]byte("paired"), p)
	b = encodeEquals(b, p.On)
	b = encodePred(encodePred(b, p.Where), p.Only)
	for _, u := range p.Unique { // of rows that share a key one is taken
		b = encodeText(append(b, 'u'), string(u.Table.Fingerprint()))
		for _, k := range u.Keys {
			b = encodeText(b, k.Source)
		}
	}
	if p.Outer {
		return append(b, 'o')
	}
	return append(b, 'i')
}

// Meaning: see Paired.
func (m *Marked) Meaning() []byte {
	return encodePred(encodeEquals(encodeInputs([]byte("marked"), m), m.On), m.Where)
}

// Meaning: see Paired.
func (u *PerUnit) Meaning() []byte {
	b := encodePred(encodeInputs([]byte("unit"), u), u.Where)
	b = binary.AppendUvarint(b, uint64(len(u.Keys)))
	for _, k := range u.Keys {
		b = encodeRuns(encodeText(b, k.Column.Name), k.First)
	}
	b = binary.AppendUvarint(b, uint64(len(u.JoinKeys)))
	for _, k := range u.JoinKeys {
		b = encodeText(b, k.Name)
	}
	if u.Present {
		b = append(b, 'p')
	}
	b = binary.AppendUvarint(b, uint64(len(u.Aggregates)))
	for _, a := range u.Aggregates {
		b = append(b, byte(a.Kind))
		if a.Column != nil {
			b = encodeText(b, a.Column.Name)
		}
		b = encodePred(append(b, 0), a.Where)
	}
	return b
}

func encodeInputs(b []byte, d policy.Derivation) []byte {
	for _, t := range d.Inputs() {
		b = encodeText(b, string(t.Fingerprint()))
	}
	return b
}

func encodeEquals(b []byte, on []Equal) []byte {
	b = binary.AppendUvarint(b, uint64(len(on)))
	for _, e := range on {
		b = encodeText(encodeText(b, e.Left.Name), e.Right.Name)
	}
	return b
}

// The name under which analysts know a derived table in messages.
func derivedName(inputs ...*policy.Table) string {
	names := make([]string, len(inputs))
	for i, t := range inputs {
		names[i] = t.Name
	}
	return strings.Join(names, " with ")
}

// newDerived makes the table of a derivation; its columns are added by the caller.
func newDerived(d policy.Derivation, rows int64) *policy.Table {
	from := d.Inputs()[0]
	return &policy.Table{Dataset: from.Dataset, Name: derivedName(d.Inputs()...), Schema: from.Schema, ExpectedRows: from.ExpectedRows, MaxRowsPerUnit: rows, Derived: d,
		Static: !slices.ContainsFunc(d.Inputs(), func(t *policy.Table) bool { return !t.Static })}
}

// mostDerivedRows is the largest bound of rows per unit that a derived table may have.
const mostDerivedRows = 1 << 20

// paired makes the table of a Paired. It is nil where the bound of rows a unit grows too large.
func paired(p *Paired) *policy.Table {
	rows, relied := p.rows()
	if p.Unique = relied; rows > mostDerivedRows {
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

// marked makes the table of a Marked.
func marked(m *Marked) *policy.Table {
	t := newDerived(m, m.From.MaxRowsPerUnit)
	t.Name = m.From.Name
	addAll(t, m.From)
	addColumn(t, &policy.Column{Name: "has " + m.Other.Name, Type: policy.Bool, Typmod: -1}, m.From, truths())
	return t
}

// perUnit makes the table of a PerUnit. It is nil where an aggregate has more values than a domain may have cells.
func perUnit(u *PerUnit) *policy.Table {
	rows := u.From.MaxRowsPerUnit
	if len(u.Keys)+len(u.JoinKeys) == 0 {
		rows = 1
	}
	t := newDerived(u, rows)
	t.Name = u.From.Name
	for _, k := range u.Keys {
		addColumn(t, k.Column, u.From, k.Column.Domain)
	}
	for _, a := range u.Aggregates {
		c, domain := a.column(u.From.MaxRowsPerUnit)
		if domain == nil {
			return nil
		}
		if c.Type == policy.NumericType && a.Kind == UnitSum {
			c.Typmod = -1
		}
		addColumn(t, c, u.From, domain)
	}
	for _, k := range u.From.Keys {
		if k.Unit || slices.Contains(u.JoinKeys, k) {
			addKey(t, k, u.From)
		}
	}
	return t
}

// column is the column of an aggregate over at most so many rows, and its domain.
func (a UnitAggregate) column(rows int64) (*policy.Column, *policy.Domain) {
	if a.Kind == UnitMin || a.Kind == UnitMax {
		word := map[UnitAggregateKind]string{UnitMin: "min ", UnitMax: "max "}[a.Kind]
		return &policy.Column{Name: word + a.Column.Name, Type: a.Column.Type, Typmod: a.Column.Typmod}, a.Column.Domain.WithNull()
	}
	if a.Kind == UnitSum {
		return &policy.Column{Name: "sum " + a.Column.Name, Type: sumType(a.Column), Typmod: a.Column.Typmod}, sumDomain(a.Column, rows)
	}
	name, least := "count", int64(0)
	switch {
	case a.Kind == UnitDistinct:
		name = "distinct " + a.Column.Name
	case a.Where == nil:
		least = 1 // a group has a row
	}
	return &policy.Column{Name: name, Type: policy.Int8, Typmod: -1}, steppedDomain(policy.Int8, -1, least, rows, policy.NullExclude)
}

func sumType(c *policy.Column) policy.Type {
	if c.Type == policy.NumericType {
		return c.Type
	}
	return policy.Int8
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
	return steppedDomain(c.Type, int32((38<<16)|int(c.Domain.Scale))+4, least, most, policy.NullCell)
}

// steppedDomain is the domain from least to most, in units of 10^−scale, in cells as fine as their number allows.
func steppedDomain(t policy.Type, typmod int32, least, most int64, nulls policy.NullRule) *policy.Domain {
	step := int64(1)
	for (most-least)/step >= int64(maxCells/2) {
		step *= 2
	}
	rules := policy.Rules{Nulls: nulls, Outside: policy.OutsideExclude}
	var domain *policy.Domain
	var err error
	if t == policy.NumericType {
		_, scale := policy.NumericTypmod(typmod)
		units := func(n int64) policy.Numeric { return policy.Numeric{Coefficient: big.NewInt(n), Scale: scale} }
		domain, err = policy.Steps(t, typmod, units(least), units(most), policy.Step{Decimal: units(step)}, rules)
	} else {
		domain, err = policy.Steps(t, typmod, least, most, policy.Step{Whole: step}, rules)
	}
	if err != nil {
		return nil
	}
	return domain
}

func addAll(t, in *policy.Table) {
	for _, c := range in.Columns {
		addColumn(t, c, in, c.Domain)
	}
	for _, k := range in.Keys {
		addKey(t, k, in)
	}
}

// addColumn gives t a column like c of an input, under a name of its own.
func addColumn(t *policy.Table, c *policy.Column, in *policy.Table, domain *policy.Domain) {
	same := *c
	same.Table, same.Source, same.Domain, same.Name = t, "", domain, ownName(t, c, in)
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
	if in.Derived == nil {
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
