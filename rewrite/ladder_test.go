package rewrite_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	asked "github.com/dpproxy/dpproxy/planner/bounds"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// withoutBounds gives the ordered columns of a table ladders in the place of their domains.
func withoutBounds(t *testing.T, table *policy.Table) *policy.Table {
	t.Helper()
	for _, c := range table.Columns {
		if c.Domain.Ordered() {
			var err error
			if c.Domain, err = policy.NewLadder(c.Type, c.Typmod); err != nil {
				t.Fatal(err)
			}
			c.Private, c.Outside, c.Nulls = true, policy.OutsideClamp, policy.NullCell
		}
	}
	return table
}

// TestLaddersLieInGosCells: a column without bounds is read by total functions on both engines and in snapshots,
// whatever it holds: 1e131071, NaN, an infinite date, a number of another type's range. Each value lies in the cell of
// its ladder that policy.Domain says.
func TestLaddersLieInGosCells(t *testing.T) {
	t.Parallel()
	const seed = 130
	t.Logf("seed %d", seed)
	people, _, _ := tables(t)
	rows := generate(rand.New(rand.NewPCG(seed, 1)), people, 400, 400)
	withoutBounds(t, people)
	rows = append(rows, hostileRows(people)...)
	for n := range 400 { // all boundaries
		row := stored{raw: slices.Clone(rows[n].raw)}
		for i, c := range people.Columns {
			if l := c.Domain.Ladder; c.Private {
				row.raw[i] = slices.Concat(l.Lows, l.Ends[:len(l.Lows)])[n%(2*len(l.Lows))]
			}
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].unit = int64(i)
		for at, v := range rows[i].raw { // what is an infinity's place in DuckDB is beyond other domains, and not beyond a ladder
			if f, ok := v.(float64); ok && math.IsInf(f, 0) && people.Columns[at].Type == policy.NumericType {
				rows[i].raw[at] = beyond{"'Infinity'", "'99999999999999999999999999999.999999999'", 1}
				if f < 0 {
					rows[i].raw[at] = beyond{"'-Infinity'", "'-99999999999999999999999999999.999999999'", -1}
				}
			}
		}
	}
	fill := func(duck bool) []string {
		return append([]string{"CREATE SCHEMA clinic"}, schemaSQL(people, "person_id", peopleSpecs, rows, duck)...)
	}
	duck, pg := duckDB(t, fill(true)), postgresConn(t, fill(false))
	engines := map[string]struct {
		dialect dialect.Dialect
		run     engine
	}{
		"DuckDB": {dialect.DuckDB, duckQueries(duck)}, "PostgreSQL": {dialect.PostgreSQL, postgresQueries(pg)},
		"snapshot of DuckDB":     {dialect.Snapshot, duckQueries(snapshotOf(t, dialect.DuckDB, duckRows(duck), people))},
		"snapshot of PostgreSQL": {dialect.Snapshot, duckQueries(snapshotOf(t, dialect.PostgreSQL, postgresRows(pg), people))},
	}
	counted := map[*policy.Column]map[string][]int64{} // by Go, once for all engines
	for name, e := range engines {
		for _, c := range people.Columns {
			if !c.Private {
				continue
			}
			t.Run(name+", "+c.Name, func(t *testing.T) {
				m := &plans.Measure{Table: people, Grain: []*policy.Column{c}, Counters: []predicate.Pred{nil}}
				q, err := rewrite.Render(m, e.dialect)
				if err != nil {
					t.Fatal(err)
				}
				got := map[string][]int64{}
				for _, row := range e.run(t, q.SQL(), q.Args()) {
					got[fmt.Sprint(row[0])] = row[1:]
				}
				if counted[c] == nil {
					counted[c] = twin(t, m, rows)
				}
				if want := counted[c]; !maps.EqualFunc(got, want, slices.Equal) {
					t.Error(difference(got, want))
				}
			})
		}
	}
}

// boundsPolicy is neighbourPolicy with no bounds for anything that has an order.
// The SELECTs as sources, which read such columns, are left out.
var boundsPolicy = regexp.MustCompile(`domain: \{min: [^}]*\}(, outside: clamp)?`).ReplaceAllString(
	regexp.MustCompile(`(?m)^ *- \{kind: (range|histogram), .*\n|^ *releases:\n|^ *extremes: true\n`).ReplaceAllString(withoutViews(neighbourPolicy), ""), "domain: private")

func withoutViews(policy string) string {
	before, rest, _ := strings.Cut(policy, "      - name: grown\n")
	_, after, _ := strings.Cut(rest, "      - name: rooms\n")
	return before + "      - name: rooms\n" + after
}

// boundsMeasures are what `dpproxy bounds` asks of each private table.
func boundsMeasures(t *testing.T, text string, d dialect.Dialect) (list []measured) {
	t.Helper()
	p := parsedFor(t, text, d)
	for _, table := range p.Datasets[0].Tables {
		var columns []*policy.Column
		for _, c := range table.Columns {
			if c.Private {
				columns = append(columns, c)
			}
		}
		if table.Public || table.Analysed() {
			continue
		}
		r, err := asked.Ask(table, columns, true, false, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range r.Questions {
			honest, err := mechanisms.Plain(1, q.Measure.Spec.Cells, q.Measure.Contribution(), q.Measure.Cost)
			if err != nil || !reflect.DeepEqual(q.Measure.Spec, honest) {
				t.Fatalf("%s: the noise is not that of what a unit moves and what is paid: %+v, %+v, %v", q.Name(), q.Measure.Spec, honest, err)
			}
			query, err := rewrite.Render(q.Measure, d)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, measured{q.Name(), q.Measure, query})
		}
	}
	return list
}

// TestBoundsNeighbours: what one unit moves of the histograms that bounds are found from is one unit of one cell (of
// two, where it is replaced), whatever its rows are: thirty of them, all alike, outliers, without a value. A fault in
// the bound, or in the claim, is found.
func TestBoundsNeighbours(t *testing.T) {
	t.Parallel()
	const seed = 131
	t.Logf("seed %d", seed)
	replaceOne := strings.Replace(boundsPolicy, "    accountant: pure\n", "    neighbors: replace-one\n    units: 50\n    accountant: pure\n", 1)
	nobodys := strings.Replace(boundsPolicy, "    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1)
	kept := regexp.MustCompile(`r <= 1\b`)
	faults := []fault{sound,
		{name: "all of a unit's rows are kept", sql: func(s string) string { return kept.ReplaceAllString(s, "r <= 1000") }, claimed: 1},
		{name: "half of what a unit moves is claimed", sql: sound.sql, claimed: 2},
		{name: "a unit is each of its rows", sql: func(s string) string { return strings.ReplaceAll(s, "PARTITION BY b.u", "PARTITION BY b.n1") }, claimed: 1},
	}
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			list := map[string][]measured{"add-remove": boundsMeasures(t, boundsPolicy, db.dialect), "replace-one": boundsMeasures(t, replaceOne, db.dialect), "no units": boundsMeasures(t, nobodys, db.dialect)}
			if n := len(list["add-remove"]); n < 10 {
				t.Fatalf("%d questions", n)
			}
			r, found, moved := rand.New(rand.NewPCG(seed, 1)), map[string]float64{}, map[string]float64{}
			for round := range stattest.Length(3, 300) {
				variant := []string{"add-remove", "replace-one", "no units"}[round%3]
				both := nobody(r, 4)
				for id := range 3 {
					both.add(person(r, id, 5, false))
				}
				sides := [2]tuples{{}, {}}
				for i := range sides {
					sides[i].add(both)
				}
				sides[0].add(crowd(r, 4, 30))
				if variant == "replace-one" {
					sides[1].add(person(r, 4, 14, false))
				}
				observed := map[string][2][][]int64{}
				for i, side := range sides {
					if err := db.load(side.script(r)); err != nil {
						t.Fatal(err)
					}
					for _, f := range faults {
						o := observed[f.name]
						for _, m := range list[variant] {
							o[i] = append(o[i], m.observed(t, m.groups(t, db.run, f, false)))
						}
						observed[f.name] = o
					}
				}
				for _, f := range faults {
					for i, m := range list[variant] {
						l1, l2 := m.shares(observed[f.name][0][i], observed[f.name][1][i], f)
						if found[f.name] = max(found[f.name], l1, l2); f.name == sound.name {
							moved[m.statement] = max(moved[m.statement], l1, l2)
						}
					}
				}
			}
			for what, share := range moved {
				if share > 1 || share == 0 {
					t.Errorf("%s moves by %.2f times its claim", what, share)
				}
			}
			for _, f := range faults[1:] {
				if found[f.name] <= 1 {
					t.Errorf("%s: not found, %.2f", f.name, found[f.name])
				}
			}
			threats.Reached(t, "T45", "%d histograms of bounds between neighbours, %d faults found", len(list["add-remove"]), len(faults)-1)
		})
	}
}
