package semantics

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Number is a value among those that are added up cell by cell, of which there may be a million. Most are a whole
// number of 10^−scale that has room in 64 bits, and are placed on a grid without a fraction of large numbers. The zero
// value is NULL. What is said of a Number is what is said of its fraction (Rat), to the last digit.
type Number struct {
	digits *big.Int // of a decimal that has no room in n
	rat    *big.Rat
	n      int64 // digits, or the bits of a floating number
	scale  int32
	kind   numberKind
}

type numberKind uint8

const (
	unknownNumber numberKind = iota
	decimalNumber
	floatNumber
	fractionNumber
)

// numberOf is a value as a number; false means it is none.
func numberOf(v policy.Value) (Number, bool) {
	switch v := v.(type) {
	case int64:
		return Number{n: v, kind: decimalNumber}, true
	case policy.Date: // days, of which differences are added up
		return Number{n: int64(v), kind: decimalNumber}, true
	case policy.Numeric:
		if v.Scale >= 0 {
			return decimalOf(v.Coefficient, v.Scale), true
		}
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return Number{n: int64(math.Float64bits(v)), kind: floatNumber}, true
		}
	}
	x, ok := derived.RatOf(v)
	return Number{rat: x, kind: fractionNumber}, ok
}

// decimalOf is digits·10^−scale, which keeps no hold of digits that have room elsewhere.
func decimalOf(digits *big.Int, scale int32) Number {
	if digits.IsInt64() {
		return Number{n: digits.Int64(), scale: scale, kind: decimalNumber}
	}
	return Number{digits: digits, scale: scale, kind: decimalNumber}
}

// IsNull reports whether it is no number.
func (x Number) IsNull() bool { return x.kind == unknownNumber }

func (x Number) float() float64 { return math.Float64frombits(uint64(x.n)) }

func (x Number) whole() *big.Int {
	if x.digits != nil {
		return x.digits
	}
	return big.NewInt(x.n)
}

// Rat is its fraction; nil is NULL.
func (x Number) Rat() *big.Rat {
	switch x.kind {
	case decimalNumber:
		return new(big.Rat).SetFrac(x.whole(), derived.Tens(x.scale))
	case floatNumber:
		return new(big.Rat).SetFloat64(x.float())
	}
	return x.rat
}

// Cmp compares numbers.
func (x Number) Cmp(y Number) int {
	switch {
	case x.kind == decimalNumber && y.kind == decimalNumber && x.scale == y.scale:
		if x.digits == nil && y.digits == nil {
			return cmp.Compare(x.n, y.n)
		}
		return x.whole().Cmp(y.whole())
	case x.kind == decimalNumber && y.kind == decimalNumber:
		scale := max(x.scale, y.scale)
		a, b := derived.Tens(scale-x.scale), derived.Tens(scale-y.scale)
		return a.Mul(a, x.whole()).Cmp(b.Mul(b, y.whole()))
	case x.kind == floatNumber && y.kind == floatNumber:
		return cmp.Compare(x.float(), y.float())
	}
	return x.Rat().Cmp(y.Rat())
}

// Decimals is DecimalsOf its fraction, 0 of NULL.
func (x Number) Decimals() int {
	switch {
	case x.kind == unknownNumber:
		return 0
	case x.kind == decimalNumber && x.digits == nil:
		n, scale := x.n, x.scale
		for ; scale > 0 && n%10 == 0; scale-- {
			n /= 10
		}
		return int(min(scale, MaxDecimals))
	case x.kind == floatNumber: // an odd number of 2^−k has k digits
		if f := x.float(); f != 0 {
			digits, exponent := partsOf(f)
			return min(max(-exponent-bits.TrailingZeros64(digits), 0), MaxDecimals)
		}
		return 0
	}
	return DecimalsOf(x.Rat())
}

// partsOf takes a floating number's magnitude apart: digits·2^exponent.
func partsOf(f float64) (digits uint64, exponent int) {
	of := math.Float64bits(f)
	digits, exponent = of&(1<<52-1), int(of>>52&0x7ff)
	if exponent == 0 {
		return digits, -1074
	}
	return digits | 1<<52, exponent - 1075
}

// powersOfTen are those of 64 bits, up to the largest whose half is a whole number of them too.
var powersOfTen = func() (table [19]int64) {
	table[0] = 1
	for i := 1; i < len(table); i++ {
		table[i] = table[i-1] * 10
	}
	return table
}()

// Nearest10 is that of its fraction.
func (x Number) Nearest10(exponent int) int64 {
	n, ok := int64(0), false
	switch {
	case x.kind == decimalNumber && x.digits == nil:
		n, ok = nearestDecimal(x.n, int(x.scale)+exponent)
	case x.kind == decimalNumber:
		places := int(x.scale) + exponent
		return nearestQuotient(x.digits, tens(max(places, 0)), tens(max(-places, 0)))
	case x.kind == floatNumber:
		n, ok = nearestFloat(x.float(), -exponent)
	}
	if !ok {
		return Nearest10(x.Rat(), exponent)
	}
	return min(max(n, math.MinInt64/2), math.MaxInt64/2)
}

// nearestDecimal is n·10^−places to the nearest whole number, away from zero at the half; false where that needs larger
// numbers.
func nearestDecimal(n int64, places int) (int64, bool) {
	switch {
	case places == 0:
		return n, true
	case places >= 20: // below a half
		return 0, true
	case places >= len(powersOfTen) || -places >= len(powersOfTen) || n == math.MinInt64:
		return 0, false
	case places < 0:
		hi, lo := bits.Mul64(uint64(max(n, -n)), uint64(powersOfTen[-places]))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		return n * powersOfTen[-places], true
	}
	by := powersOfTen[places]
	q, r := n/by, n%by
	if r >= by-r {
		q++
	} else if -r >= by+r {
		q--
	}
	return q, true
}

// nearestFloat is f·10^places to the nearest whole number, away from zero at the half, in 128 bits; false where that
// needs larger numbers.
func nearestFloat(f float64, places int) (int64, bool) {
	digits, exponent := partsOf(f)
	if exponent > 0 || places < 0 || places >= len(powersOfTen) {
		return 0, false
	}
	hi, lo := bits.Mul64(digits, uint64(powersOfTen[places])) // below 2^113
	shift := uint(-exponent)
	if shift >= 115 {
		return 0, true
	}
	if shift > 0 {
		var carry uint64
		if half := shift - 1; half < 64 {
			lo, carry = bits.Add64(lo, 1<<half, 0)
			hi += carry
		} else {
			hi += 1 << (half - 64)
		}
		if shift < 64 {
			lo, hi = lo>>shift|hi<<(64-shift), hi>>shift
		} else {
			lo, hi = hi>>(shift-64), 0
		}
	}
	if hi != 0 || lo > math.MaxInt64/2 {
		return 0, false
	}
	if f < 0 {
		return -int64(lo), true
	}
	return int64(lo), true
}

// between is the mean of two numbers.
func between(x, y Number) Number {
	if x.kind == decimalNumber && y.kind == decimalNumber && x.digits == nil && y.digits == nil {
		scale := max(x.scale, y.scale)
		a, first := nearestDecimal(x.n, int(x.scale-scale))
		b, second := nearestDecimal(y.n, int(y.scale-scale))
		const room = math.MaxInt64 / 20
		if first && second && max(a, -a, b, -b) < room {
			return Number{n: 5 * (a + b), scale: scale + 1, kind: decimalNumber}
		}
	}
	if x.kind == decimalNumber && y.kind == decimalNumber {
		scale := max(x.scale, y.scale)
		a, b := derived.Tens(scale-x.scale), derived.Tens(scale-y.scale)
		a.Mul(a, x.whole()).Add(a, b.Mul(b, y.whole()))
		return decimalOf(a.Mul(a, big.NewInt(5)), scale+1)
	}
	v := new(big.Rat).Add(x.Rat(), y.Rat())
	return Number{rat: v.Mul(v, big.NewRat(1, 2)), kind: fractionNumber}
}

// price * (1 - discount): a product of columns, each moved by a constant, is added up by the database, as a product of
// whole numbers; where that is larger than what is added up, divided by a power of ten and rounded, row by row. Other
// expressions are added up by cells, where a value inside a step counts as its middle.

// maxFactors is how many columns a product may have.
const maxFactors = 3

// moved is a column less a constant. Where it is NULL it counts as Fill less that constant, as in price -
// coalesce(refund, 0); nil means all is NULL then.
type moved struct {
	Column int
	By     *big.Rat
	Fill   *big.Rat
}

// Product is a constant times moved columns.
type Product struct {
	Times *big.Rat
	Of    []moved
}

// ProductOf reads an expression as a product; nil means it is something else.
func ProductOf(e *Expr) *Product {
	if e.IsConstant() {
		if e.Parameter > 0 {
			return nil
		}
		v, refusal := e.Value(nil)
		x, ok := derived.RatOf(v)
		if refusal != nil || !ok {
			return nil
		}
		return &Product{Times: x}
	}
	switch {
	case e.Form == FormColumn:
		return &Product{big.NewRat(1, 1), []moved{{e.Cols[0], new(big.Rat), nil}}}
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:"):
		if !KeepsNumbers(e) {
			return nil // it may round
		}
		return ProductOf(e.Args[0])
	case len(e.Args) == 2 && e.Op == "coalesce":
		of, other := ProductOf(e.Args[0]), ProductOf(e.Args[1])
		if of == nil || other == nil || len(of.Of) != 1 || len(other.Of) > 0 || of.Times.Cmp(big.NewRat(1, 1)) != 0 || of.Of[0].By.Sign() != 0 || of.Of[0].Fill != nil {
			return nil
		}
		return &Product{of.Times, []moved{{of.Of[0].Column, of.Of[0].By, other.Times}}}
	case len(e.Args) == 1 && e.Op == "-":
		if p := ProductOf(e.Args[0]); p != nil {
			return p.scaled(big.NewRat(-1, 1))
		}
	case len(e.Args) == 2 && (e.Op == "*" || e.Op == "+" || e.Op == "-" || e.Op == "/" && !e.Type().Integer()):
		a, b := ProductOf(e.Args[0]), ProductOf(e.Args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.Op == "/" {
			if len(b.Of) > 0 || b.Times.Sign() == 0 {
				return nil
			}
			return a.scaled(new(big.Rat).Inv(b.Times))
		}
		if e.Op == "*" {
			return &Product{new(big.Rat).Mul(a.Times, b.Times), append(slices.Clone(a.Of), b.Of...)}
		}
		if e.Op == "-" {
			b = b.scaled(big.NewRat(-1, 1))
		}
		return a.plus(b)
	}
	return nil
}

func (p *Product) scaled(by *big.Rat) *Product {
	return &Product{new(big.Rat).Mul(p.Times, by), p.Of}
}

// Needed are the columns without which a sum of products is NULL: all but those that have a value where they are NULL;
// filled: there are some.
func Needed(list []Product) (columns []int, filled bool) {
	for _, p := range list {
		for _, m := range p.Of {
			if m.Fill != nil {
				filled = true
			} else if !slices.Contains(columns, m.Column) {
				columns = append(columns, m.Column)
			}
		}
	}
	slices.Sort(columns)
	return columns, filled
}

// plus adds a constant to a single moved column; nil means the sum is no product.
func (p *Product) plus(q *Product) *Product {
	if len(p.Of) == 0 {
		p, q = q, p
	}
	if len(p.Of) != 1 || len(q.Of) != 0 || p.Times.Sign() == 0 {
		return nil
	}
	by := new(big.Rat).Sub(p.Of[0].By, new(big.Rat).Quo(q.Times, p.Times))
	return &Product{p.Times, []moved{{p.Of[0].Column, by, p.Of[0].Fill}}}
}

// Factors puts the columns on grids of at most each steps, as fine as the product of the largest values is at most
// most; false where a constant is not on its column's grid.
func (p *Product) Factors(t *policy.Table, each, most int64) ([]plans.Factor, bool) {
	if len(p.Of) == 0 || len(p.Of) > maxFactors {
		return nil, false
	}
	exponents := make([]int, len(p.Of))
	for i, m := range p.Of {
		f, ok := FactorOf(t.Columns[m.Column], false, each)
		if !ok {
			return nil, false
		}
		exponents[i] = f.Exponent
	}
	for {
		factors, all := make([]plans.Factor, len(p.Of)), int64(1)
		largest, at := int64(0), 0
		for i, m := range p.Of {
			var ok bool
			if factors[i], ok = m.Factor(t.Columns[m.Column], exponents[i]); !ok {
				return nil, false
			}
			size := max(-factors[i].Low, factors[i].High)
			if size > 0 && all > most/size {
				all = 2 * most
			} else {
				all *= size
			}
			if size > largest {
				largest, at = size, i
			}
		}
		if all == 0 {
			return nil, false
		}
		if all <= most {
			slices.SortFunc(factors, plans.CompareFactors)
			return factors, true
		}
		exponents[at]++
	}
}

// Factor is the moved column on a grid.
func (m moved) Factor(c *policy.Column, exponent int) (plans.Factor, bool) {
	centre := new(big.Rat).Quo(m.By, Power10(exponent, 1))
	least, ok := derived.RatOf(c.Domain.Min)
	most, also := derived.RatOf(c.Domain.Max)
	if !ok || !also || !centre.IsInt() || !centre.Num().IsInt64() || centre.Num().BitLen() > 40 {
		return plans.Factor{}, false
	}
	f := plans.Factor{Column: c, Exponent: exponent, Centre: centre.Num().Int64()}
	f.Low, f.High = Nearest10(least, exponent)-f.Centre, Nearest10(most, exponent)-f.Centre
	if m.Fill == nil {
		return f, true
	}
	fill := new(big.Rat).Mul(m.Fill, Power10(-exponent, 1))
	if own, _ := Finest(c); exponent <= own && !fill.IsInt() || fill.Num().BitLen()-fill.Denom().BitLen() > 40 {
		return plans.Factor{}, false
	}
	f.Filled, f.Fill = true, Nearest10(m.Fill, exponent)-f.Centre
	f.Low, f.High = min(f.Low, f.Fill), max(f.High, f.Fill)
	return f, true
}
