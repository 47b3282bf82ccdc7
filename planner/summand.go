package planner

import (
	"math"
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// use is what values are added up for.
type use uint8

const (
	alone   use = iota // sums of them
	squared            // sums of their products with others, and with themselves beside these
	rounded            // sums of their squares, each of which is divided by a power of 100 and rounded
	scored             // scores among which one is chosen
)

// The largest whole numbers that are added up: 2^30 rows of them stay within what a release says (mechanisms.MostCount),
// those of one unit within 2^40, so that at each cost that a session may ask for there is noise for them. A score is smaller.
const (
	mostAdded  = 1 << 31
	mostOfUnit = 1 << 40
	mostScored = 1 << 26
	mostSquare = 1 << 30
)

// largest is how large the whole numbers may be.
func (u use) largest(t *policy.Table) int64 {
	most := min(mostAdded, mostOfUnit/max(t.Contribution().Rows, 1))
	switch u {
	case squared:
		return int64(math.Sqrt(float64(most)))
	case rounded:
		return mostSquare
	case scored:
		return min(mostScored, most)
	}
	return most
}

// grid is the scale on which values are added up: x = (Centre + k)·10^Exponent.
type grid struct {
	exponent int
	centre   int64
}

// gridOf is the grid for values from least to most: as fine as they come, as far as factors stay small. Plain sums are
// added up from zero, centred ones from the middle. Ends beyond what nearest10 tells apart are not fine but unknown.
func gridOf(least, most *big.Rat, exponent int, centred bool, largest int64) (g grid, low, high int64) {
	for {
		g = grid{exponent: exponent}
		low, high = nearest10(least, exponent), nearest10(most, exponent)
		if max(-low, high) <= largest {
			break
		}
		if told := max(-low, high) < math.MaxInt64/2; centred && told && new(big.Rat).Sub(most, least).Cmp(power10(exponent, 2*largest)) <= 0 {
			break
		}
		exponent++
	}
	if centred {
		g.centre = low + (high-low)/2
	}
	return g, low - g.centre, high - g.centre
}

// power10 is n·10^exponent.
func power10(exponent int, n int64) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	r := new(big.Rat).SetInt64(n)
	if exponent >= 0 {
		return r.Mul(r, new(big.Rat).SetInt(p))
	}
	return r.Quo(r, new(big.Rat).SetInt(p))
}

// nearest10 is x·10^−exponent to the nearest whole number, away from zero at the half; the ends of int64 beyond them.
func nearest10(x *big.Rat, exponent int) int64 {
	q := new(big.Rat).Quo(x, power10(exponent, 1))
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

// factorOf makes the factor of a column with a domain of numbers.
func factorOf(c *policy.Column, centred bool, largest int64) (Factor, bool) {
	if c.Domain == nil || !c.Domain.Ordered() {
		return Factor{}, false
	}
	least, ok := derived.RatOf(c.Domain.Min)
	most, also := derived.RatOf(c.Domain.Max)
	if !ok || !also {
		return Factor{}, false
	}
	exponent, _ := finest(c)
	g, low, high := gridOf(least, most, exponent, centred, largest)
	return Factor{c, g.exponent, g.centre, low, high}, true
}

// finest is the finest grid of a column's values; exact: they have no more digits.
func finest(c *policy.Column) (exponent int, exact bool) {
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

// extremes are the least and the largest of values, of which some may be nil.
func extremes(values []*big.Rat) (least, most *big.Rat) {
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

// nearestOf is n/over to the nearest whole number, up at the half.
func nearestOf(n, over int64) int64 {
	n += over / 2
	if n < 0 {
		return -((over - 1 - n) / over) // the quotient's floor
	}
	return n / over
}

// mostDecimals is how many digits after the point are looked at.
const mostDecimals = 18

// decimalsOf is how many digits after the point a number has, at most mostDecimals.
func decimalsOf(x *big.Rat) int {
	scaled, ten := new(big.Rat).Set(x), big.NewRat(10, 1)
	for n := range mostDecimals {
		if scaled.IsInt() {
			return n
		}
		scaled.Mul(scaled, ten)
	}
	return mostDecimals
}

// decimalsIn is how many digits after the point PostgreSQL gives a sum of e, by its rules for numeric operators; −1: it is no
// numeric, or that is not known.
func decimalsIn(e *expr, t *policy.Table) int {
	switch typ := e.Type(); {
	case typ.Integer():
		return 0
	case typ != policy.NumericType:
		return -1
	case e.isConstant() && e.parameter == 0:
		v, refusal := e.value(nil)
		if n, ok := v.(policy.Numeric); refusal == nil && ok {
			return int(max(n.Scale, 0))
		}
		return -1
	case e.form == formColumn:
		if d := t.Columns[e.cols[0]].Domain; d != nil && d.Type == policy.NumericType {
			return int(d.Scale)
		}
		return -1
	}
	switch {
	case len(e.args) == 1 && (strings.HasPrefix(e.op, "cast:") && e.Typmod() < 0 || e.op == "-"):
		return decimalsIn(e.args[0], t)
	case len(e.args) == 2 && e.op == "*":
		a, b := decimalsIn(e.args[0], t), decimalsIn(e.args[1], t)
		if a < 0 || b < 0 {
			return -1
		}
		return a + b
	case len(e.args) == 2 && (e.op == "+" || e.op == "-"), e.op == "coalesce":
		return mostDecimalsIn(e.args, t)
	case strings.HasPrefix(e.op, "case"):
		var results []*expr
		for i, a := range e.args {
			if i%2 == 1 || i == len(e.args)-1 {
				results = append(results, a)
			}
		}
		return mostDecimalsIn(results, t)
	}
	return -1
}

// mostDecimalsIn is the most of several, of which NULLs have none.
func mostDecimalsIn(list []*expr, t *policy.Table) int {
	most := 0
	for _, e := range list {
		if e.isConstant() && e.parameter == 0 {
			if v, refusal := e.value(nil); refusal == nil && v == nil {
				continue
			}
		}
		n := decimalsIn(e, t)
		if n < 0 {
			return -1
		}
		most = max(most, n)
	}
	return most
}

// middle evaluates an expression of numbers in the middle of a box: the mean of its ends where it varies on it.
func (b *box) middle(e *expr) (*big.Rat, *refuse.Refusal) {
	low, refusal := e.value(b.low)
	if refusal != nil || low == nil {
		return nil, refusal
	}
	v, ok := derived.RatOf(low)
	if !ok {
		return nil, evaluation.At(e.pos, "value is not a number")
	}
	if !b.isWide(e) {
		return v, nil
	}
	high, refusal := e.value(b.inner)
	if refusal != nil {
		return nil, refusal
	}
	if w, ok := derived.RatOf(high); ok {
		v.Add(v, w).Mul(v, big.NewRat(1, 2))
	}
	return v, nil
}

// numeric tells expressions that can be added up.
func numeric(e *expr) bool {
	t := e.Type()
	return t.Integer() || t.Floating() || t == policy.NumericType
}

// literal10 writes 10^exponent as a numeric literal.
func literal10(exponent int) string {
	if exponent >= 0 {
		return "1" + strings.Repeat("0", exponent)
	}
	return "0." + strings.Repeat("0", -exponent-1) + "1"
}
