package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
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

// TestConstantsInAnyWords: an array that only an engine knows is asked of it, its columns' types first, and is a list
// then; what is another value for each row, or several rows, is none.
func TestConstantsInAnyWords(t *testing.T) {
	c := testContext(t, testPolicy(t))
	build := func(sql string) (*plans.Plan, bool) {
		t.Helper()
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		plan, refusal := Build(statements[0], []policy.Value{}, c)
		return plan, refusal == nil
	}
	const sql = `SELECT count(*) FROM visits WHERE ward = ANY (string_to_array('B,A', ','))`
	const key = `SELECT unnest(COALESCE(string_to_array('B,A', ','), '{NULL}'))`
	if _, answered := build(sql); answered {
		t.Error("answered without an engine")
	}
	c.Types = &reuse.Types{Known: map[string][]plans.AnswerColumn{}}
	if _, answered := build(sql); answered || c.Types.Wanted == nil || c.Types.Wanted.Key != key {
		t.Fatalf("of an engine %v is wanted, answered is %t", c.Types.Wanted, answered)
	}
	column := []plans.AnswerColumn{{Name: "unnest", Type: policy.Text, Typmod: -1}}
	c.Types.Known[key] = column
	if plan, answered := build(sql); !answered || len(plan.Inner) != 1 || plan.Inner[0].Key != key || !plan.Inner[0].Plan.Cost.IsZero() {
		t.Fatal("it is not answered first, for nothing")
	}
	c.Answers = map[string]*plans.Answer{key: {Columns: column, Rows: [][]policy.Value{{"B"}, {"A"}}}}
	plan, answered := build(sql)
	list, _ := build(`SELECT count(*) FROM visits WHERE ward IN ('B', 'A')`)
	if !answered || len(plan.Inner) > 0 || plan.Measures[0].Digest != list.Measures[0].Digest {
		t.Error("it is not the list")
	}
	for _, sql := range []string{
		`SELECT count(*) FROM people WHERE age > random() * 9`,
		`SELECT count(*) FROM people WHERE sex = ANY (string_to_array(sex, ','))`,
		`SELECT count(*) FROM people WHERE age = length(format('%s', count(*)))`,
		`SELECT count(*) FROM people p WHERE sex = ANY (ARRAY(SELECT code FROM regions r WHERE r.code = p.sex))`,
	} {
		c.Types.Wanted = nil
		if _, answered := build(sql); answered || c.Types.Wanted != nil {
			t.Errorf("%s: %v is asked of an engine", sql, c.Types.Wanted)
		}
	}
}
