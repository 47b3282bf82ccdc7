package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// nullUnitStatements are over tables of which many rows name no unit; each of these is counted.
var nullUnitStatements = []string{
	`SELECT count(*) FROM visits`,
	`SELECT ward, count(*), count(who), count(DISTINCT who) FROM visits GROUP BY 1`,
	`SELECT ward, extract(month FROM day)::int AS m, count(*) FROM visits WHERE minutes > 0 GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM visits WHERE who IS NULL GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE who IS NOT NULL GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM visits v LEFT JOIN people p ON p.person_id = v.who GROUP BY 1, 2`,
	`SELECT p.sex, count(*) FROM visits v JOIN people p ON p.person_id = v.who GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.who) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE who IN (SELECT person_id FROM people WHERE sex = 'f') GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t WHERE who IS NOT NULL GROUP BY n`,
	`SELECT t.tag, count(*), count(v.who) FROM visits v JOIN tags t ON t.code = v.ward GROUP BY 1`,
	`SELECT drug, count(*) FROM doses d JOIN visits v ON v.visit = d.visit GROUP BY 1`,
}

// TestNullUnitsCountWhatTheSQLSays: rows without a unit are counted as the analyst's own SQL counts them, however many
// there are, but where rows are put together by unit.
func TestNullUnitsCountWhatTheSQLSays(t *testing.T) {
	const seed = 992
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	fill := joinRows(r)
	for i := range 40 {
		fill = append(fill, fmt.Sprintf("INSERT INTO clinic.visits VALUES (%d, NULL, '%s', %d, 1, DATE '2025-0%d-01', 1)", 1000+i, string("ABC"[r.IntN(3)]), r.IntN(15)-5, 1+r.IntN(3)))
	}
	for name, bound := range map[string]string{"rows": "max_rows_per_unit: 4\n", "groups": "max_groups_per_unit: 4\n        max_rows_per_group: 4\n"} {
		text := strings.Replace(joinPolicy, "max_rows_per_unit: 4\n", bound+"        null_unit: each\n", 1)
		t.Run("DuckDB, "+name, func(t *testing.T) {
			joinsOn(t, parsedFor(t, text, dialect.DuckDB), dialect.DuckDB, duckEngine(t, fill), duckTexts(t, fill), nullUnitStatements)
		})
		t.Run("PostgreSQL, "+name, func(t *testing.T) {
			joinsOn(t, parsedFor(t, text, dialect.PostgreSQL), dialect.PostgreSQL, postgresEngine(t, fill), postgresTexts(t, fill), nullUnitStatements)
		})
	}
}

var namesUnit = regexp.MustCompile(`a\d+\.u IS NOT NULL`)

// TestNullUnitsAreNotOneUnit: were rows without a unit grouped as one unit, one of them would move what the others make
// together, and the comparison of neighbours finds that.
func TestNullUnitsAreNotOneUnit(t *testing.T) {
	statements := []string{`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t GROUP BY n`}
	together := fault{"rows without a unit are one unit", func(s string) string { return namesUnit.ReplaceAllString(s, "true") }, 1, statements}
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			m := measures(t, variants(t, db.dialect)["add-remove, no units"], db.dialect, statements, privacy.MicroEpsilon(100_000))[0]
			r := rand.New(rand.NewPCG(5, 5))
			both := tuples{"calls": {"(NULL, 1, 1, 1, TIMESTAMP '2025-01-01', 'in', 1)"}}
			one := tuples{"calls": slices.Clone(both["calls"])}
			one.add(tuples{"calls": {"(NULL, 2, 2, 2, TIMESTAMP '2025-01-02', 'out', 2)"}})
			for _, f := range []fault{sound, together} {
				var observed [2][]int64
				for i, side := range []tuples{both, one} {
					if err := db.load(side.script(r)); err != nil {
						t.Fatal(err)
					}
					observed[i] = m.observed(t, m.groups(t, db.run, f, false))
				}
				if l1, _ := m.shares(observed[0], observed[1], f); (l1 > 1) != (f.name == together.name) {
					t.Errorf("%s: moved by %.1f times the claim", f.name, l1)
				}
			}
		})
	}
}
