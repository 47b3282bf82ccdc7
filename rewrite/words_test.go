package rewrite_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// third is an engine that nobody has: its words are neither PostgreSQL's nor DuckDB's, its decimals have a limit, and
// its keys are compared as they are.
var third = dialect.Dialect{Words: &dialect.Words{
	Name: "Third", Quote: "`", Schema: "own", Relation: "store.%1.%2", Text: "STR(@p%1)", Typed: "TO_%2(%1)", With: "FIRST %1 := (%2)",
	Types: map[string]string{"int4": "I32", "int8": "I64", "wide": "I128", "float4": "F32", "float8": "F64", "text": "STR", "uuid": "ID",
		"bool": "BIT", "date": "DAY", "timestamp": "MOMENT", "timestamptz": "INSTANT"},
	Operator: "(%1 \\%2 %3)", Operators: map[string]string{"/": "quot(%1, %3)", "#": "either(%1, %3)", "||": "cat(%1, %3)"},
	Divide: "over(%1, %2)", Call: "sys$%1(%2)", Cast: "TO_%2(%1)", Literal: "%2'%1'", Quoted: "STR'%1'",
	Read: "MAYBE_%2(%1)", ReadEnum: "LABEL(%1)", ReadText: "MAYBE_STR(%1)", IsNaN: "IS_%2_NAN(%1)", Key: "%1", TextKey: "BYTES(%1)", Micros: "MICROS(%1)", Days: "DAYS(%1, %2)", Sum: "ADDED_%2(%1)",
	WideSteps: "STEPS(%1, %2, %3)", WideQuotient: "OVER(%1, %2)", HexToWhole: "UNHEX(%1)", Sum256: "SUM(%1)", Octets: "OCTETS(%1)", Rounded: "NEAREST(%1)", Binned: "BIN_%4(%1, %2, %3)", Bins: true,
	Trimmed: "TRIM_%1(%2)", Find: "FIND(%2, %1)", Like: "ALIKE(%1, %2)", Regular: "MATCHED(%1, %2)",
	Position: "PLACE({%1}, %2)", OneOf: "ONE(%1, {%2})", NoneOf: "NONE(%1, {%2})", Within: "FOUND(%1, (%2))", Row: "TUPLE(%1)", RowOfOne: "TUPLE(%1,)",
	Numbers: "{%1}", Texts: "{%3}", List: "{%1}",
	Comma: "; ", Integers: "I32{%1}", OneOfNumbers: "ONE(%1, I32{%2})", OneOfMany: "MANY(%1, I32{%2})", Numbered: "PLACES(%1) AS %2", Parallel: "ROWS(%2) AS %1(%3)", InParallel: "%1",
	Digits: 40, Narrow: 40, Decimal: "DEC_%1_%2",
	Accepts: map[policy.Type][]string{policy.Int8: {"I64"}},
}}

// others are words of the engines that there are; none may be in what is written for a third.
var others = regexp.MustCompile(`pg_catalog|OPERATOR|::|\$\d|\[|//|"|BIGINT|HUGEINT|VARCHAR|DOUBLE|DECIMAL|CAST|ARRAY|list_|xor\(|epoch|EXTRACT`)

// TestThirdEngine writes all that the tests measure with the words of an engine that is none of those that there are:
// the table is all that tells engines apart. Each phrase is in some measure's SQL, or it need not be in the table. The
// golden ones are to be read.
func TestThirdEngine(t *testing.T) {
	words := *third.Words
	v := reflect.ValueOf(&words).Elem()
	marks := map[string]string{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).Kind() == reflect.String && !slices.Contains([]string{"Name", "Quote", "Schema"}, name) {
			marks[name] = fmt.Sprintf("«%d»", i)
			v.Field(i).SetString(marks[name] + v.Field(i).String())
		}
	}
	fixture, clinic := everyQuery(t, dialect.Dialect{Words: &words})
	_, visits, people := tables(t)
	labelled := *visits // whose texts are of enumerated types
	labelled.Columns = nil
	for _, c := range visits.Columns {
		own := *c
		own.Table, own.Enum = &labelled, own.Type == policy.Text
		labelled.Columns = append(labelled.Columns, &own)
	}
	for _, table := range []*policy.Table{visits, people, &labelled, listed(t)} {
		e, err := rewrite.Extract(table, dialect.Dialect{Words: &words})
		if err != nil {
			t.Fatal(err)
		}
		fixture = append(fixture, e.SQL())
	}
	all := strings.Join(append(fixture, clinic...), "\n")
	for name, mark := range marks {
		if !strings.Contains(all, mark) {
			t.Errorf("no measure writes the word %s", name)
		}
	}
	if found := others.FindString(all); found != "" {
		t.Errorf("the SQL has another engine's %s", found)
	}
	got := ""
	for _, f := range features(t) {
		if !strings.HasPrefix(f.name, "group_") && !strings.HasPrefix(f.name, "cells_") {
			got += fmt.Sprintf("-- %s\n%s\n\n", f.name, render(t, f.measure, third).SQL())
		}
	}
	for i, m := range foundMeasures(t)[:2] {
		got += fmt.Sprintf("-- found %d\n%s\n\n", i+1, render(t, m, third).SQL())
	}
	asWritten(t, "third_engine.sql", got)
}

// listed is a table with a column whose texts are the keys of a public table.
func listed(t *testing.T) *policy.Table {
	t.Helper()
	p, err := policy.Parse([]byte(`version: 1
backend: {url: "postgres://dp@127.0.0.1/d"}
datasets:
  - id: d
    unit: {name: person, key: people.id}
    accountant: pure
    cap: {epsilon: 1}
    budgets: {"*": {epsilon: 1}}
    tables:
      - {name: people, max_rows_per_unit: 1, columns: [{name: kind, type: text, domain: {keys_of: kinds.kind}}]}
      - {name: kinds, public: true, columns: [{name: kind, type: text}]}
`), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{p.Lists()[0].Name(): strings.Split(`abcdefghijklmnop"\`, "")}
	if p, err = p.WithLists(kinds); err != nil {
		t.Fatal(err)
	}
	return p.Datasets[0].Tables[0]
}

// TestLongLists: the keys of a public table are one argument for PostgreSQL, in which each may have any character.
func TestLongLists(t *testing.T) {
	table := listed(t)
	e, err := rewrite.Extract(table, dialect.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","\"","\\"}`
	written := strings.Contains(e.SQL(), "unnest($1::pg_catalog.text[])")
	if args := e.Args(); len(args) != 1 || args[0] != want || !written {
		t.Errorf("%q: %s", args, e.SQL())
	}
}

func render(t *testing.T, m *plans.Measure, d dialect.Dialect) rewrite.Query {
	t.Helper()
	q, err := rewrite.Render(m, d)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestOnlyWordsTellEnginesApart: a copy of an engine's table writes what the engine does.
func TestOnlyWordsTellEnginesApart(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		words := *d.Words
		for _, f := range withRandom(t) {
			if own, copied := render(t, f.measure, d), render(t, f.measure, dialect.Dialect{Words: &words}); own.SQL() != copied.SQL() {
				t.Errorf("%s: a copy of %s's table writes otherwise", f.name, d)
			}
		}
	}
}

// TestTablesAreWhole: an engine has all words, but for a limit that it does not have, and for a quicker way that it
// need not have.
func TestTablesAreWhole(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB, dialect.MySQL, dialect.Spark, dialect.Citus, third} {
		v := reflect.ValueOf(*d.Words)
		for i := range v.NumField() {
			name, field := v.Type().Field(i).Name, v.Field(i)
			switch {
			case field.Kind() == reflect.Bool || name == "Like" || name == "Regular" || d.Digits == 0 && (name == "Digits" || name == "Narrow" || name == "Decimal"):
			case field.Kind() == reflect.Map && field.IsNil() || field.Kind() != reflect.Map && field.IsZero():
				t.Errorf("%s has no %s", d, name)
			}
		}
	}
}
