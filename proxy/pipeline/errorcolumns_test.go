package pipeline

import (
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestEndsOfRedraws: of two hundred redraws each end leaves five out. NULL may lie beyond either, so that it uses up one of both.
func TestEndsOfRedraws(t *testing.T) {
	ends := func(unknown, twice int) (low, high policy.Value) {
		var drawn [][]policy.Value
		for i := range redraws {
			drawn = append(drawn, []policy.Value{int64((i*77 + 5) % redraws)})
		}
		for i := range unknown {
			drawn[slices.IndexFunc(drawn, func(row []policy.Value) bool { return row[0] != nil && row[0].(int64) == int64(100+i) })] = []policy.Value{nil}
		}
		for i := range twice {
			drawn[i] = nil
		}
		return quantiles(policy.Int8, drawn, 0, 0.95)
	}
	for _, c := range []struct {
		unknown, twice int
		low, high      policy.Value
	}{
		{0, 0, int64(5), int64(194)}, {1, 0, int64(4), int64(195)}, {5, 0, int64(0), int64(199)}, {6, 0, nil, nil}, {0, 1, nil, nil},
	} {
		if low, high := ends(c.unknown, c.twice); low != c.low || high != c.high {
			t.Errorf("%d NULL and %d twice of %d: %v to %v, want %v to %v", c.unknown, c.twice, redraws, low, high, c.low, c.high)
		}
	}
	if low, high := quantiles(policy.Int8, [][]policy.Value{{int64(1)}}, 0, 0.95); low != nil || high != nil {
		t.Errorf("a row that is seldom there has the ends %v and %v", low, high)
	}
}
