package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestPartsOfAStatement: a statement with sub-queries that are answered first costs no more than it may, round after
// round, whatever was released of them; what each round is planned at does not depend on what is held; and asked again
// nothing is bought.
func TestPartsOfAStatement(t *testing.T) {
	average := policy.NewNumeric(3999, 2)
	for _, q := range []struct {
		sql   string
		inner int
	}{
		{`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`, 1},
		{`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people) AND age > (SELECT avg(age) FROM people)`, 2},
		{`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people) OR income < (SELECT avg(income) FROM people)`, 1},
		{`SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people WHERE income > (SELECT avg(income) FROM people))`, 2},
	} {
		for _, released := range []policy.Value{average, policy.NewNumeric(40, 0), policy.NewNumeric(-1, 0), nil} {
			for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
				p := testPolicy(t)
				p.Datasets[0].Accountant = accountant
				c, held := testContext(t, p), &shelf{}
				c.Holdings = held
				statements, refusal := parse.Parse(q.sql)
				if refusal != nil {
					t.Fatal(refusal)
				}
				most, answered := c.Share(1), 0
				// run asks the statement as the pipeline does, and returns what it was charged.
				run := func() (charged privacy.Cost) {
					for c.Answers = nil; ; {
						plan, refusal := Build(statements[0], []policy.Value{}, c)
						if refusal != nil {
							t.Fatalf("%s: %v", q.sql, refusal)
						}
						if total := charged.Plus(plan.Cost); !total.Fits(most) {
							t.Fatalf("%s with %v: %s where %s is the most", q.sql, released, total, most)
						}
						if len(plan.Inner) == 0 {
							charged = charged.Plus(plan.Cost)
							held.buy(plan)
							return charged
						}
						next := map[string]*plans.Answer{}
						for k, a := range c.Answers {
							next[k] = a
						}
						for _, in := range plan.Inmost() {
							charged = charged.Plus(in.Plan.Cost)
							held.buy(in.Plan)
							next[in.Key] = &plans.Answer{Columns: []plans.AnswerColumn{{Type: policy.NumericType, Typmod: -1}}, Rows: [][]policy.Value{{released}}, Private: true}
							answered++
						}
						c.Answers = next
					}
				}
				charged := run()
				if answered != q.inner {
					t.Errorf("%s: %d sub-queries were answered, want %d", q.sql, answered, q.inner)
				}
				if charged.IsZero() {
					t.Errorf("%s: nothing was charged", q.sql)
				}
				if again := run(); !again.IsZero() {
					t.Errorf("%s with %v: asked again it costs %s, after %s", q.sql, released, again, charged)
				}
			}
		}
	}
}
