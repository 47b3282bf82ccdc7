package outer_test

import (
	"maps"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// TestParametersAreTold: a parameter that stands above the counts has the type that PostgreSQL tells a client; what is refused further on takes nothing from it.
func TestParametersAreTold(t *testing.T) {
	leaf := &plans.Leaf{Name: "leaf_1", Keys: []plans.KeyColumn{{Name: "k", Type: policy.Varchar, Typmod: -1}, {Name: "g", Type: policy.Int2, Typmod: -1}, {Name: "d", Type: policy.DateType, Typmod: -1},
		{Name: "x", Type: policy.NumericType, Typmod: -1}}, Counts: []plans.CountColumn{{Name: "n"}}}
	for _, c := range []struct {
		sql  string
		want map[int]policy.Type
	}{
		{"SELECT k FROM leaf_1 WHERE g = $1 AND k LIKE $2 AND d > $3", map[int]policy.Type{1: policy.Int2, 2: policy.Text, 3: policy.DateType}},
		{"SELECT k FROM leaf_1 WHERE k = $1 OR k IN ($2, $3)", map[int]policy.Type{1: policy.Text, 2: policy.Text, 3: policy.Text}},
		{"SELECT x * $1, g + $2, d - $3, round(x, $4), width_bucket(x, $5, $6, $7) FROM leaf_1", map[int]policy.Type{1: policy.NumericType, 2: policy.Int2, 3: policy.DateType, 4: policy.Int4, 5: policy.NumericType, 6: policy.NumericType, 7: policy.Int4}},
		{"SELECT * FROM (SELECT k, sum(n) AS s FROM leaf_1 GROUP BY k) t WHERE s > $1 AND NOT $2", map[int]policy.Type{1: policy.NumericType, 2: policy.Bool}},
		{"SELECT coalesce(g, $1), CASE WHEN n > $2 THEN 'a' END FROM leaf_1 WHERE n BETWEEN $3 AND $4", map[int]policy.Type{1: policy.Int2, 2: policy.Int8, 3: policy.Int8, 4: policy.Int8}},
		{"SELECT k FROM leaf_1 WHERE g = $1 AND g = $1 + 1", map[int]policy.Type{1: policy.Int2}},
		{"SELECT xmlelement(name a, $2) FROM leaf_1 WHERE g = $1", map[int]policy.Type{1: policy.Int2}},
		{"SELECT xmlelement(name a, $1)", map[int]policy.Type{}},
	} {
		tree, err := pg.Parse(c.sql)
		if err != nil {
			t.Fatal(err)
		}
		ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
			if p, ok := m.Interface().(*pg.ParamRef); ok {
				p.Number = -p.Number
			}
		})
		if got := outer.Parameters(&plans.Plan{Outer: plans.Outer{Tree: tree.Stmts[0].Stmt}, Leaves: []*plans.Leaf{leaf}}); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.sql, got, c.want)
		}
	}
}
