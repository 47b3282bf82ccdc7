package rewrite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// sampled has units of a type with at most two rows, and groups with at most one.
func sampled(t *testing.T, unitType, bounds string) *policy.Policy {
	t.Helper()
	text := strings.Replace(groupPolicy, "key: people.person_id}", "key: people.person_id, type: "+unitType+"}", 1)
	text = strings.Replace(text, "          - {name: visit, type: integer, keys: join}\n", "", 1) // which would tell all rows apart
	p, err := policy.Parse([]byte(strings.Replace(text, "BOUNDS", bounds, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKeptRowsAreASample (privacy rule 10): of units that all have the same five rows, each of the five stays as often
// as every other; so does each of the pairs of neighbouring values, and each of five groups. With the rows in the order
// of their contents the least two would stay, and no other.
func TestKeptRowsAreASample(t *testing.T) {
	const units = 4000
	rows := fmt.Sprintf("SELECT i %% 5 + 10 * (i / 5), i / 5 + 1, substr('ABCDE', i %% 5 + 1, 1), i %% 5 + 1, DATE '2025-01-01' + (i %% 5)::int FROM generate_series(0, %d) AS s(i)", 5*units-1)
	for d, open := range groupDatabases(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := open(t)
			fill := "INSERT INTO clinic.visits " + rows
			if d == dialect.DuckDB {
				fill = strings.ReplaceAll(fill, "i / 5", "i // 5")
			}
			db.store(t, fill)
			for _, unitType := range []string{"bigint", "varchar"} { // varchar: the same units, not known to be numbers
				for _, c := range []struct {
					bounds, text string
					each         float64 // share of the units whose row or group of each kind stays
				}{
					{"max_rows_per_unit: 2", "SELECT minutes, count(*) FROM visits GROUP BY 1", 2. / 5},
					{"max_rows_per_unit: 1", "SELECT day, count(*) FROM visits WHERE day <= '2025-01-05' GROUP BY 1", 1. / 5},
					{"max_groups_per_unit: 2\n        max_rows_per_group: 1", "SELECT minutes, count(*) FROM visits GROUP BY 1", 2. / 5},
				} {
					m := measureOf(t, sampled(t, unitType, c.bounds), c.text)
					var kept []float64
					for _, n := range cellsOf(t, m, d, db.run) {
						if n > 0 {
							kept = append(kept, float64(n))
						}
					}
					if len(kept) < 2 {
						t.Errorf("%s units, %s, %s: only %v stay", unitType, c.bounds, c.text, kept)
					}
					for _, n := range kept { // 5.5 standard deviations of a draw
						if want := units * c.each; (n-want)*(n-want) > 30*want*(1-c.each) {
							t.Errorf("%s units, %s, %s: %v stay, of each must about %.0f", unitType, c.bounds, c.text, kept, want)
							break
						}
					}
				}
			}
		})
	}
}

// TestEnginesKeepTheSameRows: whatever rows units have, values at and beyond the ends of domains among them, every
// statement counts the same rows on both engines.
func TestEnginesKeepTheSameRows(t *testing.T) {
	const seed = 507
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	duck, postgres := duckDatabase(t), postgresDatabase(t)
	statements := slices.Concat(joinStatements, moreStatements, windowStatements, tiedStatements, unionStatements)
	all := map[dialect.Dialect]map[string]*policy.Policy{}
	for _, d := range []dialect.Dialect{dialect.DuckDB, dialect.PostgreSQL} {
		all[d] = variants(t, d)
		typed := strings.Replace(neighbourPolicy, "key: people.person_id}", "key: people.person_id, type: integer}", 1)
		all[d]["typed"] = parsedFor(t, typed, d)
	}
	names := append(slices.Clone(variantNames), "typed")
	list := map[dialect.Dialect]map[string][]measured{dialect.DuckDB: {}, dialect.PostgreSQL: {}}
	bounded := 0
	for round := range stattest.Length(9, 300) {
		name := names[round%len(names)]
		data := nobody(r, 6)
		for id := range 5 {
			data.add(person(r, id, 14, r.IntN(2) == 0))
		}
		answers := map[dialect.Dialect][]map[string]int64{}
		for _, db := range []database{duck, postgres} {
			if err := db.load(data.script(r)); err != nil {
				t.Fatal(err)
			}
			if list[db.dialect][name] == nil {
				list[db.dialect][name] = measures(t, all[db.dialect][name], db.dialect, byTurns(statements, round), privacy.MicroEpsilon(100_000))
			}
			for _, m := range list[db.dialect][name] {
				if len(m.query.Measures()) > 1 {
					continue // which measures are read together is each engine's own
				}
				rows := map[string]int64{}
				for _, g := range m.groups(t, db.run, sound, false) {
					for i, n := range g.Counts {
						rows[fmt.Sprint(g.Cells, i)] += n
					}
				}
				maps.DeleteFunc(rows, func(_ string, n int64) bool { return n == 0 })
				answers[db.dialect] = append(answers[db.dialect], rows)
			}
		}
		alone := slices.DeleteFunc(slices.Clone(list[dialect.DuckDB][name]), func(m measured) bool { return len(m.query.Measures()) > 1 })
		for i, m := range alone {
			one, other := answers[dialect.DuckDB][i], answers[dialect.PostgreSQL][i]
			if len(one) > 0 {
				bounded++
			}
			if !maps.Equal(one, other) {
				t.Fatalf("%s, %s\nDuckDB     %v\nPostgreSQL %v", name, m.statement, one, other)
			}
		}
	}
	if bounded == 0 {
		t.Error("nothing was counted")
	}
}
