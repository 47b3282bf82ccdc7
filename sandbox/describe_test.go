package sandbox_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// TestDescribe: a query is described, and refused, without its rows.
func TestDescribe(t *testing.T) {
	leaves, tables, _ := released()
	for i := range tables {
		tables[i].Rows = privacy.Published(sandbox.Rows{Columns: tables[i].Rows.Value().Columns})
	}
	q, refusal := outer.Render(sandboxtest.Parse(t, "SELECT k, sum(n) AS total, avg(n) FROM leaf_1 GROUP BY k", leaves...), dialect.DuckDB)
	if refusal != nil {
		t.Fatal(refusal)
	}
	columns, err := sandboxtest.Embedded(t).Describe(context.Background(), sandboxtest.Session, q, tables)
	want := []sandbox.Column{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "total", Type: policy.NumericType, Typmod: -1}, {Name: "avg", Type: policy.NumericType, Typmod: -1}}
	if err != nil || !reflect.DeepEqual(columns, want) {
		t.Errorf("%v, %v", columns, err)
	}
}
