// Package derived holds the tables that stand below a leaf and are not the policy's: pairs of a unit's rows, rows
// marked by what the unit has elsewhere, one row a unit with aggregates over its rows, rows with sums of their columns,
// with whether conditions on these hold, or with what window functions say of them, rows of several tables one below
// the other, rows beside those of a public table that they match. Of
//
//	SELECT n, count(*) FROM (SELECT person_id, count(*) AS n FROM visits WHERE ward = 'a' GROUP BY 1) t GROUP BY 1
//
// the leaf counts the rows of a PerUnit of visits, whose one column has the numbers from 0 to the most visits of a
// person. Each says how many rows a unit has in it at most, what domains its columns have, and, canonically, what it
// means. Which of them a statement needs is the planner's; how they are written in SQL is package rewrite's.
package derived

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Derived tables (docs/adr/0012). In each of them a unit's rows are a function of that unit's own rows of the inputs,
// which are normalised and bounded first; so a unit moves nothing but its own rows, of which the bound below says how
// many there are at most. Columns of a derived table are named for good, by their inputs: digests do not depend on
// aliases.

// Paired are the pairs of rows of one unit, one of Left and one of Right, that are equal in further keys.
type Paired struct {
	Left, Right *policy.Table
	On          []Equal
	Where       predicate.Pred // on Right's columns: the rows of Right that are looked at
	Only        predicate.Pred // Outer: on Left's columns: the rows that find partners
	Unique      []Unique       // what the bound of rows relies on, which the SQL enforces where no constraint proves it
	Outer       bool           // rows of Left without a partner stay, with NULL in Right's columns; a last column says which do not
	Origins     []Origin
	KeyOrigins  []Origin
}

// Unique says that of a table's rows within its bounds no two of one unit have the same values of Keys, none of them
// NULL.
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
	Where       predicate.Pred // on Other's columns
}

// PerUnit has one row for each unit and combination of keys that its rows have.
type PerUnit struct {
	From       *policy.Table
	Where      predicate.Pred
	Keys       []UnitKey
	JoinKeys   []*policy.Column
	Present    bool // rows with NULL in a join key are left out
	Aggregates []UnitAggregate
	Of         predicate.Pred // groups without a row of which this holds are left out; nil means none are
}

// UnitKey groups a unit's rows by classes of one column's cells; a class is shown by its first cell.
type UnitKey struct {
	Column *policy.Column
	First  []ClassRun // of cells: the first cell of their class; nil means each cell is its own
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
	UnitDistinctKeys // different values of the key
)

// UnitAggregate is one aggregate over the rows for which Where holds.
type UnitAggregate struct {
	Kind   UnitAggregateKind
	Column *policy.Column // nil: UnitCount, UnitDistinctKeys
	Key    *policy.Column // of UnitDistinctKeys
	Where  predicate.Pred
}

func (p *Paired) Inputs() []*policy.Table  { return []*policy.Table{p.Left, p.Right} }
func (m *Marked) Inputs() []*policy.Table  { return []*policy.Table{m.From, m.Other} }
func (u *PerUnit) Inputs() []*policy.Table { return []*policy.Table{u.From} }

// Meaning is canonical, as are those below: names of inputs' columns, predicates in their canonical order.
func (p *Paired) Meaning(f policy.Fingerprints) []byte {
	b := encodeInputs([]byte("paired"), p, f)
	b = EncodeEquals(b, p.On)
	b = predicate.Encode(predicate.Encode(b, p.Where), p.Only)
	for _, u := range p.Unique { // of rows that share a key one is taken
		b = predicate.EncodeText(append(b, 'u'), string(f.Of(u.Table)))
		for _, k := range u.Keys {
			b = predicate.EncodeText(b, k.Source)
		}
	}
	if p.Outer {
		return append(b, 'o')
	}
	return append(b, 'i')
}

// Meaning: see Paired.
func (m *Marked) Meaning(f policy.Fingerprints) []byte {
	return predicate.Encode(EncodeEquals(encodeInputs([]byte("marked"), m, f), m.On), m.Where)
}

// Meaning: see Paired.
func (u *PerUnit) Meaning(f policy.Fingerprints) []byte {
	b := predicate.Encode(encodeInputs([]byte("unit"), u, f), u.Where)
	b = binary.AppendUvarint(b, uint64(len(u.Keys)))
	for _, k := range u.Keys {
		b = encodeRuns(predicate.EncodeText(b, k.Column.Name), k.First)
	}
	if b = encodeNames(b, u.JoinKeys); u.Present {
		b = append(b, 'p')
	}
	b = binary.AppendUvarint(b, uint64(len(u.Aggregates)))
	for _, a := range u.Aggregates {
		b = append(b, byte(a.Kind))
		if a.Column != nil {
			b = predicate.EncodeText(b, a.Column.Name)
		}
		if a.Key != nil {
			b = predicate.EncodeText(b, a.Key.Name)
		}
		b = predicate.Encode(append(b, 0), a.Where)
	}
	if u.Of != nil {
		b = predicate.Encode(append(b, 'o'), u.Of)
	}
	return b
}

func encodeInputs(b []byte, d policy.Derivation, f policy.Fingerprints) []byte {
	for _, t := range d.Inputs() {
		text := f.Of(t)
		if t.Derived != nil && len(text) > longInput {
			hash := sha256.Sum256(text)
			text = append([]byte("sha256 "), hash[:]...)
		}
		b = predicate.EncodeText(b, string(text))
	}
	return b
}

// longInput is above how many bytes the fingerprint of a derived input is written by its hash. Each fingerprint quotes
// those of its inputs, so that of tables in one another each was twice as long as the one before: 30 made a gigabyte.
// Fingerprints begin with a quote, so none is such a hash. Those below stay as they are, and so do digests of releases.
const longInput = 1 << 18

// encodeNames writes the names of columns.
func encodeNames(b []byte, columns []*policy.Column) []byte {
	b = binary.AppendUvarint(b, uint64(len(columns)))
	for _, c := range columns {
		b = predicate.EncodeText(b, c.Name)
	}
	return b
}

// EncodeEquals writes which keys are equated.
func EncodeEquals(b []byte, on []Equal) []byte {
	b = binary.AppendUvarint(b, uint64(len(on)))
	for _, e := range on {
		b = predicate.EncodeText(predicate.EncodeText(b, e.Left.Name), e.Right.Name)
	}
	return b
}
