package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// FuzzBuild: any text is refused, or becomes a plan whose counts read from measures within their cells.
func FuzzBuild(f *testing.F) {
	for _, s := range append(someConditions, "SELECT * FROM people", "SELECT sex, count(*) FROM people GROUP BY 1") {
		f.Add("SELECT count(*) FROM people WHERE " + s)
		f.Add(s)
	}
	p := testPolicy(f)
	c := testContext(f, p)
	f.Fuzz(func(t *testing.T, text string) {
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			return
		}
		for _, s := range statements {
			if s.Kind != parse.KindSelect {
				continue
			}
			if plan, refusal := Build(s, nil, c); refusal == nil {
				checkPlan(t, text, plan)
			}
		}
	})
}

func checkPlan(t *testing.T, text string, p *plans.Plan) {
	t.Helper()
	if (p.Outer.Direct == nil) == (p.Outer.Tree == nil) {
		t.Fatalf("%q: not exactly one outer query", text)
	}
	for _, c := range p.Columns {
		if c.Error != nil && (!c.Noisy || c.Type != policy.Int8) {
			t.Fatalf("%q: column %s has an error, and is not a noisy count", text, c.Name)
		}
	}
	for _, l := range p.Leaves {
		for _, n := range l.Counts {
			if run, _ := n.At(l.Rows); run != nil {
				t.Fatalf("%q: more spans than %d rows", text, l.Rows)
			}
			for r := range l.Rows {
				run, spans := n.At(r)
				if run == nil || len(spans) > 0 && run.Measure < 0 {
					t.Fatalf("%q: counts without a measure", text)
				}
				last := 0
				for _, s := range spans {
					if s.From < last || s.To <= s.From || s.To > p.Measures[run.Measure].Spec.Cells {
						t.Fatalf("%q: span %v", text, s)
					}
					last = s.To
				}
			}
		}
	}
	if len(p.Leaves) == 0 && len(p.Measures) > 0 {
		t.Fatalf("%q: measures without leaves", text)
	}
}
