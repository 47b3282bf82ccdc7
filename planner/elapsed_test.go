package planner

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// TestElapsedKeys: the whole days, hours and minutes between two moments are keys, whatever the moments' steps are.
func TestElapsedKeys(t *testing.T) {
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
			for _, key := range []string{"date_trunc('day', closed - opened)", "extract(day FROM closed - opened)", "date_trunc('hour', closed - opened)", "floor(extract(epoch FROM closed - opened) / 86400)", "extract(epoch FROM closed - opened)::bigint / 86400"} {
				for _, where := range []string{"", " WHERE closed >= opened", " WHERE closed - opened >= interval '0'"} {
					if _, refusal := planned(t, c, "SELECT "+key+", count(*) FROM tickets"+where+" GROUP BY 1"); refusal != nil {
						t.Logf("%s to %s: %s%s: %s: %s", step, end, key, where, refusal.ID, refusal.Message)
					} else {
						t.Logf("%s to %s: %s%s: ok", step, end, key, where)
					}
				}
			}
		}
	}
}
