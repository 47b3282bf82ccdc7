// Package derived holds the tables that are below a leaf and are not the policy's: pairs of a unit's rows, rows
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
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Derived tables (docs/adr/0012). In each of them a unit's rows are a function of that unit's own rows of the inputs,
// which are normalised and bounded first; so a unit moves nothing but its own rows, of which the bound below says how
// many there are at most. Columns of a derived table are named for good, by their inputs: digests do not depend on
// aliases.

// Paired are the pairs of rows of one unit, one of Left and one of Right, that are equal in further keys and columns.
type Paired struct {
	Left, Right *policy.Table
	On          []Equal
	Alike       []Equal        // columns that are equal, neither of them NULL
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
// further keys, the same in some columns, and for which Where holds.
//
// Of EXISTS (SELECT … WHERE o.person_id = v.person_id AND o.day BETWEEN v.day AND v.day + 30) Other are pairs of rows of
// From with others. Claim: a row is marked just where it is in such a pair itself. Proof: whether a pair satisfies Where
// is a function of what it has in Same, On and of the other row; the pairs of a row that has the same in these have the
// same others.
type Marked struct {
	From, Other *policy.Table
	On          []Equal
	Same        []Equal        // columns of one domain; NULL is the same as NULL
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
	UnitMean         // of a column of numbers, with MeanDigits after the point
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
	b = encodeColumns(EncodeEquals(b, p.On), p.Alike)
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
	return m.EncodeWhich(encodeInputs([]byte("marked"), m, f))
}

// EncodeWhich writes which rows of Other are looked for.
func (m *Marked) EncodeWhich(b []byte) []byte {
	return predicate.Encode(encodeColumns(EncodeEquals(b, m.On), m.Same), m.Where)
}

// Meaning: see Paired.
func (u *PerUnit) Meaning(f policy.Fingerprints) []byte {
	b := predicate.Encode(encodeInputs([]byte("unit"), u, f), u.Where)
	b = encodeUnitKeys(b, u.Keys)
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

// encodeUnitKeys writes what a unit's rows are grouped by.
func encodeUnitKeys(b []byte, keys []UnitKey) []byte {
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for _, k := range keys {
		b = encodeRuns(predicate.EncodeText(b, k.Column.Name), k.First)
	}
	return b
}

// encodeNames writes the names of columns.
func encodeNames(b []byte, columns []*policy.Column) []byte {
	b = binary.AppendUvarint(b, uint64(len(columns)))
	for _, c := range columns {
		b = predicate.EncodeText(b, c.Name)
	}
	return b
}

// encodeColumns writes which columns are equated, where some are, behind what no predicate begins with.
func encodeColumns(b []byte, same []Equal) []byte {
	if len(same) == 0 {
		return b
	}
	return EncodeEquals(append(b, '='), same)
}

// EncodeEquals writes which keys are equated.
func EncodeEquals(b []byte, on []Equal) []byte {
	b = binary.AppendUvarint(b, uint64(len(on)))
	for _, e := range on {
		b = predicate.EncodeText(predicate.EncodeText(b, e.Left.Name), e.Right.Name)
	}
	return b
}

// MaxMagnitude is the largest whole number on the way to a sum of columns.
const MaxMagnitude = 1 << 60

// RatOf is a number as a fraction; false for what is none.
func RatOf(v policy.Value) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case policy.Date: // days, of which differences are added up
		return new(big.Rat).SetInt64(int64(v)), true
	case policy.Numeric:
		if v.Scale >= 0 {
			return new(big.Rat).SetFrac(v.At(v.Scale), Tens(v.Scale)), true
		}
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return new(big.Rat).SetFloat64(v), true
		}
	}
	return nil, false
}

// SpanOf are the least and the largest product of numbers of two ranges.
func SpanOf(a, b, c, d *big.Int) (least, most *big.Int) {
	least, most = new(big.Int).Mul(a, c), new(big.Int).Mul(a, c)
	for _, p := range []*big.Int{new(big.Int).Mul(a, d), new(big.Int).Mul(b, c), new(big.Int).Mul(b, d)} {
		if p.Cmp(least) < 0 {
			least = p
		}
		if p.Cmp(most) > 0 {
			most = p
		}
	}
	return least, most
}

// UnitsOf is a value in units of 10^−scale, of numbers, days or microseconds.
func UnitsOf(v policy.Value, scale int32) (*big.Int, bool) {
	switch v := v.(type) {
	case policy.Timestamp:
		return new(big.Int).Mul(big.NewInt(int64(v)), Tens(scale)), true
	case policy.Timestamptz:
		return new(big.Int).Mul(big.NewInt(int64(v)), Tens(scale)), true
	case float64:
		return nil, false
	}
	x, ok := RatOf(v)
	if !ok {
		return nil, false
	}
	x.Mul(x, new(big.Rat).SetInt(Tens(scale)))
	return x.Num(), x.IsInt()
}

// lowTens are the powers of ten that are asked for most.
var lowTens = func() (table [40]*big.Int) {
	for i := range table {
		table[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return table
}()

// Tens is 10^scale.
func Tens(scale int32) *big.Int {
	if int(scale) < len(lowTens) {
		return new(big.Int).Set(lowTens[scale])
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
}

// MaxAbs is the larger size of two numbers.
func MaxAbs(a, b *big.Int) *big.Int {
	if a.CmpAbs(b) < 0 {
		a = b
	}
	return new(big.Int).Abs(a)
}

// DomainDigits is how many digits after the point the ends of a domain, its step and its values have, but for values of
// a column without a number of digits of its own.
func DomainDigits(d *policy.Domain) int32 {
	least, _ := d.Min.(policy.Numeric)
	most, _ := d.Max.(policy.Numeric)
	return max(d.Scale, least.Scale, most.Scale, d.Step.Decimal.Scale, 0)
}

// ClassRun are neighbouring combinations of cells that belong to one class, −1 to none.
type ClassRun struct {
	Length int
	Class  int32
}

// Singles are so many classes of one each.
func Singles(n int) []ClassRun {
	list := make([]ClassRun, n)
	for i := range list {
		list[i] = ClassRun{Length: 1, Class: int32(i)}
	}
	return list
}

// FirstCells are the first cells of classes, in order, and how many cells there are.
func FirstCells(classes []ClassRun) (first []int, cells int) {
	for _, r := range classes {
		if int(r.Class) == cells {
			first = append(first, cells)
		}
		cells += r.Length
	}
	return first, cells
}

// IsIdentity reports whether each is a class of its own, in order.
func IsIdentity(class []int32) bool {
	for i, c := range class {
		if int(c) != i {
			return false
		}
	}
	return true
}

// encodeRuns writes runs as encodeClasses does.
func encodeRuns(b []byte, runs []ClassRun) []byte {
	if !slices.ContainsFunc(runs, func(r ClassRun) bool { return r.Length > 1 }) {
		class := make([]int32, len(runs))
		for i, r := range runs {
			class[i] = r.Class
		}
		if IsIdentity(class) {
			return append(b, 'i')
		}
	}
	b = append(b, 'r')
	for _, r := range runs {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Length)), uint64(r.Class+1))
	}
	return b
}

// Places number what the keys of a public table find in one of its columns: of two keys with the same number the values
// are the same, to the last digit. Of 100,000 parts
//
//	p_brand = 'Brand#23'
//
// is one of 25 brands' truths: evaluated once for each, it is known of every part. Keys of which no row is found, or
// NULL, have the number 0.
type Places struct {
	Count int // numbers are below it
	of    []int32
	first int64
}

// Of is the number of a key.
func (p *Places) Of(key int64) int {
	if key < p.first || uint64(key)-uint64(p.first) >= uint64(len(p.of)) {
		return 0
	}
	return int(p.of[key-p.first])
}

// Keys are how many numbers are listed.
func (p *Places) Keys() int { return len(p.of) }

// Places numbers a column of the rows, or, of −1, whether there is one; nil means the keys are no whole numbers near
// one another, or the values cannot be distinguished here. It is made once for an index.
func (k *Keyed) Places(column int) *Places {
	if k.dense == nil || len(k.keys) > 1 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p, made := k.values[column]
	if !made {
		p = k.numbered(column)
		if k.values == nil {
			k.values = map[int]*Places{}
		}
		k.values[column] = p
	}
	return p
}

func (k *Keyed) numbered(column int) *Places {
	p := &Places{Count: 1, of: make([]int32, len(k.dense)), first: k.first}
	numbers := map[any]int32{}
	for i, row := range k.dense {
		if row == nil || column >= 0 && row[column] == nil {
			continue
		}
		var looks any
		if column >= 0 {
			var ok bool
			if looks, ok = looksOf(row[column]); !ok {
				return nil
			}
		}
		n, met := numbers[looks]
		if !met {
			n = int32(p.Count)
			numbers[looks] = n
			p.Count++
		}
		p.of[i] = n
	}
	return p
}

// digits and bits are what numbers look like that are equal and may look otherwise: 1.0 and 1.00, 0 and −0.
type (
	digits string
	bits   uint64
)

// looksOf is a value as what is equal where values are the same in every respect.
func looksOf(v policy.Value) (any, bool) {
	switch v := v.(type) {
	case string, int64, bool, policy.Date, policy.Timestamp, policy.Timestamptz, policy.Time, policy.Interval:
		return v, true
	case float64:
		return bits(math.Float64bits(v)), true
	case policy.Numeric:
		return digits(v.String()), true
	}
	return nil, false
}
