package policy

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"
)

// A column of `domain: private` has no bounds yet (docs/adr/0130). Until its owner pastes those that `dpproxy bounds`
// finds, its values fall into the cells of a ladder, which depends on the column's type alone: of numbers
//
//	…, [−15, −10), …, [−1, −0.8), …, [0, 0.000001], …, (0.8, 1], (1, 1.5], (1.5, 2], …, (8, 10], (10, 15], …
//
// and of dates and moments years, and centuries far from now. Nobody asks questions over these cells; they are what
// ends are chosen from.

// Ladder are the cells of a domain that has no step: cell i holds the values from Lows[i] to below Lows[i+1]. Ends[i]
// is what is written of the boundary below cell i: all values of the cells before lie at or below it, and all others at
// or above. There is one more of them than cells.
type Ladder struct {
	Lows, Ends []Value
}

// rungs are the first digits of a ladder's numbers, in tenths: no end is more than half as large again as it had to be.
var rungs = []int64{10, 15, 20, 30, 40, 50, 60, 80}

// The powers of ten between which a ladder's numbers lie, where the type has no narrower ones.
const (
	ladderTop    = 18
	ladderBottom = -6
	looseDigits  = 9 // after the point, which distinguish values of numeric without a scale
)

// NewLadder makes the domain of a column without bounds. Values beyond its ends are those of its first and last cells,
// so that no value is outside.
func NewLadder(t Type, typmod int32) (*Domain, error) {
	d := &Domain{Type: t, Scale: -1, Other: -1, Null: -1}
	var l *Ladder
	switch {
	case t.Integer():
		l = wholeLadder(t)
	case t == NumericType:
		precision, scale := NumericTypmod(typmod)
		d.Scale = scale
		l = numericLadder(precision, scale)
	case t.Floating():
		l = floatLadder(t)
	case t.Moment():
		l = timeLadder(t)
	default:
		return nil, fmt.Errorf("domain is private, which finds the ends of numbers, dates and times; %s has none", t)
	}
	d.Ladder, d.Min, d.Max, d.Regular = l, l.Lows[0], l.Ends[len(l.Ends)-1], len(l.Lows)
	if t.Moment() {
		d.Max, _ = before(t, typmod, d.Max)
	}
	return d.spare(Rules{Nulls: NullCell, Outside: OutsideClamp})
}

// RowsLadder is the domain of how many rows a unit has, from 1 to most.
func RowsLadder(most int64) *Domain {
	l := &Ladder{Ends: []Value{int64(0)}}
	for k := int32(0); k <= ladderTop; k++ {
		for _, n := range rungNumbers(k, 0) {
			if whole := n.At(0).Int64(); whole < most {
				l.Ends = append(l.Ends, whole)
			}
		}
	}
	l.Ends = append(l.Ends, most)
	for _, e := range l.Ends[:len(l.Ends)-1] {
		l.Lows = append(l.Lows, e.(int64)+1)
	}
	return &Domain{Type: Int8, Scale: -1, Other: -1, Null: -1, Ladder: l, Min: int64(1), Max: most, Regular: len(l.Lows)}
}

// rungNumbers are the numbers of a ladder from 10^k to below 10^(k+1) that have at most so many digits after the point.
func rungNumbers(k, scale int32) (list []Numeric) {
	for _, r := range rungs {
		n := Numeric{big.NewInt(r), 1 - k}
		if k > 0 {
			n = Numeric{new(big.Int).Mul(big.NewInt(r), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k-1)), nil)), 0}
		}
		if fits := n.Rescale(max(min(n.Scale, scale), 0)); fits.Cmp(n) == 0 {
			list = append(list, fits)
		}
	}
	return list
}

// mirrored makes a ladder of positive ends that rise: 0 is one, and each has its negative. A positive end lies in the
// cell below it, which above begins, so that it may be the largest value; a negative one, and 0, in the cell that it
// begins.
func mirrored[T any](positive []T, zero T, negative func(T) Value, above func(T) Value, value func(T) Value) *Ladder {
	l := &Ladder{}
	for _, e := range slices.Backward(positive) {
		l.Ends = append(l.Ends, negative(e))
	}
	l.Ends = append(l.Ends, value(zero))
	l.Lows = slices.Clone(l.Ends)
	for i, e := range positive {
		l.Ends = append(l.Ends, value(e))
		if i+1 < len(positive) {
			l.Lows = append(l.Lows, above(e))
		}
	}
	return l
}

func wholeLadder(t Type) *Ladder {
	most := map[Type]int64{Int2: math.MaxInt16, Int4: math.MaxInt32, Int8: 1e18}[t]
	var ends []int64
	for k := int32(0); k < ladderTop; k++ {
		for _, n := range rungNumbers(k, 0) {
			if whole := n.At(0).Int64(); whole < most {
				ends = append(ends, whole)
			}
		}
	}
	value := func(n int64) Value { return n }
	return mirrored(append(ends, most), 0, func(n int64) Value { return -n }, func(n int64) Value { return n + 1 }, value)
}

func numericLadder(precision, scale int32) *Ladder {
	top, bottom, digits := int32(ladderTop), int32(ladderBottom), int32(looseDigits)
	if precision >= 0 {
		top, bottom, digits = min(ladderTop, precision-scale), max(-scale, -ladderTop), scale
	}
	var ends []Numeric
	for k := bottom; k < top; k++ {
		ends = append(ends, rungNumbers(k, digits)...)
	}
	last := Numeric{big.NewInt(1e18), 0}
	if precision >= 0 && top == precision-scale { // the largest that there is
		last = Numeric{new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil), big.NewInt(1)), scale}
	}
	at := func(n *big.Int) Value {
		if precision < 0 {
			return Numeric{n, digits}.trimmed()
		}
		return Numeric{n, digits}
	}
	return mirrored(append(ends, last), Numeric{new(big.Int), 0},
		func(n Numeric) Value { return at(new(big.Int).Neg(n.At(digits))) },
		func(n Numeric) Value { return at(new(big.Int).Add(n.At(digits), big.NewInt(1))) },
		func(n Numeric) Value { return at(n.At(digits)) })
}

// trimmed is n without zeros at the end of its fraction.
func (n Numeric) trimmed() Numeric {
	for scale := int32(0); scale < n.Scale; scale++ {
		if cut := n.Rescale(scale); cut.Cmp(n) == 0 {
			return cut
		}
	}
	return n
}

func floatLadder(t Type) *Ladder {
	var ends []float64
	for k := int32(ladderBottom); k < ladderTop; k++ {
		for _, n := range rungNumbers(k, looseDigits) {
			ends = append(ends, floatOf(t, n))
		}
	}
	next := func(f float64) Value {
		if t == Float4 {
			return float64(math.Nextafter32(float32(f), float32(math.Inf(1))))
		}
		return math.Nextafter(f, math.Inf(1))
	}
	value := func(f float64) Value { return f }
	return mirrored(append(ends, floatOf(t, Numeric{big.NewInt(1e18), 0})), 0, func(f float64) Value { return -f }, next, value)
}

// floatOf is a decimal as a value of a floating type.
func floatOf(t Type, n Numeric) float64 {
	v, err := ParseValue(t, n.String())
	if err != nil {
		panic("policy: a ladder of " + t.Name() + ": " + err.Error()) // it is made of constants
	}
	return v.(float64)
}

// timeLadder has a boundary at the beginning of each year from 1900 to 2100, and of centuries before and after.
func timeLadder(t Type) *Ladder {
	var years []int
	for y := 1000; y < 1900; y += 100 {
		years = append(years, y)
	}
	for y := 1900; y <= 2100; y++ {
		years = append(years, y)
	}
	for y := 2200; y < 9999; y += 100 {
		years = append(years, y)
	}
	l := &Ladder{}
	for _, y := range append(years, 9999) {
		at := time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		switch t {
		case DateType:
			l.Ends = append(l.Ends, Date(at/86400))
		case TimestampT:
			l.Ends = append(l.Ends, Timestamp(at*1e6))
		default:
			l.Ends = append(l.Ends, Timestamptz(at*1e6))
		}
	}
	l.Lows = slices.Clone(l.Ends[:len(l.Ends)-1])
	return l
}

// cell is the cell of a value between the ends of the ladder.
func (l *Ladder) cell(v Value) int {
	at, found := slices.BinarySearchFunc(l.Lows, v, compare)
	if found {
		return at
	}
	return at - 1
}
