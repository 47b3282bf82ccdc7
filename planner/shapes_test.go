package planner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// notYet are refusals of shapes whose mechanism is not here yet (sums, averages, quantiles, distinct counts, joins, open
// keys), or that have no answer at all (rows).
var notYet = map[string]bool{noAggregate.ID: true, noDistinct.ID: true, privateJoin.ID: true, rawRows.ID: true, noSets.ID: true,
	unknownColumn.ID: true, rowSubquery.ID: true, unknownFunction.ID: true, unitAggregate.ID: true, offGrid.ID: true, keyOnly.ID: true}

// TestShapes: the analytic shapes that BI tools send are planned, or refused for a listed reason.
func TestShapes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(sharedDir(t), "clients", "bi-shapes.sql"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(text, "testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	planned := 0
	for _, block := range strings.Split(string(data), "\n;;\n")[1:] {
		name, sql, _ := strings.Cut(strings.TrimSpace(block), "\n")
		statements, refusal := Parse(sql)
		if refusal != nil {
			t.Errorf("%s: %v", name, refusal)
			continue
		}
		params := []policy.Value{"paid"}
		plan, refusal := Build(statements[0], params, c)
		if refusal != nil {
			t.Logf("%-22s %.90s | %s", refusal.ID, name, refusal.Message)
			if !notYet[refusal.ID] {
				t.Errorf("%s: %s: %v", name, refusal.ID, refusal)
			}
			continue
		}
		planned++
		way := "engine"
		if plan.Outer.Direct != nil {
			way = "direct"
		}
		t.Logf("%-22s %.90s", way, name)
		checkPlan(t, sql, plan)
	}
	if planned < 38 {
		t.Errorf("%d shapes planned", planned)
	}
}
