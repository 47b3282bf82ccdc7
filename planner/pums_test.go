package planner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestPums plans the statements that another library is tested with over the PUMS tables. The golden file has each
// one's label, given by hand: answered, or refused and why; with the names and types of the answer's columns.
func TestPums(t *testing.T) {
	data, err := os.ReadFile(material.Path(t, "data", "smartnoise_pums_statements.sql"))
	if err != nil {
		t.Skipf("no statements: %v", err)
	}
	text, err := os.ReadFile("testdata/pums.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(text, "testdata/pums.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.SearchPath = []string{"pums"}
	var out strings.Builder
	answered, all := 0, 0
	for _, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		all++
		fmt.Fprintf(&out, "%s\n", line)
		statements, refusal := parse.Parse(line)
		var plan *plans.Plan
		if refusal == nil {
			plan, refusal = Build(statements[0], nil, c)
		}
		if refusal != nil {
			fmt.Fprintf(&out, "  refused %s: %s\n", refusal.ID, refusal.Message)
			continue
		}
		answered++
		fmt.Fprintf(&out, "  answered, cost %s: %s\n", plan.Cost, columnsText(plan))
	}
	t.Logf("%d of %d answered", answered, all)
	compareGolden(t, "testdata/pums.golden", out.String())
}

// compareGolden compares a text with a golden file, or writes it.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; run with -update and read the difference\n%s", file, firstDifference(string(want), got))
	}
}
