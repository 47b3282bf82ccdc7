package audits

import (
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestShownErrors: a NOTICE gives an error only where it is one of what is shown. A quantile that is read from counts
// has bounds around it; one that was chosen has a rank error, and NULLs.
func TestShownErrors(t *testing.T) {
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "90", Cap: "90"}, 0)).Connect("alice", "lab")
	for _, sql := range []string{`SELECT corr(age, income) FROM people`, `SELECT stddev(income), avg(income) FROM people`} {
		notes := strings.Join(w.Ask(sql).Notes, " ")
		if !strings.Contains(notes, "sums with error ±") || !strings.Contains(notes, "(SET dp.error_columns = on shows that of the result)") {
			t.Errorf("%s: %s", sql, notes)
		}
	}
	if notes := strings.Join(w.Ask(`SELECT 100.0 * count(*) FILTER (WHERE hiv) / count(*) FROM people WHERE income > 3000`).Notes, " "); !strings.Contains(notes, "computed from counts with error ±") {
		t.Errorf("a share of counts: %s", notes)
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
