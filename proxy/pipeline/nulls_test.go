package pipeline

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestMostlyNull: an answer in which nearly all that is counted has no key says so, from its rows alone. One in which
// the NULLs may be noise, or are some of many, does not.
func TestMostlyNull(t *testing.T) {
	count := plans.OutColumn{Name: "n", Noisy: true, Error: &mechanisms.Error{HalfWidth: 490}}
	key, other := plans.OutColumn{Name: "month"}, plans.OutColumn{Name: "ward"}
	const told = "99 % of n is where month is NULL, which values outside its domain are too: " +
		"does the policy's domain fit it?"
	for _, c := range []struct {
		name    string
		columns []plans.OutColumn
		rows    [][]policy.Value
		want    string
	}{
		{"all", []plans.OutColumn{key, count},
			[][]policy.Value{{int64(1), int64(500)}, {int64(2), int64(-700)}, {nil, int64(49500)}}, told},
		{"some", []plans.OutColumn{key, count}, [][]policy.Value{{int64(1), int64(9000)}, {nil, int64(49500)}}, ""},
		{"noise", []plans.OutColumn{key, count}, [][]policy.Value{{int64(1), int64(-3)}, {nil, int64(480)}}, ""},
		{"of another key", []plans.OutColumn{other, key, count},
			[][]policy.Value{{int64(1), nil, int64(24750)}, {int64(2), nil, int64(24750)}, {int64(2), int64(1), int64(500)}}, told},
		{"the one group", []plans.OutColumn{key, count}, [][]policy.Value{{nil, int64(49500)}}, ""},
		{"nothing counted", []plans.OutColumn{key, count}, [][]policy.Value{{nil, nil}, {int64(1), nil}}, ""},
		{"no key", []plans.OutColumn{count}, [][]policy.Value{{int64(49500)}, {int64(1)}}, ""},
	} {
		rows := sandbox.Rows{Columns: make([]sandbox.Column, len(c.columns)), Data: c.rows}
		if got := mostlyNull(&plans.Plan{Columns: c.columns}, rows); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
