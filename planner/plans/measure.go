package plans

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// SumTerm is a whole number times a product of factors; without factors the whole number alone.
type SumTerm struct {
	Times   int64
	Factors []Factor
}

// One is the sum of one product.
func One(factors []Factor) []SumTerm { return []SumTerm{{1, factors}} }

// BoundOfTerms is what the sum of terms may be; false where that is beyond what is calculated in.
func BoundOfTerms(terms []SumTerm) (mechanisms.Bound, bool) {
	low, high := new(big.Int), new(big.Int)
	for _, t := range terms {
		least, most := EndsOf(t)
		low.Add(low, least)
		high.Add(high, most)
	}
	most := big.NewInt(derived.MaxMagnitude)
	if new(big.Int).Abs(low).Cmp(most) > 0 || new(big.Int).Abs(high).Cmp(most) > 0 {
		return mechanisms.Bound{}, false
	}
	return mechanisms.Bound{Low: low.Int64(), High: high.Int64()}, true
}

// EndsOf are the least and the largest value of a term.
func EndsOf(t SumTerm) (least, most *big.Int) {
	least, most = big.NewInt(1), big.NewInt(1)
	if f := t.Factors; len(f) == 2 && f[0] == f[1] {
		size := big.NewInt(max(-f[0].Low, f[0].High))
		least, most = new(big.Int), size.Mul(size, size)
	} else {
		for _, f := range t.Factors {
			least, most = derived.SpanOf(least, most, big.NewInt(f.Low), big.NewInt(f.High))
		}
	}
	times := big.NewInt(t.Times)
	return derived.SpanOf(least, most, times, times)
}

// CompareFactors orders the factors of a product, so that a * b and b * a are one.
func CompareFactors(a, b Factor) int {
	if by := derived.CompareNames(a.Column, b.Column); by != 0 {
		return by
	}
	for _, pair := range [][2]int64{{int64(a.Exponent), int64(b.Exponent)}, {a.Centre, b.Centre}, {a.Low, b.Low}, {a.High, b.High}, {fillOf(a), fillOf(b)}} {
		if pair[0] != pair[1] {
			return int(min(max(pair[0]-pair[1], -1), 1))
		}
	}
	return 0
}

// fillOf tells factors apart by what NULL counts as.
func fillOf(f Factor) int64 {
	if !f.Filled {
		return math.MinInt64 / 2
	}
	return f.Fill
}

// encodeFactors writes the factors of one term. Where some factor of the sum is filled, each says whether it is.
func encodeFactors(b []byte, factors []Factor, filled bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(factors)))
	for _, f := range factors {
		b = predicate.EncodeText(b, f.Column.Name)
		for _, n := range []int64{int64(f.Exponent), f.Centre, f.Low, f.High} {
			b = binary.AppendVarint(b, n)
		}
		switch {
		case filled && f.Filled:
			b = binary.AppendVarint(append(b, 1), f.Fill)
		case filled:
			b = append(b, 0)
		}
	}
	return b
}

// Sum is what a counter adds up, a whole number of each row: the sum of Terms, which the database computes, or without
// Terms a weight of the row's cells, which Measure.Weigh gives.
type Sum struct {
	Terms  []SumTerm
	Over   int64 // above 1: a row adds the sum of Terms divided by Over, to the nearest, up at the half
	Bound  mechanisms.Bound
	Values int // above 0: different values of so many are counted or added up once each, see mechanisms.Sum
}

// Meaning is EncodeSum.
func (s *Sum) Meaning() []byte { return EncodeSum(nil, s) }

// IsNumberOfValues tells a counter of different values from one that adds them up.
func (s *Sum) IsNumberOfValues() bool {
	return s.Values > 0 && s.Bound == mechanisms.Bound{Low: 0, High: 1}
}

// IsFilled tells a sum in which some factor has a value where its column is NULL.
func (s *Sum) IsFilled() bool {
	return slices.ContainsFunc(s.Terms, func(t SumTerm) bool { return slices.ContainsFunc(t.Factors, func(f Factor) bool { return f.Filled }) })
}

// Factor is a column's value x on a grid, as the whole number round(x·10^−Exponent) − Centre, in [Low, High]. NULL
// makes it NULL, and what it is part of; where it is Filled, as in price - coalesce(refund, 0), it is Fill then, which
// lies in [Low, High] too.
type Factor struct {
	Column    *policy.Column
	Exponent  int
	Centre    int64
	Low, High int64
	Filled    bool
	Fill      int64
}

// EncodeSum is the canonical encoding of what a counter adds up; nil counts rows.
func EncodeSum(b []byte, s *Sum) []byte {
	if s == nil {
		return append(b, 't')
	}
	if s.Over > 1 {
		b = binary.AppendVarint(append(b, 'q'), s.Over)
	}
	one, several, filled := byte('s'), byte('l'), s.IsFilled()
	if filled {
		one, several = 'f', 'm'
	}
	switch {
	case len(s.Terms) == 0:
		b = encodeFactors(append(b, one), nil, filled)
	case len(s.Terms) == 1 && s.Terms[0].Times == 1:
		b = encodeFactors(append(b, one), s.Terms[0].Factors, filled)
	default:
		b = binary.AppendUvarint(append(b, several), uint64(len(s.Terms)))
		for _, t := range s.Terms {
			b = encodeFactors(binary.AppendVarint(b, t.Times), t.Factors, filled)
		}
	}
	return binary.AppendVarint(binary.AppendVarint(b, s.Bound.Low), s.Bound.High)
}

// Term is a part of how a row is read from several releases: Num/Den times the sum of cells of a counter of a measure.
type Term struct {
	Measure, Counter int
	Spans            []mechanisms.Span
	Num, Den         int64
}

// weighted are the parts of a row for package mechanisms.
func (p *Plan) weighted(row []Term) []mechanisms.Weighted {
	parts := make([]mechanisms.Weighted, len(row))
	for i, t := range row {
		parts[i] = mechanisms.Weighted{Spec: p.Measures[t.Measure].Spec, Counter: t.Counter, Spans: t.Spans, Weight: t.Weight()}
	}
	return parts
}

func (t Term) Weight() float64 { return float64(t.Num) / float64(t.Den) }

// WidestError is the largest expected error over the rows of a run that is read from several measures.
func (p *Plan) WidestError(run *Run, confidence mechanisms.Confidence) mechanisms.Error {
	rows := make([][]mechanisms.Weighted, len(run.Mix))
	for i, row := range run.Mix {
		rows[i] = p.weighted(row)
	}
	return mechanisms.WidestMixed(rows, confidence)
}

// MixText writes how a row is read from several measures.
func (p *Plan) MixText(row []Term) string {
	var parts []string
	for i, t := range row {
		sign, num := " + ", t.Num
		if num < 0 {
			sign, num = " − ", -num
		}
		if i == 0 {
			sign = strings.Trim(sign, " +")
		}
		text := sign
		if w := big.NewRat(num, t.Den); !(w.IsInt() && w.Num().Int64() == 1) {
			text += w.RatString() + " × "
		}
		m := p.Measures[t.Measure]
		if cells := mechanisms.CellsIn(t.Spans); cells == m.Spec.Cells {
			text += "all of "
		} else {
			text += predicate.Text(int64(cells)) + " of " + predicate.Text(int64(m.Spec.Cells)) + " cells of "
		}
		parts = append(parts, text+m.Kind+" "+m.Name)
	}
	return strings.Join(parts, "")
}

// MaxNamed and MaxDescribed are how many bytes of a measure's names, and of its meaning, the ledger keeps.
const MaxNamed, MaxDescribed = 1 << 12, 1<<24 - 1<<13

// IsTooLong reports whether the ledger would not keep what the measure is.
func (m *Measure) IsTooLong() bool {
	return len(m.Kind)+len(m.Name)+len(m.Table.Schema)+1+len(m.Table.Name) > MaxNamed || len(m.Described) > MaxDescribed
}

// DescribedVersion is the first byte of a description of a measure.
const DescribedVersion = 1

// Describe is the planner's description of the measure, from which a later plan reads it again.
func (m *Measure) Describe() []byte {
	b := []byte{DescribedVersion, 0}
	if m.Shared {
		b[1] = 1
	}
	b = predicate.EncodeText(predicate.EncodeText(b, m.Kind), m.Name)
	return append(b, m.Described...)
}

// ColumnIndex is the place of a column in its table; −1: it is of another.
func ColumnIndex(t *policy.Table, c *policy.Column) int { return slices.Index(t.Columns, c) }

// ColumnNames lists columns for people.
func ColumnNames(columns []*policy.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// MaxCells bounds the cells of a question and the combinations of cells that a plan evaluates expressions on.
var MaxCells = policy.MaxCells // tests set it

// JoinSpans are the spans of several cells together.
func JoinSpans(list [][]mechanisms.Span) []mechanisms.Span {
	if len(list) == 1 {
		return list[0]
	}
	var all []mechanisms.Span
	for _, spans := range list {
		all = append(all, spans...)
	}
	return predicate.Unite(all, nil)
}

// SQL tells neighbouring pieces of a column apart by comparisons with their first values, by halves, and by a division
// where many of them have one length: of (closed - opened) / 86400, which is rounded toward zero, those below 0 and
// those above, and the one around it, which is twice as long, by itself.

const (
	maxCompared = 64 // so many pieces are found by comparisons, which read no cell
	leastEven   = 16 // of more, so many of one length are found by a division
)

// EvenRun is one piece, or neighbouring ones of one length, of which the last may be shorter.
type EvenRun struct {
	From   int // number of the first piece
	Length int // 0: one piece
}

// EvenRuns parts pieces, of which the first cells are given, into runs. The last piece ends below cells.
func EvenRuns(starts []int, cells int) (runs []EvenRun) {
	for from := 0; from < len(starts); {
		length, to := evenRun(starts, cells, from)
		if len(starts) <= maxCompared || to-from < leastEven {
			length, to = 0, from+1
		}
		runs, from = append(runs, EvenRun{from, length}), to
	}
	return runs
}

// evenRun is the length of the pieces from one on to below another.
func evenRun(starts []int, cells, from int) (length, to int) {
	own := func(piece int) int {
		if piece+1 == len(starts) {
			return cells - starts[piece]
		}
		return starts[piece+1] - starts[piece]
	}
	length, to = own(from), from+1
	for to < len(starts) && own(to) == length {
		to++
	}
	if to < len(starts) && own(to) < length {
		to++
	}
	return length, to
}

// Divisor is the greatest number that divides both.
func Divisor[T int | int64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
