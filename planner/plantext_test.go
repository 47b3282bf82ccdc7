package planner

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// Plans as the golden files write them.

func planText(p *plans.Plan) string {
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
		fmt.Fprintf(&b, "\nmeasure %d: %s %q cost %s%s cells %d counters %d strategy %v noise %v", i, m.Kind, m.Name, m.Cost, held, m.Spec.Cells, m.Spec.Counters, m.Spec.Counts().Strategy, m.Spec.Counts().Noise)
		if ch, ok := m.Spec.Kind.(*mechanisms.Choice); ok {
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
		text, err := pg.Deparse(&pg.ParseResult{Version: ast.GrammarVersion, Stmts: []*pg.RawStmt{{Stmt: p.Outer.Tree}}})
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

func leafText(b *strings.Builder, l *plans.Leaf) {
	fmt.Fprintf(b, "\n%s from measures %v: %d rows", l.Name, l.Measures(), l.Rows)
	show := func(r int) {
		var cells []string
		for _, k := range l.Keys {
			cells = append(cells, fmt.Sprintf("%s=%s", k.Name, predicate.Text(k.Values[r])))
		}
		for _, n := range l.Counts {
			run, spans := n.At(r)
			if n.Type != 0 {
				cells = append(cells, n.Name+"="+pickText(&n, r))
				continue
			}
			if run.Measure < 0 && run.Known > 0 {
				cells = append(cells, fmt.Sprintf("%s=±%d", n.Name, run.Known))
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
func pickText(c *plans.CountColumn, row int) string {
	for _, run := range c.Runs {
		if row >= len(run.Spans) {
			row -= len(run.Spans)
			continue
		}
		if q := run.Threshold; q != nil && q.Measure != nil {
			return fmt.Sprintf("whether %d of %s, where %s, asked of %d", q.Least, q.Measure.Name, predText(q.Measure.Where), run.Measure)
		} else if q != nil {
			return "no"
		}
		p := run.Selected
		if run.Measure < 0 || p.At[row] < 0 {
			return c.Type.Name() + " NULL"
		}
		values := p.Values[row]
		text := fmt.Sprintf("%s %d.%d of %d values from %s to %s", c.Type.Name(), run.Measure, p.At[row], len(values), predicate.Text(values[0]), predicate.Text(values[len(values)-1]))
		if p.Spans != nil {
			text += fmt.Sprintf(" at %d/%d of counts %v to %v", p.Share.Num, p.Share.Den, p.Spans[row][0], p.Spans[row][len(values)-1])
		}
		return text + fmt.Sprintf(" ±%.0f rows", p.Rank)
	}
	return "none"
}

func predText(p predicate.Pred) string {
	join := func(parts []predicate.Pred, word string) string {
		texts := make([]string, len(parts))
		for i, q := range parts {
			texts[i] = predText(q)
		}
		return "(" + strings.Join(texts, word) + ")"
	}
	switch p := p.(type) {
	case nil:
		return "every row"
	case predicate.AllOf:
		return join(p, " and ")
	case predicate.AnyOf:
		return join(p, " or ")
	case predicate.InCells:
		text := fmt.Sprint(p.Spans)
		if len(text) > 120 {
			text = text[:120] + "…"
		}
		return p.Column.Name + " in cells " + text
	case predicate.Compare:
		return p.Column.Name + " " + p.Op + " " + predicate.Text(p.Value)
	case predicate.Past:
		return p.Column.Name + " so far past the start of its cell: " + p.Op + " " + fmt.Sprint(p.By)
	case predicate.Sum:
		text := ""
		for _, t := range p.Terms {
			text += fmt.Sprintf("%+d %s ", t.Times, t.Column.Name)
		}
		return text + p.Op + " " + predicate.Text(p.Value)
	case predicate.Between:
		return p.Left.Name + " " + p.Op + " " + p.Right.Name
	}
	return "never"
}
