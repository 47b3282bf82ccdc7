package pipeline

import (
	"cmp"
	"math"
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// width is how far a value may be off, in its column's own units: a whole number of rows for a count (±37), and what is
// computed of counts and sums by constants a fraction of anything (±12.5 of avg(income)).
type width struct {
	rows int64
	off  *big.Rat // nil: rows
}

// widthOf is a column's half-width: that of a count, or of a linear function of counts and sums. False means it has
// none that is known by constants.
func widthOf(c plans.OutColumn) (w width, ok bool) {
	if c.Error != nil {
		return width{rows: c.Error.HalfWidth}, true
	}
	return width{off: c.Off}, c.Off != nil
}

func (w width) rat() *big.Rat {
	if w.off != nil {
		return w.off
	}
	return new(big.Rat).SetInt64(w.rows)
}

func (w width) cmp(other width) int {
	if w.off == nil && other.off == nil {
		return cmp.Compare(w.rows, other.rows)
	}
	return w.rat().Cmp(other.rat())
}

// String writes it rounded up: whole numbers as they are, others with as many digits as matter.
func (w width) String() string {
	if w.off == nil {
		return strconv.FormatInt(w.rows, 10)
	}
	return figure(w.off)
}

// figure writes a half-width, rounded up: whole numbers as they are, others with as many digits as matter.
func figure(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	decimals, scaled, ten := 0, new(big.Rat).Set(x), big.NewRat(10, 1)
	for ; scaled.Cmp(big.NewRat(1000, 1)) < 0 && !scaled.IsInt() && decimals < 30; decimals++ {
		scaled.Mul(scaled, ten)
	}
	up := new(big.Int).Add(scaled.Num(), new(big.Int).Sub(scaled.Denom(), big.NewInt(1)))
	up.Quo(up, scaled.Denom())
	return new(big.Rat).Quo(new(big.Rat).SetInt(up), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10),
		big.NewInt(int64(decimals)), nil))).FloatString(decimals)
}

// barOf is the interval of a column that has one about a value of it, rounded outwards to a value of its type; NULL
// about NULL.
func barOf(c plans.OutColumn, v policy.Value) (low, high policy.Value) {
	w, _ := widthOf(c)
	off := w.rat()
	switch v := v.(type) {
	case int64:
		at := new(big.Rat).SetInt64(v)
		low, high = wholeWithin(c.Type, lowEnd(at, off, 0)), wholeWithin(c.Type, highEnd(at, off, 0))
	case policy.Date:
		at := new(big.Rat).SetInt64(int64(v))
		low = policy.Date(wholeWithin(policy.Int4, lowEnd(at, off, 0)))
		high = policy.Date(wholeWithin(policy.Int4, highEnd(at, off, 0)))
	case policy.Numeric:
		at, scale := new(big.Rat).SetFrac(v.Coefficient, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)), v.Scale
		if c.Typmod < 0 {
			scale = max(scale, decimalsOf(off))
		}
		low, high = policy.Numeric{Coefficient: lowEnd(at, off, scale), Scale: scale}, policy.Numeric{Coefficient: highEnd(at, off, scale), Scale: scale}
	case float64:
		at := new(big.Rat).SetFloat64(v)
		if at == nil { // infinite
			return v, v
		}
		off := new(big.Rat).Add(off, new(big.Rat).Mul(new(big.Rat).Abs(at), lostByFloats(c.Type)))
		low, high = floatBeyond(c.Type, new(big.Rat).Sub(at, off), -1), floatBeyond(c.Type, new(big.Rat).Add(at, off), 1)
	}
	return low, high
}

// lowEnd is at − off in whole 10^−scale, rounded down, and highEnd at + off rounded up.
func lowEnd(at, off *big.Rat, scale int32) *big.Int {
	x := new(big.Rat).Sub(at, off)
	x.Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	return new(big.Int).Div(x.Num(), x.Denom()) // which rounds down, since the divisor is above 0
}

func highEnd(at, off *big.Rat, scale int32) *big.Int {
	end := lowEnd(new(big.Rat).Neg(at), off, scale)
	return end.Neg(end)
}

// wholeWithin is a whole number, cut at the ends of its type.
func wholeWithin(t policy.Type, n *big.Int) int64 {
	most := big.NewInt(math.MaxInt64)
	switch t {
	case policy.Int2:
		most = big.NewInt(math.MaxInt16)
	case policy.Int4:
		most = big.NewInt(math.MaxInt32)
	}
	if n.Cmp(most) > 0 {
		return most.Int64()
	}
	if least := new(big.Int).Not(most); n.Cmp(least) < 0 {
		return least.Int64()
	}
	return n.Int64()
}

// moreDecimals is how many a bound has whose half-width has no last one, as that of sum(x) / 3.
const moreDecimals = 16

// decimalsOf is the number of decimals that a number has.
func decimalsOf(x *big.Rat) int32 {
	n, exact := x.FloatPrec()
	if !exact {
		return moreDecimals
	}
	return int32(min(n, moreDecimals))
}

// lostByFloats is the share of a value that it may be off by since it was calculated in a floating type: a few units of
// its last place.
func lostByFloats(t policy.Type) *big.Rat {
	if t == policy.Float4 {
		return big.NewRat(1, 1<<20)
	}
	return big.NewRat(1, 1<<48)
}

// floatBeyond is a number as a value of a floating type, beyond it in a direction where it is none.
func floatBeyond(t policy.Type, x *big.Rat, direction int) float64 {
	if t == policy.Float4 {
		f, exact := x.Float32()
		if off := new(big.Rat).SetFloat64(float64(f)); !exact && off != nil && off.Cmp(x)*direction < 0 {
			f = math.Nextafter32(f, float32(math.Inf(direction)))
		}
		return float64(f)
	}
	f, exact := x.Float64()
	if off := new(big.Rat).SetFloat64(f); !exact && off != nil && off.Cmp(x)*direction < 0 {
		f = math.Nextafter(f, math.Inf(direction))
	}
	return f
}
