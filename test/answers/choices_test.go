package answers

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestChoicesThroughSQL: at an ε so large that nothing is random, quantiles, modes and first keys are those of the
// rows, on both databases; asked again they are free and the same.
func TestChoicesThroughSQL(t *testing.T) {
	kit.Beside(t)
	t.Run("DuckDB", func(t *testing.T) { choicesThroughSQL(t, kit.DuckDB(t, kit.Budgets{User: "900000", Cap: "900000"}, 0)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		path, _ := kit.Postgres(t, pgtest.Shared(t), kit.Budgets{User: "900000", Cap: "900000"}, 0)
		choicesThroughSQL(t, path)
	})
}

func choicesThroughSQL(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("max_epsilon: 1,", "max_epsilon: 900000,", "expected_rows: 1000\n", "expected_rows: 1000\n        extremes: true\n").Replace(string(text))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	var ages, hiv, incomes []int
	for i := 1; i <= 1000; i++ {
		ages, incomes = append(ages, 18+i%60), append(incomes, 1000*(i%90))
		if i%90 > 60 {
			hiv = append(hiv, 18+i%60)
		}
	}
	at := func(list []int, rank int) string {
		sorted := slices.Clone(list)
		slices.Sort(sorted)
		return strconv.Itoa(sorted[rank-1])
	}
	w := kit.Serve(t, path).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 9000`)
	for _, test := range []struct{ sql, want string }{
		{`SELECT percentile_disc(0.3333) WITHIN GROUP (ORDER BY age) FROM people WHERE city IS NOT NULL AND note IS NOT NULL`, at(ages, 334)},
		{`SELECT percentile_disc(0.3333) WITHIN GROUP (ORDER BY income) FROM people`, at(incomes, 334)},
		{`SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age DESC) FROM people WHERE income > 60000`, at(hiv, len(hiv)-len(hiv)/4)},
		{`SELECT percentile_cont(ARRAY[0.2503, 0.7497]) WITHIN GROUP (ORDER BY income) FROM people WHERE note <> 'x'`, "{" + at(incomes, 251) + "," + at(incomes, 750) + "}"},
		{`SELECT hiv, percentile_disc(0.7001) WITHIN GROUP (ORDER BY income) FROM people GROUP BY hiv HAVING count(*) > 500`, "f|" + at(incomes, 700)},
		{`SELECT min(income), max(income) FROM people WHERE age > 20`, "0|89000"},
		{`SELECT mode() WITHIN GROUP (ORDER BY age / 30) FROM people`, "1"},
		{`SELECT age / 30 FROM people GROUP BY 1 ORDER BY count(*) DESC LIMIT 1`, "1"},
	} {
		first := w.Ask(test.sql)
		spent := w.Spent()
		again := w.Ask(test.sql)
		if got := rowText(first); got != test.want {
			t.Errorf("%s: %s, want %s", test.sql, got, test.want)
		}
		if rowText(again) != rowText(first) || w.Spent() != spent {
			t.Errorf("%s: asked again it said %s and cost something else than nothing", test.sql, rowText(again))
		}
	}
}

// rowText is the only row of an answer.
func rowText(a kit.Answer) string {
	if len(a.Rows) != 1 {
		return strconv.Itoa(len(a.Rows)) + " rows"
	}
	return strings.Join(a.Rows[0], "|")
}
