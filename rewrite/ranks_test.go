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

// TestRankForms: over rows of which the CHECKs say what a shorter text takes for proven, it counts what the whole text
// counts, in every statement over tables with a rank, and it compares less; the one that is of use with an index of the
// rows beyond the bound counts the same, and not without those whose rank is NULL.
func TestRankForms(t *testing.T) {
	t.Parallel()
	const seed = 711
	t.Logf("seed %d", seed)
	statements := slices.Concat(joinStatements, sumStatements, moreStatements)
	for name, open := range map[string]func(*testing.T) database{"DuckDB": duckDatabase, "PostgreSQL": postgresDatabase} {
		t.Run(name, func(t *testing.T) {
			db, r := open(t), rand.New(rand.NewPCG(seed, 1))
			list := measures(t, variants(t, db.dialect)["add-remove, ranked"], db.dialect, statements, privacy.MicroEpsilon(100_000))
			compared, planted := map[rankForm]int{}, 0
			for range 3 {
				both, rows := nobody(r, 6), tuples{}
				for id := range 5 {
					both.add(person(r, id, 9, true))
				}
				rows.add(both)
				script := rows.script(r) + ";\nDELETE FROM clinic.people WHERE person_id IS NULL" // a key proves one row of each of the rest
				for _, form := range []rankForm{{}, {beyond: true}, {within: true}} {
					checks := map[string]string{"visits": "rank < 1 OR who IS NULL AND rank IS NOT NULL", "calls": "rank < 1 OR who IS NULL AND rank IS NOT NULL"}
					for _, table := range list[0].query.Table().Dataset.Tables {
						if form.within && table.RowRank != "" {
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
							return len(s.Ranks) > 0 && s.Ranks[0].Within == form.within && s.Ranks[0].Beyond == form.beyond
						})
						if ranked := strings.Contains(m.query.SQL(), "rank"); ranked != (i >= 0) && !form.beyond || i >= 0 && form.beyond && !db.dialect.PartialIndexes {
							t.Fatalf("%s: over ranks %t, a form %d", m.statement, ranked, i)
						}
						if i < 0 || slices.ContainsFunc(shorter[i].Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) {
							continue
						}
						compared[form]++
						whole, short := rowsThatCount(db.run(t, m.query.SQL(), m.query.Args()), m.query), rowsThatCount(db.run(t, shorter[i].SQL(), shorter[i].Args()), m.query)
						if !reflect.DeepEqual(whole, short) {
							t.Errorf("%s: %+v: %v, must be %v\n%s", m.statement, form, short, whole, shorter[i].SQL())
						}
						if form.beyond {
							wrong := db.run(t, strings.Replace(shorter[i].SQL(), ` OR t."rank" IS NULL`, "", 1), shorter[i].Args())
							if !reflect.DeepEqual(whole, rowsThatCount(wrong, m.query)) {
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
			if beyond := compared[rankForm{beyond: true}]; compared[rankForm{}] < 60 || compared[rankForm{within: true}] < 60 || db.dialect.PartialIndexes != (beyond > 0 && planted > 0) {
				t.Errorf("compared %v times, a planted fault seen %d times", compared, planted)
			}
		})
	}
}

// rankForm is what a text of a query takes for proven of ranks.
type rankForm struct{ within, beyond bool }

// rowsThatCount are an answer's rows in order, without those of cells that count 0, which say what rows that do not
// come do.
func rowsThatCount(rows [][]int64, q rewrite.Query) [][]int64 {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row []int64) bool {
		return q.Grain() > 0 && !slices.ContainsFunc(row[q.Grain():], func(n int64) bool { return n != 0 })
	})
	sorted(rows)
	return rows
}

func sorted(rows [][]int64) { slices.SortFunc(rows, slices.Compare) }

// TestWhatIsCountedLessThoseBeyond: what is counted of all rows less those beyond the bound, the columns that an index
// must have for it, and the texts whose collation must tell all texts apart.
func TestWhatIsCountedLessThoseBeyond(t *testing.T) {
	const not = "not"
	ranked := strings.Replace(neighbourPolicy, "calls.who = people.person_id\n", "calls.who = people.person_id\n        row_rank: rank\n", 1)
	for _, c := range []struct{ what, change, to, text, columns, texts string }{
		{"a bare count", "", "", `SELECT count(*) FROM calls`, "", ""},
		{"a count with a condition", "", "", `SELECT count(*) FROM calls WHERE kind = 'in'`, "kind", "kind"}, // with what lies around it (ADR 26)
		{"a count of values", "", "", `SELECT count(paid) FROM calls`, "paid", ""},
		{"groups", "", "", `SELECT kind, count(*) FROM calls GROUP BY 1`, "kind", "kind"},
		{"a sum by groups", "", "", `SELECT kind, sum(paid) FROM calls WHERE secs > 20 GROUP BY 1`, "kind paid secs", "kind"},
		{"a sum", "", "", `SELECT sum(paid) FROM calls`, "paid", ""},
		{"groups of few moments", "", "", `SELECT date_trunc('day', moment), count(*) FROM calls GROUP BY 1`, "moment", ""},
		{"a column of many values", "max: 1000, step: 100}}", "max: 1000000, step: 1000}}", `SELECT paid >= 0, count(*) FROM calls GROUP BY 1`, not, ""},
		{"a join", "", "", `SELECT count(*) FROM calls c JOIN people p ON p.person_id = c.who`, not, ""},
		{"different units", "", "", `SELECT count(DISTINCT who) FROM calls`, not, ""},
		{"rules that leave values out", "values: [in, out]}}", "values: [in, out]}, outside: exclude}", `SELECT count(*) FROM calls`, "kind", ""},
		{"rules that leave NULL out", "max: 1000, step: 100}}", "max: 1000, step: 100}, nulls: exclude}", `SELECT count(*) FROM calls`, "paid", ""},
		{"no rank", "        row_rank: rank\n", "", `SELECT count(*) FROM calls`, not, ""},
	} {
		text := strings.Replace(ranked, c.change, c.to, 1)
		if c.change != "" && text == ranked {
			t.Fatalf("%s: the policy does not change", c.what)
		}
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			columns, texts, sent := not, "", ""
			for _, s := range render(t, measureOf(t, parsedFor(t, text, d), c.text), d).Proven() {
				if len(s.Ranks) == 1 && s.Ranks[0].Beyond {
					slices.Sort(s.Ranks[0].Columns)
					columns, texts, sent = strings.Join(s.Ranks[0].Columns, " "), strings.Join(s.Ranks[0].Texts, " "), s.SQL()
				}
			}
			if d == dialect.DuckDB && columns != not || d == dialect.PostgreSQL && (columns != c.columns || texts != c.texts) {
				t.Errorf("%s, %s: columns %q, texts %q, must be %q and %q\n%s", d, c.what, columns, texts, c.columns, c.texts, sent)
			}
		}
	}
}
