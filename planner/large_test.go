package planner

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// largeContext is a policy of a table whose columns have more combinations than one answer has room for.
func largeContext(t *testing.T, large string) reuse.Context {
	t.Helper()
	text := policytest.Over("duckdb:x.duckdb") + `
  - id: census
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20, delta: 1e-4}
    budgets: {alice: {epsilon: 3, delta: 1e-5}}
    LARGE
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: hired, type: date, domain: {min: 2000-01-01, max: 2029-12-31}}
          - {name: income, type: integer, domain: {min: 0, max: 99999}}
          - {name: sex, type: text, domain: {values: [f, m]}}
`
	p, err := policy.Parse([]byte(strings.Replace(text, "LARGE", large, 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.SearchPath = nil
	return c
}

const thresholdLarge = "large_products: threshold"

// TestLargeProducts: what finding combinations costs, and what each statement costs once they are found; all of it
// within dp.epsilon.
func TestLargeProducts(t *testing.T) {
	c := largeContext(t, thresholdLarge)
	const found, half = "ε 0.1, δ 6.25e-07", "ε 0.05, δ 6.25e-07"
	for _, s := range []struct {
		text        string
		finds, then string
		rows        int // with three combinations found
	}{
		{`SELECT hired, income, count(*) FROM people GROUP BY 1, 2`, found, "ε 0", 3},
		{`SELECT DISTINCT income, hired FROM people`, found, "ε 0", 3},
		{`SELECT hired, income, count(*) FROM people GROUP BY 1, 2 HAVING count(*) > 10 ORDER BY 3 DESC LIMIT 5`, found, "ε 0", 3},
		{`SELECT hired, income, count(*) FILTER (WHERE sex = 'f') FROM people GROUP BY 1, 2`, half, "ε 0.05", 3},
		{`SELECT hired, income, avg(income) FROM people GROUP BY 1, 2`, half, "ε 0.05", 3},
		{`SELECT hired, income, count(*) FROM people WHERE sex = 'f' GROUP BY 1, 2`, half, "ε 0.05", 3},
		{`SELECT hired, income, count(*) FROM people WHERE income <> 1 AND hired < '2020-01-01' GROUP BY 1, 2`, half, "ε 0.05", 1},
	} {
		p, refusal := planned(t, c, s.text)
		if refusal != nil {
			t.Errorf("%s: %s: %s", s.text, refusal.ID, refusal.Message)
			continue
		}
		finds := ""
		for _, m := range p.Finds {
			finds += m.Cost.String()
		}
		if finds != s.finds || p.Cost.String() != found {
			t.Errorf("%s: finds %q, costs %s; want %q, %s", s.text, finds, p.Cost, s.finds, found)
			continue
		}
		held := c
		d, err := mechanisms.NewDiscovery(c.Dataset.Tables[0].Contribution(), (&discovery.Keys{}).Share(c, true, 1))
		if err != nil {
			t.Fatal(err)
		}
		held.Holdings = &shelf{list: []reuse.Holding{{ID: 3, Digest: p.Finds[0].Digest, Spec: d.Spec(1), At: fixedNow}}}
		held.Found = func(id int64) (mechanisms.Noisy, bool) {
			return mechanisms.Noisy{Keys: []string{"=17,0", "=17,1", "=9000,2"}, Observations: []int64{70, 80, 90}}, id == 3
		}
		p, refusal = planned(t, held, s.text)
		if refusal != nil || len(p.Finds) > 0 || p.Cost.String() != s.then {
			t.Errorf("%s: with keys %v, %v; want %s", s.text, p, refusal, s.then)
			continue
		}
		if n := p.Leaves[0].Rows; n != s.rows {
			t.Errorf("%s: %d rows, want %d", s.text, n, s.rows)
		}
	}
}

// TestLargeProductsRefuse: without the policy's word too many combinations are refused; with it those are that are not
// of plain columns.
func TestLargeProductsRefuse(t *testing.T) {
	refused := func(c reuse.Context, text string) {
		t.Helper()
		if p, refusal := planned(t, c, text); refusal == nil {
			t.Errorf("%s: planned for %s", text, p.Cost)
		} else if refusal.ID != "too-many-cells" {
			t.Errorf("%s: %s: %s", text, refusal.ID, refusal.Message)
		}
	}
	for _, large := range []string{"", "large_products: refuse"} {
		refused(largeContext(t, large), `SELECT hired, income, count(*) FROM people GROUP BY 1, 2`)
	}
	c := largeContext(t, thresholdLarge)
	for _, text := range []string{
		`SELECT hired + 1, income, count(*) FROM people GROUP BY 1, 2`, `SELECT hired, income, count(*) FROM people GROUP BY CUBE (1, 2)`,
		`SELECT count(*) FROM people WHERE income * (hired - date '2000-01-01') > 5`,
	} {
		refused(c, text)
	}
	if p, refusal := planned(t, c, `SELECT sex, count(*) FROM people GROUP BY 1`); refusal != nil || len(p.Finds) > 0 {
		t.Errorf("few combinations are found: %v, %v", p, refusal)
	}
}
