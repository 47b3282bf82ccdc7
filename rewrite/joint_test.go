package rewrite_test

import (
	"fmt"
	"math/rand/v2"
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

// form is one of the texts that a query may run as.
type form struct {
	what string
	sql  string
	args []any
}

func formsOf(q rewrite.Query) []form {
	list := []form{{"whole", q.SQL(), q.Args()}}
	for i, s := range q.Proven() {
		list = append(list, form{fmt.Sprintf("shorter %d", i+1), s.SQL(), s.Args()})
	}
	return list
}

// ofMeasure are the rows of a query's measure in the answer of its scan, without columns that are not its own, which
// must be 0, and without rows of groups that count 0, sorted.
func ofMeasure(t *testing.T, q rewrite.Query, rows [][]int64) (list [][]int64) {
	t.Helper()
	cells, counts := q.Width()
	for _, row := range rows {
		if len(q.Measures()) > 1 {
			if row[0] < 0 || int(row[0]) >= len(q.Measures()) {
				t.Fatalf("a row of measure %d", row[0])
			}
			if int(row[0]) != q.Number() {
				continue
			}
			row = row[1:]
		}
		if len(row) != cells+counts {
			t.Fatalf("%d columns, not %d and %d", len(row), cells, counts)
		}
		its := slices.Concat(row[:q.Grain()], row[cells:cells+q.Counters()])
		for _, n := range slices.Concat(row[q.Grain():cells], row[cells+q.Counters():]) {
			if n != 0 {
				t.Fatalf("a column of no measure's is %d", n)
			}
		}
		if q.Grain() == 0 || slices.ContainsFunc(its[q.Grain():], func(n int64) bool { return n != 0 }) {
			list = append(list, its)
		}
	}
	sorted(list)
	return list
}

// sameAsAlone holds each measure of a scan, in each of its texts that the rows allow, against what a query of its own
// counts.
func sameAsAlone(t *testing.T, d dialect.Dialect, run engine, measures []*plans.Measure, queries []rewrite.Query, holds func(rewrite.Query, int) bool) (joined int) {
	t.Helper()
	for i, m := range measures {
		q := queries[i]
		if len(q.Measures()) == 1 {
			continue
		}
		joined++
		own := render(t, m, d)
		want := ofMeasure(t, own, run(t, own.SQL(), own.Args()))
		for k, f := range formsOf(q) {
			if k > 0 && !holds(q, k-1) {
				continue
			}
			if got := ofMeasure(t, q, run(t, f.sql, f.args)); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("measure %d of a scan of %d, %s: %v, alone %v\n%s\nalone:\n%s", q.Number(), len(q.Measures()), f.what, got, want, f.sql, own.SQL())
			}
		}
	}
	return joined
}

// TestScansCountWhatEachWouldAlone draws measures over the same rows, with every kind of value, and reads them in
// one scan and one by one: what each counts is the same, on both engines.
func TestScansCountWhatEachWouldAlone(t *testing.T) {
	t.Parallel()
	const seed = 90
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	_, visits, people := tables(t)
	peopleRows, visitsRows := generate(r, people, 700, 400), generate(r, visits, 600, 120)
	fill := func(duck bool) []string {
		list := []string{"CREATE SCHEMA clinic"}
		list = append(list, schemaSQL(people, "person_id", peopleSpecs, peopleRows, duck)...)
		return append(list, schemaSQL(visits, "person_id", visitsSpecs, visitsRows, duck)...)
	}
	var read []*policy.Table
	byTable := map[*policy.Table][]*plans.Measure{}
	for _, f := range withRandom(t) {
		if !slices.Contains(read, f.measure.Table) {
			read = append(read, f.measure.Table)
		}
		byTable[f.measure.Table] = append(byTable[f.measure.Table], f.measure)
	}
	_, _, moments := tables(t)
	read = append(read, moments)
	for i := range 12 { // of moments, which are grouped by what all pieces are made of
		m := &plans.Measure{Table: moments, Counters: []predicate.Pred{nil}, Grain: []*policy.Column{moments.Column([]string{"seen", "stamp"}[i%2])}}
		if m.Cuts = randomCuts(r, m.Grain); i%3 > 0 { // of even pieces, of which each measure's own may be made or not
			starts := []int{0}
			for at, length := 1, 2+r.IntN(5); at < m.Grain[0].Domain.Regular; at += length {
				starts = append(starts, at)
			}
			m.Cuts[0] = append(starts, m.Grain[0].Domain.Null)
		}
		byTable[moments] = append(byTable[moments], m)
	}
	for name, open := range map[string]func() (dialect.Dialect, engine){
		"DuckDB": func() (dialect.Dialect, engine) { return dialect.DuckDB, duckQueries(duckDB(t, fill(true))) },
		"PostgreSQL": func() (dialect.Dialect, engine) {
			return dialect.PostgreSQL, postgresQueries(postgresConn(t, fill(false)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, run := open()
			run = remembering(d, run, nil).run // measures come again, and a scan is asked for each of its own
			r := rand.New(rand.NewPCG(seed, 2))
			joined := 0
			for range stattest.Length(20, 600) {
				for _, table := range read {
					list := byTable[table]
					var some []*plans.Measure
					for _, at := range r.Perm(len(list))[:min(len(list), 2+r.IntN(3))] {
						some = append(some, list[at])
					}
					queries, err := rewrite.RenderAll(t.Context(), some, d)
					if err != nil {
						t.Fatal(err)
					}
					joined += sameAsAlone(t, d, run, some, queries, func(rewrite.Query, int) bool { return false })
				}
			}
			t.Logf("%d measures in scans of several", joined)
			if joined < 100 {
				t.Errorf("only %d measures were read with others", joined)
			}
		})
	}
}

// jointStatements are statements whose measures are read in one scan, each beside another, in the policies of the
// neighbour tests.
var jointStatements = []string{
	`SELECT (SELECT count(*) FROM visits WHERE minutes > 0), (SELECT count(*) FROM visits WHERE ward = 'A'), (SELECT sum(minutes) FROM visits WHERE room > 2)`,
	`SELECT 1, ward, count(*) FROM visits GROUP BY 2 UNION ALL SELECT 2, ward, sum(cost) FROM visits WHERE minutes > -3 GROUP BY 2`,
	`SELECT (SELECT count(*) FROM calls), (SELECT avg(paid) FROM calls WHERE kind = 'in'), (SELECT count(*) FROM calls WHERE secs < 30)`,
	`SELECT (SELECT count(*) FROM people WHERE age > 3), (SELECT sum(age) FROM people WHERE sex = 'f'), (SELECT count(*) FROM people)`,
	`SELECT 'a', day, count(*) FROM visits WHERE ward = 'B' GROUP BY 2 UNION ALL SELECT 'b', day, count(*) FROM visits WHERE day > '2025-01-20' GROUP BY 2`,
	`SELECT (SELECT count(*) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.ward = 'A'), (SELECT sum(v.minutes) FROM people p JOIN visits v ON p.person_id = v.who WHERE p.sex = 'f')`,
	`SELECT sum(v.minutes), count(DISTINCT v.ward) FROM people p JOIN visits v ON p.person_id = v.who`,
	`WITH x AS (SELECT p.sex, p.age, v.ward, v.minutes FROM people p LEFT JOIN visits v ON p.person_id = v.who) SELECT (SELECT count(*) FROM x WHERE sex = 'f'), (SELECT sum(minutes) FROM x WHERE ward = 'A'), (SELECT count(*) FROM x WHERE age > 3)`,
}

// jointChoices are statements that choose, too.
var jointChoices = []string{
	`SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.minutes), percentile_disc(0.9) WITHIN GROUP (ORDER BY p.age) FROM visits v JOIN people p ON p.person_id = v.who`,
	`SELECT p.sex, sum(v.minutes), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.room) FROM people p LEFT JOIN visits v ON p.person_id = v.who WHERE p.age > 2 GROUP BY 1`,
	`SELECT ward, stddev(minutes), percentile_disc(0.5) WITHIN GROUP (ORDER BY room), max(minutes + room) FROM visits GROUP BY 1`,
}

// TestStatementsReadRowsOnce: the measures of statements over the same rows are read in one scan, and count there what
// they do alone, in each of the scan's texts that constraints allow.
func TestStatementsReadRowsOnce(t *testing.T) {
	t.Parallel()
	const seed = 91
	t.Logf("seed %d", seed)
	names := []string{"add-remove", "replace-one, other rules", "add-remove, ranked", "add-remove, no units", "add-remove, unique", "add-remove, groups"}
	for _, name := range []string{"DuckDB", "PostgreSQL", "snapshot"} {
		t.Run(name, func(t *testing.T) {
			db, r := opened(t, name, names...), rand.New(rand.NewPCG(seed, 1))
			all := variants(t, db.dialect)
			joined := map[string]int{}
			for v, variant := range names {
				both := nobody(r, 6)
				for id := range 6 {
					both.add(person(r, id, 9, true))
				}
				rows := tuples{}
				rows.add(both)
				script := rows.script(r)
				unique := !strings.Contains(variant, "no units")
				if unique {
					script += ";\nDELETE FROM clinic.people WHERE person_id IS NULL"
				}
				if err := db.load(script); err != nil {
					t.Fatal(err)
				}
				holds := func(q rewrite.Query, i int) bool { // people are unique
					s := q.Proven()[i]
					return unique && len(s.Ranks) == 0 && !slices.ContainsFunc(s.Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" })
				}
				texts := slices.Concat(jointStatements, jointChoices)
				if v > 0 && variant != "add-remove, ranked" { // of which the numbers are judged below
					texts = byTurns(texts, v)
				}
				for i := range 2 * len(texts) {
					planned := plansOf(t, all[variant], texts[i/2], i%2 == 1)
					queries, err := rewrite.RenderAll(t.Context(), planned, db.dialect)
					if err != nil {
						t.Fatal(err)
					}
					joined[variant] += sameAsAlone(t, db.dialect, db.run, planned, queries, holds)
				}
			}
			t.Log(joined)
			for _, variant := range []string{"add-remove", "add-remove, ranked"} {
				if numbered := variant == "add-remove"; joined[variant] < 8 && !db.dialect.Ready && (numbered || db.dialect.OneScan) {
					t.Errorf("%s: only %d measures were read with others", variant, joined[variant])
				}
			}
		})
	}
}

// plansOf are the measures of a statement: conditions bought with what lies around them, as histograms, or each as it
// is.
func plansOf(t *testing.T, p *policy.Policy, text string, asTheyAre bool) (list []*plans.Measure) {
	t.Helper()
	if asTheyAre { // the policy is other tests', too
		whole, dataset := *p, *p.Datasets[0]
		dataset.Buying.Cells = 0
		p, whole.Datasets = &whole, []*policy.Dataset{&dataset}
	}
	for _, m := range measures(t, p, dialect.PostgreSQL, []string{`SELECT count(*) FROM people`, text}, privacy.MicroEpsilon(100_000)) {
		if m.statement == text && len(m.query.Measures()) == 1 {
			list = append(list, m.measure)
		}
	}
	return list
}

// TestJointGolden shows the SQL of scans: of rows that are numbered, of people, whom a constraint may prove unique, of
// rows with a stored rank, and of joins; and that of counts of all rows less those beyond the bound.
func TestJointGolden(t *testing.T) {
	got := ""
	for _, c := range []struct {
		variant, text string
	}{{"add-remove", jointStatements[0]}, {"add-remove", jointStatements[3]}, {"add-remove", jointStatements[5]}, {"add-remove, ranked", jointStatements[1]},
		{"add-remove, ranked", `SELECT count(*) FROM visits`}, {"add-remove, ranked", `SELECT ward, count(*), sum(cost) FROM visits WHERE room > 2 GROUP BY 1`}} {
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			list, err := rewrite.RenderAll(t.Context(), plansOf(t, variants(t, d)[c.variant], c.text, true), d)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range list {
				if q.Number() > 0 {
					continue
				}
				got += fmt.Sprintf("-- %s, %s: %s\n-- %d measures\n", d, c.variant, c.text, len(q.Measures()))
				for _, f := range formsOf(q) {
					got += fmt.Sprintf("-- %s\n%s\n-- arguments %q\n", f.what, f.sql, f.args)
				}
				got += "\n"
			}
		}
	}
	asWritten(t, "joint.sql", got)
}

// TestWhichMeasuresAreOneScan: by their plans alone.
func TestWhichMeasuresAreOneScan(t *testing.T) {
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	many := `SELECT 0, count(*) FROM visits`
	for i := range 19 {
		many += fmt.Sprintf(` UNION ALL SELECT %d, count(*) FROM visits WHERE minutes > %d`, i+1, i+20)
	}
	for _, c := range []struct {
		what, bounds, text string
		postgres, duck     int // scans
	}{
		{"two counts", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM people WHERE age > 40), (SELECT count(*) FROM people WHERE sex = 'f')`, 1, 1},
		{"two counts of rows that are units' only ones by a rank", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT (SELECT count(*) FROM visits WHERE minutes > 30), (SELECT count(*) FROM visits WHERE ward = 'A')`, 1, 2},
		{"rows that an index may find, and others", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT (SELECT count(*) FROM visits WHERE minutes > 57), (SELECT count(*) FROM visits WHERE ward = 'A')`, 2, 2},
		{"rows that two indexes may find", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM people WHERE age < 5), (SELECT count(*) FROM people WHERE age = 70)`, 2, 1},
		{"rows that one index may find", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM people WHERE age < 5), (SELECT count(*) FROM people WHERE age < 5 AND sex = 'f')`, 1, 1},
		{"numbered rows", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM visits WHERE minutes = 3), (SELECT sum(minutes) FROM visits), (SELECT count(*) FROM visits WHERE ward = 'A')`, 1, 1},
		{"tables", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM visits), (SELECT count(*) FROM people)`, 2, 2},
		{"a join that is numbered, and its table", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM visits v JOIN people p ON p.person_id = v.who WHERE p.sex = 'f'), (SELECT sum(minutes) FROM visits v JOIN people p ON p.person_id = v.who), (SELECT sum(minutes) FROM visits)`, 2, 2},
		{"a join that constraints may spare numbering", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT (SELECT count(*) FROM visits v JOIN people p ON p.person_id = v.who WHERE p.sex = 'f'), (SELECT sum(minutes) FROM visits v JOIN people p ON p.person_id = v.who)`, 2, 2},
		{"such a join in one SELECT", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.minutes) FROM visits v JOIN people p ON p.person_id = v.who WHERE p.sex = 'f'`, 1, 2},
		{"bounded groups", "max_groups_per_unit: 2\n        max_rows_per_group: 2", `SELECT (SELECT count(*) FROM visits WHERE minutes > 30), ward, count(*) FROM visits GROUP BY ward`, 2, 2},
		{"twenty", "max_rows_per_unit: 10", many, 2, 2},
	} {
		for d, want := range map[dialect.Dialect]int{dialect.PostgreSQL: c.postgres, dialect.DuckDB: c.duck} {
			p := parsedFor(t, head+"datasets:"+strings.Replace(benchColumns, "BOUNDS", c.bounds, 1), d)
			p.Datasets[0].Buying.Cells = 0
			queries, err := rewrite.RenderAll(t.Context(), measuresOf(t, p, c.text), d)
			if err != nil {
				t.Fatal(err)
			}
			scans, measures := 0, 0
			for _, q := range queries {
				if q.Number() == 0 {
					scans, measures = scans+1, measures+len(q.Measures())
				}
			}
			if scans != want || measures != len(queries) {
				t.Errorf("%s, %s: %d measures in %d scans, must be %d in %d", c.what, d, measures, scans, len(queries), want)
			}
		}
	}
}

// TestScansThatNeedTooManyConstants: measures that one text has no room for are read by themselves.
func TestScansThatNeedTooManyConstants(t *testing.T) {
	values := make([]string, 40_000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	single := &policy.Dataset{ID: "rows", Unit: policy.Unit{Row: true}, Neighbors: privacy.AddRemove}
	other := slices.Clone(values)
	for i := range other {
		other[i] = "w" + other[i]
	}
	table := table(t, single, "items", "", 1, []spec{{name: "a", kind: "text", values: values, nulls: cell, outside: policy.OutsideOther}, {name: "b", kind: "text", values: other, nulls: cell, outside: policy.OutsideOther}})
	var list []*plans.Measure
	for i, c := range table.Columns {
		m := &plans.Measure{Table: table, Counters: []predicate.Pred{nil}, Where: predicate.InCells{Column: c, Spans: spans(0, 35_000)}}
		m.Digest[0] = byte(i + 1)
		list = append(list, m)
	}
	queries, err := rewrite.RenderAll(t.Context(), list, dialect.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range queries {
		if alone := render(t, list[i], dialect.PostgreSQL); len(q.Measures()) != 1 || q.SQL() != alone.SQL() || q.Digest() != list[i].Digest {
			t.Errorf("measure %d: in a scan of %d", i, len(q.Measures()))
		}
	}
}
