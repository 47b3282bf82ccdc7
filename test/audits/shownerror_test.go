package audits

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestShownErrors: a NOTICE gives an error only where it is one of what is shown, of computed numbers by their values
// where few cells make them. A quantile that is read from counts
// has bounds around it; one that was chosen has a rank error, and NULLs.
func TestShownErrors(t *testing.T) {
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "90", Cap: "90"}, 0)).Connect("alice", "lab")
	const on, about = "; SET dp.error_columns = on shows", `about ±[0-9,.]+( where it is known)?`
	const end = " a value at 95 %\n"
	for _, c := range [][2]string{
		{"corr(age, income) FROM people", "left; (error " + about + end + "|no ± is known for corr\n)"},
		{"stddev(income), avg(income) FROM people", "left; stddev " + about + ", avg " + about + end},
		{"100.0 * count(*) / sum(age) FROM people", "left; error " + about + end},
		{"count(*), bool_or(hiv) AS has FROM people", " a value at 95 %; no ± is known for has" + on},
		{
			"count(*), sum(age) AS years, avg(age), count(*) * 2 AS two FROM people",
			"count ±100, years ±5161, two ±200 a value at 95 %; avg " + about + end,
		},
		{"sum(n), avg(n) AS mean FROM (SELECT hiv, count(*) AS n FROM people GROUP BY 1) q",
			"no ± is known for sum, mean" + on},
		{"max(n) FROM (SELECT city, count(*) AS n FROM people GROUP BY 1 ORDER BY 2 LIMIT 3) q",
			"no ± is known for max" + on},
	} {
		if notes := strings.Join(w.Ask("SELECT "+c[0]).Notes, " "); !regexp.MustCompile(c[1]).MatchString(notes) {
			t.Errorf("SELECT %s: %s", c[0], notes)
		}
	}
	w.Ask(`SET dp.error_columns = on`)
	chosen := w.Ask(`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people WHERE note <> 'n1' OR age > 30`)
	if notes := strings.Join(chosen.Notes, " "); !strings.Contains(notes, "rank error ±") || !strings.Contains(notes, "are NULL") || chosen.Rows[0][1] != "NULL" && chosen.Rows[0][1] != "" {
		t.Errorf("a chosen median: %v %s", chosen.Rows, notes)
	}
	w.Ask(`SET dp.epsilon = 0.5`)
	w.Ask(`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`)
	read := w.Ask(`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people`)
	var at []int
	for _, text := range read.Rows[0] {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("a median from a range release: %v", read.Rows)
		}
		at = append(at, n)
	}
	if len(at) != 3 || at[1] > at[0] || at[0] > at[2] || at[2]-at[1] > 20 {
		t.Errorf("a median from a range release and its bounds: %v", at)
	}
}
