package policy

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyRules draws rules that an ordered column may have.
func anyRules(t *rapid.T) Rules {
	return Rules{
		Nulls:   rapid.SampledFrom([]NullRule{NullCell, NullExclude}).Draw(t, "nulls"),
		Outside: rapid.SampledFrom([]OutsideRule{OutsideClamp, OutsideOther, OutsideExclude}).Draw(t, "outside"),
	}
}

// anyDomain draws a domain of any type, from the ends of its type too.
func anyDomain(t *rapid.T) *Domain {
	kind := rapid.SampledFrom([]Type{Int2, Int4, Int8, NumericType, Float4, Float8, DateType, TimestampT, TimestampTZ, Text, Bool, UUID}).Draw(t, "type")
	rules := anyRules(t)
	listed := kind.Integer() && rapid.Bool().Draw(t, "listed")
	if !listed && !kind.Textual() && kind != Bool && kind != UUID {
		return anySteps(t, kind, rules)
	}
	if rules.Outside == OutsideClamp {
		rules.Outside = OutsideOther
	}
	values := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "", "other", "Ümlaut", "null"}), 1, 6, rapid.ID).Draw(t, "values")
	if listed {
		for i := range values {
			values[i] = strconv.Itoa(7*i%11 - 3)
		}
	}
	if kind == UUID {
		for i := range values {
			values[i] = fmt.Sprintf("01234567-89AB-cdef-0123-%012x", i)
		}
	}
	d, err := Enumerate(kind, values, rules)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func anySteps(t *rapid.T, kind Type, rules Rules) *Domain {
	cells := rapid.Int64Range(1, 60).Draw(t, "cells")
	width := rapid.Int64Range(1, 1000).Draw(t, "width")
	rest := rapid.Int64Range(0, width-1).Draw(t, "rest") // how far Max lies into the last cell
	digits := rapid.Int32Range(0, 6).Draw(t, "digits")
	typmod := int32(-1)
	var least, most Value
	step := Step{Whole: width}
	switch kind {
	case NumericType, Float4, Float8:
		low := rapid.Int64Range(-1000, 1000).Draw(t, "low")
		from, to := NewNumeric(low, digits), NewNumeric(low+(cells-1)*width+rest, digits)
		step = Step{Decimal: NewNumeric(width, digits)}
		least, most = from, to
		if kind == NumericType && rapid.Bool().Draw(t, "declared scale") {
			typmod = (12<<16 | (digits + rapid.Int32Range(0, 2).Draw(t, "more digits"))) + 4
		}
		if kind.Floating() {
			least, most = mustParse(t, kind, from.String()), mustParse(t, kind, to.String())
		}
	default:
		if kind == TimestampT || kind == TimestampTZ {
			step.Whole *= 60 * 1000000
			rest *= 60 * 1000000
		}
		span := (cells-1)*step.Whole + rest
		bottom, top := int64(math.MinInt64), int64(math.MaxInt64)
		switch kind {
		case Int2:
			bottom, top = math.MinInt16, math.MaxInt16
			if span > math.MaxInt16 {
				t.Skip("wider than smallint")
			}
		case Int4, DateType:
			bottom, top = math.MinInt32, math.MaxInt32
		}
		low := rapid.OneOf(rapid.Just(bottom), rapid.Just(top-span), rapid.Int64Range(bottom, top-span)).Draw(t, "low")
		wrap := map[Type]func(int64) Value{
			DateType: func(n int64) Value { return Date(n) }, TimestampT: func(n int64) Value { return Timestamp(n) },
			TimestampTZ: func(n int64) Value { return Timestamptz(n) },
		}[kind]
		if wrap == nil {
			wrap = func(n int64) Value { return n }
		}
		least, most = wrap(low), wrap(low+span)
	}
	d, err := Steps(kind, typmod, least, most, step, rules)
	if err != nil {
		t.Fatalf("%v to %v by %+v: %v", least, most, step, err)
	}
	if d.Regular != int(cells) && !kind.Floating() {
		t.Fatalf("%d cells, want %d", d.Regular, cells)
	}
	return d
}

func mustParse(t *rapid.T, kind Type, text string) Value {
	v, err := ParseValue(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDomainLowHighAgreeWithCell: each cell's ends lie in it, the next value does not, cells follow each other without
// a gap, and the spare cells hold what they should.
func TestDomainLowHighAgreeWithCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDomain(t)
		for cell := range d.Size() {
			low, lowOK := d.Cell(d.Low(cell))
			high, highOK := d.Cell(d.High(cell))
			if d.HighOpen(cell) {
				high-- // an open end is the first value of the next cell
			}
			if !lowOK || !highOK || low != cell || high != cell {
				t.Fatalf("ends %v and %v of cell %d lie in cells %d and %d (%+v)", d.Low(cell), d.High(cell), cell, low, high, d)
			}
			if d.Single() && !equal(d.Low(cell), d.High(cell)) {
				t.Fatalf("cell %d of a single-valued domain holds %v and %v", cell, d.Low(cell), d.High(cell))
			}
		}
		if d.Ordered() && (compare(d.Low(0), d.Min) != 0 || compare(d.High(d.Regular-1), d.Max) != 0) {
			t.Fatalf("cells run from %v to %v, not from %v to %v", d.Low(0), d.High(d.Regular-1), d.Min, d.Max)
		}
		if d.Low(-1) != nil || d.Low(d.Size()) != nil {
			t.Fatal("a cell that is not there has values")
		}
	})
}

func equal(a, b Value) bool {
	if m, ok := a.(Numeric); ok {
		n, ok := b.(Numeric)
		return ok && m.Cmp(n) == 0
	}
	return a == b
}

// TestDomainHoldsEachNormalisedValueOnce draws raw values, applies the rules naively, and finds the cell of the result
// by looking at every cell.
func TestDomainHoldsEachNormalisedValueOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := anyRules(t)
		d := anySteps(t, rapid.SampledFrom([]Type{Int4, NumericType, Float8, Float4, DateType}).Draw(t, "kind"), rules)
		raw := rawAround(t, d)
		v, kept := normalise(d, raw, rules)
		if !kept {
			return
		}
		cell, ok := d.Cell(v)
		if !ok {
			t.Fatalf("normalised value %v of %v has no cell", v, raw)
		}
		n := 0
		for i := range d.Regular {
			if v == nil || compare(v, d.Low(i)) < 0 {
				continue
			}
			high := compare(v, d.High(i))
			if high < 0 || high == 0 && !d.HighOpen(i) {
				n++
				if i != cell {
					t.Fatalf("%v lies in cell %d by its ends and in %d by Cell", v, i, cell)
				}
			}
		}
		if v == nil && (cell != d.Null || n != 0) || v != nil && n != 1 {
			t.Fatalf("%v lies in %d cells, Cell says %d", v, n, cell)
		}
	})
}

// rawAround draws NULL or a value in or near the domain.
func rawAround(t *rapid.T, d *Domain) Value {
	if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
		return nil
	}
	at := rapid.Int64Range(-300, 65_000).Draw(t, "offset")
	switch least := d.Min.(type) {
	case int64:
		return clampTo(least, at, math.MinInt32, math.MaxInt32)
	case Date:
		return Date(clampTo(int64(least), at, math.MinInt32, math.MaxInt32))
	case Numeric:
		scale := least.Scale
		if d.Scale < 0 {
			scale += rapid.Int32Range(0, 3).Draw(t, "finer")
		}
		return Numeric{new(big.Int).Add(least.At(scale), big.NewInt(at)), scale}
	case float64:
		step, _ := d.Step.Decimal.At(6).Float64()
		f := least + float64(at)*step/1e6/7
		if d.Type == Float4 {
			f = float64(float32(f))
		}
		return f
	}
	return d.Min
}

func clampTo(n, add, bottom, top int64) int64 { return min(max(n+add, bottom), top) }

// normalise is the rules of a column, as a DBA would read them.
func normalise(d *Domain, v Value, rules Rules) (Value, bool) {
	switch {
	case v == nil:
		return nil, rules.Nulls == NullCell
	case compare(v, d.Min) >= 0 && compare(v, d.Max) <= 0:
		return v, true
	case rules.Outside == OutsideClamp && compare(v, d.Min) < 0:
		return d.Min, true
	case rules.Outside == OutsideClamp:
		return d.Max, true
	case rules.Outside == OutsideOther:
		return nil, true
	}
	return nil, false
}

func TestDomainSpareCells(t *testing.T) {
	for _, c := range []struct {
		kind                 Type
		values               []string
		rules                Rules
		size, regular, other int
		null                 int
	}{
		{Text, []string{"a", "b"}, Rules{NullCell, OutsideOther}, 4, 2, 2, 3},
		{Text, []string{"a", "other"}, Rules{NullCell, OutsideOther}, 3, 2, 1, 2},
		{Text, []string{"a", "other"}, Rules{NullCell, OutsideExclude}, 3, 2, -1, 2},
		{Text, []string{"a"}, Rules{NullExclude, OutsideExclude}, 1, 1, -1, -1},
		{Text, []string{"a"}, Rules{NullExclude, OutsideOther}, 2, 1, 1, -1},
		{Bool, nil, Rules{NullCell, OutsideOther}, 3, 2, -1, 2},
		{Bool, nil, Rules{NullExclude, OutsideOther}, 2, 2, -1, -1},
		{Int4, []string{"8532", "-7", "0", "2000000001"}, Rules{NullCell, OutsideOther}, 5, 4, -1, 4},
		{Int8, []string{"9223372036854775807", "-1"}, Rules{NullExclude, OutsideExclude}, 2, 2, -1, -1},
		{UUID, []string{"01234567-89AB-CDEF-0123-456789ABCDEF"}, Rules{NullExclude, OutsideOther}, 2, 1, -1, 1},
	} {
		d, err := Enumerate(c.kind, c.values, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if d.Size() != c.size || d.Regular != c.regular || d.Other != c.other || d.Null != c.null {
			t.Errorf("%v %v %v: size %d, regular %d, other %d, null %d", c.kind, c.values, c.rules, d.Size(), d.Regular, d.Other, d.Null)
		}
		d.index = nil // a domain written by hand finds its cells all the same
		for cell := range d.Size() {
			if got, ok := d.Cell(d.Low(cell)); !ok || got != cell {
				t.Errorf("%v %v: cell %d reads as %d, %v", c.kind, c.values, cell, got, ok)
			}
		}
	}
}

func TestDomainRefusesForeignValues(t *testing.T) {
	whole, err := Steps(Int4, -1, int64(0), int64(9), Step{Whole: 1}, Rules{NullExclude, OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	float, err := Steps(Float8, -1, 0.0, 9.0, Step{Decimal: NewNumeric(1, 0)}, Rules{NullExclude, OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	flag, err := Enumerate(Bool, nil, Rules{NullExclude, OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	text, err := Enumerate(Text, []string{"true"}, Rules{NullExclude, OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d *Domain
		v Value
	}{
		{whole, nil}, {whole, int64(10)}, {whole, int64(-1)}, {whole, "1"}, {whole, 1.0}, {whole, Date(1)},
		{float, math.NaN()}, {float, math.Inf(1)}, {float, int64(1)}, {float, NewNumeric(1, 0)},
		{flag, "true"}, {flag, nil}, {text, true}, {text, "other"}, {text, nil},
	} {
		if cell, ok := c.d.Cell(c.v); ok {
			t.Errorf("%v lies in cell %d of a domain of %v", c.v, cell, c.d.Type)
		}
	}
}

func TestDomainLimits(t *testing.T) {
	rules := Rules{NullCell, OutsideOther}
	if _, err := Steps(Int8, -1, int64(0), int64(MaxDomain-2), Step{Whole: 1}, rules); err != nil {
		t.Errorf("a domain of 2^30 cells: %v", err)
	}
	if _, err := Steps(Int8, -1, int64(0), int64(MaxDomain-1), Step{Whole: 1}, rules); err == nil {
		t.Error("a domain of 2^30 cells and one for NULL passes")
	}
	if _, err := Steps(Int8, -1, int64(math.MinInt64), int64(math.MaxInt64), Step{Whole: 1}, rules); err == nil {
		t.Error("a domain of 2^64 cells passes")
	}
	d, err := Steps(Int8, -1, int64(math.MinInt64), int64(math.MaxInt64), Step{Whole: 1 << 60}, rules)
	if err != nil || d.Regular != 16 || d.High(14) != Value(int64(math.MaxInt64-1<<60)) {
		t.Errorf("the whole of bigint: %+v, %v", d, err)
	}
	if _, err := Steps(Int4, -1, int64(0), Date(1), Step{Whole: 1}, rules); err == nil {
		t.Error("bounds of two kinds pass")
	}
	if _, err := Steps(Text, -1, "a", "b", Step{}, rules); err == nil {
		t.Error("steps of text pass")
	}
	if _, err := Steps(Int4, -1, int64(0), int64(1), Step{Whole: 1}, Rules{}); err == nil {
		t.Error("rules that are not set pass")
	}
	if _, err := Enumerate(Text, []string{"a"}, Rules{NullCell, OutsideClamp}); err == nil {
		t.Error("clamped text passes")
	}
	for _, list := range [][]string{{"1", "01"}, {"70000"}, {"one"}, {}} {
		if _, err := Enumerate(Int2, list, rules); err == nil {
			t.Errorf("%q passes as a list of smallints", list)
		}
	}
	if _, err := Enumerate(NumericType, []string{"1"}, rules); err == nil {
		t.Error("enumerated numerics pass")
	}
}

func TestDatesAndTimes(t *testing.T) {
	utc := func(s string) int64 {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	for _, c := range []struct {
		kind Type
		text string
		want Value
	}{
		{DateType, "1970-01-01", Date(0)}, {DateType, "1969-12-31", Date(-1)}, {DateType, "2000-03-01", Date(11017)},
		{TimestampT, "1969-12-31 23:59:59.5", Timestamp(-500000)},
		{TimestampT, "2026-12-31T23:59", Timestamp(utc("2026-12-31T23:59:00Z"))},
		{TimestampTZ, "2026-12-31", Timestamptz(utc("2026-12-31T00:00:00Z"))},
		{TimestampTZ, "2026-12-31 12:00:00+02", Timestamptz(utc("2026-12-31T10:00:00Z"))},
		{TimestampTZ, "2026-12-31 12:00:00.000001-05:30", Timestamptz(utc("2026-12-31T17:30:00.000001Z"))},
		{TimestampTZ, "2026-12-31T12:00Z", Timestamptz(utc("2026-12-31T12:00:00Z"))},
		{Float8, "-0.0", 0.0}, {Float8, "0.1", 0.1}, {Float4, "0.1", float64(float32(0.1))},
		{Int8, "-9223372036854775808", int64(math.MinInt64)},
		{UUID, "ABCDEF01-2345-6789-abcd-ef0123456789", "abcdef01-2345-6789-abcd-ef0123456789"},
	} {
		if got, err := ParseValue(c.kind, c.text); err != nil || got != c.want {
			t.Errorf("%v %q is %v, %v; want %v", c.kind, c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		kind Type
		text string
	}{
		{DateType, "2026-02-29"}, {DateType, "26-01-01"}, {TimestampT, "2026-01-01 00:00:00Z"}, {TimestampT, "2026-01-01 25:00"},
		{TimestampT, "2026-01-01 00:00:00.0000001"}, {Int2, "32768"}, {Float8, "1e5"}, {Float8, "NaN"}, {NumericType, "1,5"},
		{NumericType, "."}, {NumericType, "+-1"}, {Bool, "yes"}, {Text, "a\x00b"}, {Text, "\xff"}, {UUID, "abc"}, {IntervalT, "1 day"},
	} {
		if got, err := ParseValue(c.kind, c.text); err == nil {
			t.Errorf("%v %q passes as %v", c.kind, c.text, got)
		}
	}
}
