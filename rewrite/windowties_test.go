package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// sideBySide number the same rows twice, each time in another order, in which rows tie that are the same in everything.
var sideBySide = []string{
	`SELECT n, m, count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY secs) AS n, row_number() OVER (PARTITION BY who ORDER BY secs DESC) AS m FROM calls) t GROUP BY 1, 2`,
	`SELECT n, before, count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY paid) AS n, lag(kind) OVER (PARTITION BY who ORDER BY secs DESC) AS before FROM calls) t GROUP BY 1, 2`,
	`SELECT n, m, count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY secs) AS n, row_number() OVER (PARTITION BY who, kind ORDER BY paid DESC) AS m FROM calls) t GROUP BY 1, 2`,
}

// TestWindowsSideBySideAreTheUnitsOwn: which two numbers rows that are the same in everything have together depends on
// no other person's rows (privacy rule 10): the counts with and without one person differ by that person's three rows,
// and no more.
func TestWindowsSideBySideAreTheUnitsOwn(t *testing.T) {
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(120, 2))
			list := measures(t, variants(t, db.dialect)["add-remove, ranked"], db.dialect, sideBySide, privacy.MicroEpsilon(100_000))
			var rows []string
			for id := range 40 {
				kind, same := [...]string{"'in'", "'out'"}[r.IntN(2)], r.IntN(4) > 0
				for rank := range 3 {
					secs := 10
					if !same {
						secs = 10 * r.IntN(3)
					}
					rows = append(rows, fmt.Sprintf("(%d, NULL, %d, 100, NULL, %s, %d)", id, secs, kind, rank+1))
				}
			}
			count := func(rows []string) (all []map[string]int64) {
				if err := db.load(tuples{"calls": rows}.script(r)); err != nil {
					t.Fatal(err)
				}
				for _, m := range list {
					counts := map[string]int64{}
					for _, g := range m.groups(t, db.run, sound, false) {
						counts[fmt.Sprint(g.Cells)] += g.Counts[0]
					}
					all = append(all, counts)
				}
				return all
			}
			with := count(rows)
			for without := range 6 {
				less := count(slices.Concat(rows[:3*without], rows[3*without+3:]))
				for i, m := range list {
					moved := int64(0)
					for cell, n := range with[i] {
						moved += max(n-less[i][cell], less[i][cell]-n)
					}
					for cell, n := range less[i] {
						if _, there := with[i][cell]; !there {
							moved += n
						}
					}
					if bound := m.measure.Table.MaxRowsPerUnit; moved > bound {
						t.Errorf("without person %d %d rows are counted elsewhere, of whom a person has %d: %s", without, moved, bound, m.statement)
					}
				}
			}
		})
	}
}
