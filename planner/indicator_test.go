package planner

import (
	"math/rand"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// randomCase is a CASE of the values 0, 1 and NULL, with constant conditions and CASEs inside CASEs among them.
func randomCase(r *rand.Rand, depth int) string {
	values := []string{"0", "1", "1", "NULL::integer", "(age > 40)::int"}
	value := func() string {
		if depth > 0 && r.Intn(4) == 0 {
			return randomCase(r, depth-1)
		}
		return values[r.Intn(len(values))]
	}
	text := "CASE"
	for range 1 + r.Intn(3) {
		when := condition(r, 1)
		if r.Intn(3) == 0 {
			when = []string{"true", "false", "'a' = 'a'", "NULL::boolean", "1 > 2"}[r.Intn(5)]
		}
		text += " WHEN " + when + " THEN " + value()
	}
	if r.Intn(2) == 0 {
		text += " ELSE " + value()
	}
	return text + " END"
}

// TestTwinSum: the sum of an indicator is what adding the expression's value up over the rows gives.
func TestTwinSum(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	answered := 0
	texts := []string{"CASE WHEN true THEN 1 WHEN age > 30 THEN 1 END", "CASE WHEN true THEN 0 WHEN age > 30 THEN 1 END", "CASE WHEN 'a' = 'a' THEN 1 WHEN active THEN 1 END"}
	for n := 0; n < 300; n++ {
		text := randomCase(r, 2)
		if n < len(texts) {
			text = texts[n]
		}
		sql := "SELECT sum(" + text + "), count(*) FROM people"
		parsed, err := pg.Parse("SELECT " + text + " FROM people")
		if err != nil {
			t.Fatal(err)
		}
		sel := parsed.Stmts[0].Stmt.GetSelectStmt()
		b := aggregate.NewBinder(c, &semantics.Parameters{})
		from, _ := b.FromRows(sel, nil)
		e, refusal := (&semantics.Translator{Env: b.Env, Params: b.Params, Columns: from.Column}).Expr(sel.TargetList[0].GetResTarget().Val)
		if refusal != nil {
			t.Fatalf("%s: %v", text, refusal)
		}
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		answered++
		rows := randomRows(r, people, 40)
		want := int64(0)
		for _, row := range rows {
			v, err := e.Eval(row)
			if err != nil {
				t.Fatal(err)
			}
			if i, ok := v.(int64); ok {
				want += i
			}
		}
		counts := answer(p.Leaves[0], trueVectors(t, p, rows))[""]
		if counts[0] != want || counts[len(counts)-1] != 40 { // one column where both mean the same
			t.Errorf("seed %d: sum(%s), count(*) are %v, want %d and 40", seed, text, counts, want)
		}
	}
	if answered < 150 {
		t.Errorf("seed %d: only %d of 300 answered", seed, answered)
	}
}

// TestIndicatorOfUnknown: a CASE whose only conditions are NULL is never 1.
func TestIndicatorOfUnknown(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, sql := range []string{
		"SELECT sum(CASE WHEN active THEN CASE WHEN NULL::boolean THEN 1 END ELSE 0 END) FROM people",
		"SELECT sum(CASE WHEN age > 30 THEN CASE WHEN 'a' = 'a' THEN CASE WHEN NULL::boolean THEN 1 WHEN false THEN 1 END ELSE kids END WHEN false THEN 1 END) FROM people",
	} {
		p := planOrRefusal(t, c, sql)
		if p == nil {
			t.Fatalf("%s is refused", sql)
		}
		rows := randomRows(rand.New(rand.NewSource(1)), c.Dataset.Tables[0], 40)
		if got := answer(p.Leaves[0], trueVectors(t, p, rows))[""]; got[0] != 0 {
			t.Errorf("%s is %v", sql, got)
		}
	}
}
