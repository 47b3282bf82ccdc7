package rewrite_test

import (
	"database/sql"
	"math/big"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestRenderRefuses: what cannot be written exactly is refused, before any charge.
func TestRenderRefuses(t *testing.T) {
	dialects := []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB}
	for name, c := range map[string]struct {
		dialects []dialect.Dialect
		spoil    func(m *plans.Measure)
		want     string
	}{
		"no table":       {dialects, func(m *plans.Measure) { m.Table = nil }, "without a table"},
		"public table":   {dialects, func(m *plans.Measure) { m.Table.Public = true }, "public"},
		"no counters":    {dialects, func(m *plans.Measure) { m.Counters = nil }, "without counters"},
		"no unit":        {dialects, func(m *plans.Measure) { m.Table.UnitColumn = "" }, "does not name its unit"},
		"no bound":       {dialects, func(m *plans.Measure) { m.Table.MaxRowsPerUnit = 0 }, "without a bound"},
		"grain twice":    {dialects, func(m *plans.Measure) { m.Grain = append(m.Grain, m.Grain[0]) }, "twice"},
		"foreign column": {dialects, func(m *plans.Measure) { other := *m.Grain[0]; m.Grain[0] = &other }, "does not have"},
		"empty and":      {dialects, func(m *plans.Measure) { m.Where = predicate.AllOf{} }, "empty"},
		"no predicate":   {dialects, func(m *plans.Measure) { m.Where = predicate.AnyOf{nil} }, "unknown kind"},
		"unsorted cells": {dialects, func(m *plans.Measure) { m.Where = predicate.InCells{Column: m.Grain[0], Spans: spans(5, 6, 1, 2)} }, "sorted"},
		"overlapping":    {dialects, func(m *plans.Measure) { m.Where = predicate.InCells{Column: m.Grain[0], Spans: spans(1, 4, 3, 6)} }, "sorted"},
		"cells beyond":   {dialects, func(m *plans.Measure) { m.Where = predicate.InCells{Column: m.Grain[0], Spans: spans(0, 9999)} }, "domain"},
		"operator":       {dialects, func(m *plans.Measure) { m.Where = predicate.Compare{Column: m.Grain[0], Op: "~", Value: int64(3)} }, "comparison"},
		"no length of cells": {dialects, func(m *plans.Measure) {
			m.Where = predicate.Past{Column: m.Table.Column("income"), Op: "<", By: 3}
		}, "comparison"},
		"constant's type": {dialects, func(m *plans.Measure) { m.Where = predicate.Compare{Column: m.Grain[0], Op: "<", Value: 3.5} }, "comparison"},
		"compared text": {dialects, func(m *plans.Measure) {
			m.Where = predicate.Compare{Column: m.Table.Column("sex"), Op: "<", Value: "M"}
		}, "comparison"},
		"NUL in a value":   {dialects, func(m *plans.Measure) { m.Table.Column("sex").Domain.Values[0] = "a\x00b" }, "UTF-8"},
		"bytes in a value": {dialects, func(m *plans.Measure) { m.Table.Column("sex").Domain.Values[0] = "a\xff" }, "UTF-8"},
		"NUL in a name":    {dialects, func(m *plans.Measure) { m.Table.Source.Name = "a\x00b" }, "name"},
		"a long name":      {dialects, func(m *plans.Measure) { m.Grain[0].Source = strings.Repeat("a", 64) }, "name"},
		"no NULL rule":     {dialects, func(m *plans.Measure) { m.Grain[0].Nulls = 0; m.Grain[0].Domain.Null = -1 }, "NULL cell"},
		"no outside rule":  {dialects, func(m *plans.Measure) { m.Grain[0].Outside = 0 }, "outside values"},
		"too fine a float": {dialects, func(m *plans.Measure) {
			c := m.Table.Column("score")
			c.Domain.Step.Decimal = policy.Numeric{Coefficient: big.NewInt(1), Scale: 30}
			m.Grain = []*policy.Column{c}
		}, "too many digits"},
		"DuckDB's decimals": {dialects[1:], func(m *plans.Measure) { m.Table.Column("income").Typmod = (50<<16 | 2) + 4 }, "38 digits"},
		"the year 12000":    {dialects, func(m *plans.Measure) { m.Table.Column("hired").Domain.Max = policy.Date(3700000) }, "9999"},
	} {
		for _, d := range c.dialects {
			people, _, _ := tables(t)
			m := &plans.Measure{Table: people, Grain: []*policy.Column{people.Column("age")}, Counters: []predicate.Pred{nil}}
			c.spoil(m)
			q, err := rewrite.Render(m, d)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: got %v, want an error with %q", name, d, err, c.want)
			}
			if q.Valid() || q.SQL() != "" {
				t.Errorf("%s, %s: a refused query is valid", name, d)
			}
		}
	}
	if _, err := rewrite.Render(&plans.Measure{}, dialect.Dialect{}); err == nil {
		t.Error("the zero dialect is not refused")
	}
}

// TestNamesAreQuoted: whatever a policy calls its columns, they stay names.
func TestNamesAreQuoted(t *testing.T) {
	_, visits, _ := tables(t)
	visits.Source = policy.Source{Schema: `s"; DROP TABLE x; --`, Name: `select`}
	visits.UnitColumn = `per"son`
	visits.Columns[0].Source = `'); --`
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		q, err := rewrite.Render(&plans.Measure{Table: visits, Grain: visits.Columns[:1], Counters: []predicate.Pred{nil}}, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"s""; DROP TABLE x; --"."select"`, `"per""son"`, `"'); --"`} {
			if !strings.Contains(q.SQL(), want) {
				t.Errorf("%s: %s is not in\n%s", d, want, q.SQL())
			}
		}
	}
}

// TestTextsAreNoSQL: no text value of a policy or a query is in PostgreSQL's SQL, nor in DuckDB's but within a
// constant.
func TestTextsAreNoSQL(t *testing.T) {
	constants := regexp.MustCompile(`'(?:[^']|'')*'`)
	found := false
	for _, f := range features(t) {
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			q, err := rewrite.Render(f.measure, d)
			if err != nil {
				t.Fatal(err)
			}
			text := q.SQL()
			if d == dialect.DuckDB {
				found = found || strings.Contains(text, "Female")
				text = constants.ReplaceAllString(text, "")
				if len(q.Args()) > 0 {
					t.Errorf("%s: arguments, with which DuckDB plans a statement at each execution", f.name)
				}
			}
			for _, secret := range []string{"Female", "O'Hara", "Hara", "Köln", "north", "a0eebc99"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s, %s: %s is in the SQL", f.name, d, secret)
				}
			}
			for _, a := range q.Args() {
				if _, ok := a.(string); !ok {
					t.Errorf("%s, %s: an argument is a %T", f.name, d, a)
				}
			}
		}
	}
	if !found {
		t.Error("no text was a constant")
	}
}

// hostileTexts are what would end a constant, or begin something else, in one lexer or another.
func hostileTexts() []string {
	list := []string{`'`, `''`, `'''`, `\'`, `\\'`, `'); DROP TABLE people; --`, `' OR '1' = '1`, `$1`, `$$`, `$a$'$a$`, `?`, `:x`, `/*`, `*/`, `--`, "--\n'", `E'`, `U&'\0027`, `x'`, `"`, `;`,
		"\x01", "\r\n", "\t", "\u00a0", "\u2028'", "\u3000;", "\ufeff", "ʼ", "＇", "′", "e\u0301", "\U0010ffff", ""}
	alphabet := []rune("'\\\"$;-/*\n\u00a0\u2003 aE1(")
	r := rand.New(rand.NewPCG(108, 1))
	for range 150 {
		var text []rune
		for range 1 + r.IntN(9) {
			text = append(text, alphabet[r.IntN(len(alphabet))])
		}
		list = append(list, string(text))
	}
	return list
}

// TestTextsStayConstants: a hostile text in DuckDB's SQL changes nothing but one constant, which has its very bytes.
// The same texts, written as they are or with a backslash before each quote, are seen to escape.
func TestTextsStayConstants(t *testing.T) {
	db := duckDB(t, nil)
	readBack := func(constant string) string {
		var got sql.NullString
		if err := db.QueryRow("SELECT " + constant).Scan(&got); err != nil {
			return err.Error()
		}
		return got.String
	}
	quoted := func(text string) string {
		constant, travels := dialect.DuckDB.TextOf(text, 1)
		if travels {
			t.Fatal("texts are arguments")
		}
		return readBack(constant)
	}
	for first := rune(1); first < 0x3100; first += 16 { // each character that a lexer may know, sixteen at a time
		text := ""
		for c := first; c < first+16; c++ {
			text += string(c)
		}
		if got := quoted(text); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	people, _, _ := tables(t)
	sex := people.Column("sex")
	m := &plans.Measure{Table: people, Grain: []*policy.Column{sex}, Counters: []predicate.Pred{nil}}
	own, plain := sex.Domain.Values[0], render(t, m, dialect.DuckDB).SQL()
	escaped := 0
	for _, hostile := range hostileTexts() {
		if got := quoted(hostile); got != hostile {
			t.Errorf("%q comes back as %q", hostile, got)
		}
		if readBack("'"+hostile+"'") != hostile || readBack("'"+strings.ReplaceAll(hostile, "'", `\'`)+"'") != hostile {
			escaped++
		}
		sex.Domain.Values[0] = hostile
		want := duckTree(t, db, plain)
		if swap(want, own, hostile) == 0 {
			t.Fatalf("%q is not in the tree of\n%s", own, plain)
		}
		if !reflect.DeepEqual(want, duckTree(t, db, render(t, m, dialect.DuckDB).SQL())) {
			t.Errorf("%q changes more than a constant", hostile)
		}
	}
	if escaped < 30 {
		t.Errorf("only %d texts escape from constants whose quotes are not doubled", escaped)
	}
}

// swap puts a text in the place of another in a parsed statement, and tells how many there were.
func swap(node any, from, to string) (n int) {
	switch v := node.(type) {
	case []any:
		for _, x := range v {
			n += swap(x, from, to)
		}
	case map[string]any:
		for k, x := range v {
			if x == from {
				v[k] = to
				n++
			}
			n += swap(x, from, to)
		}
	}
	return n
}

// randomPred makes a predicate over the columns of a table.
func randomPred(r *rand.Rand, table *policy.Table, depth int) predicate.Pred {
	if depth > 0 && r.IntN(3) > 0 {
		var parts []predicate.Pred
		for range 1 + r.IntN(3) {
			parts = append(parts, randomPred(r, table, depth-1))
		}
		if r.IntN(2) == 0 {
			return predicate.AllOf(parts)
		}
		return predicate.AnyOf(parts)
	}
	if r.IntN(6) == 0 {
		if sum := sumPred(r, table); sum != nil {
			return sum
		}
	}
	c := table.Columns[r.IntN(len(table.Columns))]
	if v := value(r, c); c.Domain.Ordered() && r.IntN(3) == 0 {
		if _, infinite := v.(endless); v != nil && !infinite && kind(v) == kind(c.Domain.Min) && v == v {
			return predicate.Compare{Column: c, Op: []string{"<", "<=", ">", ">=", "=", "<>"}[r.IntN(6)], Value: v}
		}
	}
	if step := c.Domain.Step.Whole; c.Type == policy.TimestampT && step > 0 && r.IntN(3) == 0 {
		return predicate.Past{Column: c, Op: []string{"<", "<=", ">", ">=", "=", "<>"}[r.IntN(6)], By: []int64{0, 1, step / 2, step - 1, r.Int64N(step)}[r.IntN(5)]}
	}
	var list []mechanisms.Span
	if period := 3 + r.IntN(30); c.Domain.Ordered() && c.Domain.Size() > 30*period && r.IntN(2) == 0 { // what comes round
		first, length := r.IntN(period), 1+r.IntN(period-1)
		for at := r.IntN(3)*period - first; at < c.Domain.Size()-r.IntN(2); at += period {
			if from, to := max(at, 0), min(at+length, c.Domain.Size()); from < to {
				list = append(list, mechanisms.Span{From: from, To: to})
			}
		}
		return predicate.InCells{Column: c, Spans: list}
	}
	at := 0
	for range 1 + r.IntN(4) {
		from := at + r.IntN(max(c.Domain.Size()/3, 2))
		to := from + 1 + r.IntN(max(c.Domain.Size()/4, 2))
		if to > c.Domain.Size() {
			break
		}
		list = append(list, mechanisms.Span{From: from, To: to})
		at = to
	}
	if len(list) == 0 {
		return predicate.Never{}
	}
	return predicate.InCells{Column: c, Spans: list}
}

// sumPred is a comparison of a sum of two columns, of numbers or of days and moments; nil means it would be too large.
func sumPred(r *rand.Rand, table *policy.Table) predicate.Pred {
	var of []*policy.Column
	moments := r.IntN(2) == 0
	for _, c := range table.Columns {
		isMoment := c.Type == policy.DateType || c.Type == policy.TimestampT || c.Type == policy.TimestampTZ
		if c.Domain.Ordered() && (moments && isMoment || !moments && (c.Type.Integer() || c.Type == policy.NumericType)) {
			of = append(of, c)
		}
	}
	if len(of) < 2 {
		return nil
	}
	at := r.Perm(len(of))
	sum := derived.ComputedColumn{{Times: 1 + r.Int64N(3), Column: of[at[0]]}, {Times: -1 - r.Int64N(3), Column: of[at[1]]}}
	for i := range sum {
		if moments && sum[i].Column.Type == policy.DateType {
			sum[i].Times *= 86_400_000_000
		}
	}
	column := sum.Column()
	if column == nil {
		return nil
	}
	d := column.Domain
	v := d.Low(r.IntN(d.Regular))
	if n, whole := v.(int64); whole {
		v = n + r.Int64N(3) - 1
	}
	return predicate.Sum{Terms: sum, Op: []string{"<", "<=", ">", ">=", "=", "<>"}[r.IntN(6)], Value: v}
}

// kind names the type of a value that can be written as a constant.
func kind(v policy.Value) string {
	switch v := v.(type) {
	case int64:
		return "integer"
	case float64:
		if v != v || v > 1e300 || v < -1e300 {
			return "no finite number"
		}
		return "float"
	case policy.Numeric:
		return "numeric"
	case policy.Date:
		return "date"
	case policy.Timestamp:
		return "timestamp"
	case policy.Timestamptz:
		return "timestamptz"
	}
	return "other"
}
