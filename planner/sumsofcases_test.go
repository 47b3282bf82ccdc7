package planner

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestSumOfCaseBesideTotal: a sum over some rows beside the sum over all of them, as TPC-H's Q8 and Q14 ask, is counted by
// whether the condition holds. A row is in one of these cells, so that both sums have the whole cost, and are more exact than
// each would be at half of it, as counters of their own: the part has half the error, the total less than three quarters.
func TestSumOfCaseBesideTotal(t *testing.T) {
	p, err := policy.Parse(fmt.Appendf(nil, moneyPolicy, "pure", "0", "0", 40, "110000", "1000", "110000", "1000"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const revenue = "price * (1 - discount)"
	widths := func(e, columns string) (widths []int64) {
		c := testContext(t, p)
		c.Settings.Epsilon = epsilon(t, e)
		plan, refusal := Build(parse(t, "SELECT "+columns+" FROM orders WHERE cost < 5000")[0], nil, c)
		if refusal != nil {
			t.Fatal(columns, refusal)
		}
		for _, counted := range plan.Leaves[0].Counts {
			run := &counted.Runs[0]
			if run.Measure >= 0 {
				widths = append(widths, plan.runError(run).HalfWidth)
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
