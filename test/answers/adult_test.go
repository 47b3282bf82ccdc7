package answers

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/test/kit"
)

// adultQuestion is a count and its truth.
type adultQuestion struct {
	where string
	holds func(row map[string]string) bool
}

func atLeast(text string, n int) bool {
	v, err := strconv.Atoi(text)
	return err == nil && v >= n
}

var adultQuestions = []adultQuestion{
	{`age BETWEEN 30 AND 40`, func(r map[string]string) bool { return atLeast(r["age"], 30) && !atLeast(r["age"], 41) }},
	{`sex = 'Female' AND education IN ('Masters', 'Doctorate')`, func(r map[string]string) bool {
		return r["sex"] == "Female" && (r["education"] == "Masters" || r["education"] == "Doctorate")
	}},
	{`income LIKE '>%' AND hours_per_week > 40`, func(r map[string]string) bool { return r["income"] == ">50K" && atLeast(r["hours_per_week"], 41) }},
	{`capital_gain >= 5050`, func(r map[string]string) bool { return atLeast(r["capital_gain"], 5050) }},
	{`NOT (race = 'White' OR native_country = 'United-States')`, func(r map[string]string) bool {
		return r["race"] != "White" && r["native_country"] != "United-States"
	}},
	{`workclass <> '?' AND education_num * 5 > age`, func(r map[string]string) bool {
		e, _ := strconv.Atoi(r["education_num"])
		a, _ := strconv.Atoi(r["age"])
		return r["workclass"] != "?" && 5*e > a
	}},
}

// scale is the noise's scale as EXPLAIN shows it.
var scale = regexp.MustCompile(`discrete Laplace noise of scale ([0-9.]+)`)

// TestAdultOnBothEngines serves the example policies over the same rows in DuckDB and in PostgreSQL: the same plans,
// the same costs and notices, and answers within the 1 − 10⁻⁹ bound of their noise around the truth.
func TestAdultOnBothEngines(t *testing.T) {
	kit.Beside(t)
	file := material.Path(t, "data", "adult.csv")
	header, rows := kit.AdultRows(t, file)
	_, url := kit.RowsInPostgres(t, "adult", header, rows)
	duck := kit.Serve(t, kit.ExamplePolicy(t, "policy.yaml", "../../../shared/data/adult.csv", file))
	postgres := kit.Serve(t, kit.ExamplePolicy(t, "policy-postgres.yaml", "${DPPROXY_PG}", url))
	a, b := duck.Connect("analyst", "census"), postgres.Connect("analyst", "census")
	for _, q := range adultQuestions {
		sql := `SELECT count(*) FROM adult WHERE ` + q.where
		x, y := a.Ask("EXPLAIN "+sql), b.Ask("EXPLAIN "+sql)
		if x.Err != nil || text(x) != text(y) {
			t.Errorf("plans differ: %v\n%s\n%s", x.Err, text(x), text(y))
			continue
		}
		m := scale.FindStringSubmatch(text(x))
		if m == nil {
			t.Fatalf("no scale in\n%s", text(x))
		}
		s, _ := strconv.ParseFloat(m[1], 64)
		truth := 0
		for _, row := range rows {
			named := map[string]string{}
			for i, v := range row {
				named[header[i]] = v
			}
			if q.holds(named) {
				truth++
			}
		}
		ax, by := a.Ask(sql), b.Ask(sql)
		if strings.Join(ax.Notes, "") != strings.Join(by.Notes, "") {
			t.Errorf("notices differ: %q, %q", ax.Notes, by.Notes)
		}
		// P(|noise| > k) ≤ exp(−k/s) for the discrete Laplace of scale s.
		bound := int(math.Ceil(s * math.Log(1e9)))
		for engine, got := range map[string]int{"DuckDB": kit.Count(t, ax), "PostgreSQL": kit.Count(t, by)} {
			if d := got - truth; d > bound || d < -bound {
				t.Errorf("%s: %s: %d, the truth is %d, the bound ±%d", engine, q.where, got, truth, bound)
			}
		}
	}
	const budget = `SELECT spent, remaining FROM dp.budget`
	if x, y := a.Ask(budget), b.Ask(budget); fmt.Sprint(x.Rows) != fmt.Sprint(y.Rows) || len(x.Rows) != 1 {
		t.Errorf("costs differ: %v, %v", x.Rows, y.Rows)
	}
}
