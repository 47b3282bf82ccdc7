package rewrite_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

const (
	cell, nullsOut          = policy.NullCell, policy.NullExclude
	clamp, other, outsideEx = policy.OutsideClamp, policy.OutsideOther, policy.OutsideExclude
	hour, day               = 3600 * 1000000, 24 * 3600 * 1000000
)

// spec describes a column of the test tables.
type spec struct {
	name, kind     string // kind is the SQL type in both dialects
	values         []string
	min, max, step string
	whole          int64
	nulls          policy.NullRule
	outside        policy.OutsideRule
}

var peopleSpecs = []spec{
	{name: "age", kind: "integer", min: "0", max: "119", whole: 1, nulls: cell, outside: clamp},
	{name: "sex", kind: "text", values: []string{"Female", "Male"}, nulls: cell, outside: other},
	{name: "income", kind: "numeric(12,2)", min: "0", max: "200000", step: "1000", nulls: cell, outside: other},
	{name: "loose", kind: "numeric", min: "-1.5", max: "7.25", step: "0.25", nulls: cell, outside: clamp},
	{name: "score", kind: "double precision", min: "-0.3", max: "2.35", step: "0.1", nulls: cell, outside: clamp},
	{name: "ratio", kind: "real", min: "0.1", max: "1.9", step: "0.1", nulls: cell, outside: outsideEx},
	{name: "hired", kind: "date", min: "2000-01-01", max: "2026-12-31", whole: 7, nulls: cell, outside: clamp},
	{name: "seen", kind: "timestamp", min: "2024-01-01", max: "2024-01-31 12:00", whole: hour, nulls: cell, outside: other},
	{name: "stamp", kind: "timestamptz", min: "2024-03-01", max: "2024-04-30", whole: day, nulls: cell, outside: clamp},
	{name: "big", kind: "bigint", min: "-9223372036854775808", max: "9223372036854775807", whole: 1 << 50, nulls: cell, outside: clamp},
	{name: "small", kind: "smallint", min: "-5", max: "5", whole: 2, nulls: cell, outside: other},
	{name: "member", kind: "boolean", nulls: cell, outside: other},
	{name: "device", kind: "uuid", values: []string{"00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, nulls: cell, outside: other},
	{name: "city", kind: "varchar(20)", values: []string{"Köln", "O'Hara", "x\"y$1", "other"}, nulls: cell, outside: other},
	{name: "grade", kind: "text", values: []string{"a", "A", "ä"}, nulls: nullsOut, outside: outsideEx},
	{name: "code", kind: "integer", values: []string{"8507", "-7", "0", "2000000001"}, nulls: cell, outside: other},
	{name: "item", kind: "bigint", nulls: cell, outside: other, values: []string{"-9223372036854775808",
		"9223372036854775807", "-3", "3", "5", "8", "13", "21", "34", "55", "89", "144", "233",
		"377", "610", "987", "1597", "2584"}},
}

var visitsSpecs = []spec{
	{name: "clinic", kind: "text", values: []string{"north", "south", "east"}, nulls: cell, outside: other},
	{name: "minutes", kind: "integer", min: "0", max: "59", whole: 5, nulls: cell, outside: clamp},
	{name: "cost", kind: "numeric(8,2)", min: "0", max: "500", step: "0.5", nulls: nullsOut, outside: other},
}

// tables builds the test policy: people and visits of one dataset bounded per person, rows of another where a row is
// the unit.
func tables(t testing.TB) (people, visits, rows *policy.Table) {
	t.Helper()
	persons := &policy.Dataset{ID: "persons", Unit: policy.Unit{Name: "person", Table: "people", Column: "person_id"}, Neighbors: privacy.AddRemove}
	single := &policy.Dataset{ID: "rows", Unit: policy.Unit{Row: true}, Neighbors: privacy.AddRemove}
	people = table(t, persons, "people", "person_id", 1, peopleSpecs)
	visits = table(t, persons, "visits", "person_id", 2, visitsSpecs)
	rows = table(t, single, "people", "", 1, peopleSpecs)
	return people, visits, rows
}

func table(t testing.TB, d *policy.Dataset, name, unit string, most int64, specs []spec) *policy.Table {
	table := &policy.Table{Dataset: d, Name: name, Schema: "public", Source: policy.Source{Schema: "clinic", Name: name},
		UnitColumn: unit, MaxRowsPerUnit: most}
	for _, s := range specs {
		table.Columns = append(table.Columns, column(t, table, s))
	}
	d.Tables = append(d.Tables, table)
	return table
}

func column(t testing.TB, table *policy.Table, s spec) *policy.Column {
	t.Helper()
	typ, typmod, err := policy.ParseType(s.kind)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Rules{Nulls: s.nulls, Outside: s.outside}
	c := &policy.Column{Table: table, Name: s.name, Source: s.name, Type: typ, Typmod: typmod, Nulls: s.nulls, Outside: s.outside}
	if s.min == "" {
		c.Domain, err = policy.Enumerate(typ, s.values, rules)
	} else {
		var least, most policy.Value
		if least, err = policy.ParseValue(typ, s.min); err != nil {
			t.Fatal(err)
		}
		if most, err = policy.ParseValue(typ, s.max); err != nil {
			t.Fatal(err)
		}
		step := policy.Step{Whole: s.whole}
		if s.step != "" {
			step.Decimal = number(t, s.step)
		}
		c.Domain, err = policy.Steps(typ, typmod, least, most, step, rules)
	}
	if err != nil {
		t.Fatalf("column %s: %v", s.name, err)
	}
	return c
}

func number(t testing.TB, s string) policy.Numeric {
	t.Helper()
	n, err := policy.ParseNumeric(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func spans(bounds ...int) []mechanisms.Span {
	var list []mechanisms.Span
	for i := 0; i < len(bounds); i += 2 {
		list = append(list, mechanisms.Span{From: bounds[i], To: bounds[i+1]})
	}
	return list
}

// feature is one golden measure.
type feature struct {
	name    string
	measure *plans.Measure
}

func features(t testing.TB) []feature {
	people, visits, rows := tables(t)
	var list []feature
	add := func(name string, table *policy.Table, grain []string, where predicate.Pred, counters ...predicate.Pred) {
		m := &plans.Measure{Table: table, Where: where, Counters: counters, Kind: "count"}
		if len(counters) == 0 {
			m.Counters = []predicate.Pred{nil}
		}
		for _, g := range grain {
			m.Grain = append(m.Grain, table.Column(g))
		}
		m.Digest[0] = byte(len(list) + 1)
		list = append(list, feature{name, m})
	}
	in := func(table *policy.Table, c string, bounds ...int) predicate.Pred {
		return predicate.InCells{Column: table.Column(c), Spans: spans(bounds...)}
	}
	compare := func(table *policy.Table, c, op string, v policy.Value) predicate.Pred {
		return predicate.Compare{Column: table.Column(c), Op: op, Value: v}
	}
	add("count", rows, nil, nil)
	add("bounded", visits, nil, nil)
	add("bounded_groups", visits, []string{"clinic", "minutes", "cost"}, nil)
	for _, s := range peopleSpecs {
		add("group_"+s.name, rows, []string{s.name}, nil)
	}
	for _, s := range peopleSpecs {
		n := rows.Column(s.name).Domain.Size()
		add("cells_"+s.name, rows, nil, in(rows, s.name, 0, 1, max(n/3, 1), max(n/2, 2)), in(rows, s.name, n/2, n), in(rows, s.name, n-1, n), nil, in(rows, s.name, 0, n))
	}
	var odd []int
	for i := 1; i < 90; i += 3 {
		odd = append(odd, i, i+1)
	}
	odd = append(odd, 100, 121)
	add("many_ranges", rows, []string{"sex"}, in(rows, "age", odd...))
	add("filters", people, []string{"sex"}, nil, nil, in(people, "age", 18, 65), predicate.AllOf{in(people, "member", 1, 2), in(people, "age", 30, 121)}, predicate.Never{})
	add("nested", people, []string{"member", "age"}, predicate.AllOf{
		predicate.AnyOf{in(people, "age", 20, 40), in(people, "sex", 2, 4)},
		predicate.AnyOf{in(people, "city", 1, 2, 4, 5), in(people, "city", 0, 1), predicate.Never{}},
	})
	add("compare_numeric", rows, nil, nil, compare(rows, "income", "<", number(t, "1234.567")), compare(rows, "income", ">=", number(t, "1234.567")),
		compare(rows, "income", "=", number(t, "1234.56")), compare(rows, "income", "<>", number(t, "1234.567")), compare(rows, "income", "=", number(t, "1234.567")),
		compare(rows, "income", ">", number(t, "-1")), compare(rows, "income", "<", number(t, "-1")), compare(rows, "income", "<=", number(t, "1000000000")))
	add("compare_time", rows, nil, nil, compare(rows, "seen", "<", policy.Timestamp(1705000000123456)), compare(rows, "seen", "<>", policy.Timestamp(1705000000123456)),
		compare(rows, "stamp", ">=", policy.Timestamptz(1710000000000001)), compare(rows, "hired", "<=", policy.Date(15003)), compare(rows, "hired", ">", policy.Date(1<<30)))
	past := func(c, op string, by int64) predicate.Pred {
		return predicate.AllOf{in(rows, c, 17, 18, 41, 42), predicate.Past{Column: rows.Column(c), Op: op, By: by}}
	}
	add("past", rows, nil, nil, past("seen", "=", 0), past("seen", ">", 1_800_000_000), past("stamp", "<=", 1_800_000_000))
	add("compare_float", rows, []string{"score"}, compare(rows, "score", "<", 1.05), compare(rows, "ratio", ">=", float64(float32(0.7))), compare(rows, "score", "=", 0.25))
	add("compare_integer", rows, nil, nil, compare(rows, "big", ">", int64(-9223372036854775807)), compare(rows, "big", "=", int64(9223372036854775807)), compare(rows, "small", "<>", int64(2)))
	add("wide", people, []string{"age", "sex", "income", "hired", "member"}, nil)
	add("factored", people, []string{"member"}, predicate.AnyOf{
		predicate.AllOf{in(people, "age", 20, 40), in(people, "sex", 1, 2)},
		predicate.AllOf{in(people, "city", 1, 2), in(people, "sex", 1, 2), compare(people, "income", ">", number(t, "1500.505"))},
	})
	add("one_end", rows, nil, predicate.AllOf{in(rows, "member", 1, 2), in(rows, "seen", 300, rows.Column("seen").Domain.Null)})
	scattered := func(c string, uneven int) predicate.Pred { // two cells of three or of some more, and the last, which is NULL's where there is one
		var bounds []int
		n := rows.Column(c).Domain.Size()
		for i, k := 0, 0; i+2 < min(n, 400); i, k = i+3+k%11*uneven, k+1 {
			bounds = append(bounds, i, i+2)
		}
		return in(rows, c, append(bounds, n-1, n)...)
	}
	add("many_cells", rows, []string{"sex"}, scattered("age", 0), scattered("hired", 1), scattered("income", 1), scattered("seen", 1))
	add("rounds", rows, []string{"sex"}, scattered("age", 0), scattered("hired", 0), scattered("income", 0), scattered("seen", 0))
	return list
}

// scalarOf turns an ordered value into a rational number, so that the twin compares exactly.
func scalarOf(v policy.Value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case policy.Date:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Timestamp:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Timestamptz:
		return new(big.Rat).SetInt64(int64(v))
	case float64:
		return new(big.Rat).SetFloat64(v)
	case policy.Numeric:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			panic("numeric")
		}
		return r
	}
	panic(fmt.Sprintf("no order for %T", v))
}
