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
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestRankForms: over rows of which the CHECKs say what a shorter text takes for proven, it counts what the whole text counts, in every statement
// over tables with a rank, and it compares less; the one that is of use with an index of the rows beyond the bound counts the same, and
// not without those whose rank is NULL.
func TestRankForms(t *testing.T) {
	t.Parallel()
	const seed = 711
	t.Logf("seed %d", seed)
	statements := slices.Concat(joinStatements, sumStatements, moreStatements)
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			list := measures(t, variants(t, db.dialect)["add-remove, ranked"], db.dialect, statements, privacy.MicroEpsilon(100_000))
			compared, planted := map[rewrite.Rank]int{}, 0
			for range 3 {
				both, rows := nobody(r, 6), tuples{}
				for id := range 5 {
					both.add(person(r, id, 9, true))
				}
				rows.add(both)
				script := rows.script(r) + ";\nDELETE FROM clinic.people WHERE person_id IS NULL" // a key proves one row of each of the rest
				for _, form := range []rewrite.Rank{{}, {Beyond: true}, {Within: true}} {
					checks := map[string]string{"visits": "rank < 1 OR who IS NULL AND rank IS NOT NULL", "calls": "rank < 1 OR who IS NULL AND rank IS NOT NULL"}
					for _, table := range list[0].query.Table().Dataset.Tables {
						if form.Within && table.RowRank != "" {
							checks[table.Name] += fmt.Sprintf(" OR rank IS NULL OR rank > %d", table.MaxRowsPerUnit)
						}
					}
					for _, table := range []string{"visits", "calls"} {
						script += fmt.Sprintf(";\nUPDATE clinic.%s SET rank = NULL WHERE rank = 2;\nDELETE FROM clinic.%[1]s WHERE %s", table, checks[table])
					}
					if err := db.load(script); err != nil {
						t.Fatal(err)
					}
					for _, m := range list {
						shorter := m.query.Proven()
						i := slices.IndexFunc(shorter, func(s rewrite.Shorter) bool {
							return len(s.Ranks) > 0 && s.Ranks[0].Within == form.Within && s.Ranks[0].Beyond == form.Beyond
						})
						if ranked := strings.Contains(m.query.SQL(), "rank"); ranked != (i >= 0) && !form.Beyond || i >= 0 && form.Beyond && !db.dialect.PartialIndexes {
							t.Fatalf("%s: over ranks %t, a form %d", m.statement, ranked, i)
						}
						if i < 0 || slices.ContainsFunc(shorter[i].Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) {
							continue
						}
						compared[form]++
						whole, short := db.run(t, m.query.SQL(), m.query.Args()), db.run(t, shorter[i].SQL(), shorter[i].Args())
						sorted(whole)
						sorted(short)
						if !reflect.DeepEqual(whole, short) {
							t.Errorf("%s: %+v: %v, must be %v\n%s", m.statement, form, short, whole, shorter[i].SQL())
						}
						if form.Beyond {
							if wrong := db.run(t, strings.Replace(shorter[i].SQL(), ` OR t."rank" IS NULL`, "", 1), shorter[i].Args()); !reflect.DeepEqual(whole, wrong) {
								planted++
							}
							continue
						}
						if strings.Count(shorter[i].SQL(), "rank") >= strings.Count(m.query.SQL(), "rank") {
							t.Errorf("%s: compares as often:\n%s", m.statement, shorter[i].SQL())
						}
					}
				}
			}
			if beyond := compared[rewrite.Rank{Beyond: true}]; compared[rewrite.Rank{}] < 60 || compared[rewrite.Rank{Within: true}] < 60 || db.dialect.PartialIndexes != (beyond > 0 && planted > 0) {
				t.Errorf("compared %v times, a planted fault seen %d times", compared, planted)
			}
		})
	}
}

func sorted(rows [][]int64) { slices.SortFunc(rows, slices.Compare) }

// TestWhatIsCountedLessThoseBeyond: a bare count of a table's rows up to their bound, and nothing that leaves out others or asks for more.
func TestWhatIsCountedLessThoseBeyond(t *testing.T) {
	ranked := strings.Replace(neighbourPolicy, "calls.who = people.person_id\n", "calls.who = people.person_id\n        row_rank: rank\n", 1)
	for _, c := range []struct {
		what, change, to, text string
		want                   bool
	}{
		{"a bare count", "", "", `SELECT count(*) FROM calls`, true},
		{"a count with a condition", "", "", `SELECT count(*) FROM calls WHERE kind = 'in'`, false},
		{"a count of values", "", "", `SELECT count(secs) FROM calls`, false},
		{"groups", "", "", `SELECT kind, count(*) FROM calls GROUP BY 1`, false},
		{"a sum", "", "", `SELECT sum(paid) FROM calls`, false},
		{"a join", "", "", `SELECT count(*) FROM calls c JOIN people p ON p.person_id = c.who`, false},
		{"rules that leave values out", "values: [in, out]}}", "values: [in, out]}, outside: exclude}", `SELECT count(*) FROM calls`, false},
		{"rules that leave NULL out", "max: 1000, step: 100}}", "max: 1000, step: 100}, nulls: exclude}", `SELECT count(*) FROM calls`, false},
		{"no rank", "        row_rank: rank\n", "", `SELECT count(*) FROM calls`, false},
	} {
		text := strings.Replace(ranked, c.change, c.to, 1)
		if c.change != "" && text == ranked {
			t.Fatalf("%s: the policy does not change", c.what)
		}
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			q := render(t, measureOf(t, parsedFor(t, text, d), c.text), d)
			got := slices.ContainsFunc(q.Proven(), func(s rewrite.Shorter) bool {
				return slices.ContainsFunc(s.Ranks, func(r rewrite.Rank) bool { return r.Beyond })
			})
			if got != (c.want && d == dialect.PostgreSQL) {
				t.Errorf("%s, %s: %t", d, c.what, got)
			}
		}
	}
}
