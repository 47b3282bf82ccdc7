package embedded_test

import (
	"context"
	"math/big"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// TestPublicTables: a public table is there, by policy name, until the engine ends, also in a child that was restarted.
func TestPublicTables(t *testing.T) {
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 1, Deadline: 2e9})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p := sandboxtest.Census()
	regions := &policy.Table{Dataset: p.Datasets[0], Name: "regions", Schema: "public", Public: true,
		Columns: []*policy.Column{{Name: "id", Type: policy.Int4, Typmod: -1}, {Name: "name", Type: policy.Text, Typmod: -1}}}
	p.Datasets[0].Tables = append(p.Datasets[0].Tables, regions)
	if err := e.Catalog(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	rows := sandbox.Rows{Columns: []sandbox.Column{{Name: "id", Type: policy.Int4, Typmod: -1}, {Name: "name", Type: policy.Text, Typmod: -1}},
		Data: [][]policy.Value{{int64(1), "north"}, {int64(2), nil}}}
	if err := e.Load(context.Background(), "census", sandbox.Table{Schema: "public", Name: "regions", Rows: privacy.Published(rows)}); err != nil {
		t.Fatal(err)
	}
	plan := sandboxtest.Parse(t, "SELECT count(*), count(r.name) FROM public.regions r JOIN pg_class c ON c.relname = 'regions'")
	plan.Outer.Relations = []plans.Relation{{Schema: "public", Name: "regions", Public: regions}}
	q, refusal := outer.Render(plan, dialect.DuckDB)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for range 2 {
		got, err := e.Query(context.Background(), sandboxtest.Session, q, nil)
		if err != nil || !reflect.DeepEqual(got.Value().Data, [][]policy.Value{{int64(2), int64(1)}}) {
			t.Fatalf("%v, %v", got, err)
		}
		if _, err := sandboxtest.Ask(t, e, "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE (a * b) % 7 = 3"); err == nil {
			t.Fatal("the query that kills the child was answered")
		}
	}
}

// TestCopiesThatAreGivenWithAQuery: a query reads the copies that it is given, where the engine has others by now: of other columns, of other rows, or none. What it has itself
// it is not sent again.
func TestCopiesThatAreGivenWithAQuery(t *testing.T) {
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 1, Deadline: 2e9})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	amount := policy.Numeric{Coefficient: big.NewInt(250), Scale: 2}
	copyOf := func(columns []sandbox.Column, rows ...[]policy.Value) sandbox.Table {
		return sandbox.Table{Schema: "public", Name: "regions", Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: rows})}
	}
	typmod := int32(8<<16 | 2 + 4)
	planned := copyOf([]sandbox.Column{{Name: "id", Type: policy.Int4, Typmod: -1}, {Name: "share", Type: policy.NumericType, Typmod: typmod}}, []policy.Value{int64(1), amount}, []policy.Value{int64(2), nil})
	later := copyOf([]sandbox.Column{{Name: "share", Type: policy.Text, Typmod: -1}}, []policy.Value{"half"})
	p := sandboxtest.Census()
	regions := &policy.Table{Dataset: p.Datasets[0], Name: "regions", Schema: "public", Public: true,
		Columns: []*policy.Column{{Name: "id", Type: policy.Int4, Typmod: -1}, {Name: "share", Type: policy.NumericType, Typmod: typmod}}}
	p.Datasets[0].Tables = append(p.Datasets[0].Tables, regions)
	plan := sandboxtest.Parse(t, "SELECT max(r.id), sum(r.share * 2) FROM public.regions r")
	plan.Outer.Relations = []plans.Relation{{Schema: "public", Name: "regions", Public: regions}}
	q, refusal := outer.Render(plan, dialect.DuckDB)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := [][]policy.Value{{int64(2), policy.Numeric{Coefficient: big.NewInt(500), Scale: 2}}}
	for name, load := range map[string][]sandbox.Table{"none": nil, "itself": {planned}, "another": {planned, later}} {
		if err := e.Catalog(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		for _, table := range load {
			if err := e.Load(context.Background(), "census", table); err != nil {
				t.Fatal(err)
			}
		}
		got, err := e.Query(context.Background(), sandboxtest.Session, q, []sandbox.Table{planned})
		if err != nil || !reflect.DeepEqual(got.Value().Data, want) {
			t.Errorf("where the engine has %s: %v, %v", name, got, err)
		}
	}
}
