package pipeline

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestEndsOfRedraws: of two hundred redraws each end leaves four out, between which nineteen of twenty further draws
// lie. NULL may lie beyond either, so that it uses up one of both.
func TestEndsOfRedraws(t *testing.T) {
	sure, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan := &plans.Plan{Confidence: sure, ErrorColumns: true, Columns: []plans.OutColumn{{Type: policy.Int8}}}
	ends := func(unknown, twice int) (low, high policy.Value) {
		var drawn [][]policy.Value
		for i := range leastRedraws {
			drawn = append(drawn, []policy.Value{int64((i*77 + 5) % leastRedraws)})
		}
		for i := range unknown {
			drawn[slices.IndexFunc(drawn, func(row []policy.Value) bool { return row[0] != nil && row[0].(int64) == int64(100+i) })] = []policy.Value{nil}
		}
		for i := range twice {
			drawn[i] = nil
		}
		return quantiles(plan, drawn, 0)
	}
	for _, c := range []struct {
		unknown, twice int
		low, high      policy.Value
	}{
		{0, 0, int64(4), int64(195)}, {1, 0, int64(3), int64(196)}, {4, 0, int64(0), int64(199)}, {5, 0, nil, nil}, {0, 1, nil, nil},
	} {
		if low, high := ends(c.unknown, c.twice); low != c.low || high != c.high {
			t.Errorf("%d NULL and %d twice of %d: %v to %v, want %v to %v", c.unknown, c.twice, leastRedraws, low, high, c.low, c.high)
		}
	}
	if low, high := quantiles(plan, [][]policy.Value{{int64(1)}}, 0); low != nil || high != nil {
		t.Errorf("a row that is seldom there has the ends %v and %v", low, high)
	}
}

// TestRedrawsFor: as many as leave two out at each end, two hundred where bounds are asked for or rows are few, and
// none where that takes too many.
func TestRedrawsFor(t *testing.T) {
	for share, want := range map[float64][2]int{
		0.5: {7, 200}, 0.95: {79, 200}, 0.99: {200, 200}, 0.995: {399, 399}, 0.999: {1999, 1999}, 0.9999: {0, 0},
	} {
		sure, err := mechanisms.NewConfidence(share)
		if err != nil {
			t.Fatal(err)
		}
		for i, asked := range []bool{false, true} {
			few, many := []*plans.Leaf{{Rows: 10}}, []*plans.Leaf{{Rows: 2}, {Rows: 1000}}
			if got := redrawsOf(&plans.Plan{Confidence: sure, ErrorColumns: asked, Leaves: many}); got != want[i] {
				t.Errorf("%v, bounds asked for: %t: %d redraws, want %d", share, asked, got, want[i])
			}
			if got := redrawsOf(&plans.Plan{Confidence: sure, ErrorColumns: asked, Leaves: few}); got != want[1] {
				t.Errorf("%v, of ten rows, bounds asked for: %t: %d redraws, want %d", share, asked, got, want[1])
			}
		}
	}
}

// TestBars: a bar is the value and its half-width in the column's type, rounded outwards and cut at the type's ends.
func TestBars(t *testing.T) {
	numeric := func(n int64, scale int32) policy.Numeric { return policy.NewNumeric(n, scale) }
	for _, c := range []struct {
		typ       policy.Type
		typmod    int32
		off       *big.Rat
		value     policy.Value
		low, high policy.Value
	}{
		{policy.Int8, -1, big.NewRat(7, 2), int64(10), int64(6), int64(14)},
		{policy.Int8, -1, big.NewRat(7, 2), int64(-10), int64(-14), int64(-6)},
		{policy.Int2, -1, big.NewRat(100, 1), int64(32700), int64(32600), int64(32767)},
		{policy.Int4, -1, big.NewRat(100, 1), int64(math.MinInt32), int64(math.MinInt32), int64(math.MinInt32 + 100)},
		{policy.NumericType, -1, big.NewRat(5, 100), numeric(12, 1), numeric(115, 2), numeric(125, 2)},
		{policy.NumericType, 8<<16 | 1 + 4, big.NewRat(5, 100), numeric(12, 1), numeric(11, 1), numeric(13, 1)},
		{policy.NumericType, -1, big.NewRat(1, 2), numeric(-120, 2), numeric(-170, 2), numeric(-70, 2)},
		{policy.Float8, -1, big.NewRat(5, 4), 0.0, -1.25, 1.25},
		{policy.Float8, -1, big.NewRat(1, 10), 0.0, -0.1, 0.1},
		{policy.Float8, -1, big.NewRat(1, 3), 0.0, math.Nextafter(-1./3, -1), math.Nextafter(1./3, 1)},
		{policy.Int8, -1, big.NewRat(1, 1), nil, nil, nil},
	} {
		low, high := barOf(plans.OutColumn{Type: c.typ, Typmod: c.typmod}, c.off, c.value)
		if fmt.Sprint(low) != fmt.Sprint(c.low) || fmt.Sprint(high) != fmt.Sprint(c.high) {
			t.Errorf("%v ± %v: %v to %v, want %v to %v", c.value, c.off, low, high, c.low, c.high)
		}
	}
	for _, typ := range []policy.Type{policy.Float4, policy.Float8} { // a value is itself rounded
		low, high := barOf(plans.OutColumn{Type: typ, Typmod: -1}, big.NewRat(1, 4), 0.75)
		if low, high := low.(float64), high.(float64); !(0.4999 < low && low < 0.5 && 1 < high && high < 1.0001) {
			t.Errorf("0.75 ± 0.25 of %v: %v to %v", typ, low, high)
		}
	}
}
