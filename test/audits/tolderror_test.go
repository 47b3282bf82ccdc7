package audits

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestToldErrorsCover: what a notice tells of computed numbers by their values, "mean about ±1.2", is true: the values
// of the data lie within it 95 % of the time. Of thirty draws of each column 22 do at least, or more than 1 of 10,000
// runs would fail at 93 %.
func TestToldErrorsCover(t *testing.T) {
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "90", Cap: "90"}, 0)).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 1`)
	w.Ask(`SET dp.digits = significant`) // what is rounded away is a twentieth of the error at most
	columns := []struct {
		name, sql string
		of        func(n, sum, squares float64) float64
	}{
		{"mean", "avg(age)", func(n, sum, _ float64) float64 { return sum / n }},
		{"ratio", "sum(age)::numeric / count(*)", func(n, sum, _ float64) float64 { return sum / n }},
		{"rounded", "round(avg(age))", func(n, sum, _ float64) float64 { return math.Round(sum / n) }},
		{"spread", "coalesce(stddev(age), 0)", func(n, sum, squares float64) float64 {
			return math.Sqrt((squares - sum*sum/n) / (n - 1))
		}},
		{"percent", "100.0 * sum(age) / (count(*) * 77)", func(n, sum, _ float64) float64 {
			return 100 * sum / n / 77
		}},
		{"choice", "CASE WHEN count(*) > 100 THEN avg(age) * 2 END", func(n, sum, _ float64) float64 {
			return 2 * sum / n
		}},
	}
	var list []string
	for _, c := range columns {
		list = append(list, c.sql+" AS "+c.name)
	}
	within := map[string]int{}
	const draws = 30
	for draw := range draws {
		from := 1000 * (draw + 1)
		a := w.Ask(fmt.Sprintf(`SELECT %s FROM people WHERE income >= %d`, strings.Join(list, ", "), from))
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		var n, sum, squares float64
		for i := 1; i <= 1000; i++ {
			if age := float64(18 + i%60); 1000*(i%90) >= from {
				n, sum, squares = n+1, sum+age, squares+age*age
			}
		}
		for i, c := range columns {
			off := toldError(a.Notes[0], c.name)
			value, err := strconv.ParseFloat(a.Rows[0][i], 64)
			if err != nil || off <= 0 {
				t.Fatalf("%s is %v, and the notice says %s", c.name, a.Rows, a.Notes[0])
			}
			if math.Abs(value-c.of(n, sum, squares)) <= off*1.05 {
				within[c.name]++
			}
		}
	}
	for _, c := range columns {
		t.Logf("%s: %d of %d", c.name, within[c.name], draws)
		if within[c.name] < 22 {
			t.Errorf("%s lies within what is told %d times of %d", c.name, within[c.name], draws)
		}
	}
}

var (
	toldParts = regexp.MustCompile(`; ([^;]* about ±[^;]*) a value at 95 %`)
	toldWidth = regexp.MustCompile(` about ±([0-9.,]*[0-9])`)
)

// toldError is the ± that a notice tells of a computed column, 0 where it tells none. Names without one have that of
// the next: "a, b about ±3, c about ±4".
func toldError(notice, column string) float64 {
	m := toldParts.FindStringSubmatch(notice)
	if m == nil {
		return 0
	}
	at := strings.Index(m[1]+" ", column)
	if at < 0 {
		return 0
	}
	width := toldWidth.FindStringSubmatch(m[1][at:])
	if width == nil {
		return 0
	}
	off, _ := strconv.ParseFloat(strings.ReplaceAll(width[1], ",", ""), 64)
	return off
}
