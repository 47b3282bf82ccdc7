package sandbox_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// BenchmarkEngine is one outer query over a released table of six rows and of a thousand: in a cluster of
// dpproxy's own, and on a server of an owner's, round trip and all.
func BenchmarkEngine(b *testing.B) {
	leaves, tables, _ := released()
	const text = "SELECT k, round(100.0 * sum(n) / sum(sum(n)) OVER (), 1) AS share FROM leaf_1 GROUP BY k ORDER BY 2 DESC"
	both(b, "6 rows", text, leaves, tables[:1])
	long := &plans.Leaf{Name: "leaf_1", Rows: 1000, Keys: []plans.KeyColumn{{Name: "k", Type: policy.Text, Typmod: -1}},
		Counts: []plans.CountColumn{{Name: "n"}}}
	rows := sandbox.Rows{Columns: []sandbox.Column{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "n", Type: policy.Int8, Typmod: -1}}}
	for i := range int64(1000) {
		rows.Data = append(rows.Data, []policy.Value{fmt.Sprint("key ", i%50), i})
	}
	both(b, "1000 rows", text, []*plans.Leaf{long}, []sandbox.Table{{Name: "leaf_1", Rows: privacy.Published(rows)}})
}

// BenchmarkCatalog is psql's \dt.
func BenchmarkCatalog(b *testing.B) {
	both(b, "dt", `SELECT n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', '') AND n.nspname !~ '^pg_toast'
		AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2`, nil, nil)
}

func both(b *testing.B, name, text string, leaves []*plans.Leaf, tables []sandbox.Table) {
	for _, on := range []struct {
		name string
		open func(testing.TB) sandbox.Engine
	}{{"own", sandboxtest.Own}, {"twin", sandboxtest.Twin}} {
		e := on.open(b)
		q, refusal := outer.Render(sandboxtest.Parse(b, text, leaves...))
		if refusal != nil {
			b.Fatal(refusal)
		}
		b.Run(name+"/"+on.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Query(context.Background(), sandboxtest.Session, q, tables); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
