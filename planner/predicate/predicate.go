// Package predicate holds conditions on the normalised columns of one private table, which are true or not, never NULL:
// the planner folds three-valued logic into them before. Of
//
//	SELECT count(*) FROM people WHERE NOT (age < 18 OR sex = 'f') AND hired < '2020-02-10 12:00'
//
// there are left the cells of age from 18 on, those of sex but for f and NULL, and a comparison of hired, whose
// constant lies inside a step: AllOf{InCells, InCells, Compare}. All and Any put such together, Not turns one round,
// and what comes out is written in one way, so that questions that mean the same have the same digest however they were
// asked. Package rewrite writes them in SQL.
package predicate

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// The canonical encoding of predicates, of which that of measures is made. Every part is preceded by its length or
// count, so that what is different has different encodings.

// EncodeText writes a text behind its length.
func EncodeText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// EncodeSpans writes spans behind their number.
func EncodeSpans(b []byte, spans []mechanisms.Span) []byte {
	b = binary.AppendUvarint(b, uint64(len(spans)))
	for _, s := range spans {
		b = binary.AppendUvarint(b, uint64(s.From))
		b = binary.AppendUvarint(b, uint64(s.To))
	}
	return b
}

// Encode writes a canonical predicate.
func Encode(b []byte, p Pred) []byte {
	switch p := p.(type) {
	case AllOf:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(p)))
		for _, q := range p {
			b = Encode(b, q)
		}
		return b
	case AnyOf:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(p)))
		for _, q := range p {
			b = Encode(b, q)
		}
		return b
	case InCells:
		return EncodeSpans(EncodeText(append(b, 'i'), p.Column.Name), p.Spans)
	case Compare:
		b = EncodeText(EncodeText(append(b, 'c'), p.Column.Name), p.Op)
		return EncodeText(b, Text(CanonicalValue(p.Value)))
	case Past:
		b = EncodeText(EncodeText(append(b, 'p'), p.Column.Name), p.Op)
		return binary.AppendVarint(b, p.By)
	case Between:
		return EncodeText(EncodeText(EncodeText(append(b, 'b'), p.Left.Name), p.Right.Name), p.Op)
	case Sum:
		b = binary.AppendUvarint(append(b, 's'), uint64(len(p.Terms)))
		for _, t := range p.Terms {
			b = EncodeText(binary.AppendVarint(b, t.Times), t.Column.Name)
		}
		return EncodeText(EncodeText(b, p.Op), Text(CanonicalValue(p.Value)))
	case Never:
		return append(b, 'n')
	}
	return append(b, 't')
}

// CanonicalValue makes 1.50 and 1.5 one value.
func CanonicalValue(v policy.Value) policy.Value {
	n, ok := v.(policy.Numeric)
	if !ok {
		return v
	}
	for n.Scale > 0 {
		shorter := n.Rescale(n.Scale - 1)
		if shorter.Cmp(n) != 0 {
			break
		}
		n = shorter
	}
	return n
}

// Text writes a value for canonical texts and literals: equal values have equal texts within one Go type.
func Text(v policy.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	case policy.Numeric:
		return v.String()
	case policy.Date:
		return "d" + strconv.FormatInt(int64(v), 10)
	case policy.Timestamp:
		return "t" + strconv.FormatInt(int64(v), 10)
	case policy.Timestamptz:
		return "z" + strconv.FormatInt(int64(v), 10)
	case policy.Time:
		return "h" + strconv.FormatInt(int64(v), 10)
	case policy.Interval:
		return "i" + strconv.FormatInt(int64(v.Months), 10) + "/" + strconv.FormatInt(int64(v.Days), 10) + "/" + strconv.FormatInt(v.Micros, 10)
	case []policy.Value:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = strconv.Quote(Text(p))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "?"
}

// Pred is a two-valued predicate on the normalised columns of one table: true or not, never NULL. The planner has
// already folded three-valued logic into it.
type Pred interface{ pred() }

// AllOf holds where each of its parts holds, AnyOf where one does. Both are flat and non-empty.
type (
	AllOf []Pred
	AnyOf []Pred
)

// InCells holds where the column's cell is in one of the spans (sorted, disjoint, half-open). It can name the cells of
// 'other' and NULL.
type InCells struct {
	Column *policy.Column
	Spans  []mechanisms.Span
}

// Compare holds where the normalised column is not NULL and compares so with a constant of its type that lies off its
// grid. Op is one of < <= > >= = <>.
type Compare struct {
	Column *policy.Column
	Op     string
	Value  policy.Value
}

// Past holds where the normalised column, of moments or of whole numbers, is not NULL and lies so far past the start of
// its cell, in microseconds or in ones: of visited_at in steps of an hour it is, in the cells of 17:00,
// visited_at::time <= '17:30'. Op is one of those of Compare.
type Past struct {
	Column *policy.Column
	Op     string
	By     int64
}

// Between holds where two columns of one type are both not NULL and compare so, value by value.
type Between struct {
	Left, Right *policy.Column
	Op          string
}

// Sum holds where none of the columns of Terms is NULL and what they add up to, row by row, compares so with Value: of
// whole numbers, days and microseconds a whole number (int64), of terms of which some is a numeric a policy.Numeric.
// The planner has held the terms against the ends of whole numbers (derived.ComputedColumn).
type Sum struct {
	Terms []Term
	Op    string
	Value policy.Value
}

// Term is a column times a whole number that is not 0: dates count as days since 1970, moments as microseconds.
type Term struct {
	Times  int64
	Column *policy.Column
}

// Never holds nowhere.
type Never struct{}

func (AllOf) pred()   {}
func (AnyOf) pred()   {}
func (InCells) pred() {}
func (Compare) pred() {}
func (Between) pred() {}
func (Past) pred()    {}
func (Sum) pred()     {}
func (Never) pred()   {}

// A comparison inside a step and a set of cells of the same column say in part the same. What one of them says already
// is left out of the other, so that there is one way to write it.

// compared are the regular cells in all of which a comparison holds, and the one that it divides.
func (p Compare) compared() (whole []mechanisms.Span, divided int, ok bool) {
	d := p.Column.Domain
	cell, inside := d.Cell(p.Value)
	if !inside || cell >= d.Regular {
		return nil, 0, false
	}
	switch p.Op {
	case "<", "<=":
		whole = FromTo(0, cell)
	case ">", ">=":
		whole = FromTo(cell+1, d.Regular)
	case "<>":
		whole = append(FromTo(0, cell), FromTo(cell+1, d.Regular)...)
	}
	return whole, cell, true
}

// compareWithin drops what comparisons and cells of a conjunction, or a disjunction, say twice.
func compareWithin(parts []Pred, all bool) []Pred {
	for i, q := range parts {
		compare, ok := q.(Compare)
		if !ok {
			continue
		}
		for j, p := range parts {
			in, ok := p.(InCells)
			if !ok || in.Column != compare.Column {
				continue
			}
			whole, divided, ok := compare.compared()
			if !ok {
				continue
			}
			cell := One(divided)
			may := Unite(whole, cell)
			left := Intersect(in.Spans, may)
			switch has := Contains(in.Spans, divided); {
			case all && !has: // only whole cells are left
				parts[i], parts[j] = nil, Cells(in.Column, Intersect(in.Spans, whole))
			case all && slices.Equal(left, may):
				parts[j] = nil
			case all:
				parts[j] = Cells(in.Column, left)
			case has:
				parts[i], parts[j] = Never{}, Cells(in.Column, Unite(in.Spans, whole))
			default:
				parts[j] = Cells(in.Column, Intersect(in.Spans, Outside(whole, in.Column.Domain.Size())))
			}
			if _, still := parts[i].(Compare); !still {
				break
			}
		}
	}
	return parts
}

// Order compares two values of one ordered kind; false means they are not. NaN is above every number.
func Order(a, b policy.Value) (int, bool) {
	switch a := a.(type) {
	case int64:
		return orderAs(a, b)
	case policy.Date:
		return orderAs(a, b)
	case policy.Timestamp:
		return orderAs(a, b)
	case policy.Timestamptz:
		return orderAs(a, b)
	case float64:
		b, ok := b.(float64)
		return cmp.Compare(-b, -a), ok // which takes NaN for the least
	case policy.Numeric:
		b, ok := b.(policy.Numeric)
		return a.Cmp(b), ok
	}
	return 0, false
}

func orderAs[T cmp.Ordered](a T, b policy.Value) (int, bool) {
	v, ok := b.(T)
	return cmp.Compare(a, v), ok
}
