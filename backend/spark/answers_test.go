package spark

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
)

// TestAnswersOfSpark: which keys join, and which tables lie in each other's directories, by what Spark's catalog says
// alone.
func TestAnswersOfSpark(t *testing.T) {
	t.Parallel()
	answers := answers{}
	column := func(kind string) inspect.ColumnShape {
		base, scale := typeOf(kind)
		return inspect.ColumnShape{KindOf: kind, Base: base, Scale: scale}
	}
	for _, c := range []struct {
		one, other string
		joined     inspect.Equality
	}{
		{"bigint", "int", inspect.OfValues}, {"bigint", "decimal(9,2)", inspect.OfValues}, {"decimal(9,2)", "decimal(9,4)", inspect.OfValues}, {"string", "varchar(9)", inspect.OfValues}, {"date", "timestamp", inspect.OfValues},
		{"string", "bigint", inspect.Coarser}, {"string", "decimal(9,2)", inspect.Coarser}, {"string", "date", inspect.Coarser}, {"boolean", "int", inspect.Coarser}, {"boolean", "string", inspect.Coarser},
		{"double", "bigint", inspect.OfTexts}, {"string collate UTF8_LCASE", "string", inspect.OfTexts}, {"interval day to second", "interval day to second", inspect.OfTexts},
	} {
		one, other := column(c.one), column(c.other)
		if got, turned := answers.Joined(one, other), answers.Joined(other, one); got != c.joined || turned != c.joined {
			t.Errorf("%s and %s: %d and %d, want %d", c.one, c.other, got, turned, c.joined)
		}
		if refused := answers.Class(one) == "" || answers.Class(other) == ""; refused != (c.joined == inspect.OfTexts) {
			t.Errorf("%s and %s: refused %v", c.one, c.other, refused)
		}
	}
	var tables []*policy.Table
	for name, location := range map[string]string{"a": "file:/rows/a", "within": "file:/rows/a/within", "b": "file:/rows/ab", "same": "file:/rows/a/", "none": ""} {
		table := &policy.Table{Name: name, Source: policy.Source{Name: name}}
		tables, answers[keyOf(table)] = append(tables, table), relation{location: location}
	}
	of, err := answers.Shows(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range tables {
		for k, other := range tables[:i] {
			both := 0
			for name := range of[i].Of {
				if of[k].Of[name] {
					both++
				}
			}
			apart := one.Name == "b" || one.Name == "none" || other.Name == "b" || other.Name == "none"
			if (both == 0) != apart {
				t.Errorf("%s and %s: %v and %v", one.Name, other.Name, of[i].Of, of[k].Of)
			}
		}
	}
}
