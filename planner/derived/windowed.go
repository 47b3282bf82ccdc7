package derived

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Windowed are the rows of From for which Where holds, each with what window functions say of it among its unit's rows
// (docs/adr/0120). Of
//
//	SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t WHERE n = 1 GROUP BY 1
//
// it is visits with a column of the numbers from 1 to the most visits of a person.
//
// Claim: a unit's rows of Windowed are a function of its own rows of From, and are no more than those; a further column
// is within its domain. With First above 0 a unit has at most Last − First + 1 rows. Neighbours: a unit that is absent
// from From, or has other rows there, moves no other unit's rows. Proof: the SQL partitions by the unit itself,
// whatever else the statement partitions by (rewrite/windowed.go), so that each function reads rows of one unit. What
// it says of them is decided by their contents: where rows tie in ORDER BY, and the function tells them apart, the
// order goes on by a hash of all contents, and then the contents; rows that tie after that are the same in every column
// and key, so whichever of them has which number, the rows with their numbers are the same. Where several functions
// tell such rows apart, each in its own order, all go by one number that rows have before (sideBySide), lest other
// units' rows decide which numbers go together. Values: numbers and counts lie between 0 or 1 and the most rows of a
// unit; others are a value of the column, NULL where there is none, or a sum of that many. First and Last keep rows by
// their row_number within the unit alone, in which each number occurs once. Bounds: the functions see the rows that are
// left of a unit within the bounds of From (rule 10), so that where no bound leaves any out they say what plain SQL
// says. Limits: rows that name no unit are left out. Under replace-one the unit's old and new rows count, as of every
// derived table.
type Windowed struct {
	From        *policy.Table
	Where       predicate.Pred
	Columns     []WindowColumn
	By          int   // with First above 0: which of Columns, a row_number within the unit alone
	First, Last int64 // the numbers of the rows that stay; First 0: all do
}

// WindowKind names a window function.
type WindowKind uint8

// The window functions. The zero value is invalid.
const (
	WindowRowNumber WindowKind = 1 + iota
	WindowRank
	WindowDenseRank
	WindowNtile // Offset is the number of buckets
	WindowLag   // Column's value Offset rows before; 1 where there is such a row, NULL where not, without a column
	WindowLead
	WindowFirst // Column's value in the frame's first row
	WindowLast
	WindowAggregate // Aggregate over the frame
)

// WindowColumn is what a function says of each row.
type WindowColumn struct {
	Kind      WindowKind
	Column    *policy.Column
	Offset    int64
	Aggregate UnitAggregate
	Keys      []UnitKey        // PARTITION BY, besides the unit
	JoinKeys  []*policy.Column // also
	Order     []WindowOrder
	Frame     WindowFrame // of WindowFirst, WindowLast and WindowAggregate
}

// WindowOrder is an item of ORDER BY: a column of From, or a key of it that is a whole number.
type WindowOrder struct {
	Column                 *policy.Column
	Descending, NullsFirst bool
}

// WindowFrame says which rows of the partition a function sees, from so many rows before or after the current one to so
// many. Without Rows its ends are so far from the value of the only column of ORDER BY, in integers, days or
// microseconds; 0 is all rows that tie with the current one.
type WindowFrame struct {
	Rows       bool
	Start, End int64
}

// The ends of a partition, as ends of frames.
const (
	FrameFirst = math.MinInt64
	FrameLast  = math.MaxInt64
)

// Whole tells a frame that is the partition.
func (f WindowFrame) Whole() bool { return f.Start == FrameFirst && f.End == FrameLast }

// Filled tells that the frame of each row has a row, itself.
func (f WindowFrame) Filled() bool { return f.Start <= 0 && f.End >= 0 }

// Measured reports whether an end of the frame is so far from the current row's value.
func (f WindowFrame) Measured() bool {
	measured := func(end int64) bool { return end != 0 && end != FrameFirst && end != FrameLast }
	return !f.Rows && (measured(f.Start) || measured(f.End))
}

// TellsApart says that the function may say different things of rows that tie in its ORDER BY.
func (c WindowColumn) TellsApart() bool {
	switch c.Kind {
	case WindowRank, WindowDenseRank:
		return false
	case WindowAggregate:
		return c.Frame.Rows && !c.Frame.Whole()
	}
	return true
}

func (w *Windowed) Inputs() []*policy.Table { return []*policy.Table{w.From} }

// Meaning: see Paired.
func (w *Windowed) Meaning(f policy.Fingerprints) []byte {
	b := predicate.Encode(encodeInputs([]byte("windowed"), w, f), w.Where)
	b = binary.AppendUvarint(b, uint64(len(w.Columns)))
	for _, c := range w.Columns {
		b = c.encode(b)
	}
	for _, n := range []int64{int64(w.By), w.First, w.Last} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (c WindowColumn) encode(b []byte) []byte {
	name := func(c *policy.Column) {
		if c != nil {
			b = predicate.EncodeText(b, c.Name)
		}
		b = append(b, 0)
	}
	b = append(b, byte(c.Kind))
	name(c.Column)
	b = append(binary.AppendVarint(b, c.Offset), byte(c.Aggregate.Kind))
	name(c.Aggregate.Column)
	b = predicate.Encode(b, c.Aggregate.Where)
	b = binary.AppendUvarint(b, uint64(len(c.Keys)))
	for _, k := range c.Keys {
		b = encodeRuns(predicate.EncodeText(b, k.Column.Name), k.First)
	}
	b = binary.AppendUvarint(b, uint64(len(c.JoinKeys)))
	for _, k := range c.JoinKeys {
		name(k)
	}
	b = binary.AppendUvarint(b, uint64(len(c.Order)))
	for _, o := range c.Order {
		name(o.Column)
		b = append(b, flag(o.Column.Join), flag(o.Descending), flag(o.NullsFirst)) // a key may be named as a column is
	}
	return binary.AppendVarint(binary.AppendVarint(append(b, flag(c.Frame.Rows)), c.Frame.Start), c.Frame.End)
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// shown is the column of a function over a unit's rows, and its domain; nil means it has too many values.
func (c WindowColumn) shown(rows int64) (*policy.Column, *policy.Domain) {
	number := func(name string, t policy.Type, most int64) (*policy.Column, *policy.Domain) {
		return &policy.Column{Name: name, Type: t, Typmod: -1}, steppedDomain(t, -1, 1, most, policy.NullExclude)
	}
	valueOf := func(name string) (*policy.Column, *policy.Domain) {
		own := &policy.Column{Name: name + c.Column.Name, Type: c.Column.Type, Typmod: c.Column.Typmod, Blanks: c.Column.Blanks, Snap: c.Column.Snap, Hide: c.Column.Hide}
		if own.Domain = c.Column.Domain.WithNull(); own.Domain.Null < 0 {
			return own, nil
		}
		own.Hide = own.Hide && own.HiddenCell() != own.Domain.Null // rows without such a row are NULL too
		return own, own.Domain
	}
	switch c.Kind {
	case WindowRowNumber:
		return number("row number", policy.Int8, rows)
	case WindowRank:
		return number("rank", policy.Int8, rows)
	case WindowDenseRank:
		return number("dense rank", policy.Int8, rows)
	case WindowNtile:
		return number("ntile", policy.Int4, min(rows, c.Offset))
	case WindowLag, WindowLead:
		word := map[WindowKind]string{WindowLag: "lag ", WindowLead: "lead "}[c.Kind]
		if c.Column == nil {
			return &policy.Column{Name: word + "there", Type: policy.Bool, Typmod: -1}, truths()
		}
		return valueOf(word)
	case WindowFirst:
		return valueOf("first ")
	case WindowLast:
		return valueOf("last ")
	case WindowAggregate:
		a := c.Aggregate
		if !c.Frame.Filled() && a.Where == nil {
			a.Where = predicate.AllOf{} // the frame may have no row
		}
		return a.Shown(rows)
	}
	return nil, nil
}

// slides reports whether a frame begins and ends within its partition. Where a unit may have any number of rows the
// time for such frames is in proportion to a product of two, and an answer that has no time tells of that unit.
func (c WindowColumn) slides() bool {
	framed := c.Kind == WindowAggregate || c.Kind == WindowFirst || c.Kind == WindowLast
	return framed && c.Frame.Start != FrameFirst && c.Frame.End != FrameLast
}

// NewWindowed makes the table of a Windowed: the columns and keys of From, then the functions. It is nil where one of
// them has more values than a domain may have cells, or takes too long for any number of rows.
func NewWindowed(w *Windowed) *policy.Table {
	rows := w.From.MaxRowsPerUnit
	if w.First > 0 {
		rows = min(rows, w.Last-w.First+1)
	}
	t := newExtended(w, rows)
	t.AnyRows = t.AnyRows && (w.First == 0 || w.Last == w.From.MaxRowsPerUnit)
	for _, f := range w.Columns {
		c, domain := f.shown(w.From.MaxRowsPerUnit)
		if domain == nil || w.From.AnyRows && f.slides() {
			return nil
		}
		if c.Type == policy.NumericType && f.Kind == WindowAggregate && f.Aggregate.Kind == UnitSum {
			c.Typmod = -1
		}
		c.Extreme = extreme(w.From, cmp.Or(f.Column, f.Aggregate.Column))
		addColumn(t, c, w.From, domain)
	}
	return t
}

// SameAs reports whether two functions say the same of every row.
func (c WindowColumn) SameAs(other WindowColumn) bool {
	return slices.Equal(c.encode(nil), other.encode(nil))
}

// WindowShown is the column that a function over the rows of a table is, without its place in one.
func WindowShown(c WindowColumn, from *policy.Table) *policy.Column {
	own, domain := c.shown(from.MaxRowsPerUnit)
	if domain == nil {
		return nil
	}
	own.Domain = domain
	return own
}
