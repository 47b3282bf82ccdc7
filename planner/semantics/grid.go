package semantics

import (
	"math"
	"math/big"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Use is what values are added up for.
type Use uint8

const (
	Alone   Use = iota // sums of them
	Squared            // sums of their products with others, and with themselves beside these
	Rounded            // sums of their squares, each of which is divided by a power of 100 and rounded
	Scored             // scores among which one is chosen
)

// The largest whole numbers that are added up: 2^30 rows of them stay within what a release says (mechanisms.MaxCount),
// those of one unit within 2^40, so that at each cost that a session may ask for there is noise for them. A score is
// smaller.
const (
	MaxAdded   = 1 << 31
	maxOfUnit  = 1 << 40
	maxScored  = 1 << 26
	MaxSquare  = 1 << 30
	maxOfTotal = 1 << 28 // whose squares a ladder reaches to (totals.MaxTop)
)

// Largest is how large the whole numbers may be. Where a unit may have any number of rows squares are of units' totals,
// to which that does not matter (derived.Laddered).
func (u Use) Largest(t *policy.Table) int64 {
	most := min(MaxAdded, maxOfUnit/max(t.Contribution().Rows, 1))
	if derived.AnyRows(t) {
		most = MaxAdded
	}
	switch u {
	case Squared:
		if derived.AnyRows(t) {
			return maxOfTotal
		}
		return int64(math.Sqrt(float64(most)))
	case Rounded:
		return MaxSquare
	case Scored:
		return min(maxScored, most)
	}
	return most
}

// Grid is the scale on which values are added up: x = (Centre + k)·10^Exponent.
type Grid struct {
	Exponent int
	Centre   int64
}

// GridOf is the grid for values from least to most: as fine as they come, as far as factors stay small. Plain sums are
// added up from zero, centred ones from the middle. Ends beyond what nearest10 tells apart are not fine but unknown.
func GridOf(least, most *big.Rat, exponent int, centred bool, largest int64) (g Grid, low, high int64) {
	for {
		g = Grid{Exponent: exponent}
		low, high = Nearest10(least, exponent), Nearest10(most, exponent)
		if max(-low, high) <= largest {
			break
		}
		if told := max(-low, high) < math.MaxInt64/2; centred && told && new(big.Rat).Sub(most, least).Cmp(Power10(exponent, 2*largest)) <= 0 {
			break
		}
		exponent++
	}
	if centred {
		g.Centre = low + (high-low)/2
	}
	return g, low - g.Centre, high - g.Centre
}

// Power10 is n·10^exponent.
func Power10(exponent int, n int64) *big.Rat {
	p := new(big.Rat).SetInt(tens(max(exponent, -exponent)))
	if exponent < 0 {
		p.Inv(p)
	}
	return p.Mul(p, new(big.Rat).SetInt64(n))
}

// Nearest10 is x·10^−exponent to the nearest whole number, away from zero at the half; the ends of int64 beyond them.
func Nearest10(x *big.Rat, exponent int) int64 {
	over := tens(max(exponent, 0))
	return nearestQuotient(x.Num(), over.Mul(over, x.Denom()), tens(max(-exponent, 0)))
}

func tens(n int) *big.Int { return derived.Tens(int32(n)) }

// nearestQuotient is n·times/over so, with over above 0. times and over are written to.
func nearestQuotient(n, over, times *big.Int) int64 {
	twice := times.Mul(times, n)
	twice.Lsh(twice, 1)
	negative := twice.Sign() < 0
	twice.Abs(twice).Add(twice, over)
	q := twice.Quo(twice, over.Lsh(over, 1))
	if negative {
		q.Neg(q)
	}
	switch {
	case !q.IsInt64() && negative:
		return math.MinInt64 / 2
	case !q.IsInt64():
		return math.MaxInt64 / 2
	}
	return min(max(q.Int64(), math.MinInt64/2), math.MaxInt64/2)
}

// FactorOf makes the factor of a column with a domain of numbers.
func FactorOf(c *policy.Column, centred bool, largest int64) (plans.Factor, bool) {
	if c.Domain == nil || !c.Domain.Ordered() {
		return plans.Factor{}, false
	}
	least, ok := derived.RatOf(c.Domain.Min)
	most, also := derived.RatOf(c.Domain.Max)
	if !ok || !also {
		return plans.Factor{}, false
	}
	exponent, _ := Finest(c)
	g, low, high := GridOf(least, most, exponent, centred, largest)
	return plans.Factor{Column: c, Exponent: g.Exponent, Centre: g.Centre, Low: low, High: high}, true
}

// Finest is the finest grid of a column's values; exact: they have no more digits.
func Finest(c *policy.Column) (exponent int, exact bool) {
	switch {
	case c.Type.Floating():
		return -18, false
	case c.Type == policy.NumericType && c.Domain.Scale >= 0:
		return -int(c.Domain.Scale), true
	case c.Type == policy.NumericType:
		return -9, false
	}
	return 0, true
}

// Extremes are the least and the largest of values, of which some may be nil.
func Extremes(values []*big.Rat) (least, most *big.Rat) {
	numbers := make([]Number, len(values))
	for i, v := range values {
		if v != nil {
			numbers[i] = Number{rat: v, kind: fractionNumber}
		}
	}
	return ExtremesOf(numbers)
}

// ExtremesOf are the least and the largest of numbers, of which some may be NULL.
func ExtremesOf(values []Number) (least, most *big.Rat) {
	var low, high Number
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		if low.IsNull() || v.Cmp(low) < 0 {
			low = v
		}
		if high.IsNull() || v.Cmp(high) > 0 {
			high = v
		}
	}
	if low.IsNull() {
		return new(big.Rat), new(big.Rat)
	}
	return low.Rat(), high.Rat()
}

// NearestOf is n/over to the nearest whole number, up at the half.
func NearestOf(n, over int64) int64 {
	n += over / 2
	if n < 0 {
		return -((over - 1 - n) / over) // the quotient's floor
	}
	return n / over
}

// MaxDecimals is how many digits after the point are looked at.
const MaxDecimals = 18

// DecimalsOf is how many digits after the point a number has, at most MaxDecimals: a denominator of 2^a·5^b is one of
// the larger of both.
func DecimalsOf(x *big.Rat) int {
	twos := int(x.Denom().TrailingZeroBits())
	rest, five, over := new(big.Int).Rsh(x.Denom(), uint(twos)), big.NewInt(5), new(big.Int)
	fives := 0
	for ; rest.BitLen() > 1 && fives < MaxDecimals; fives++ {
		if rest.QuoRem(rest, five, over); over.Sign() != 0 {
			return MaxDecimals
		}
	}
	if rest.BitLen() > 1 {
		return MaxDecimals
	}
	return min(max(twos, fives), MaxDecimals)
}

// DecimalsIn is how many digits after the point PostgreSQL gives a sum of e, by its rules for numeric operators; −1: it
// is no numeric, or that is not known.
func DecimalsIn(e *Expr, t *policy.Table) int {
	switch typ := e.Type(); {
	case typ.Integer():
		return 0
	case typ != policy.NumericType:
		return -1
	case e.IsConstant() && e.Parameter == 0:
		v, refusal := e.Value(nil)
		if n, ok := v.(policy.Numeric); refusal == nil && ok {
			return int(max(n.Scale, 0))
		}
		return -1
	case e.Form == FormColumn:
		if d := t.Columns[e.Cols[0]].Domain; d != nil && d.Type == policy.NumericType {
			return int(d.Scale)
		}
		return -1
	}
	switch {
	case len(e.Args) == 1 && (strings.HasPrefix(e.Op, "cast:") && e.Typmod() < 0 || e.Op == "-"):
		return DecimalsIn(e.Args[0], t)
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:"):
		_, scale := policy.NumericTypmod(e.Typmod())
		return int(max(scale, 0))
	case len(e.Args) == 2 && e.Op == "*":
		a, b := DecimalsIn(e.Args[0], t), DecimalsIn(e.Args[1], t)
		if a < 0 || b < 0 {
			return -1
		}
		return a + b
	case len(e.Args) == 2 && (e.Op == "+" || e.Op == "-"), e.Op == "coalesce":
		return maxDecimalsOf(e.Args, t)
	case strings.HasPrefix(e.Op, "case"):
		var results []*Expr
		for i, a := range e.Args {
			if i%2 == 1 || i == len(e.Args)-1 {
				results = append(results, a)
			}
		}
		return maxDecimalsOf(results, t)
	}
	return -1
}

// maxDecimalsOf is the most of several, of which NULLs have none.
func maxDecimalsOf(list []*Expr, t *policy.Table) int {
	most := 0
	for _, e := range list {
		if e.IsConstant() && e.Parameter == 0 {
			if v, refusal := e.Value(nil); refusal == nil && v == nil {
				continue
			}
		}
		n := DecimalsIn(e, t)
		if n < 0 {
			return -1
		}
		most = max(most, n)
	}
	return most
}

// Middle evaluates an expression of numbers in the middle of a box: the mean of its ends where it varies on it.
func (b *Box) Middle(e *Expr) (Number, *refuse.Refusal) {
	v, refusal := b.First(e)
	if refusal != nil || v.IsNull() || !b.IsWide(e) {
		return v, refusal
	}
	b.Env.Work.Step(e.Steps())
	high, refusal := e.Value(b.Inner)
	if refusal != nil {
		return Number{}, refusal
	}
	if w, ok := numberOf(high); ok {
		v = between(v, w)
	}
	return v, nil
}

// First is the value of a number at the low end of the box.
func (b *Box) First(e *Expr) (Number, *refuse.Refusal) {
	b.Env.Work.Step(e.Steps())
	low, refusal := e.Value(b.Low)
	if refusal != nil || low == nil {
		return Number{}, refusal
	}
	v, ok := numberOf(low)
	if !ok {
		return Number{}, Evaluation.At(e.Pos, "value is not a number")
	}
	return v, nil
}

// Numeric tells expressions that can be added up.
func Numeric(e *Expr) bool {
	t := e.Type()
	return t.Integer() || t.Floating() || t == policy.NumericType
}

// Literal10 writes 10^exponent as a numeric literal.
func Literal10(exponent int) string {
	if exponent >= 0 {
		return "1" + strings.Repeat("0", exponent)
	}
	return "0." + strings.Repeat("0", -exponent-1) + "1"
}

// Cells as spans: of cells 1, 2, 3 and 7, that come one after the other, the spans [1, 4) and [7, 8).

// SpansOf collects cells that come in order into spans.
type SpansOf []mechanisms.Span

func (s *SpansOf) Add(cell int) { s.AddRange(cell, cell+1) }

// AddRange adds the cells from one up to another, which is not among them.
func (s *SpansOf) AddRange(from, to int) {
	if from >= to {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].To == from {
		(*s)[n-1].To = to
		return
	}
	*s = append(*s, mechanisms.Span{From: from, To: to})
}

// IdentityOf are the numbers below n, in order.
func IdentityOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Ends and strides of series: generate_series(date '2025-01-01', date '2025-01-31', interval '1 week').

// StepsOf is a number, or a moment or interval in microseconds, a month as its fewest days; nil for anything else.
func StepsOf(v policy.Value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case policy.Numeric:
		return new(big.Rat).SetFrac(v.At(max(0, v.Scale)), Power10(max(0, int(v.Scale)), 1).Num())
	case policy.Date:
		return new(big.Rat).SetInt64(int64(v) * dayMicros)
	case policy.Timestamp:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Timestamptz:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Interval:
		days := big.NewInt(int64(v.Months)*28 + int64(v.Days))
		return new(big.Rat).SetInt(days.Add(days.Mul(days, big.NewInt(dayMicros)), big.NewInt(v.Micros)))
	}
	return nil
}

// Binary digits of the whole numbers of a domain: of values from 8 to 15 three are open, and 8 is in all of them.

// Digit is one that the values of a domain may differ in: those have it for which (x − from) % modulus ≥ half.
type Digit struct {
	from, modulus, half *big.Int
	Worth               *big.Int // what it adds to the number: the sign's is negative
	sign                bool     // those have it for which x − from is below half
}

// OpenDigits are the digits in which whole numbers from least to most may differ, in two's complement, and the number
// that the others make.
func OpenDigits(least, most int64) (common *big.Int, digits []Digit) {
	n := max(new(big.Int).Xor(big.NewInt(least), big.NewInt(least>>63)).BitLen(), new(big.Int).Xor(big.NewInt(most), big.NewInt(most>>63)).BitLen())
	crosses := least < 0 && most >= 0
	common = new(big.Int)
	if !crosses {
		n = new(big.Int).Xor(big.NewInt(least), big.NewInt(most)).BitLen()
		common.Lsh(common.Rsh(big.NewInt(least), uint(n)), uint(n)) // towards −∞: the lowest n digits are none
	}
	power := func(k int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(k)) }
	from := common
	if crosses {
		from = new(big.Int).Neg(power(n))
		digits = append(digits, Digit{from: from, modulus: power(n + 1), half: power(n), Worth: from, sign: true})
	}
	for k := range n {
		digits = append(digits, Digit{from: from, modulus: power(k + 1), half: power(k), Worth: power(k)})
	}
	return common, digits
}

// WholeRange is a domain of all whole numbers between its ends.
func WholeRange(d *policy.Domain) (least, most int64, ok bool) {
	if d == nil || d.Step.Whole != 1 {
		return 0, 0, false
	}
	least, ok = d.Min.(int64)
	most, whole := d.Max.(int64)
	return least, most, ok && whole
}

// Holds is that a value has the digit, or has it not. Numerics do not overflow, so that it fails for no value.
func (d Digit) Holds(x *pg.Node, has bool, t *Translator, pos int) (*Expr, *refuse.Refusal) {
	e, refusal := t.Expr(ast.Cast(x, policy.NumericType))
	op := ">="
	if has == d.sign {
		op = "<"
	}
	for _, step := range []struct {
		op string
		by *big.Int
	}{{"-", d.from}, {"%", d.modulus}, {op, d.half}} {
		if refusal != nil {
			return nil, refusal
		}
		constant, refused := t.Expr(ast.Cast(pg.MakeAConstStrNode(step.by.String(), int32(pos)), policy.NumericType))
		if refused != nil {
			return nil, refused
		}
		e, refusal = t.Combine(step.op, pos, e, constant)
	}
	return e, refusal
}
