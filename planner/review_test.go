package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestDeltaOfParts: dp.delta is what all discoveries of a statement use together, those of its sub-queries among them.
func TestDeltaOfParts(t *testing.T) {
	c := openContext(t, ", delta: 1e-6")
	c.Settings.Epsilon = epsilon(t, "1")
	d, err := privacy.ParseDelta("1e-6")
	if err != nil {
		t.Fatal(err)
	}
	c.Settings.Delta = d
	p, refusal := planned(t, c, "SELECT zip, count(*) FROM people WHERE age IN (SELECT age FROM people WHERE zip IN (SELECT zip FROM people GROUP BY zip) GROUP BY age) GROUP BY zip")
	if refusal != nil {
		t.Fatal(refusal)
	}
	if whole := c.Settings.Delta.Atto(); p.Cost.Delta.Atto() > whole {
		t.Errorf("a statement with dp.delta %s costs %s", c.Settings.Delta, p.Cost)
	}
	p, refusal = planned(t, c, "SELECT count(*) FROM people WHERE zip IN (SELECT zip FROM people GROUP BY zip HAVING count(*) > 3) AND age > (SELECT count(*) FROM (SELECT zip, count(*) AS n FROM people GROUP BY zip) t WHERE n > 3)")
	if refusal != nil {
		t.Fatal(refusal)
	}
	if whole := c.Settings.Delta.Atto(); p.Cost.Delta.Atto() > whole {
		t.Errorf("two sub-queries of a statement with dp.delta %s cost %s", c.Settings.Delta, p.Cost)
	}
}

// TestEitherAsksAgainInItsUnit: a statement whose sub-query and rest were paid for in ε is free when it is asked again,
// whatever is left by then.
func TestEitherAsksAgainInItsUnit(t *testing.T) {
	c := ofBudget(t, "testdata/policy.yaml", "either")
	held := &shelf{}
	c.Holdings = held
	c.Settings.Epsilon = epsilon(t, "0.02")
	list, refusal := parse.Parse(`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`)
	if refusal != nil {
		t.Fatal(refusal)
	}
	run := func() (charged privacy.Cost) {
		for c.Answers, c.Priced = nil, 0; ; {
			plan, refusal := Build(list[0], []policy.Value{}, c)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if len(plan.Inner) == 0 {
				held.buy(plan)
				return charged.Plus(plan.Cost)
			}
			next := map[string]*plans.Answer{}
			for _, in := range plan.Inmost() {
				charged = charged.Plus(in.Plan.Cost)
				held.buy(in.Plan)
				next[in.Key] = &plans.Answer{Columns: []plans.AnswerColumn{{Type: policy.NumericType, Typmod: -1}}, Rows: [][]policy.Value{{policy.NewNumeric(3999, 2)}}, Private: true}
			}
			c.Answers = next
			switch {
			case charged.Rho.Pico() != 0:
				c.Priced = privacy.ZCDP
			case charged.Epsilon.Micro() != 0:
				c.Priced = privacy.Pure
			}
		}
	}
	whole, _ := c.Dataset.Budget("alice")
	c.Unspent = &privacy.Cost{Epsilon: whole.Cost.Epsilon}
	if first := run(); first.Epsilon.Micro() == 0 || first.Rho.Pico() != 0 {
		t.Fatalf("where no ρ is left it costs %s", first)
	}
	c.Unspent = &privacy.Cost{Rho: whole.Cost.Rho}
	if again := run(); !again.IsZero() {
		t.Errorf("asked again with ρ alone left it costs %s", again)
	}
}

// TestNoLeafOverMadeUpRows: privacy rule 15. What replaces private rows in a SELECT of them, made-up rows or none at
// all, is nothing that a count is computed from: it would be paid for, and an answer to another question.
func TestNoLeafOverMadeUpRows(t *testing.T) {
	p := instancePolicy(t, "{kind: synthetic, name: y, columns: [{column: income, step: 10000}, sex, active], epsilon: 1, rows: 10}")
	c := testContext(t, p)
	c.Settings.Epsilon = epsilon(t, "1")
	bought, refusal := planSession(t, c, "SELECT count(*) FROM dp.y")
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, sql := range []string{
		"SELECT count(*) FROM people WHERE age IN (SELECT age FROM people)",
		"SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM people WHERE age > 90)",
		"SELECT count(*) FROM people WHERE sex IN (SELECT sex FROM people LIMIT 10)",
		"SELECT count(*) FROM people WHERE sex IN (SELECT sex FROM (SELECT sex, income FROM people) t WHERE income > 10000)",
	} {
		for _, probes := range []plans.Probes{plans.ProbesRefused, plans.ProbesEmpty, plans.ProbesMadeUp} {
			for _, held := range []bool{false, true} {
				c.Settings.Probes, c.Holdings = probes, &shelf{}
				if held {
					c.Holdings.(*shelf).buy(bought)
				}
				if plan, refusal := planSession(t, c, sql); refusal == nil {
					t.Errorf("%s, dp.probes %d, made-up rows held %t: it is answered for %s: %q", sql, probes, held, plan.Cost, plan.Notes)
				}
			}
		}
	}
}

// TestChargeOfInner: what a budget is asked to hold, and what two units are compared by, is the whole of a statement,
// its sub-queries with it.
func TestChargeOfInner(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		p := testPolicy(t)
		p.Datasets[0].Accountant = accountant
		plan, refusal := planSession(t, testContext(t, p), `SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if charge := plan.Charge(); charge.Cost != plan.Cost || len(plan.Inner) != 1 {
			t.Errorf("%s: a statement of %s is charged %s", accountant, plan.Cost, charge.Cost)
		}
	}
}

// TestArraysThatAreNull: a comparison with an array that is NULL is NULL, whatever the operator and whatever is around
// it, and not one with an array without elements.
func TestArraysThatAreNull(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.Epsilon = epsilon(t, "0.5")
	planned := func(sql string, values ...policy.Value) *plans.Plan {
		list, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		plan, refusal := Build(list[0], append([]policy.Value{}, values...), c)
		if refusal != nil {
			t.Fatalf("%s: %v", sql, refusal)
		}
		return plan
	}
	all := planned("SELECT count(*) FROM people")
	for _, condition := range []string{"age = ANY (%s)", "age <> ALL (%s)", "age > ANY (%s)", "age > ALL (%s)", "age <> ANY (%s)", "age = ALL (%s)", "sex LIKE ANY (%s)", "sex NOT LIKE ALL (%s)", "sex = ANY (%s)"} {
		array := "NULL::int[]"
		if condition[0] == 's' {
			array = "NULL::text[]"
		}
		for _, written := range []struct {
			array  string
			values []policy.Value
		}{{"$1", []policy.Value{nil}}, {array, nil}} {
			is := fmt.Sprintf(condition, written.array)
			for _, where := range []string{is, "NOT (" + is + ")"} {
				if plan := planned("SELECT count(*) FROM people WHERE "+where, written.values...); len(plan.Measures) != 0 {
					t.Errorf("%s: rows are counted", where)
				}
			}
			if plan := planned("SELECT count(*) FROM people WHERE ("+is+") IS NULL", written.values...); len(plan.Measures) != 1 || plan.Measures[0].Digest != all.Measures[0].Digest {
				t.Errorf("%s IS NULL does not hold of every row", is)
			}
		}
		if plan := planned("SELECT count(*) FROM people WHERE "+fmt.Sprintf(condition, "$1"), "{}"); (len(plan.Measures) == 1) != strings.Contains(condition, "ALL") {
			t.Errorf("%s of no elements: %d measures", condition, len(plan.Measures))
		}
	}
}
