package planner

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

var update = flag.Bool("update", false, "write the golden files and docs/refusals.md anew")

// fixedNow is what now() is in tests.
var fixedNow = time.Date(2024, 3, 15, 10, 30, 0, 0, time.UTC)

func testPolicy(t testing.TB) *policy.Policy {
	t.Helper()
	data, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(data, "testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func epsilon(t testing.TB, s string) privacy.Epsilon {
	t.Helper()
	e, err := privacy.ParseEpsilon(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testContext(t testing.TB, p *policy.Policy) Context {
	t.Helper()
	c, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	return Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: fixedNow, Holdings: &shelf{}, AlarmsLeft: func(int64) int { return 2 },
		Settings: Settings{Epsilon: epsilon(t, "0.1"), Confidence: c, Zone: time.UTC, SearchPath: []string{"public"}}}
}

// shelf holds what a test has bought.
type shelf struct {
	list []Holding
	now  time.Time

	inventory *Inventory
	read      int // so many of the list are in it
}

func (s *shelf) Held(d Digest) []Holding {
	var out []Holding
	for _, h := range s.list {
		if h.Digest == d {
			out = append(out, h)
		}
	}
	return out
}

func (s *shelf) Stock(t *policy.Table) *Stock {
	if s.inventory == nil || s.read > len(s.list) {
		s.inventory, s.read = NewInventory(), 0
	}
	for ; s.read < len(s.list); s.read++ {
		s.inventory.Add(s.list[s.read])
	}
	return s.inventory.Stock(t)
}

func (s *shelf) buy(p *Plan) {
	for _, m := range p.Measures {
		if !m.Held {
			s.list = append(s.list, Holding{ID: int64(len(s.list) + 1), Digest: m.Digest, Spec: m.Spec, Cost: m.Cost, Described: m.Describe(), At: s.now})
		}
	}
}

// TestGolden runs the scripts of testdata: blocks of a directive (plan, buy, describe, set), SQL, ---- and what comes out.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runGolden(t, file) })
	}
}

func runGolden(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, testPolicy(t))
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

func golden(t *testing.T, c *Context, directive, sql string) string {
	words := strings.Fields(directive)
	var params []policy.Value
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "epsilon":
			c.Settings.Epsilon = epsilon(t, value)
		case "max_error":
			fmt.Sscan(value, &c.Settings.MaxError)
		case "alarms":
			fmt.Sscan(value, &c.Settings.Alarms)
		case "release":
			c.Settings.Release = value == "on"
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
	statements, refusal := Parse(sql)
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

func describeRefusal(r *Refusal) string {
	return fmt.Sprintf("refused: %s (%s) at %d: %s\n  hint: %s", r.ID, r.SQLState, r.Position, r.Message, r.Hint)
}

func describeText(s Statement, c Context) string {
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

func statementText(s Statement) string {
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
	if r := Refuse(s); r != nil {
		text += "\n" + describeRefusal(r)
	}
	return text
}

func planText(p *Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cost %s", p.Cost)
	for i, m := range p.Measures {
		held := ""
		if m.Held {
			held = fmt.Sprintf(" held #%d", m.HeldID)
		}
		if m.Shared {
			held += " shared"
		}
		fmt.Fprintf(&b, "\nmeasure %d: %s %q cost %s%s cells %d counters %d strategy %v noise %v", i, m.Kind, m.Name, m.Cost, held, m.Spec.Cells, m.Spec.Counters, m.Spec.Strategy, m.Spec.Noise)
		if ch := m.Spec.Choice; ch != nil {
			fmt.Fprintf(&b, "\n  %s: kind %d blocks %v shares %v most %d each %+v at %v", m.Spec.Chooser(), ch.Kind, ch.Blocks, ch.Shares, ch.Most, ch.Each, ch.Cost)
		}
		fmt.Fprintf(&b, "\n  sensitivity %+v", m.Spec.Sensitivity(m.Contribution()))
		for _, g := range m.Grain {
			fmt.Fprintf(&b, "\n  grain %s (%d cells)", g.Name, g.Domain.Size())
		}
		if m.Where != nil {
			fmt.Fprintf(&b, "\n  where %s", predText(m.Where))
		}
		for j, c := range m.Counters {
			fmt.Fprintf(&b, "\n  counter %d: %s", j, predText(c))
		}
		fmt.Fprintf(&b, "\n  why %s", m.Why)
	}
	for _, l := range p.Leaves {
		leafText(&b, l)
	}
	if d := p.Outer.Direct; d != nil {
		fmt.Fprintf(&b, "\ndirect over leaf %d: %d items, having %v, sort %d, limit %d offset %d", d.Leaf, len(d.Items), d.Having != nil, len(d.Sort), d.Limit, d.Offset)
	} else {
		text, err := pg.Deparse(&pg.ParseResult{Version: grammarVersion, Stmts: []*pg.RawStmt{{Stmt: p.Outer.Tree}}})
		if err != nil {
			text = "cannot be written: " + err.Error()
		}
		fmt.Fprintf(&b, "\nengine: %s", text)
		for _, r := range p.Outer.Relations {
			fmt.Fprintf(&b, "\n  reads %s.%s", r.Schema, r.Name)
		}
	}
	for _, c := range p.Columns {
		fmt.Fprintf(&b, "\n  column %s %s", c.Name, c.Type.Format(c.Typmod))
		if c.Error != nil {
			fmt.Fprintf(&b, " ±%d", c.Error.HalfWidth)
		}
		if c.Noisy && c.Error == nil {
			b.WriteString(" noisy")
		}
	}
	for _, a := range p.Alternatives {
		fmt.Fprintf(&b, "\nalternative %s: %s %q held %v cost %s ±%d rank %.0f taken %v: %s", a.Leaf, a.Kind, a.Name, a.Held, a.Cost, a.Error.HalfWidth, a.Rank, a.Taken, a.Why)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s", n)
	}
	return b.String()
}

func leafText(b *strings.Builder, l *Leaf) {
	fmt.Fprintf(b, "\n%s from measures %v: %d rows", l.Name, l.Measures(), l.Rows)
	show := func(r int) {
		var cells []string
		for _, k := range l.Keys {
			cells = append(cells, fmt.Sprintf("%s=%s", k.Name, textOf(k.Values[r])))
		}
		for _, n := range l.Counts {
			run, spans := n.At(r)
			if n.Type != 0 {
				cells = append(cells, n.Name+"="+pickText(&n, r))
				continue
			}
			text := fmt.Sprint(spans)
			if len(text) > 120 {
				text = text[:120] + "…"
			}
			cells = append(cells, fmt.Sprintf("%s=%d.%d%s", n.Name, run.Measure, run.Counter, text))
		}
		fmt.Fprintf(b, "\n  %s", strings.Join(cells, " "))
	}
	for r := 0; r < l.Rows; r++ {
		if r == 4 && l.Rows > 8 {
			b.WriteString("\n  …")
			r = l.Rows - 3
		}
		show(r)
	}
}

// pickText writes how a row of a chosen column is read.
func pickText(c *CountColumn, row int) string {
	for _, run := range c.Runs {
		if row >= len(run.Spans) {
			row -= len(run.Spans)
			continue
		}
		if q := run.Alarm; q != nil && q.Measure != nil {
			return fmt.Sprintf("whether %d of %s, where %s, asked of %d", q.Least, q.Measure.Name, predText(q.Measure.Where), run.Measure)
		} else if q != nil {
			return "no"
		}
		p := run.Pick
		if run.Measure < 0 || p.At[row] < 0 {
			return c.Type.Name() + " NULL"
		}
		values := p.Values[row]
		text := fmt.Sprintf("%s %d.%d of %d values from %s to %s", c.Type.Name(), run.Measure, p.At[row], len(values), textOf(values[0]), textOf(values[len(values)-1]))
		if p.Spans != nil {
			text += fmt.Sprintf(" at %d/%d of counts %v to %v", p.Share.Num, p.Share.Den, p.Spans[row][0], p.Spans[row][len(values)-1])
		}
		return text + fmt.Sprintf(" ±%.0f rows", p.Rank)
	}
	return "none"
}

func predText(p Pred) string {
	join := func(parts []Pred, word string) string {
		texts := make([]string, len(parts))
		for i, q := range parts {
			texts[i] = predText(q)
		}
		return "(" + strings.Join(texts, word) + ")"
	}
	switch p := p.(type) {
	case nil:
		return "every row"
	case AllOf:
		return join(p, " and ")
	case AnyOf:
		return join(p, " or ")
	case InCells:
		text := fmt.Sprint(p.Spans)
		if len(text) > 120 {
			text = text[:120] + "…"
		}
		return p.Column.Name + " in cells " + text
	case Compare:
		return p.Column.Name + " " + p.Op + " " + textOf(p.Value)
	case Between:
		return p.Left.Name + " " + p.Op + " " + p.Right.Name
	}
	return "never"
}
