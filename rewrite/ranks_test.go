package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// TestRankForms: over rows of which the CHECKs say what a shorter text takes for proven, it counts what the whole text counts, in every statement
// over tables with a rank, and it compares less.
func TestRankForms(t *testing.T) {
	t.Parallel()
	const seed = 711
	t.Logf("seed %d", seed)
	statements := slices.Concat(joinStatements, sumStatements, moreStatements)
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			list := measures(t, variants(t, db.dialect)["add-remove, ranked"], db.dialect, statements, privacy.MicroEpsilon(100_000))
			compared := map[bool]int{}
			for range 3 {
				both, rows := nobody(r, 6), tuples{}
				for id := range 5 {
					both.add(person(r, id, 9, true))
				}
				rows.add(both)
				script := rows.script(r) + ";\nDELETE FROM clinic.people WHERE person_id IS NULL" // a key proves one row of each of the rest
				for _, within := range []bool{false, true} {
					checks := map[string]string{"visits": "rank < 1 OR who IS NULL AND rank IS NOT NULL", "calls": "rank < 1 OR who IS NULL AND rank IS NOT NULL"}
					for _, table := range list[0].query.Table().Dataset.Tables {
						if within && table.RowRank != "" {
							checks[table.Name] += fmt.Sprintf(" OR rank IS NULL OR rank > %d", table.MaxRowsPerUnit)
						}
					}
					for _, table := range []string{"visits", "calls"} {
						script += fmt.Sprintf(";\nDELETE FROM clinic.%s WHERE %s", table, checks[table])
					}
					if err := db.load(script); err != nil {
						t.Fatal(err)
					}
					for _, m := range list {
						shorter := m.query.Proven()
						i := slices.IndexFunc(shorter, func(s rewrite.Shorter) bool { return len(s.Ranks) > 0 && s.Ranks[0].Within == within })
						if ranked := strings.Contains(m.query.SQL(), "rank"); ranked != (i >= 0) {
							t.Fatalf("%s: over ranks %t, a form %d", m.statement, ranked, i)
						}
						if i < 0 || slices.ContainsFunc(shorter[i].Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) {
							continue
						}
						compared[within]++
						whole, short := db.run(t, m.query.SQL(), m.query.Args()), db.run(t, shorter[i].SQL(), shorter[i].Args())
						sorted(whole)
						sorted(short)
						if !reflect.DeepEqual(whole, short) {
							t.Errorf("%s: within %t: %v, must be %v\n%s", m.statement, within, short, whole, shorter[i].SQL())
						}
						if strings.Count(shorter[i].SQL(), "rank") >= strings.Count(m.query.SQL(), "rank") {
							t.Errorf("%s: compares as often:\n%s", m.statement, shorter[i].SQL())
						}
					}
				}
			}
			if compared[false] < 60 || compared[true] < 60 {
				t.Errorf("compared %v times", compared)
			}
		})
	}
}

func sorted(rows [][]int64) { slices.SortFunc(rows, slices.Compare) }
