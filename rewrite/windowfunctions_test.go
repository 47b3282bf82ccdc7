package rewrite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestWindowsDoNotHangOnStorage: the same rows, stored in another order, are numbered alike, also where they tie. Ranks
// of the policy bound the rows here, so that nothing sorts them on the way.
func TestWindowsDoNotHangOnStorage(t *testing.T) {
	const seed = 120
	t.Logf("seed %d", seed)
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			list := measures(t, variants(t, db.dialect)["add-remove, ranked"], db.dialect, tiedStatements, privacy.MicroEpsilon(100_000))
			for range 6 {
				rows := nobody(r, 6)
				for id := range 5 {
					rows.add(person(r, id, 14, false))
				}
				var first []map[string]int64
				for again := range 3 {
					if err := db.load(rows.script(r)); err != nil {
						t.Fatal(err)
					}
					for i, m := range list {
						counts := map[string]int64{}
						for _, g := range m.groups(t, db.run, sound, false) {
							counts[fmt.Sprint(g.Cells)] += g.Counts[0]
						}
						if again == 0 {
							first = append(first, counts)
						} else if !maps.Equal(first[i], counts) {
							t.Fatalf("%s\nonce  %v\nagain %v", m.statement, first[i], counts)
						}
					}
				}
			}
		})
	}
}

// TestFirstRowsBound: what conditions on a row_number leave of a unit's rows is the bound, where it numbers all of the
// unit's rows.
func TestFirstRowsBound(t *testing.T) {
	const numbered = `SELECT count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY who%s ORDER BY minutes) AS n, rank() OVER (PARTITION BY who ORDER BY minutes) AS r FROM visits) t WHERE %s`
	for _, c := range []struct {
		by, where string
		rows      int64
	}{
		{"", "n = 1", 1}, {"", "n IN (1, 3)", 3}, {"", "2 <= n AND n < 4", 2}, {"", "n > 1", 3}, {"", "n = 1 OR ward = 'A'", 4}, {"", "n % 2 = 0", 3}, {"", "n = 9", 1},
		{", ward", "n = 1", 4}, {"", "r = 1", 4}, {"", "true", 4},
	} {
		text := fmt.Sprintf(numbered, c.by, c.where)
		for _, m := range measures(t, parsedFor(t, joinPolicy, dialect.DuckDB), dialect.DuckDB, []string{text}, privacy.MicroEpsilon(100_000)) {
			if got := m.measure.Table.MaxRowsPerUnit; got != c.rows {
				t.Errorf("%s: %d rows a unit, want %d", text, got, c.rows)
			}
			if w, ok := m.measure.Table.Derived.(*derived.Windowed); !ok || c.rows < 4 != (w.First > 0) || !slices.Contains(m.measure.Table.Derived.Inputs(), w.From) {
				t.Errorf("%s: another table", text)
			}
		}
	}
}

// TestUnionBounds: a unit's rows in all parts of a union are within the sum of the parts' bounds, and INTERSECT of
// units has one.
func TestUnionBounds(t *testing.T) {
	for text, rows := range map[string]int64{
		`SELECT count(*) FROM (SELECT who, minutes FROM visits UNION ALL SELECT person_id, age FROM people) t`:                                                                                 5,
		`SELECT count(*) FROM (SELECT who, minutes FROM visits UNION ALL SELECT who, room FROM visits) t`:                                                                                      8,
		`SELECT count(*) FROM (SELECT visit FROM visits UNION ALL SELECT visit FROM doses UNION ALL SELECT visit FROM visits) t`:                                                               17,
		`SELECT count(*) FROM (SELECT who FROM visits UNION SELECT person_id FROM people) t`:                                                                                                   1,
		`SELECT count(*) FROM (SELECT who FROM visits INTERSECT SELECT who FROM visits WHERE ward = 'A') t`:                                                                                    1,
		`SELECT count(*) FROM (SELECT who, minutes FROM visits INTERSECT SELECT person_id, age FROM people) t`:                                                                                 1,
		`SELECT count(*) FROM (SELECT visit, room FROM visits INTERSECT SELECT visit, NULL FROM doses) t`:                                                                                      4,
		`SELECT count(*) FROM (SELECT person_id, age FROM people EXCEPT SELECT who, minutes FROM visits) t`:                                                                                    1,
		`SELECT count(*) FROM (SELECT who, minutes FROM visits EXCEPT SELECT person_id, age FROM people) t`:                                                                                    4,
		`SELECT count(*) FROM people p FULL JOIN visits v ON v.who = p.person_id`:                                                                                                              4,
		`SELECT count(*) FROM visits a FULL JOIN visits b ON a.who = b.who`:                                                                                                                    16,
		`SELECT count(*) FROM people a FULL JOIN people b ON a.person_id = b.person_id`:                                                                                                        1,
		`SELECT count(*) FROM (SELECT * FROM people WHERE age > 3) a FULL JOIN (SELECT * FROM people WHERE sex = 'f') b ON a.person_id = b.person_id`:                                          1,
		`SELECT count(*) FROM people a FULL JOIN people b ON a.person_id = b.person_id AND b.age > 3`:                                                                                          2,
		`SELECT count(*) FROM people a FULL JOIN people b ON a.person_id = b.person_id AND a.age > 3`:                                                                                          2,
		`SELECT count(*) FROM people p FULL JOIN (SELECT who, count(*) AS n FROM visits GROUP BY who) b ON b.who = p.person_id`:                                                                1,
		`SELECT count(*) FROM (SELECT who, visit FROM visits GROUP BY 1, 2) a FULL JOIN (SELECT who, visit FROM visits WHERE room > 1 GROUP BY 1, 2) b ON a.who = b.who AND a.visit = b.visit`: 8,
		`SELECT count(*) FROM (SELECT who, n FROM (SELECT who, row_number() OVER (PARTITION BY who) AS n FROM visits) v WHERE n < 3 UNION ALL SELECT person_id, 1 FROM people) t`:              3,
	} {
		for _, m := range measures(t, parsedFor(t, joinPolicy, dialect.DuckDB), dialect.DuckDB, []string{text}, privacy.MicroEpsilon(100_000)) {
			if got := m.measure.Table.MaxRowsPerUnit; got != rows {
				t.Errorf("%s: %d rows a unit, want %d", text, got, rows)
			}
		}
	}
}
