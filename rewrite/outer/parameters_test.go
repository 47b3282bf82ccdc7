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
		{"SELECT k FROM leaf_1 WHERE k = $1 OR k IN ($2, $3)", map[int]policy.Type{1: policy.Text, 2: policy.Varchar, 3: policy.Varchar}},
		{"SELECT x * $1, g + $2, d - $3, round(x, $4), width_bucket(x, $5, $6, $7) FROM leaf_1", map[int]policy.Type{1: policy.NumericType, 2: policy.Int2, 3: policy.DateType, 4: policy.Int4, 5: policy.NumericType, 6: policy.NumericType, 7: policy.Int4}},
		{"SELECT * FROM (SELECT k, sum(n) AS s FROM leaf_1 GROUP BY k) t WHERE s > $1 AND NOT $2", map[int]policy.Type{1: policy.NumericType, 2: policy.Bool}},
		{"SELECT coalesce(g, $1), CASE WHEN n > $2 THEN 'a' END FROM leaf_1 WHERE n BETWEEN $3 AND $4", map[int]policy.Type{1: policy.Int2, 2: policy.Int8, 3: policy.Int8, 4: policy.Int8}},
		{"SELECT k FROM leaf_1 WHERE g = $1 AND g = $1 + 1", map[int]policy.Type{1: policy.Int2}},
		{"SELECT nullif(g, $1), nullif($2, x), lag(d, $3, $4) OVER (ORDER BY g), ntile($5) OVER (ORDER BY g), nth_value(k, $6) OVER (ORDER BY g) FROM leaf_1", map[int]policy.Type{1: policy.Int2, 2: policy.NumericType, 3: policy.Int4, 4: policy.DateType, 5: policy.Int4, 6: policy.Int4}},
		{"SELECT $1 UNION SELECT g FROM leaf_1 UNION ALL SELECT $2", map[int]policy.Type{1: policy.Int2, 2: policy.Int2}},
		{"SELECT * FROM (VALUES ($1, 1), ($2, $3)) v(a, b)", map[int]policy.Type{1: policy.Text, 2: policy.Text, 3: policy.Int4}},
		{"SELECT ARRAY[g] || $1, array_append(ARRAY[d], $2), g = ANY($3), k = ANY($4), $5 IN (1, 2.5) FROM leaf_1", map[int]policy.Type{1: 1005, 2: policy.DateType, 3: 1005, 4: 1009, 5: policy.NumericType}},
		{"SELECT sum(n) OVER (ORDER BY n RANGE $1 PRECEDING), sum(n) OVER (ORDER BY d RANGE $2 PRECEDING), sum(n) OVER (ORDER BY d ROWS $3 PRECEDING) FROM leaf_1", map[int]policy.Type{1: policy.Int8, 2: policy.IntervalT, 3: policy.Int8}},
		{"SELECT make_interval($1), $2::jsonb ->> $3, sum(real '1') > $4 FROM leaf_1 WHERE g = $5 LIMIT $6", map[int]policy.Type{1: policy.Int4, 2: 3802, 3: policy.Text, 4: policy.Float4, 5: policy.Int2, 6: policy.Int8}},
		{"SELECT g FROM leaf_1 TABLESAMPLE system ($1), (SELECT xmlelement(name a, $2) FROM leaf_1 WHERE n = $3) t WHERE $4", map[int]policy.Type{3: policy.Int8, 4: policy.Bool}},
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
