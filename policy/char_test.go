package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy/policytest"
)

// TestCharColumns: a char(n) is text whose values have no trailing blanks.
func TestCharColumns(t *testing.T) {
	text := policytest.Over("postgres://dpproxy@127.0.0.1/shop") + `
  - id: shop
    unit: {name: customer, key: sales.customer}
    accountant: pure
    cap: {epsilon: 10}
    budgets: {alice: {epsilon: 1}}
    tables:
      - name: sales
        max_rows_per_unit: 1
        columns: [{name: store, type: TYPE, domain: {values: [AA, "BB  "]}}]
`
	for _, spelled := range []string{"char(2)", "character(4)", "CHAR(10)", "char(65000000)", "char(1)", "char", "char(2,3)", "char(0)"} {
		p, err := Parse([]byte(strings.Replace(text, "TYPE", `"`+spelled+`"`, 1)), "policy.yaml")
		if good := slices.Contains([]string{"char(2)", "character(4)", "CHAR(10)"}, spelled); good != (err == nil) {
			t.Errorf("%s: %v", spelled, err)
			continue
		}
		if err != nil {
			continue
		}
		c := p.Datasets[0].Tables[0].Columns[0]
		if c.Type != Text || c.Blanks == 0 || c.Domain.Low(1) != "BB" {
			t.Errorf("%s: %+v, %v", spelled, c, c.Domain.Low(1))
		}
	}
}
