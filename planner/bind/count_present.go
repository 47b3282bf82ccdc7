package bind

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The number of different values of a column with few declared ones is lost in its own noise: of five regions ε 0.1 makes 1, or
// 30. The rows of each value, which GROUP BY counts at the same cost, are not. So
//
//	SELECT count(DISTINCT region) FROM people
//
// is answered as the number of regions whose count is above a threshold, twice its half-width, which is public: noise alone
// hardly ever makes a value of no rows that large, and a value of more rows than twice the threshold is hardly ever missed. One
// with fewer rows than the threshold may be, and a notice says so. The values are those that the policy declares, so what is done
// with their released counts is post-processing. Where noise vanishes the number itself is counted, as for columns of many values
// (docs/adr/0074).

// maxPresent bounds the cells of a column whose values are counted one by one: a leaf plan splits by so many conditions.
const maxPresent = 64

// presence counts the values of a column that enough rows have; nil: their number is to be counted as it is.
func (g *Grouping) presence(arg *pg.Node, e *semantics.Expr, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	if e.Form != semantics.FormColumn {
		return nil, nil
	}
	c := g.Rows.Table.Columns[e.Cols[0]]
	d := c.Domain
	if c.Open != nil || d == nil || !d.Single() || d.Size() > maxPresent || !g.b.Context.LostInNoise(g.Rows.Table, d.Regular) {
		return nil, nil
	}
	cells := d.Regular
	if d.Other >= d.Regular && !c.Hide {
		cells++
	}
	w := &formula{g: g}
	terms := make([]string, cells)
	for cell := range cells {
		literal := pg.MakeAConstStrNode(policy.FormatValue(c.Type, d.Low(cell)), int32(e.Pos))
		is, refusal := t.Condition(pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, arg, literal, int32(e.Pos)), "count")
		if refusal != nil {
			return nil, refusal
		}
		n := g.Q.Add(linear.Counter{Where: append(where[:len(where):len(where)], is)})
		g.Q.Counters[n].Presence = e.Canon
		terms[cell] = "CASE WHEN " + w.counter(n) + " > " + w.counter(g.Q.ThresholdOf(n)) + " THEN 1 ELSE 0 END"
	}
	if d.Other >= d.Regular && !c.Hide {
		g.b.Notes.Add("values of " + c.Name + " outside its domain count as one")
	}
	return w.found(strings.Join(terms, " + "), policy.Int8)
}

// declaredEnd is the least or the largest value of a column whose ends the policy lets stand for those of its rows, which are not
// looked at; nil: it is another's.
func (g *Grouping) declaredEnd(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	if name != "min" && name != "max" || len(f.Args) != 1 || f.AggStar || f.AggWithinGroup || f.FuncVariadic {
		return nil, nil
	}
	e, refusal := g.Below("an aggregate").Expr(f.Args[0])
	if refusal != nil || e.Form != semantics.FormColumn {
		return nil, nil // what is wrong with it is told when it is bound
	}
	c := g.Rows.Table.Columns[e.Cols[0]]
	if !c.Ends || c.Domain == nil || !c.Domain.Ordered() {
		return nil, nil
	}
	end := c.Domain.Min
	if name == "max" {
		end = c.Domain.Max
	}
	g.b.Notes.Add("min and max of " + c.Name + " are the ends of the domain that the policy declares, whatever rows there are")
	w := &formula{g: g}
	return w.found("'"+policy.FormatValue(c.Type, end)+"'::"+c.Type.Format(c.Typmod), c.Type)
}
