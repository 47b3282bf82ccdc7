package semantics

import (
	"math"
	"math/big"
	"strings"

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
	MaxAdded  = 1 << 31
	maxOfUnit = 1 << 40
	maxScored = 1 << 26
	MaxSquare = 1 << 30
)

// Largest is how large the whole numbers may be.
func (u Use) Largest(t *policy.Table) int64 {
	most := min(MaxAdded, maxOfUnit/max(t.Contribution().Rows, 1))
	switch u {
	case Squared:
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
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	r := new(big.Rat).SetInt64(n)
	if exponent >= 0 {
		return r.Mul(r, new(big.Rat).SetInt(p))
	}
	return r.Quo(r, new(big.Rat).SetInt(p))
}

// Nearest10 is x·10^−exponent to the nearest whole number, away from zero at the half; the ends of int64 beyond them.
func Nearest10(x *big.Rat, exponent int) int64 {
	q := new(big.Rat).Quo(x, Power10(exponent, 1))
	half := big.NewRat(1, 2)
	if q.Sign() < 0 {
		half.Neg(half)
	}
	q.Add(q, half)
	n := new(big.Int).Quo(q.Num(), q.Denom())
	if !n.IsInt64() {
		if n.Sign() < 0 {
			return math.MinInt64 / 2
		}
		return math.MaxInt64 / 2
	}
	return min(max(n.Int64(), math.MinInt64/2), math.MaxInt64/2)
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
	for _, v := range values {
		if v == nil {
			continue
		}
		if least == nil || v.Cmp(least) < 0 {
			least = v
		}
		if most == nil || v.Cmp(most) > 0 {
			most = v
		}
	}
	if least == nil {
		least, most = new(big.Rat), new(big.Rat)
	}
	return least, most
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

// DecimalsOf is how many digits after the point a number has, at most MaxDecimals.
func DecimalsOf(x *big.Rat) int {
	scaled, ten := new(big.Rat).Set(x), big.NewRat(10, 1)
	for n := range MaxDecimals {
		if scaled.IsInt() {
			return n
		}
		scaled.Mul(scaled, ten)
	}
	return MaxDecimals
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
		return int(scale)
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
func (b *Box) Middle(e *Expr) (*big.Rat, *refuse.Refusal) {
	v, refusal := b.First(e)
	if refusal != nil || v == nil || !b.IsWide(e) {
		return v, refusal
	}
	high, refusal := e.Value(b.Inner)
	if refusal != nil {
		return nil, refusal
	}
	if w, ok := derived.RatOf(high); ok {
		v.Add(v, w).Mul(v, big.NewRat(1, 2))
	}
	return v, nil
}

// First is the value of a number at the low end of the box; nil means NULL.
func (b *Box) First(e *Expr) (*big.Rat, *refuse.Refusal) {
	low, refusal := e.Value(b.Low)
	if refusal != nil || low == nil {
		return nil, refusal
	}
	v, ok := derived.RatOf(low)
	if !ok {
		return nil, Evaluation.At(e.Pos, "value is not a number")
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
