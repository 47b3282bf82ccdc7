package outer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// example is a statement in a comment, and below it what is written for it, on one line or several.
var example = regexp.MustCompile(`(?m)^//\t(\S.*)\n//\t⇒ (.*(?:\n//\t  .*)*)$`)

// TestHeadsOfFiles: each statement at the head of a file is written as it says there, spaces aside.
func TestHeadsOfFiles(t *testing.T) {
	leaf := &plans.Leaf{Name: "leaf_1", Keys: []plans.KeyColumn{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "g", Type: policy.Int4, Typmod: -1}},
		Counts: []plans.CountColumn{{Name: "n"}}}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range example.FindAllStringSubmatch(string(text), -1) {
			examples++
			tree, err := pg.Parse(m[1])
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			q, refusal := outer.Render(&plans.Plan{Outer: plans.Outer{Tree: tree.Stmts[0].Stmt}, Leaves: []*plans.Leaf{leaf}})
			if refusal != nil {
				t.Errorf("%s: %v", file, refusal)
				continue
			}
			want := strings.ReplaceAll(m[2], "\n//", "")
			if got := q.With + q.SQL; strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
				t.Errorf("%s: %s\ngot  %s\nwant %s", file, m[1], got, want)
			}
		}
	}
	if examples < 4 {
		t.Errorf("only %d statements were found", examples)
	}
}
