package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestSumOfCaseBesideTotal: a sum over some rows beside the sum over all of them, as TPC-H's Q8 and Q14 ask, is counted
// by whether the condition holds. A row is in one of these cells, so that both sums have the whole cost, and are more
// exact than each would be at half of it, as counters of their own: the part has half the error, the total less than
// three quarters.
func TestSumOfCaseBesideTotal(t *testing.T) {
	p, err := policy.Parse(fmt.Appendf(nil, moneyPolicy, "pure", "0", "0", 40, "110000", "1000", "110000", "1000"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const revenue = "price * (1 - discount)"
	widths := func(e, columns string) (widths []int64) {
		c := testContext(t, p)
		c.Settings.Epsilon = epsilon(t, e)
		plan, refusal := Build(parsedText(t, "SELECT "+columns+" FROM orders WHERE cost < 5000")[0], nil, c)
		if refusal != nil {
			t.Fatal(columns, refusal)
		}
		for _, counted := range plan.Leaves[0].Counts {
			run := &counted.Runs[0]
			if run.Measure >= 0 {
				widths = append(widths, plan.RunError(run).HalfWidth)
			}
		}
		return widths
	}
	for _, part := range []string{
		"sum(CASE WHEN weight < 100 THEN " + revenue + " ELSE 0 END)",
		"sum(CASE WHEN weight < 100 THEN " + revenue + " END)",
		"sum(" + revenue + ") FILTER (WHERE weight < 100)",
	} {
		both := widths("1", part+", sum("+revenue+")")
		half := []int64{widths("0.5", part)[0], widths("0.5", "sum("+revenue+")")[0]}
		if len(both) != 2 || both[0] > half[0]/2+1 || both[1] > half[1]*3/4 {
			t.Errorf("%s beside the total: ± %d, each for half of the cost ± %d", part, both, half)
		}
		if ratio := "100.0 * " + part + " / sum(" + revenue + ")"; !slices.Equal(widths("1", ratio), both) {
			t.Errorf("%s: ± %d, as two columns ± %d", ratio, widths("1", ratio), both)
		}
	}
}

// TestAveragesAreCentred: the average of a product or a sum of terms is about its middle as that of a column is: it
// errs by as many times as the argument varies more.
func TestAveragesAreCentred(t *testing.T) {
	c := testContext(t, testPolicy(t))
	bound := func(column string) (most int64) {
		plan := planOrRefusal(t, c, "SELECT "+column+" FROM people")
		for _, sum := range plan.Measures[0].Sums {
			if sum != nil {
				most = max(most, -sum.Bound.Low, sum.Bound.High)
			}
		}
		return most
	}
	for _, at := range []struct {
		column, of string
		times      int64
	}{{"avg(2 * age + 3)", "avg(age)", 2}, {"avg(age + 3)", "avg(age)", 1}, {"avg(-age)", "avg(age)", 1}, {"avg(age - 1000), sum(age - 1000)", "avg(age)", 1}, {"avg(7 * age - 5 * age + kids - kids)", "avg(age)", 2}} {
		if got, want := bound(at.column), at.times*bound(at.of); got < want-1 || got > want+1 {
			t.Errorf("%s adds up ± %d, %s ± %d", at.column, got, at.of, want/at.times)
		}
	}
}

// TestConstantsBesideColumns: 2 * age + 3 is added up by the database as it is, and not by the middles of steps, though
// 1.5 is on no grid of whole years; so is its product with another column.
func TestConstantsBesideColumns(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, column := range []string{"sum(2 * age + 3)", "avg(2 * age + 3)", "sum((2 * age + 3) * kids)", "variance(3 - 2 * age)"} {
		for _, sum := range planOrRefusal(t, c, "SELECT "+column+" FROM people").Measures[0].Sums {
			if sum != nil && sum.Terms == nil {
				t.Errorf("%s is added up by cells", column)
			}
		}
	}
}

// TestSumsOverTwoColumnsCells: a part is cut into cells by what is added up, one column after the other.
func TestSumsOverTwoColumnsCells(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, sql := range []string{
		"SELECT sum((age + 0.33333333333333333) * kids) FROM people", // its condition has pieces, its values none
		"SELECT sum(age % (kids + 1)), avg(abs(age - kids)) FROM people WHERE age > 30 AND kids < 2",
		"SELECT age > 40, kids > 1, sum(abs(age - kids)), sum(age % (kids + 1)) FILTER (WHERE kids > 2) FROM people GROUP BY 1, 2",
		"SELECT sum(CASE WHEN age > 30 THEN kids * kids % 3 ELSE age % 7 END), variance(abs(kids - age)) FROM people WHERE sex = 'Male'",
	} {
		planOrRefusal(t, c, sql)
	}
}

// TestRoundingIsTold: where values are added up on a coarser grid than they have, the notice says so, and nowhere else.
func TestRoundingIsTold(t *testing.T) {
	for _, at := range []struct{ most, step, sum, says string }{
		{"100000", "1000", "sum(price)", ""},
		{"100000", "1000", "avg(price * (1 - discount))", ""},
		{"100000000", "1000000", "sum(price)", "price is rounded to 0.1 where it is added up: ± does not cover that"},
		{"100000000", "1000000", "sum(price - cost)", "cost is rounded to 0.1 where it is added up: ± does not cover that"},
		{"10000000", "100000", "sum(price * (1 - discount))", "an aggregate's argument is rounded to 0.01 where it is added up: ± does not cover that"},
		{"100", "1", "variance(price)", ""},
		{"9000", "10", "variance(price)", "the squares of an aggregate's argument are rounded to 0.01 where they are added up: ± does not cover that"},
		{"9000", "10", "corr(price, weight)", "price is rounded to 0.1 where its products are added up: ± does not cover that"},
		{"100", "1", "variance(weight), sum(weight)", ""},
		{"100000000", "1000000", "sum(2), avg(3), count(*)", ""},
	} {
		p, err := policy.Parse(fmt.Appendf(nil, moneyPolicy, "pure", "0", "0", 1, at.most, at.step, at.most, at.step), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		plan := planOrRefusal(t, testContext(t, p), "SELECT "+at.sum+" FROM orders")
		var told []string
		for _, n := range plan.Notes {
			if strings.Contains(n, "rounded to") {
				told = append(told, n)
			}
		}
		if slices.Contains(told, at.says) != (at.says != "") || at.says == "" && len(told) > 0 {
			t.Errorf("%s up to %s says %q, must say %q", at.sum, at.most, told, at.says)
		}
	}
}
