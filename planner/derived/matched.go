package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Tabulated are the rows of From, each with further columns: whole numbers that are functions of the cells of some of
// From's columns, which the planner has listed (docs/adr/0146). In
//
//	SELECT sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) FROM lineitem JOIN partsupp ON …
//
// ps_supplycost is a number of cents that public rows say for l_partkey and l_suppkey: the database gets a list of
// combinations of both columns' cells with the cents of each, joins it by the number of the combination, and adds up
// products of columns.
//
// Claim: a row of Tabulated is a function of one row of From, which it replaces; each further column is NULL or a whole
// number within its domain, whatever the row holds. Neighbours: a unit's rows are as many as its rows of From, and
// follow from them and from the list, which is public: so what a unit moves is bounded as before, by From's rows a
// unit. Proof: no combination is listed twice (NewTabulated), so a left join with the list leaves each row once; the
// row's combination is a function of its normalised values, each of which has one cell. The domain's ends are the least
// and the largest number of the list. Limits: nothing is revealed of the list but by what is made of the rows; that a
// combination is not listed is NULL, as SQL's outer join has it.
type Tabulated struct {
	From         *policy.Table
	Args         []*policy.Column // of From
	Combinations []int32          // of the arguments' cells, the first column's slowest: ascending, each once
	Columns      []TabulatedColumn
	digest       string
}

// TabulatedColumn is a number for each combination; Known nil: for all of them. Of texts and booleans it is the place
// among Texts, of dates the number of days since 1970, of decimals a number of units of 10^−Scale.
type TabulatedColumn struct {
	Name   string
	Type   policy.Type
	Scale  int32
	Texts  []string
	Values []int32
	Known  []bool
}

// MaxTabulated is how many combinations are sent to the database.
const MaxTabulated = 1 << 17

// At is the number of a combination, by its place in the list; nil means NULL.
func (c TabulatedColumn) At(i int) policy.Value {
	if c.Known != nil && !c.Known[i] {
		return nil
	}
	return int64(c.Values[i])
}

func (d *Tabulated) Inputs() []*policy.Table { return []*policy.Table{d.From} }

// Meaning: see Paired.
func (d *Tabulated) Meaning(f policy.Fingerprints) []byte {
	return predicate.EncodeText(encodeNames(encodeInputs([]byte("tabulated"), d, f), d.Args), d.digest)
}

// digest is that of a column's numbers and texts.
func (c TabulatedColumn) digest() []byte {
	own := sha256.New()
	for i, n := range c.Values {
		b := binary.AppendVarint(nil, int64(n))
		if c.At(i) == nil {
			b = []byte{0x80, 0x80, 0} // no whole number is written so
		}
		own.Write(b)
	}
	kind := c.Type.Name()
	if c.Type == policy.NumericType {
		kind += " " + strconv.Itoa(int(c.Scale))
	}
	for _, text := range append([]string{kind}, c.Texts...) {
		own.Write(predicate.EncodeText(nil, text))
	}
	return own.Sum(nil)
}

// domain is from the least to the largest number of a column; a combination that is not listed has none.
func (c TabulatedColumn) domain() *policy.Domain {
	least, most := int64(math.MaxInt32), int64(math.MinInt32)
	for i, n := range c.Values {
		if c.Known == nil || c.Known[i] {
			least, most = min(least, int64(n)), max(most, int64(n))
		}
	}
	if least > most {
		least, most = 0, 0
	}
	rules := policy.Rules{Nulls: policy.NullCell, Outside: policy.OutsideExclude}
	switch {
	case c.Type.Integer():
		return steppedDomain(c.Type, -1, least, most, policy.NullCell)
	case c.Type == policy.DateType:
		return spaced(c.Type, -1, 0, big.NewInt(least), big.NewInt(most), big.NewInt(1), rules)
	case c.Type == policy.NumericType:
		return spaced(c.Type, typmodOf(c.Scale), c.Scale, big.NewInt(least), big.NewInt(most), big.NewInt(1), rules)
	}
	domain, err := policy.Enumerate(c.Type, c.Texts, rules)
	if err != nil || least < 0 || most >= int64(domain.Regular) {
		return nil
	}
	return domain
}

// NewTabulated makes the table of a Tabulated: the columns and keys of From, then those of the list. It is nil where a
// combination is listed twice, or there are too many.
func NewTabulated(d *Tabulated) *policy.Table {
	product := 1
	for _, c := range d.Args {
		if c.Domain == nil || product > math.MaxInt32/c.Domain.Size() {
			return nil
		}
		product *= c.Domain.Size()
	}
	if len(d.Combinations) > MaxTabulated || len(d.Args) == 0 {
		return nil
	}
	for i, at := range d.Combinations {
		if at < 0 || int(at) >= product || i > 0 && at <= d.Combinations[i-1] {
			return nil
		}
	}
	t := newExtended(d, d.From.MaxRowsPerUnit)
	hash := sha256.New()
	write := func(n int64) { hash.Write(binary.AppendVarint(nil, n)) }
	for _, at := range d.Combinations {
		write(int64(at))
	}
	for _, c := range d.Columns {
		domain := c.domain()
		if domain == nil || len(c.Values) != len(d.Combinations) {
			return nil
		}
		sum := c.digest()
		hash.Write(sum)
		// What is added up is described by its columns' names, which therefore say which numbers they are.
		column := &policy.Column{Name: c.Name + " " + hex.EncodeToString(sum[:4]), Type: c.Type, Typmod: -1, Nulls: policy.NullCell, Outside: policy.OutsideExclude}
		addColumn(t, column, t, domain)
	}
	d.digest = string(hash.Sum(nil))
	return t
}

// TabulatedIn is the position of the column of t that is already what the last one of a list over t, or over what t is
// listed of, would be; false means there is none.
func TabulatedIn(t *policy.Table, d *Tabulated) (at int, ok bool) {
	last := d.Columns[len(d.Columns)-1]
	sum := last.digest()
	for from := t; from != nil; from = extended(from) {
		have, is := from.Derived.(*Tabulated)
		if !is || !slices.Equal(have.Combinations, d.Combinations) ||
			!slices.EqualFunc(have.Args, d.Args, func(a, b *policy.Column) bool {
				return slices.Index(have.From.Columns, a) == slices.Index(d.From.Columns, b)
			}) {
			continue
		}
		if i := slices.IndexFunc(have.Columns, func(c TabulatedColumn) bool {
			return c.Name == last.Name && bytes.Equal(c.digest(), sum)
		}); i >= 0 {
			return len(have.From.Columns) + i, true
		}
	}
	return 0, false
}

// And is the same list with one more column, which is a function of the one at a place: value of its number. It is nil
// where the column has a number where that one has none.
func (d *Tabulated) And(c TabulatedColumn, of int, value func(n policy.Value) (int32, bool)) *Tabulated {
	if _, known := value(nil); known {
		return nil
	}
	c.Values, c.Known = make([]int32, len(d.Combinations)), make([]bool, len(d.Combinations))
	for i := range d.Combinations {
		c.Values[i], c.Known[i] = value(d.Columns[of].Of(i))
	}
	return &Tabulated{From: d.From, Args: d.Args, Combinations: d.Combinations, Columns: append(slices.Clone(d.Columns), c)}
}

// Of is the value of a column, as its domain has it.
func (c TabulatedColumn) Of(i int) policy.Value {
	switch n := c.At(i); {
	case n == nil:
		return nil
	case c.Type == policy.DateType:
		return policy.Date(c.Values[i])
	case c.Type == policy.NumericType:
		return policy.Numeric{Coefficient: big.NewInt(int64(c.Values[i])), Scale: c.Scale}
	case c.Type == policy.Bool:
		return c.Values[i] == 1
	case c.Texts != nil:
		return c.Texts[c.Values[i]]
	default:
		return n
	}
}

// Widened returns the table whose rows those of t are, one each, with further columns that follow from each row alone,
// or nil if they are others.
func Widened(t *policy.Table) *policy.Table {
	switch t.Derived.(type) {
	case *Computed, *Tabulated, *Tested:
		return t.Derived.Inputs()[0]
	}
	return nil
}

// extended returns the table whose columns are the first of t, in the same order, or nil if there is none.
func extended(t *policy.Table) *policy.Table {
	switch t.Derived.(type) {
	case *Computed, *Tabulated, *Tested, *Marked, *Matched, *Windowed:
		return t.Derived.Inputs()[0]
	}
	return nil
}

// Matched are the rows of From, each once for every row of a public table that it matches (docs/adr/0029). Which it
// matches is known when the statement is planned, for each combination of cells of some columns: the private database
// sees numbers alone, of combinations and of public rows. A row is there as often as its combination has matches, so a
// unit's rows are multiplied by the most matches that one combination has, and by no more.
type Matched struct {
	From      *policy.Table
	Args      []*policy.Column // of From, by name
	Matches   []Match          // by combination, then row
	Rows      int              // of the public table, as far as they are numbered
	Outer     bool             // rows of From without a match stay, with NULL for the public row
	Preserved bool             // rows of the public table without a match are to be seen: a further column says that a row is of From
}

// Match is a combination of the arguments' cells, the first column's slowest, and a public row that it matches.
type Match struct{ Combination, Row int32 }

// MaxMatches is how many public rows one private row may match; MaxPairs, how many matches are sent to the database.
const (
	MaxMatches = 1 << 10
	MaxPairs   = 1 << 14
)

func (m *Matched) Inputs() []*policy.Table { return []*policy.Table{m.From} }

// Meaning is canonical: public rows are numbered in the order of their values, and what these are is in what is made of
// them.
func (m *Matched) Meaning(f policy.Fingerprints) []byte {
	b := encodeNames(encodeInputs([]byte("matched"), m, f), m.Args)
	b = binary.AppendUvarint(b, uint64(m.Rows))
	b = binary.AppendUvarint(b, uint64(len(m.Matches)))
	for _, match := range m.Matches {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(match.Combination)), uint64(match.Row))
	}
	for _, flag := range []bool{m.Outer, m.Preserved} {
		if b = append(b, 'n'); flag {
			b[len(b)-1] = 'y'
		}
	}
	return b
}

// Most is the largest number of allowed matches of one combination.
func (m *Matched) Most(allowed func(row int32) bool) int64 {
	most, here := int64(0), int64(0)
	for i, match := range m.Matches {
		if i > 0 && match.Combination != m.Matches[i-1].Combination {
			here = 0
		}
		if allowed(match.Row) {
			here++
		}
		most = max(most, here)
	}
	if m.Outer {
		most = max(most, 1)
	}
	return most
}

// NewMatched makes the table of a Matched: the columns and keys of From, then the public row. It is nil where a unit
// could have too many rows.
func NewMatched(m *Matched, public string) *policy.Table {
	times := max(m.Most(func(int32) bool { return true }), 1)
	rows, ok := atMost(m.From.MaxRowsPerUnit*min(times, MaxRows), m.From)
	if times > MaxMatches || !ok {
		return nil
	}
	t := newExtended(m, rows)
	t.Name += " with " + public
	nulls := policy.NullExclude
	if m.Outer {
		nulls = policy.NullCell
	}
	domain := steppedDomain(policy.Int4, -1, 0, int64(max(m.Rows, 1)-1), nulls)
	if domain == nil {
		return nil
	}
	addColumn(t, &policy.Column{Name: "row of " + public, Type: policy.Int4, Typmod: -1}, m.From, domain)
	if m.Preserved {
		addColumn(t, &policy.Column{Name: "has " + m.From.Name, Type: policy.Bool, Typmod: -1}, m.From, truths())
	}
	return t
}

// Row is the position of the column that says which public row it is.
func (m *Matched) Row() int { return len(m.From.Columns) }

// MatchedIn is the Matched whose rows a table has, with further columns or without; nil means none.
func MatchedIn(t *policy.Table) *Matched {
	for ; t != nil; t = Widened(t) {
		if d, ok := t.Derived.(*Matched); ok {
			return d
		}
	}
	return nil
}
