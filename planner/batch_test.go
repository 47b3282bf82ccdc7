package planner

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

func parsedAll(t testing.TB, c Context, text string) (items []BatchItem) {
	t.Helper()
	list, refusal := Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, s := range list {
		items = append(items, BatchItem{s, c.Settings})
	}
	return items
}

const dashboard = `SELECT count(*) FROM people;
SELECT sex, count(*) FROM people GROUP BY sex;
SELECT sex, kids, count(*) FROM people GROUP BY sex, kids;
SELECT kids, count(*) FROM people WHERE age >= 65 GROUP BY kids;
SELECT age, count(*) FROM people GROUP BY age;
SELECT width_bucket(age, 0, 100, 10), sex, count(*) FROM people GROUP BY 1, 2;
SELECT avg(income) FROM people;
SELECT count(*) FROM people WHERE age BETWEEN 18 AND 30 AND sex = 'Female'`

// TestBatchIsFreeAfterwards: what a batch buys answers each of its statements for nothing, and no strategy that was looked
// at for the whole batch has a smaller error than the one that is taken.
func TestBatchIsFreeAfterwards(t *testing.T) {
	c := testContext(t, testPolicy(t))
	list := parsedAll(t, c, dashboard)
	b, err := PlanBatch(list, c, epsilon(t, "1"))
	if err != nil {
		t.Fatal(err)
	}
	taken := math.Inf(1)
	for _, s := range b.Strategies {
		if s.Chosen {
			taken = s.Error
		}
	}
	for _, s := range b.Strategies {
		if s.Error < taken {
			t.Errorf("%s has error %g, what is taken %g", s.Name, s.Error, taken)
		}
	}
	if !b.Cost.Fits(privacy.Cost{Epsilon: epsilon(t, "1")}) {
		t.Errorf("it costs %s", b.Cost)
	}
	c.Holdings.(*shelf).buy(b.Plan())
	for _, item := range list {
		p, refusal := Build(item.Statement, []policy.Value{}, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if !p.Cost.IsZero() {
			t.Errorf("%s costs %s", item.Statement.Text, p.Cost)
		}
	}
}
