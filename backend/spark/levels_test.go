package spark

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/policy"
)

// TestLevelsOfSpark: what was seen for the whole policy says which tables have versions for who is at a level, and is
// held against her queries.
func TestLevelsOfSpark(t *testing.T) {
	t.Parallel()
	whole, err := policy.Parse([]byte(backendtest.LeveledPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	view := whole.For("dave")
	d, own := whole.Datasets[0], view.Datasets[0]
	b := &DB{}
	table := relation{provider: "delta", columns: []column{{"age", "int"}}}
	b.pins.Note(whole, d, map[string]relation{keyOf(d.Tables[0]): table})
	b.Adopt(whole)
	if at, known := b.inspected(own.Tables[0]); !known || !at.same(table) {
		t.Error("a changed schema of Spark's is not noticed for her")
	}
	if !b.haveVersions(view) {
		t.Error("the tables of Spark's have no versions for her")
	}
}
