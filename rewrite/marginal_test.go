package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// fewSpecs are columns whose values are few enough to be distinguished one by one, which peopleSpecs lack.
var fewSpecs = []spec{
	{name: "tip", kind: "numeric(5,2)", min: "-2", max: "20", step: "0.25", nulls: cell, outside: other},
	{name: "dose", kind: "numeric(4,0)", min: "0", max: "500", step: "20", nulls: cell, outside: clamp},
	{name: "day", kind: "date", min: "2024-01-01", max: "2024-12-31", whole: 1, nulls: nullsOut, outside: outsideEx},
}

// readsMarginal reports whether a query reads one.
func readsMarginal(q rewrite.Query) bool { return marginalNamed.MatchString(q.SQL()) }

var marginalNamed = regexp.MustCompile(`@[0-9a-f]{16}#([0-9+]*)"`)

// TestMarginalsCountWhatRowsDo: what is drawn of no, one or two columns is counted as the twin counts it row by row,
// whichever marginal is read, over rows with every kind of value, of which each unit has more than its bound; and as
// the rows themselves are counted, where no marginal is left for them.
func TestMarginalsCountWhatRowsDo(t *testing.T) {
	t.Parallel()
	const seed = 156
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	specs := append(slices.Clone(peopleSpecs), fewSpecs...)
	persons := &policy.Dataset{ID: "persons", Unit: policy.Unit{Name: "person", Table: "people", Column: "person_id"}, Neighbors: privacy.AddRemove}
	people := table(t, persons, "people", "person_id", 3, specs)
	each := table(t, &policy.Dataset{ID: "rows", Unit: policy.Unit{Row: true}, Neighbors: privacy.AddRemove}, "people", "", 1, specs)
	rows := generate(r, people, 450, 75)
	dose := slices.Index(people.Columns, people.Column("dose")) // of which a type without digits after the point is to hold each value
	for _, row := range rows {
		if v, ok := row.raw[dose].(policy.Numeric); ok {
			row.raw[dose] = v.Rescale(0)
		}
	}
	duck := duckDB(t, append([]string{"CREATE SCHEMA clinic"}, schemaSQL(people, "person_id", specs, rows, true)...))
	snapshot := snapshotOf(t, dialect.DuckDB, duckRows(duck), people, each)
	list := drawnOfFew(r, stattest.Length(100, 600), people, each)
	few := 0
	for _, f := range list {
		q, err := rewrite.Render(f.measure, dialect.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if readsMarginal(q) {
			few++
		}
	}
	if t.Logf("%d of %d measures read marginals", few, len(list)); few < len(list)/2 || few > len(list)*9/10 {
		t.Errorf("%d of %d measures read marginals", few, len(list))
	}
	compareThese(t, list, dialect.Snapshot, duckQueries(snapshot), rows, rows, byGo{})
	// Marginals in which one number is another are seen.
	for _, row := range duckRows(snapshot)(t, "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%#%'", nil) {
		exec(t, snapshot, "UPDATE main."+dialect.QuoteName(row[0].(string))+" SET n = n + 1")
	}
	ask := duckQueries(snapshot)
	for _, f := range list {
		q, _ := rewrite.Render(f.measure, dialect.Snapshot)
		if f.measure.Where != nil || f.measure.Sums != nil || len(f.measure.Grain) > 0 {
			continue
		}
		got := ask(t, q.SQL(), q.Args())[0][0]
		if want := twin(t, f.measure, rows)[""][0]; f.measure.Counters[0] == nil && (got != want) != readsMarginal(q) {
			t.Errorf("%s: %d rows of %d, with marginals that say otherwise\n%s", f.name, got, want, q.SQL())
		}
	}
}

// drawnOfFew draws measures of at most two columns.
func drawnOfFew(r *rand.Rand, n int, tables ...*policy.Table) (list []feature) {
	for i := range n {
		table := tables[i%len(tables)]
		few := *table
		few.Columns = nil
		for _, at := range r.Perm(len(table.Columns))[:[]int{0, 1, 1, 1, 2}[r.IntN(5)]] {
			few.Columns = append(few.Columns, table.Columns[at])
		}
		summed := slices.ContainsFunc(few.Columns, addable)
		var m *plans.Measure
		switch {
		case len(few.Columns) == 0:
			m = &plans.Measure{Counters: []predicate.Pred{nil}}
		case summed && r.IntN(2) == 0:
			m = sumsBy(r, &few)
		default:
			m = &plans.Measure{Counters: []predicate.Pred{nil, randomPred(r, &few, 2)}}
			if r.IntN(2) == 0 {
				m.Where = randomPred(r, &few, 2)
			}
			if r.IntN(2) == 0 {
				m.Grain = few.Columns
				m.Cuts = randomCuts(r, m.Grain)
			}
		}
		m.Table = table
		name := fmt.Sprint("few ", i)
		for _, c := range few.Columns {
			name += " " + c.Name
		}
		list = append(list, feature{name, m})
	}
	return list
}

const marginalPolicy = `version: 1
backend: {url: "postgres://dpproxy@127.0.0.1/prod", snapshot: {dir: snapshots, every: 1d}}
ledger: {url: "sqlite:ledger.db"}
users: []
datasets:
  - id: clinic
    unit: {name: person, key: people.person_id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {"*": {epsilon: 100}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: note, type: text, domain: any}
      - name: visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 10
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: at, type: timestamptz, domain: {min: 2024-01-01, below: 2026-01-01, step: 1 hour}}
          - {name: fee, type: "numeric(10,2)", domain: {min: 0, max: 1000, step: 10}}
          - {name: weight, type: double precision, domain: {min: 0, max: 200, step: 0.5}}
          - {name: total, type: bigint, domain: {min: 0, max: 1000000000, step: 100}}
`

func marginalClinic(t *testing.T, old, new string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(strings.Replace(marginalPolicy, old, new, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWhichMarginalIsRead: the smallest that says all that is asked, by the policy and the statement alone.
func TestWhichMarginalIsRead(t *testing.T) {
	const rows = "rows"
	p, manyRows, groups := marginalClinic(t, "", ""), marginalClinic(t, "max_rows_per_unit: 10", "max_rows_per_unit: 257"), marginalClinic(t, "max_rows_per_unit: 10", "max_groups_per_unit: 5\n        max_rows_per_group: 2")
	at256, at15 := marginalClinic(t, "max_rows_per_unit: 10", "max_rows_per_unit: 256"), marginalClinic(t, "max_rows_per_unit: 10", "max_rows_per_unit: 15")
	wide := marginalClinic(t, "{name: sex, type: text, domain: {values: [f, m]}}", "{name: income, type: bigint, domain: {min: 0, max: 1000000, step: 1}}")
	for _, c := range []struct {
		policy     *policy.Policy
		text, want string
	}{
		{wide, "SELECT count(*) FROM people", ""},
		{wide, "SELECT count(*) FROM people WHERE income > 5", rows},
		{p, "SELECT count(*) FROM visits", "4"}, // the smallest
		{p, "SELECT count(*) FROM visits WHERE minutes > 20", "1+2"},
		{p, "SELECT ward, count(*) FROM visits GROUP BY ward", "1+2"},
		{p, "SELECT ward, minutes, count(*) FROM visits GROUP BY ward, minutes", "1+2"},
		{p, "SELECT ward, sum(minutes) FROM visits GROUP BY ward", "1+2"},
		{p, "SELECT sum(minutes) FROM visits", "1+2"},
		{p, "SELECT count(*) FROM visits WHERE fee >= 50", "4"},
		{p, "SELECT count(*) FROM visits WHERE fee > 50", rows},   // inside a step
		{p, "SELECT sum(fee) FROM visits", rows},                  // of which a cell says too little
		{p, "SELECT avg(weight) FROM visits", rows},               // the same
		{p, "SELECT count(*) FROM visits WHERE weight < 70", "5"}, // whose steps are distinguished
		{p, "SELECT ward, count(*) FROM visits WHERE fee >= 50 GROUP BY ward", rows},
		{p, "SELECT date_trunc('month', at), count(*) FROM visits GROUP BY 1", "3"},
		{p, "SELECT count(*) FROM visits WHERE total >= 100", rows}, // of ten million cells
		{p, "SELECT count(DISTINCT who) FROM visits WHERE minutes > 20", rows},
		{p, "SELECT count(*) FROM visits v JOIN people p ON p.person_id = v.who", rows},
		{p, "SELECT count(*) FROM people WHERE sex = 'f'", "1"},
		{p, "SELECT count(*) FROM people WHERE note LIKE 'late%'", rows},
		{at256, "SELECT count(*) FROM visits", "4"},
		{at256, "SELECT count(*) FROM visits WHERE minutes > 20", "1+2"},
		{manyRows, "SELECT count(*) FROM visits", rows},
		{at15, "SELECT date_trunc('month', at), count(*) FROM visits GROUP BY 1", rows}, // of which there are 14 ranks
		{at15, "SELECT count(*) FROM visits WHERE fee >= 50", "4"},
		{groups, "SELECT ward, count(*) FROM visits GROUP BY ward", rows},
	} {
		q, err := rewrite.Render(measureOf(t, c.policy, c.text), dialect.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		got := rows
		if m := marginalNamed.FindStringSubmatch(q.SQL()); m != nil {
			got = m[1]
		}
		if got != c.want {
			t.Errorf("%s, at most %d rows: reads %q, want %q\n%s", c.text, c.policy.Datasets[0].Tables[1].MaxRowsPerUnit, got, c.want, q.SQL())
		}
	}
}

// TestMarginalsGolden: how marginals are made, and what is asked of them.
func TestMarginalsGolden(t *testing.T) {
	p := marginalClinic(t, "", "")
	got := ""
	for _, table := range p.Datasets[0].Tables {
		e, err := rewrite.Extract(table, dialect.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		got += "-- " + table.Name + "\n" + strings.Join(marginalsOf(t, e), ";\n") + ";\n\n"
	}
	for _, text := range []string{"SELECT count(*) FROM visits", "SELECT count(*) FROM visits WHERE minutes > 20", "SELECT ward, sum(minutes), avg(minutes) FROM visits GROUP BY ward",
		"SELECT count(*), count(fee) FROM visits WHERE fee >= 50", "SELECT count(*) FROM people WHERE sex = 'f'"} {
		for _, m := range measuresOf(t, p, text) {
			q, err := rewrite.Render(m, dialect.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			got += "-- " + text + "\n" + q.SQL() + "\n\n"
		}
	}
	got = regexp.MustCompile("@[0-9a-f]{16}").ReplaceAllString(got, "@…")
	asWritten(t, "marginals.sql", got)
}

// TestMarginalsAreFew: columns of few values are counted together, each in one marginal; one of no columns is where
// there is no other of all ranks.
func TestMarginalsAreFew(t *testing.T) {
	namesOf := func(columns ...string) (names []string) {
		e, err := rewrite.Extract(sumsPolicy(t, columns...).Datasets[0].Tables[0], dialect.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range marginalsOf(t, e) {
			names = append(names, marginalNamed.FindStringSubmatch(text)[1])
		}
		return names
	}
	var flags []string
	for i := range 20 {
		flags = append(flags, fmt.Sprintf("{name: flag%d, type: boolean}", i))
	}
	n := func(name string, most int) string {
		return fmt.Sprintf("{name: %s, type: integer, domain: {min: 1, max: %d}, nulls: exclude, outside: exclude}", name, most)
	}
	for _, c := range []struct{ columns, want []string }{ // the last column is b, of few values
		{flags, []string{"19+20+21", "1+2+3+4+5+6", "7+8+9+10+11+12", "13+14+15+16+17+18"}},
		{[]string{n("x", 300)}, []string{"2", "1"}},
		{[]string{n("x", 32), n("y", 1024)}, []string{"1+3", "2"}},
		{[]string{n("x", 1025)}, []string{"2", "1"}},
		{[]string{n("x", 1<<18), n("y", 1<<18+1)}, []string{"3", "1"}},
	} {
		if got := namesOf(c.columns...); !slices.Equal(got, c.want) {
			t.Errorf("%.200s: %q, want %q", c.columns, got, c.want)
		}
	}
}
