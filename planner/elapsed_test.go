package planner

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// TestElapsedKeys: the whole days and hours between two moments are rounded toward zero, which divides the moments'
// steps; rounded down, as the hint says, they are keys.
func TestElapsedKeys(t *testing.T) {
	found := 0
	for _, step := range []string{"1 second", "1 minute", "1 hour"} {
		for _, end := range []string{"2024-01-31", "2024-12-31"} {
			text := policytest.Over("duckdb:x.duckdb") + fmt.Sprintf(`
  - id: desk
    unit: {name: person, key: tickets.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: tickets
        max_rows_per_unit: 1
        columns:
          - {name: opened, type: timestamp, domain: {min: 2024-01-01, max: %[1]s, step: %[2]s}}
          - {name: closed, type: timestamp, domain: {min: 2024-01-01, max: %[1]s, step: %[2]s}}
`, end, step)
			p, err := policy.Parse([]byte(text), "policy.yaml")
			if err != nil {
				t.Logf("%s to %s: %v", step, end, err)
				continue
			}
			c := testContext(t, p)
			c.Settings.SearchPath = nil
			for _, key := range []string{"date_trunc('day', closed - opened)", "extract(day FROM closed - opened)",
				"date_trunc('hour', closed - opened)", "extract(epoch FROM closed - opened)::bigint / 86400"} {
				_, refusal := planned(t, c, "SELECT "+key+", count(*) FROM tickets GROUP BY 1")
				if refusal == nil || refusal.ID != "off-grid-expression" { // too many cells where pieces are looked for
					continue
				}
				found++
				hinted := roundedDown.FindString(refusal.Hint)
				if _, refusal := planned(t, c, "SELECT "+hinted+", count(*) FROM tickets GROUP BY 1"); hinted == "" ||
					refusal != nil {
					t.Errorf("%s to %s: %s hints at %q: %+v", step, end, key, hinted, refusal)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d were refused", found)
	}
}

var roundedDown = regexp.MustCompile(`floor\(extract\(epoch FROM [^)]*\) / \d+\)`)
