package pipeline

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
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

// TestNothingInside: an answer that counts most of a column's domain and finds nothing says so, where the policy
// expects rows that noise would not hide, by the measure's condition or by the cells that are read of it.
func TestNothingInside(t *testing.T) {
	rules := policy.Rules{Nulls: policy.NullCell, Outside: policy.OutsideOther}
	day, err := policy.Steps(policy.Int4, -1, int64(0), int64(99), policy.Step{Whole: 1}, rules)
	if err != nil {
		t.Fatal(err)
	}
	table := &policy.Table{ExpectedRows: 100_000}
	column := &policy.Column{Table: table, Name: "day", Type: policy.Int4, Domain: day, Outside: policy.OutsideOther}
	clamped := *column
	clamped.Outside = policy.OutsideClamp
	on := func(c *policy.Column, from, to int) *plans.Measure {
		spans := []mechanisms.Span{{From: from, To: to}}
		return &plans.Measure{Table: table, Where: predicate.InCells{Column: c, Spans: spans}}
	}
	// As three cells: before the 40th, from it on, NULL.
	around := &plans.Measure{Table: table, Grain: []*policy.Column{column}, Cuts: [][]int{{0, 40, 100}},
		Place: func(cells []int32, _ int) int { return int(cells[0]) }}
	read := func(from int) []*plans.Leaf {
		run := plans.Run{Spans: [][]mechanisms.Span{{{From: from, To: from + 1}}}}
		return []*plans.Leaf{{Counts: []plans.CountColumn{{Runs: []plans.Run{run}}}}}
	}
	const told = "no row that noise would show is counted, and values of day outside its domain count as NULL: " +
		"does the policy's domain fit it?"
	for _, c := range []struct {
		name    string
		measure *plans.Measure
		leaves  []*plans.Leaf
		off     int64
		count   int64
		want    string
	}{
		{"by a condition", on(column, 10, 100), nil, 40, 21, told},
		{"some rows", on(column, 10, 100), nil, 40, 130, ""},
		{"of few cells", on(column, 10, 11), nil, 40, 0, ""}, {"clamped", on(&clamped, 10, 100), nil, 40, 0, ""},
		{"noise hides what is expected", on(column, 10, 100), nil, 4000, 21, ""},
		{"by cells", around, read(1), 40, -21, told}, {"by few of them", around, read(0), 40, -21, ""},
		{"NULL", around, read(2), 40, 0, ""},
	} {
		shown := plans.OutColumn{Name: "n", Noisy: true, Error: &mechanisms.Error{HalfWidth: c.off}}
		plan := &plans.Plan{Columns: []plans.OutColumn{shown}, Measures: []*plans.Measure{c.measure}, Leaves: c.leaves}
		rows := sandbox.Rows{Columns: make([]sandbox.Column, 1), Data: [][]policy.Value{{c.count}}}
		if got := nothingInside(plan, rows); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
