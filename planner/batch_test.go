package planner

import (
	"fmt"
	"testing"
	"time"

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

func TestBatchTry(t *testing.T) {
	c := testContext(t, testPolicy(t))
	list := parsedAll(t, c, dashboard)
	start := time.Now()
	b, err := PlanBatch(list, c, epsilon(t, "1"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(time.Since(start))
	for _, m := range b.Measures {
		fmt.Println(m.Name, m.Kind, m.Cost, m.Why, m.Spec.Strategy, m.Spec.Cells)
	}
	for i, s := range b.Statements {
		fmt.Println(i+1, list[i].Statement.Text, s)
	}
	fmt.Println(b.Cost, b.OneByOne)
	for _, s := range b.Strategies {
		fmt.Println(s)
	}
	shelf := c.Holdings.(*shelf)
	shelf.buy(b.Plan())
	for i, s := range list {
		p, refusal := Build(s.Statement, []policy.Value{}, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if !p.Cost.IsZero() {
			t.Error(i+1, s.Statement.Text, p.Cost)
		}
	}
}
