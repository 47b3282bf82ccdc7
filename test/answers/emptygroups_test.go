package answers

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestGroupsThatNobodyIsIn: with hardly any noise groups are counted and averaged as PostgreSQL has them; where they are
// shown, or all are asked for, there is one more, which a notice says where it is not to be seen, and the form that the
// notice names ends it.
func TestGroupsThatNobodyIsIn(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	w := fresh()
	for _, use := range []string{
		"SELECT avg(n), min(n), count(*) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward%s) t",
		"WITH g AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward%s) SELECT count(*), percentile_cont(0.25) WITHIN GROUP (ORDER BY n) FROM g",
		"SELECT n > 0 AS some, count(*) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward%s) t GROUP BY 1",
	} {
		equals := map[string]bool{"": true, " HAVING count(*) > 0": true, " HAVING count(*) >= 0": false}
		for having, equal := range equals {
			sql := strings.Replace(use, "%s", having, 1)
			got := w.Ask(sql)
			if got.Err != nil || strings.Contains(strings.Join(got.Notes, "\n"), "take") {
				t.Fatalf("%s: %v %q", sql, got.Err, got.Notes)
			}
			if text := differs(got.Rows, plainRows(t, direct, sql)); (text == "") != equal {
				t.Errorf("%s\n  %q\n  notes %q", sql, text, got.Notes)
			}
		}
	}
	for _, use := range []string{
		"SELECT ward FROM visits GROUP BY ward%s ORDER BY count(*), 1 LIMIT 1",
		"SELECT ward, count(*) AS n, round(avg(count(*)) OVER (), 6) AS mean FROM visits GROUP BY ward%s",
	} {
		for _, having := range []string{"", " HAVING count(*) > 0"} {
			sql := strings.Replace(use, "%s", having, 1)
			got := w.Ask(sql)
			if got.Err != nil {
				t.Fatalf("%s: %v", sql, got.Err)
			}
			told := strings.Contains(strings.Join(got.Notes, "\n"), "that nobody is in take part, as they do not in plain SQL: HAVING count(*) > 0 after GROUP BY ward leaves them out")
			if told != (having == "") {
				t.Errorf("%s\n  told: %t\n  %q", sql, told, got.Notes)
			}
			want := plainRows(t, direct, sql)
			if text := differs(got.Rows, want); (text == "") != (having != "") {
				t.Errorf("%s\n  %q\n  notes %q", sql, text, got.Notes)
			}
		}
	}
}

var widthTold = regexp.MustCompile(`NULL where the count of their rows is within its own error, at most (\d+)`)

// TestAveragesOfNoise: an average is NULL exactly where the released count that it is divided by is at most the
// half-width that the notice tells, by the proxy itself and by the sandbox.
func TestAveragesOfNoise(t *testing.T) {
	kit.Beside(t)
	fresh, _ := plainFixture(t)
	w := fresh()
	w.Ask(`SET dp.epsilon = 2`)
	for _, more := range []string{"", ", rank() OVER (ORDER BY ward)"} {
		nulls := 0
		for day := range 8 {
			sql := "SELECT ward, count(minutes), avg(minutes), stddev_pop(minutes), avg(cost::float8)" + more + " FROM visits WHERE minutes > " + strconv.Itoa(20+4*day) + " AND cost IS NOT NULL GROUP BY ward"
			got := w.Ask(sql)
			if got.Err != nil {
				t.Fatalf("%s: %v", sql, got.Err)
			}
			told := widthTold.FindStringSubmatch(strings.Join(got.Notes, "\n"))
			if told == nil {
				t.Fatalf("%s: %q", sql, got.Notes)
			}
			width, _ := strconv.Atoi(told[1])
			for _, row := range got.Rows {
				n, err := strconv.Atoi(row[1])
				if err != nil {
					t.Fatal(row)
				}
				for _, value := range row[2:4] {
					if (value == "NULL") != (n <= width) {
						t.Errorf("%s: %q of %d rows ±%d", sql, row, n, width)
					}
				}
				if n <= width {
					nulls++
				}
			}
		}
		if nulls == 0 {
			t.Error("no count was within its error")
		}
	}
}
