package rewrite_test

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// scansOf are statements of several measures, by how their rows are read.
var scansOf = []struct{ how, bounds, text string }{
	{"people of one row, which a constraint proves", "", `SELECT (SELECT count(*) FROM people WHERE age > 40), (SELECT count(*) FROM people WHERE sex = 'f')`},
	{"people of one row, which a constraint proves", "", `SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM people WHERE age > 40), (SELECT sum(age) FROM people), (SELECT count(*) FROM people WHERE sex = 'f' AND age < 20)`},
	{"people of one row, which a constraint proves", "", `SELECT sex, count(*) FROM people GROUP BY 1 UNION ALL SELECT sex, sum(age) FROM people WHERE age > 40 GROUP BY 1`},
	{"people of one row, which a constraint proves", "", `SELECT sex, count(*) FROM people GROUP BY 1 UNION ALL SELECT age::text, count(*) FROM people GROUP BY 1`},
	{"visits, at most 10 rows, numbered", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM visits WHERE minutes > 20), (SELECT count(*) FROM visits WHERE ward = 'A')`},
	{"visits, at most 10 rows, numbered", "max_rows_per_unit: 10", `SELECT ward, count(*) FROM visits GROUP BY 1 UNION ALL SELECT ward, sum(minutes) FROM visits WHERE minutes > 20 GROUP BY 1`},
	{"visits, at most 10 rows, by a stored rank", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT (SELECT count(*) FROM visits WHERE minutes > 20), (SELECT count(*) FROM visits WHERE ward = 'A')`},
	{"visits, at most 10 rows, by a stored rank", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT ward, count(*) FROM visits GROUP BY 1 UNION ALL SELECT ward, sum(minutes) FROM visits WHERE minutes > 20 GROUP BY 1`},
	{"people and visits, numbered", "max_rows_per_unit: 10", `SELECT (SELECT count(*) FROM people p JOIN visits v ON p.person_id = v.who WHERE p.sex = 'f'), (SELECT sum(v.minutes) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.ward = 'A')`},
	{"people and visits, numbered, of one SELECT", "max_rows_per_unit: 10", `SELECT p.sex, sum(v.minutes), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.minutes) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`},
	{"people and visits, by a key and a stored rank, of one SELECT", "max_rows_per_unit: 10\n        row_rank: rank", `SELECT p.sex, sum(v.minutes), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.minutes) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`},
}

// TestBenchScans prints what the measures of a statement take one after the other, and in one scan, beside her own SQL;
// what they count must be the same.
func TestBenchScans(t *testing.T) {
	benchRows(t)
	rows := cmp.Or(os.Getenv("DPPROXY_BENCH_ROWS"), "1000000")
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
		t.Run(d.String(), func(t *testing.T) {
			run, cpu := benchEngine(t, d, rows)
			head, _, _ := strings.Cut(groupPolicy, "datasets:")
			for _, c := range scansOf {
				p := parsedFor(t, head+"datasets:"+strings.Replace(benchColumns, "BOUNDS", cmp.Or(c.bounds, "max_rows_per_unit: 10"), 1), d)
				p.Datasets[0].Buying.Cells = 0 // a condition is counted as it is, not with what lies around it
				benchScan(t, d, p, run, cpu, rows, c.how, c.text)
			}
		})
	}
}

func benchScan(t *testing.T, d dialect.Dialect, p *policy.Policy, run func(string, []any) string, cpu func() float64, rows, how, text string) {
	list := measuresOf(t, p, text)
	joint, err := rewrite.RenderAll(t.Context(), list, d)
	if err != nil {
		t.Fatal(err)
	}
	shortest := func(q rewrite.Query) (string, []any) {
		for _, s := range q.Proven() {
			if !slices.ContainsFunc(s.Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) && len(s.Ranks) == 0 {
				return s.SQL(), s.Args()
			}
		}
		return q.SQL(), q.Args()
	}
	var ways [3][]way
	ways[0] = []way{{text: regexp.MustCompile(`(FROM|JOIN) (people|visits)`).ReplaceAllString(text, "$1 clinic.$2")}}
	for _, m := range list {
		sql, args := shortest(render(t, m, d))
		ways[1] = append(ways[1], way{text: sql, args: args})
	}
	for i, q := range joint {
		if q.Number() == 0 {
			sql, args := shortest(joint[i])
			ways[2] = append(ways[2], way{text: sql, args: args})
		}
	}
	var took, works [3][]float64
	for range 3 {
		for i := range ways {
			before, began := cpu(), time.Now()
			for _, w := range ways[i] {
				run(w.text, w.args)
			}
			took[i], works[i] = append(took[i], float64(time.Since(began).Microseconds())/1000), append(works[i], cpu()-before)
		}
	}
	shown := func(i int) string {
		slices.Sort(took[i])
		slices.Sort(works[i])
		return fmt.Sprintf("%s ms (%s of a processor)", figures.Number(took[i][1]), figures.Number(works[i][1]))
	}
	together := shown(2)
	if len(ways[2]) == len(ways[1]) {
		together = "each by itself"
	}
	figures.Row(rows+" rows, "+d.String(), how+": `"+text+"`", "her own SQL", shown(0), "each measure by itself, added up", shown(1), "as they are sent", together)
}
