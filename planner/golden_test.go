package planner

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

var update = flag.Bool("update", false, "write the golden files and docs/refusals.md anew")

// TestGolden runs the scripts of testdata: blocks of a directive (plan, buy, describe, set), SQL, ---- and what comes
// out.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			p := testPolicy(t)
			switch filepath.Base(file) {
			case "anyrows.txt": // its visits have no bound of rows
				visits := p.Datasets[0].Table("public", "visits")
				visits.AnyRows, visits.MaxRowsPerUnit, visits.Releases = true, 1_000_000, nil
			case "frequency.txt":
				ward := p.Datasets[0].Table("public", "visits").Column("ward")
				p.Datasets[0].Frequency = policy.Frequency{Units: 10, Beta: 0.05}
				ward.Frequency = policy.Frequency{Units: 20, Beta: 0.1}
			}
			runGolden(t, file, testContext(t, p))
		})
	}
}

func runGolden(t *testing.T, file string, c reuse.Context) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		var comment, command []string
		for _, line := range strings.Split(head, "\n") {
			if len(command) == 0 && strings.HasPrefix(line, "#") {
				comment = append(comment, line)
			} else {
				command = append(command, line)
			}
		}
		got := golden(t, &c, command[0], strings.Join(command[1:], "\n"))
		if len(comment) > 0 {
			out.WriteString(strings.Join(comment, "\n") + "\n")
		}
		out.WriteString(strings.Join(command, "\n") + "\n----\n" + got + "\n\n\n")
	}
	got := strings.TrimRight(out.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(data) {
		t.Errorf("%s differs; run with -update and read the difference\n%s", file, firstDifference(string(data), got))
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, x[i], strings.Join(y[min(i, len(y)):min(i+1, len(y))], ""))
		}
	}
	return fmt.Sprintf("line %d: more lines", len(x)+1)
}

func golden(t *testing.T, c *reuse.Context, directive, sql string) string {
	words := strings.Fields(directive)
	var params []policy.Value
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "epsilon":
			c.Settings.Epsilon = epsilon(t, value)
		case "max_error":
			fmt.Sscan(value, &c.Settings.MaxError)
		case "contribution":
			word, most, _ := policy.ReadContribution(value)
			c.Settings.Contribution = plans.Contribution{Rows: word == "rows", Ladder: word == "ladder", Most: most}
		case "alarms":
			fmt.Sscan(value, &c.Settings.Alarms)
		case "release":
			c.Settings.Release = value == "on"
		case "offgrid":
			c.Settings.OffGrid = map[string]plans.OffGrid{"snap": plans.OffGridSnap, "exact": plans.OffGridExact}[value]
		case "alternatives":
			c.Alternatives = value == "on"
		case "days":
			var n int
			fmt.Sscan(value, &n)
			c.Now = fixedNow.AddDate(0, 0, n)
		case "zcdp":
			c.Dataset.Accountant = privacy.ZCDP
		case "replace-one":
			c.Dataset.Neighbors = privacy.ReplaceOne
		case "after":
			fmt.Sscan(value, &c.Dataset.Buying.After)
		case "int":
			var n int64
			fmt.Sscan(value, &n)
			params = append(params, n)
		case "text":
			params = append(params, value)
		case "null":
			params = append(params, nil)
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	if words[0] == "set" {
		return "ok"
	}
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		return describeRefusal(refusal)
	}
	var out []string
	for _, s := range statements {
		switch words[0] {
		case "describe":
			out = append(out, describeText(s, *c))
		case "parse":
			out = append(out, statementText(s))
		default:
			p, refusal := Build(s, params, *c)
			if refusal != nil {
				out = append(out, describeRefusal(refusal))
				continue
			}
			if words[0] == "buy" {
				c.Holdings.(*shelf).now = c.Now
				c.Holdings.(*shelf).buy(p)
			}
			out = append(out, planText(p))
		}
	}
	if len(out) == 0 {
		return "no statement"
	}
	return strings.Join(out, "\n")
}

func describeRefusal(r *refuse.Refusal) string {
	return fmt.Sprintf("refused: %s (%s) at %d: %s\n  hint: %s", r.ID, r.SQLState, r.Position, r.Message, r.Hint)
}

func describeText(s parse.Statement, c reuse.Context) string {
	d, ask, refusal := Describe(s, nil, c)
	if refusal != nil {
		return describeRefusal(refusal)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "params %v", d.Params)
	if ask {
		b.WriteString("\nask the sandbox")
	}
	for _, col := range d.Columns {
		fmt.Fprintf(&b, "\n  %s %s", col.Name, col.Type.Format(col.Typmod))
	}
	return b.String()
}

func statementText(s parse.Statement) string {
	text := fmt.Sprintf("kind %d name %q values %q", s.Kind, s.Name, s.Values)
	for _, f := range []struct {
		name string
		set  bool
	}{{"default", s.Default}, {"local", s.Local}, {"chain", s.Chain}, {"json", s.Explain != nil && s.Explain.JSON}} {
		if f.set {
			text += " " + f.name
		}
	}
	if s.Explain != nil {
		text += fmt.Sprintf(" explains %q", s.Explain.Statement.Text)
	}
	if s.Prepared+s.Savepoint != "" {
		text += " prepared " + s.Prepared + " savepoint " + s.Savepoint
	}
	if r := parse.Refuse(s); r != nil {
		text += "\n" + describeRefusal(r)
	}
	return text
}
