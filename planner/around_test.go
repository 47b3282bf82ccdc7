package planner

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// TestNamesOfTheQueryAround: a sub-query that is counted for each row of the query around it is refused for that, not
// for an unknown name; names that are nowhere stay unknown.
func TestNamesOfTheQueryAround(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, q := range []struct{ sql, id string }{
		{"SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r", ""},
		{"SELECT label, (SELECT count(*) FROM visits WHERE ward = code) FROM regions", ""},
		{"SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward < r.code) FROM regions r", "correlated-sub-query"},
		{"SELECT label, (SELECT count(*) + 1 FROM visits WHERE ward = code) FROM regions", "correlated-sub-query"},
		{"SELECT r.label, x.n FROM regions r, LATERAL (SELECT count(*) AS n FROM visits v WHERE v.ward = r.code) x", "correlated-sub-query"},
		{"SELECT label FROM (SELECT code AS c, label FROM regions) r WHERE 5 < (SELECT count(*) FROM visits WHERE ward = c)", ""},
		{"SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = q.code) FROM regions r", "unknown-alias"},
		{"SELECT label, (SELECT count(*) FROM visits WHERE ward = cod) FROM regions", "unknown-column"},
		{"SELECT count(*) FROM visits v WHERE r.code = 'A'", "unknown-alias"},
		{"SELECT to_char(seen, 'YYYY-MM-DD HH24'), count(*) FROM people GROUP BY 1", ""}, // seen has steps of an hour
		{"SELECT count(*) FROM people WHERE to_char(seen, 'HH24:MI') = '05:30'", "off-grid-expression"},
		{"SELECT cuont(*) FROM people", "unknown-function"},
		{"SELECT dense_rank(40) WITHIN GROUP (ORDER BY age) FROM people", "aggregate-unavailable"},
		{"SELECT count(*) FROM visits WHERE ward = ANY (SELECT code FROM regions)", "public-table-not-copied"},
		{"SELECT count(*) FROM people WHERE person_id = ANY (SELECT person_id FROM visits)", ""},
		{"SELECT count(*) FROM visits WHERE ward < ANY (SELECT code FROM regions)", ""},
		{"SELECT count(*) FROM visits WHERE ward = ALL (SELECT code FROM regions)", ""},
	} {
		statements, refusal := parse.Parse(q.sql)
		if refusal != nil {
			t.Fatalf("%s: %v", q.sql, refusal)
		}
		_, refusal = Build(statements[0], nil, c)
		switch {
		case refusal == nil && q.id != "":
			t.Errorf("%s\nis planned, want %s", q.sql, q.id)
		case refusal != nil && refusal.ID != q.id:
			t.Errorf("%s\nis refused by %s: %s, want %q", q.sql, refusal.ID, refusal.Message, q.id)
		}
	}
}

// TestForgotten: a sub-query that is rewritten since it was refused costs what it asks then, and nothing that the
// refused attempt had asked.
func TestForgotten(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, sql := range []string{
		"SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r",
		"SELECT r.label, (WITH w AS (SELECT count(*) AS n FROM people GROUP BY sex) SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r",
	} {
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		p, refusal := Build(statements[0], nil, c)
		if refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
			continue
		}
		read := map[int]bool{}
		for _, r := range leavesOf(p) {
			read[r] = true
		}
		if len(read) != len(p.Leaves) {
			t.Errorf("%s: %d leaves are read of %d that are asked", sql, len(read), len(p.Leaves))
		}
	}
}

// leavesOf are the leaves that the tree of a plan reads.
func leavesOf(p *plans.Plan) (list []int) {
	ast.Each(p.Outer.Tree.ProtoReflect(), func(m protoreflect.Message) {
		if v, ok := m.Interface().(*pg.RangeVar); ok {
			for i := range p.Leaves {
				if v.Relname == plans.LeafName(i) {
					list = append(list, i)
				}
			}
		}
	})
	return list
}
