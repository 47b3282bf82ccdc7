package backend

import (
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestAnswersOfSpark: which keys join, and which tables lie in each other's directories, by what Spark's catalog says alone.
func TestAnswersOfSpark(t *testing.T) {
	t.Parallel()
	answers := sparkAnswers{}
	column := func(kind string) columnShape {
		base, scale := sparkType(kind)
		return columnShape{kindOf: kind, base: base, scale: scale}
	}
	for _, c := range []struct {
		one, other string
		joined     equality
	}{
		{"bigint", "int", ofValues}, {"bigint", "decimal(9,2)", ofValues}, {"decimal(9,2)", "decimal(9,4)", ofValues}, {"string", "varchar(9)", ofValues}, {"date", "timestamp", ofValues},
		{"string", "bigint", coarser}, {"string", "decimal(9,2)", coarser}, {"string", "date", coarser}, {"boolean", "int", coarser}, {"boolean", "string", coarser},
		{"double", "bigint", ofTexts}, {"string collate UTF8_LCASE", "string", ofTexts}, {"interval day to second", "interval day to second", ofTexts},
	} {
		one, other := column(c.one), column(c.other)
		if got, turned := answers.joined(one, other), answers.joined(other, one); got != c.joined || turned != c.joined {
			t.Errorf("%s and %s: %d and %d, want %d", c.one, c.other, got, turned, c.joined)
		}
		if refused := answers.class(one) == "" || answers.class(other) == ""; refused != (c.joined == ofTexts) {
			t.Errorf("%s and %s: refused %v", c.one, c.other, refused)
		}
	}
	var tables []*policy.Table
	for name, location := range map[string]string{"a": "file:/rows/a", "within": "file:/rows/a/within", "b": "file:/rows/ab", "same": "file:/rows/a/", "none": ""} {
		table := &policy.Table{Name: name, Source: policy.Source{Name: name}}
		tables, answers[sparkKey(table)] = append(tables, table), sparkTable{location: location}
	}
	of, err := answers.shows(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range tables {
		for k, other := range tables[:i] {
			both := 0
			for name := range of[i].of {
				if of[k].of[name] {
					both++
				}
			}
			apart := one.Name == "b" || one.Name == "none" || other.Name == "b" || other.Name == "none"
			if (both == 0) != apart {
				t.Errorf("%s and %s: %v and %v", one.Name, other.Name, of[i].of, of[k].of)
			}
		}
	}
}
