package outer_test

import (
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// TestCopiesAreBounded: a template that has its argument several times multiplies it with each level of calls within one
// another. What makes more than a mebibyte is refused.
func TestCopiesAreBounded(t *testing.T) {
	for call, many := range map[string]int{"age(now() - ": 9, "current_setting(": 15, "pg_get_userbyid(": 8} {
		for levels, answered := range map[int]bool{3: true, many: false} {
			text := "SELECT " + strings.Repeat(call, levels) + "'a'" + strings.Repeat(")", levels)
			tree, err := pg.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			_, refusal := outer.Render(&plans.Plan{Outer: plans.Outer{Tree: tree.Stmts[0].Stmt}})
			if (refusal == nil) != answered {
				t.Errorf("%s: %v", text, refusal)
			}
		}
	}
}
