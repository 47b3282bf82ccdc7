package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// longList is a public table of so many rows, each with a key of its own.
type longList struct {
	reuse.NoCache
	n int
}

func (n longList) Rows(*policy.Table) ([][]policy.Value, bool) {
	list := make([][]policy.Value, n.n)
	for i := range list {
		list[i] = []policy.Value{fmt.Sprint("k", i), fmt.Sprint(i % 3)}
	}
	return list, true
}

// TestPublicRowsAreWork (rule 26): whatever goes through the rows of a public table takes steps for each of them, so
// that a statement that does so too often, or whose client has gone, ends.
func TestPublicRowsAreWork(t *testing.T) {
	const rows = 100_000
	c := testContext(t, testPolicy(t))
	c.Public = longList{n: rows}
	for _, sql := range []string{
		`SELECT count(*) FROM visits WHERE ward IN (SELECT code FROM regions WHERE label > '5')`,
		`SELECT count(*) FROM visits WHERE ward IN (SELECT label FROM regions)`,
		`SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM regions r WHERE r.code = v.ward AND r.label > '5')`,
		`SELECT count(*) FROM visits v JOIN regions r ON r.code = v.ward`,
		`SELECT count(*) FROM visits v JOIN regions r ON r.code > v.ward`,
		`SELECT r.label, count(*) FROM visits v LEFT JOIN regions r ON r.label = v.ward GROUP BY 1`,
		`SELECT count(v.day) FROM regions r LEFT JOIN visits v ON v.ward = r.code`,
	} {
		s := parsedText(t, sql)[0]
		c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
		if _, refusal := Build(s, nil, c); refusal != nil && refusal.ID == "planning-limit" {
			t.Errorf("%s: %v", sql, refusal)
		}
		if taken := c.Work.Taken().Steps; taken < rows {
			t.Errorf("%s: %d rows are %d steps", sql, rows, taken)
		}
		c.Work = reuse.NewWork(context.Background(), reuse.Limits{Steps: rows / 2, Bytes: 1 << 40})
		if _, refusal := Build(s, nil, c); refusal == nil || refusal.ID != "planning-limit" {
			t.Errorf("%s in half as many steps as there are rows: %v", sql, refusal)
		}
	}
}
