package planner

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// Sum is what a counter adds up, a whole number of each row: the product of Factors, which the database computes, or
// without Factors a weight of the row's cells, which Measure.Weigh gives.
type Sum struct {
	Factors []Factor
	Bound   mechanisms.Bound
	Values  int // above 0: different values of so many are counted, see mechanisms.Sum
}

// Factor is a column's value x on a grid, as the whole number round(x·10^−Exponent) − Centre, in [Low, High].
type Factor struct {
	Column    *policy.Column
	Exponent  int
	Centre    int64
	Low, High int64
}

// The largest factors: alone, and in a product, whose noise may not be wider than package noise draws. Rounding to the
// grid of a product moves a variance by at most a 2^13th of the square of the range.
const (
	mostAlone     = 1 << 26
	mostInProduct = 1 << 13
)

// summand is what a counter of a question adds up: a product of factors, or an expression by its columns' cells.
type summand struct {
	factors []Factor
	expr    *expr
	weights weights  // of expr, by combination of its columns' cells
	unit    *big.Rat // what one of the whole numbers is worth in the sum that the analyst sees
	canon   string
}

// grid is the scale on which values are added up: x = (Centre + k)·10^Exponent.
type grid struct {
	exponent int
	centre   int64
}

// gridOf is the grid for values from least to most: as fine as they come, as far as factors stay small. Plain sums are
// added up from zero, centred ones from the middle.
func gridOf(least, most *big.Rat, exponent int, centred bool, largest int64) (g grid, low, high int64) {
	for {
		g = grid{exponent: exponent}
		low, high = nearest10(least, exponent), nearest10(most, exponent)
		if max(-low, high) <= largest {
			break
		}
		if centred && new(big.Rat).Sub(most, least).Cmp(power10(exponent, 2*largest)) <= 0 {
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

// ratOf is a number as a fraction; false for what is none.
func ratOf(v policy.Value) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case policy.Numeric:
		if v.Scale >= 0 {
			return new(big.Rat).SetFrac(v.At(v.Scale), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)), true
		}
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return new(big.Rat).SetFloat64(v), true
		}
	}
	return nil, false
}

// factorOf makes the factor of a column with a domain of numbers.
func factorOf(c *policy.Column, centred bool, largest int64) (Factor, bool) {
	if c.Domain == nil || !c.Domain.Ordered() {
		return Factor{}, false
	}
	least, ok := ratOf(c.Domain.Min)
	most, also := ratOf(c.Domain.Max)
	if !ok || !also {
		return Factor{}, false
	}
	exponent := 0
	switch {
	case c.Type.Floating():
		exponent = -18
	case c.Type == policy.NumericType && c.Domain.Scale >= 0:
		exponent = -int(c.Domain.Scale)
	case c.Type == policy.NumericType:
		exponent = -9
	}
	g, low, high := gridOf(least, most, exponent, centred, largest)
	return Factor{c, g.exponent, g.centre, low, high}, true
}

// bound is what the product of factors may be.
func boundOf(factors []Factor) mechanisms.Bound {
	b := mechanisms.Bound{Low: 1, High: 1}
	for i, f := range factors {
		if i > 0 && f == factors[i-1] && len(factors) == 2 {
			most := max(-f.Low, f.High)
			return mechanisms.Bound{Low: 0, High: most * most}
		}
		ends := []int64{b.Low * f.Low, b.Low * f.High, b.High * f.Low, b.High * f.High}
		b = mechanisms.Bound{Low: min(ends[0], ends[1], ends[2], ends[3]), High: max(ends[0], ends[1], ends[2], ends[3])}
	}
	return b
}

// encodeSum is the canonical encoding of what a counter adds up; nil counts rows.
func encodeSum(b []byte, s *Sum) []byte {
	if s == nil {
		return append(b, 't')
	}
	b = binary.AppendUvarint(append(b, 's'), uint64(len(s.Factors)))
	for _, f := range s.Factors {
		b = encodeText(b, f.Column.Name)
		for _, n := range []int64{int64(f.Exponent), f.Centre, f.Low, f.High} {
			b = binary.AppendVarint(b, n)
		}
	}
	return binary.AppendVarint(binary.AppendVarint(b, s.Bound.Low), s.Bound.High)
}

// weights are the values of an expression on combinations of cells, on one grid.
type weights struct {
	grid   grid
	values []int64
	bound  mechanisms.Bound
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

// weigh puts values (nil: nothing is added) on a grid.
func weigh(values []*big.Rat, least, most *big.Rat, centred bool, exponent int, largest int64) weights {
	w := weights{values: make([]int64, len(values))}
	var low, high int64
	w.grid, low, high = gridOf(least, most, exponent, centred, largest)
	w.bound = mechanisms.Bound{Low: low, High: high}
	for i, v := range values {
		if v != nil {
			w.values[i] = min(max(nearest10(v, w.grid.exponent)-w.grid.centre, low), high)
		}
	}
	return w
}

// squared are the weights' squares.
func (w weights) squared() weights {
	most := max(-w.bound.Low, w.bound.High)
	out := weights{grid: w.grid, values: make([]int64, len(w.values)), bound: mechanisms.Bound{Low: 0, High: most * most}}
	for i, v := range w.values {
		out.values[i] = v * v
	}
	return out
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
func (b *box) middle(e *expr) (*big.Rat, *Refusal) {
	low, refusal := e.value(b.low)
	if refusal != nil || low == nil {
		return nil, refusal
	}
	v, ok := ratOf(low)
	if !ok {
		return nil, evaluation.at(e.pos, "value is not a number")
	}
	if !b.isWide(e) {
		return v, nil
	}
	high, refusal := e.value(b.inner)
	if refusal != nil {
		return nil, refusal
	}
	if w, ok := ratOf(high); ok {
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
