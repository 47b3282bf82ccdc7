package embedded

import (
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestChildKilledWhileIdle: the next query is answered by a new child; nobody sees that the old one died.
func TestChildKilledWhileIdle(t *testing.T) {
	ctx := t.Context()
	e, err := Start(ctx, sandbox.Options{Children: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Catalog(ctx, &policy.Policy{}); err != nil {
		t.Fatal(err)
	}
	q := outer.Query{SQL: "SELECT CAST(1 AS INTEGER) AS c1", Columns: []outer.Column{{Name: "one", Type: policy.Int4, Typmod: -1}}}
	for range 3 {
		rows, err := e.Query(ctx, sandbox.Session{User: "analyst", Database: "demo"}, q, nil)
		if err != nil || len(rows.Value().Data) != 1 {
			t.Fatalf("%v, %v", rows, err)
		}
		killed := e.(*engine).children[0]
		killed.kill()
		_, _ = killed.cmd.Process.Wait()
	}
}
