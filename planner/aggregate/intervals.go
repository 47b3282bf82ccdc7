package aggregate

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates of intervals are arithmetic over those of numbers. Of
//
//	SELECT avg(now() - visited_at) FROM visits
//
// what is added up are seconds, and of age(now(), hired), which has months of no fixed length, months and the seconds beside them. PostgreSQL adds up days and times of a day apart, so that
// its average of 1 day 20:00 and 2 days 20:00 is 1 day 32:00:00; here it is 2 days 08:00:00, which is equal to it, and errs less than two sums would.

// intervalForm says how they are written.
const intervalForm = "intervals are added up by their seconds (and months), in which ± is told, and shown in days and less than a day: PostgreSQL's sums and averages are equal, and may have more than a day beside their days"

// mostOfInterval is how many months, or days, an interval can have.
const mostOfInterval = 1<<31 - 1

// totalInterval binds sum and avg of an interval.
func (g *Grouping) totalInterval(name string, n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	of := func(value *pg.Node) (string, *refuse.Refusal) {
		found, refusal := g.momentOf(name, value, where, t, pos)
		if refusal != nil {
			return "", refusal
		}
		return g.textOf(found), nil
	}
	months, rest := partsOf(n)
	if g.elapsed(n) {
		months, rest = nil, field("epoch", n)
	}
	seconds, refusal := of(rest)
	if refusal != nil {
		return nil, refusal
	}
	g.b.Notes.Add(intervalForm)
	if name == "avg" {
		text := seconds + " * interval '1 second'"
		if months != nil {
			m, refusal := of(months)
			if refusal != nil {
				return nil, refusal
			}
			text = m + " * interval '1 month' + " + text
		}
		return g.found("justify_hours("+text+")", policy.IntervalT)
	}
	// What an interval cannot have, where PostgreSQL's sum fails, is NULL: it has been paid for.
	text := fmt.Sprintf("div(%[1]s, 86400) * interval '1 day' + mod(%[1]s, 86400) * interval '1 second'", seconds)
	fits := fmt.Sprintf("abs(div(%s, 86400)) <= %d", seconds, mostOfInterval)
	if months != nil {
		m, refusal := of(months)
		if refusal != nil {
			return nil, refusal
		}
		text, fits = m+" * interval '1 month' + "+text, fmt.Sprintf("%s AND abs(%s) <= %d", fits, m, mostOfInterval)
	}
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s END", fits, text), policy.IntervalT)
}

// chosenInterval binds a quantile, an extreme or the most frequent one of intervals between two moments, as that of their seconds, which have the same order. PostgreSQL
// writes such an interval in days and less than a day too. Nil: the argument is another.
func (g *Grouping) chosenInterval(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	seconds := &pg.FuncCall{Funcname: f.Funcname, Args: f.Args, AggOrder: f.AggOrder, AggFilter: f.AggFilter, AggWithinGroup: f.AggWithinGroup, Location: f.Location}
	switch {
	case f.AggWithinGroup && len(f.AggOrder) == 1 && g.elapsed(f.AggOrder[0].GetSortBy().Node):
		by := f.AggOrder[0].GetSortBy()
		own := &pg.SortBy{Node: field("epoch", by.Node), SortbyDir: by.SortbyDir, SortbyNulls: by.SortbyNulls, UseOp: by.UseOp, Location: by.Location}
		seconds.AggOrder = []*pg.Node{{Node: &pg.Node_SortBy{SortBy: own}}}
	case !f.AggWithinGroup && len(f.Args) == 1 && g.elapsed(f.Args[0]):
		seconds.Args = []*pg.Node{field("epoch", f.Args[0])}
	default:
		return nil, nil
	}
	chosen, refusal := g.selected(name, seconds)
	if refusal != nil {
		return nil, refusal
	}
	if chosen.Counter < 0 {
		return nil, bind.NoAggregate.At(int(f.Location), name+" of intervals, with several shares at once,")
	}
	return g.found("justify_hours("+g.formula("").Counter(chosen.Counter)+" * interval '1 second')", policy.IntervalT)
}

// elapsed tells an expression over the rows that lies between two moments.
func (g *Grouping) elapsed(n *pg.Node) bool {
	arg, refusal := g.Below("an aggregate").Expr(n)
	return refusal == nil && semantics.Elapsed(arg)
}

// partsOf are the months of an interval, and the seconds beside them.
func partsOf(n *pg.Node) (months, seconds *pg.Node) {
	months = sumOf(times(field("year", n), 12), field("month", n))
	hours := sumOf(times(field("day", n), 24), field("hour", n))
	return months, sumOf(times(sumOf(times(hours, 60), field("minute", n)), 60), field("second", n))
}

// field is extract(name FROM n).
func field(name string, n *pg.Node) *pg.Node {
	at := int32(ast.Location(n))
	return pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("extract")}, []*pg.Node{pg.MakeAConstStrNode(name, at), n}, at)
}

func times(n *pg.Node, by int64) *pg.Node { return operator("*", n, pg.MakeAConstIntNode(by, -1)) }

func sumOf(a, b *pg.Node) *pg.Node { return operator("+", a, b) }

func operator(name string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(name)}, left, right, -1)
}

// textOf is the SQL of what was found, in parentheses.
func (g *Grouping) textOf(f *Found) string {
	if f.Counter >= 0 {
		return g.formula("").Counter(f.Counter)
	}
	return "(" + sqlOf(f.Formula) + ")"
}
