package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// alikePolicy's columns differ in nothing but their names, and have no cells but those of their values: what tells two
// measures apart is then only which columns they are about.
var alikePolicy = policytest.Over("duckdb:warehouse.duckdb") + `
  - id: shop
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns:
          - {name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}
          - {name: b, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}
      - name: visits
        source: clinic.visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 3
        columns:
          - {name: c, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}
          - {name: d, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}
          - {name: k, type: integer, keys: join}
          - {name: l, type: integer, keys: join}
`

func alikeRows(r *rand.Rand) []string {
	list := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a int, b int)", "CREATE TABLE clinic.visits (who int, c int, d int, k int, l int)"}
	for p := range 40 {
		list = append(list, fmt.Sprintf("INSERT INTO clinic.people VALUES (%d, %d, %d)", p, r.IntN(4), r.IntN(3)))
		for range r.IntN(4) {
			list = append(list, fmt.Sprintf("INSERT INTO clinic.visits VALUES (%d, %d, %d, %d, %d)", p, r.IntN(4), r.IntN(4), r.IntN(3), r.IntN(2)))
		}
	}
	return list
}

// alikeSource is what is selected from: relations, their columns and their keys.
type alikeSource struct {
	from string
	cols []string
	keys []string
}

// alike draws statements.
type alike struct{ r *rand.Rand }

func (a alike) one(list ...string) string { return list[a.r.IntN(len(list))] }

func (a alike) condition(column string) string {
	return column + a.one(" > 0", " > 1", " <= 2", " = 1", " <> 2", " IN (0, 3)")
}

func (a alike) source() alikeSource {
	within := a.one("sum(c)", "sum(d)", "min(c)", "max(c)", "count(*)", "count(DISTINCT c)", "count(DISTINCT d)", "count(*) FILTER (WHERE c > 1)")
	derived := "(SELECT who, " + within + " AS n, " + a.one("min(d)", "max(d)", "sum(d)", "sum(c)") + " AS m FROM visits " +
		a.one("", "WHERE "+a.condition("c"), "WHERE "+a.condition("d")) + " GROUP BY who" + a.one("", ", k", ", l") + ") t"
	list := []alikeSource{
		{"people p", []string{"a", "b"}, []string{"person_id"}},
		{"visits v", []string{"c", "d"}, []string{"who", "k", "l"}},
		{"people p JOIN visits v ON p.person_id = v.who", []string{"a", "b", "c", "d"}, []string{"v.who", "k", "l"}},
		{"visits v RIGHT JOIN people p ON p.person_id = v.who AND " + a.condition(a.one("a", "b", "c", "d")), []string{"a", "b", "c", "d"}, []string{"person_id"}},
		{"visits x JOIN visits y ON x.who = y.who" + a.one("", " AND x.k = y.k", " AND x.l = y.l", " AND x.k = y.l", " AND x.l = y.k"),
			[]string{"x.c", "x.d", "y.c", "y.d"}, []string{"x.who", "x.k", "y.l"}},
		{derived, []string{"n", "m"}, []string{"who"}},
	}
	return list[a.r.IntN(len(list))]
}

func (a alike) expression(s alikeSource) string {
	return strings.ReplaceAll(a.one("x", "x * 2", "3 - x", "x + 1", "x * -1"), "x", a.one(s.cols...))
}

func (a alike) aggregate(s alikeSource) string {
	column, text := a.one(s.cols...), ""
	switch a.r.IntN(8) {
	case 0:
		text = "count(*)"
	case 1, 2, 3:
		text = "sum(" + a.expression(s) + ")"
	case 4:
		text = a.one("avg(", "stddev(") + a.expression(s) + ")"
	case 5:
		text = "count(DISTINCT " + a.one(column, a.one(s.keys...), "("+column+", "+a.one(s.cols...)+")", column+" % 2") + ")"
	case 6:
		text = "corr(" + column + ", " + a.one(s.cols...) + ")"
	case 7:
		return a.one("percentile_disc(0.5)", "mode()") + " WITHIN GROUP (ORDER BY " + a.expression(s) + ")"
	}
	if a.r.IntN(3) == 0 {
		text += " FILTER (WHERE " + a.condition(a.one(s.cols...)) + ")"
	}
	return text
}

func (a alike) statement() string {
	s := a.source()
	var keys, numbers, aggregates, where []string
	for i := range a.r.IntN(3) {
		column := a.one(s.cols...)
		keys, numbers = append(keys, a.one(column, column, column+" > 1", column+" % 2")), append(numbers, fmt.Sprint(i+1))
	}
	for range 1 + a.r.IntN(2) {
		aggregates = append(aggregates, a.aggregate(s))
	}
	if a.r.IntN(2) == 0 {
		where = append(where, a.condition(a.one(s.cols...)))
	}
	if a.r.IntN(4) == 0 { // refused where the keys do not compare
		where = append(where, a.one(s.keys...)+a.one(" IN", " NOT IN")+" (SELECT "+a.one("who", "k", "l")+" FROM visits WHERE "+a.condition(a.one("c", "d"))+")")
	}
	text := "SELECT " + strings.Join(append(slices.Clone(keys), aggregates...), ", ") + " FROM " + s.from
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	switch {
	case len(keys) == 2 && a.r.IntN(4) == 0:
		return text + " GROUP BY ROLLUP (" + strings.Join(keys, ", ") + ")"
	case len(keys) > 0:
		return text + " GROUP BY " + strings.Join(numbers, ", ")
	}
	return text
}

// mirrored are the columns and keys that mirror puts in each other's place.
var mirrored = regexp.MustCompile(`\b[abcdkl]\b`)

// mirror is the same statement about the columns' likes.
func mirror(statement string) string {
	likes := map[string]string{"a": "b", "b": "a", "c": "d", "d": "c", "k": "l", "l": "k"}
	return mirrored.ReplaceAllStringFunc(statement, func(column string) string { return likes[column] })
}

// alikeStatements are drawn too seldom.
var alikeStatements = []string{
	`SELECT b, a, sum(a * 2) FROM people GROUP BY b, a`,
	`SELECT a, b, sum(a * 2) FROM people GROUP BY a, b`,
	`SELECT a, b, sum(b * 2) FROM people GROUP BY a, b`,
	`SELECT a, b, sum(3 - a), count(*) FROM people GROUP BY a, b`,
	`SELECT a, b, sum(3 - b), count(*) FROM people GROUP BY a, b`,
	`SELECT a, b, count(DISTINCT a) FROM people GROUP BY a, b`,
	`SELECT a, b, count(DISTINCT b) FROM people GROUP BY a, b`,
}

// TestRule3OneDigestOneAnswer: measures with one digest, of whatever statements, count the same on any rows. Else a
// release that she has paid for would answer another question.
func TestRule3OneDigestOneAnswer(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte(alikePolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1093
	t.Logf("seed %d", seed)
	run := remembering(dialect.DuckDB, duckEngine(t, alikeRows(rand.New(rand.NewPCG(seed, 1)))), nil).run
	draw := alike{rand.New(rand.NewPCG(seed, 2))}
	statements := slices.Clone(alikeStatements)
	for range stattest.Length(150, 4000) {
		text := draw.statement()
		statements = append(statements, text, mirror(text))
	}
	type answer struct {
		statement string
		cells     []int64
	}
	first, compared := map[plans.Digest]answer{}, 0
	for _, text := range statements {
		plan := alikePlan(t, p, text)
		if plan == nil {
			continue
		}
		for _, m := range plan.Measures {
			q, err := rewrite.Render(m, dialect.DuckDB)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			cells := trueCells(m, q, run(t, q.SQL(), q.Args()))
			before, known := first[m.Digest]
			switch {
			case !known:
				first[m.Digest] = answer{text, cells}
			case before.statement != text:
				if compared++; !slices.Equal(before.cells, cells) {
					t.Errorf("one digest, different answers:\n%s\n%s", before.statement, text)
				}
			}
		}
	}
	t.Logf("%d statements, %d digests, %d answers compared", len(statements), len(first), compared)
	if compared == 0 {
		t.Error("no statements share a digest: the test shows nothing")
	}
}

// alikePlan plans a statement; nil means it compares keys of which nothing is known.
func alikePlan(t *testing.T, p *policy.Policy, text string) *plans.Plan {
	t.Helper()
	parsed, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatalf("%s: %s", text, refusal.Message)
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan, refusal := planner.Build(parsed[0], nil, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Unix(0, 0),
		Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil && refusal.ID != "key-types" {
		t.Fatalf("%s: %s: %s", text, refusal.ID, refusal.Message)
	}
	return plan
}
