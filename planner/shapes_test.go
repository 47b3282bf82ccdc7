package planner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// unanswered labels, by hand, the shapes that are refused: whether a differentially private answer exists, and why it
// is not given. Every other shape must be answered.
var unanswered = map[string]struct {
	id     string
	exists bool
	why    string
}{
	"metabase refuse: raw browse":              {"raw-rows", false, "single rows"},
	"superset refuse: table chart in raw mode": {"raw-rows", false, "single rows"},
	"powerbi refuse: import mode / preview":    {"raw-rows", false, "single rows"},
	"grafana: timescaledb flavour":             {refuse.UnknownFunction.ID, false, "a function that PostgreSQL does not have either"},
	"looker: join fan-out":                     {"unknown-column", false, "sum(DISTINCT hash of a key): a key names a person, and its hash has no domain"},
	"grafana: $__unixEpochFilter":              {"off-grid-expression", true, "the last second of the filter lies inside a declared step, within an expression"},
}

// TestShapes: the analytic shapes that BI tools send are answered, or refused for the reason that their label gives.
// The golden file has the way and the columns of each.
func TestShapes(t *testing.T) {
	data, err := os.ReadFile(material.Path(t, "clients", "bi-shapes.sql"))
	if err != nil {
		t.Skipf("no statements: %v", err)
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
	var out strings.Builder
	answered, private := 0, 0
	for _, block := range strings.Split(string(data), "\n;;\n")[1:] {
		name, sql, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(block), "-- "), "\n")
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Errorf("%s: %v", name, refusal)
			continue
		}
		plan, refusal := Build(statements[0], []policy.Value{"paid"}, c)
		label, refused := unanswered[labelOf(name)]
		if refused != (refusal != nil) || refused && refusal.ID != label.id {
			t.Errorf("%s: refused %v, labelled %+v", name, refusal, label)
		}
		fmt.Fprintf(&out, "%s\n", name)
		if !refused || label.exists {
			private++
		}
		if refusal != nil {
			fmt.Fprintf(&out, "  refused %s: %s\n  label: %s\n", refusal.ID, refusal.Message, label.why)
			continue
		}
		answered++
		checkPlan(t, sql, plan)
		way := "in the sandbox"
		if plan.Outer.Direct != nil {
			way = "directly"
		}
		fmt.Fprintf(&out, "  answered %s, cost %s: %s\n", way, plan.Cost, columnsText(plan))
	}
	fmt.Fprintf(&out, "\n%d of the %d that have a private answer are answered\n", answered, private)
	if answered*100 < private*95 {
		t.Errorf("%d of %d answered", answered, private)
	}
	compareGolden(t, "testdata/shapes.golden", out.String())
}

// labelOf is the label whose words the name of a shape begins with.
func labelOf(name string) string {
	for label := range unanswered {
		if strings.HasPrefix(name, label) {
			return label
		}
	}
	return ""
}

// columnsText lists the columns of a plan's answer.
func columnsText(p *plans.Plan) string {
	var columns []string
	for _, c := range p.Columns {
		columns = append(columns, c.Name+" "+c.Type.Format(c.Typmod))
	}
	return strings.Join(columns, ", ")
}
