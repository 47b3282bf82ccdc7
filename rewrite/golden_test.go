package rewrite_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenSQL(t *testing.T) {
	for _, f := range features(t) {
		golden(t, f.name, f.measure)
	}
}

// asWritten holds SQL against a golden file of testdata, or writes it there.
func asWritten(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the SQL of %s changed; run with -update and read the difference\n%s", file, got)
	}
}

func golden(t *testing.T, name string, m *plans.Measure) {
	t.Run(name, func(t *testing.T) {
		got := ""
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintf("-- %s\n%s\n-- arguments %q\n\n", d, q.SQL(), q.Args())
		}
		asWritten(t, name+".sql", got)
	})
}
