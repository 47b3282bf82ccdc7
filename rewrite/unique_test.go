package rewrite_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// uniqueStatements join along keys that the policies "unique" declare, inner and outer, once and more, on either side.
var uniqueStatements = []string{
	`SELECT a.kind, b.kind, count(*), sum(b.paid) FROM calls a LEFT JOIN calls b ON a.visit = b.visit GROUP BY 1, 2`,
	`SELECT a.kind, count(*) FROM calls a JOIN calls b ON a.visit = b.visit AND a.kind = b.kind GROUP BY 1`,
	`SELECT v.ward, c.kind, count(*) FROM visits v LEFT JOIN calls c ON c.visit = v.visit AND c.secs > 5 GROUP BY 1, 2`,
	`SELECT v.ward, count(*) FROM visits v JOIN calls c ON c.visit = v.visit GROUP BY 1`,
	`SELECT c.kind, v.ward, d.drug, count(*) FROM calls c JOIN visits v ON v.visit = c.visit LEFT JOIN doses d ON d.visit = v.visit GROUP BY 1, 2, 3`,
	`SELECT d.drug, c.kind, o.kind, count(*) FROM doses d LEFT JOIN calls c ON d.visit = c.visit LEFT JOIN calls o ON o.visit = c.visit GROUP BY 1, 2, 3`,
	`SELECT c.kind, count(*) FROM calls c RIGHT JOIN doses d ON d.visit = c.visit AND d.drug = 'x' GROUP BY 1`,
	`SELECT d.drug, count(*) FROM doses d JOIN doses e ON d.visit = e.visit GROUP BY 1`,
}

// TestJoinBoundsHold: in databases where the keys that a policy declares unique are shared by many rows of a unit, no
// unit moves a join by more than its bound, which is that of one side; and units come near it.
func TestJoinBoundsHold(t *testing.T) {
	const seed = 58
	t.Logf("seed %d", seed)
	names := []string{"add-remove, unique", "replace-one, unique", "add-remove, no units, unique"}
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			r, rounds := rand.New(rand.NewPCG(seed, uint64(len(name)))), threats.ByNight(12, stattest.Length(24, 1200))
			found := open(t).compare(t, r, rounds, uniqueStatements, sound, names)
			attained := 0
			for _, s := range uniqueStatements {
				if found[s] > 1 {
					t.Errorf("%s\nmoves by %.3f times its claim", s, found[s])
				}
				if found[s] > .6 {
					attained++
				}
			}
			t.Logf("%v", found)
			if attained < 4 {
				t.Errorf("only %d of %d statements come near their claim: a bound of half would not be noticed", attained, len(uniqueStatements))
			}
		})
	}
}

// TestUniqueKeysBoundJoins: the bounds themselves. Without the declaration they are products.
func TestUniqueKeysBoundJoins(t *testing.T) {
	for _, c := range []struct {
		variant, text string
		rows          int64
		relied        int
	}{
		{"add-remove", uniqueStatements[0], 9, 0},
		{"add-remove, unique", uniqueStatements[0], 3, 1},
		{"replace-one, unique", uniqueStatements[0], 9, 0}, // kind is not equated
		{"replace-one, unique", uniqueStatements[1], 3, 1},
		{"add-remove", uniqueStatements[3], 12, 0},
		{"add-remove, unique", uniqueStatements[3], 4, 1},
		{"add-remove, unique", uniqueStatements[6], 9, 1}, // each dose stays, with one call
	} {
		all := variants(t, dialect.DuckDB)
		m := measures(t, all[c.variant], dialect.DuckDB, []string{c.text}, privacy.MicroEpsilon(100_000))[0].measure
		if relied := derived.UniquesOf(m.Table); m.Table.MaxRowsPerUnit != c.rows || len(relied) != c.relied {
			t.Errorf("%s, %s: %d rows a unit, %d keys; must be %d and %d", c.variant, c.text, m.Table.MaxRowsPerUnit, len(relied), c.rows, c.relied)
		}
	}
}
