package pipeline

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestSignificant: a value keeps its type and has the digits that its error leaves; what would not fit, what has no
// error and what is no number stays as it is.
func TestSignificant(t *testing.T) {
	numeric := func(coefficient int64, scale int32) policy.Numeric { return policy.NewNumeric(coefficient, scale) }
	of := func(precision, scale int32) int32 { return precision<<16 | scale + 4 }
	for _, c := range []struct {
		typ    policy.Type
		typmod int32
		v      policy.Value
		off    float64
		want   policy.Value
	}{
		{policy.Int8, -1, int64(10114), 100, int64(10110)},
		{policy.Int8, -1, int64(10114), 6, int64(10114)},
		{policy.Int8, -1, int64(math.MaxInt64), 1e6, int64(math.MaxInt64)},
		{policy.Int2, -1, int64(32766), 500, int64(32766)},
		{policy.Int4, -1, int64(-15), 100, int64(-20)},
		{policy.Float8, -1, 30579.033416165315, 250, 30580.0},
		{policy.Float4, -1, float64(float32(0.1234567)), 0.002, float64(float32(0.1235))},
		{policy.Float8, -1, math.Inf(1), 250, math.Inf(1)},
		{policy.NumericType, -1, numeric(26270453859, 6), 26.83, numeric(26270, 0)},
		{policy.NumericType, of(12, 2), numeric(3057903, 2), 250, numeric(3058000, 2)},
		{policy.NumericType, of(4, 2), numeric(9999, 2), 1, numeric(9999, 2)},
		{policy.NumericType, -1, numeric(316, 1), 0.001, numeric(316, 1)},
		{policy.Text, -1, "10114", 100, "10114"},
		{policy.Int8, -1, nil, 100, nil},
		{policy.Int8, -1, int64(7), 0, int64(7)},
	} {
		got := significant(plans.OutColumn{Type: c.typ, Typmod: c.typmod}, c.v, new(big.Rat).SetFloat64(c.off))
		if fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", c.want, c.want) {
			t.Errorf("%v of %s, ±%v: %T %v, want %T %v", c.v, c.typ, c.off, got, got, c.want, c.want)
		}
	}
	if got := significant(plans.OutColumn{Type: policy.Int8}, int64(10114), nil); got != int64(10114) {
		t.Errorf("of an error that is not known: %v", got)
	}
}
