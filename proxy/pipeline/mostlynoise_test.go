package pipeline

import (
	"math/big"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestMostlyNoise: an answer of which at least half of the values are within their own error says so, of the worst
// column; one that is clear, or has its bounds beside it, or is computed, does not.
func TestMostlyNoise(t *testing.T) {
	count := plans.OutColumn{Name: "n", Noisy: true, Error: &mechanisms.Error{HalfWidth: 490}}
	sum := plans.OutColumn{Name: "s", Noisy: true, Off: big.NewRat(49001, 100)}
	key := plans.OutColumn{Name: "k"}
	ratio := plans.OutColumn{Name: "r", Noisy: true}
	number := func(n int64, scale int32) policy.Value {
		return policy.Numeric{Coefficient: big.NewInt(n), Scale: scale}
	}
	for _, c := range []struct {
		name    string
		columns []plans.OutColumn
		rows    [][]policy.Value
		want    string
	}{
		{"one count", []plans.OutColumn{count}, [][]policy.Value{{int64(34)}}, "mostly noise: ±490 on values near 34"},
		{"one below zero", []plans.OutColumn{count}, [][]policy.Value{{int64(-34)}}, "mostly noise: ±490 on values near 34"},
		{"zero", []plans.OutColumn{count}, [][]policy.Value{{int64(0)}}, "mostly noise: ±490 on values near 0"},
		{"clear", []plans.OutColumn{count}, [][]policy.Value{{int64(491)}}, ""},
		{"at its error", []plans.OutColumn{count}, [][]policy.Value{{int64(490)}}, ""},
		{"half of them", []plans.OutColumn{key, count}, [][]policy.Value{{int64(1), int64(20)}, {int64(2), int64(9000)}}, "mostly noise: ±490 on values near 20"},
		{"fewer than half", []plans.OutColumn{key, count}, [][]policy.Value{{int64(1), int64(20)}, {int64(2), int64(9000)}, {int64(3), int64(9000)}}, ""},
		{"NULLs are no values", []plans.OutColumn{key, count}, [][]policy.Value{{int64(1), nil}, {int64(2), int64(9000)}, {int64(3), nil}}, ""},
		{"no rows", []plans.OutColumn{count}, nil, ""},
		{"the worse of two", []plans.OutColumn{count, sum}, [][]policy.Value{{int64(300), number(1234, 1)}}, "mostly noise: ±490.1 on values near 123.4 (s)"},
		{"computed", []plans.OutColumn{ratio}, [][]policy.Value{{0.1}}, ""},
		{"a key", []plans.OutColumn{key}, [][]policy.Value{{int64(1)}}, ""},
	} {
		rows := sandbox.Rows{Columns: make([]sandbox.Column, len(c.columns)), Data: c.rows}
		if got := mostlyNoise(&plans.Plan{Columns: c.columns}, rows); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		rows.Columns = append(rows.Columns, sandbox.Column{})
		if got := mostlyNoise(&plans.Plan{Columns: c.columns}, rows); got != "" {
			t.Errorf("%s with bounds: %q", c.name, got)
		}
	}
}
