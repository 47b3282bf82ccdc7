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
// what is added up are seconds, and of age(now(), hired), which has months of no fixed length, months and the seconds
// beside them. PostgreSQL adds up days and times of a day apart, so that its average of 1 day 20:00 and 2 days 20:00 is
// 1 day 32:00:00; here it is 2 days 08:00:00, which is equal to it, and errs less than two sums would.

// intervalForm says how they are written.
const intervalForm = "intervals are added up by their seconds (and months), in which ± is told, and shown in days and less than a day: PostgreSQL's sums and averages are equal, and may have more than a day beside their days"

// mostOfInterval is how many months, or days, an interval can have.
const mostOfInterval = 1<<31 - 1

// addedAsInterval tells the types whose sums and averages are intervals: of times too, since midnight.
func addedAsInterval(t policy.Type) bool { return t == policy.IntervalT || t == policy.TimeT }

// totalInterval binds sum and avg of n, an interval or a time.
func (g *Grouping) totalInterval(name string, n *pg.Node, typ policy.Type, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	of := func(value *pg.Node) (string, *refuse.Refusal) {
		found, refusal := g.momentOf(name, value, where, t, pos)
		if refusal != nil {
			return "", refusal
		}
		return g.textOf(found), nil
	}
	months, rest := partsOf(n)
	if seconds := g.secondsOf(n); seconds != nil {
		months, rest = nil, seconds
	} else if typ == policy.TimeT {
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

// chosenInterval binds a quantile, an extreme or the most frequent one of intervals between two moments, as that of
// their seconds, which have the same order. PostgreSQL writes such an interval in days and less than a day too. Nil:
// the argument is another.
func (g *Grouping) chosenInterval(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	seconds := &pg.FuncCall{Funcname: f.Funcname, Args: f.Args, AggOrder: f.AggOrder, AggFilter: f.AggFilter, AggWithinGroup: f.AggWithinGroup, Location: f.Location}
	switch {
	case f.AggWithinGroup && len(f.AggOrder) == 1:
		by := f.AggOrder[0].GetSortBy()
		own := &pg.SortBy{Node: g.secondsOf(by.Node), SortbyDir: by.SortbyDir, SortbyNulls: by.SortbyNulls, UseOp: by.UseOp, Location: by.Location}
		if own.Node == nil {
			return nil, nil
		}
		seconds.AggOrder = []*pg.Node{{Node: &pg.Node_SortBy{SortBy: own}}}
	case !f.AggWithinGroup && len(f.Args) == 1:
		own := g.secondsOf(f.Args[0])
		if own == nil {
			return nil, nil
		}
		seconds.Args = []*pg.Node{own}
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

// secondsOf is an interval as its seconds, where it is what lies between two moments, or is made of such: of
// coalesce(2 * (returned - rented), '1 day') it is coalesce(2 * extract(epoch FROM returned - rented), extract(epoch
// FROM interval '1 day')). Nil: it may have months.
func (g *Grouping) secondsOf(n *pg.Node) *pg.Node {
	if seconds, elapsed := g.inSeconds(n); elapsed {
		return seconds
	}
	return nil
}

// inSeconds is an interval as its seconds, and whether something in it lies between two moments: a constant does not.
func (g *Grouping) inSeconds(n *pg.Node) (seconds *pg.Node, elapsed bool) {
	e, refusal := g.Below("an aggregate").Expr(n)
	switch {
	case refusal != nil:
		return nil, false
	case semantics.Elapsed(e):
		return field("epoch", n), true
	case e.IsConstant() && e.Parameter == 0:
		return g.constantSeconds(e, n), false
	case n.GetAExpr().GetKind() == pg.A_Expr_Kind_AEXPR_OP:
		return g.operatedSeconds(n.GetAExpr())
	case n.GetCoalesceExpr() != nil:
		args, elapsed := g.allInSeconds(n.GetCoalesceExpr().Args)
		if args == nil {
			return nil, false
		}
		return &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: args, Location: n.GetCoalesceExpr().Location}}}, elapsed
	}
	return nil, false
}

func (g *Grouping) allInSeconds(nodes []*pg.Node) (out []*pg.Node, elapsed bool) {
	for _, n := range nodes {
		seconds, between := g.inSeconds(n)
		if seconds == nil {
			return nil, false
		}
		out, elapsed = append(out, seconds), elapsed || between
	}
	return out, elapsed
}

// constantSeconds are those of an interval without months; nil means it is another constant.
func (g *Grouping) constantSeconds(e *semantics.Expr, n *pg.Node) *pg.Node {
	interval, err := g.b.Env.Coerce(e.Expr, policy.IntervalT)
	if err != nil {
		return nil
	}
	if v, err := interval.Eval(nil); err != nil || v != nil && v.(policy.Interval).Months != 0 {
		return nil
	}
	return field("epoch", ast.CastTo(n, policy.IntervalT, -1))
}

// operatedSeconds are those of -x, x + y, x - y, and of x times a constant number, or parted by one.
func (g *Grouping) operatedSeconds(a *pg.A_Expr) (*pg.Node, bool) {
	op := ast.Strings(a.Name)[len(a.Name)-1]
	if a.Lexpr == nil && op == "-" {
		x, elapsed := g.inSeconds(a.Rexpr)
		if x == nil {
			return nil, false
		}
		return operator(op, nil, x), elapsed
	}
	if op == "+" || op == "-" {
		parts, elapsed := g.allInSeconds([]*pg.Node{a.Lexpr, a.Rexpr})
		if parts == nil {
			return nil, false
		}
		return operator(op, parts[0], parts[1]), elapsed
	}
	x, by := a.Lexpr, a.Rexpr
	if op == "*" && g.isNumber(x) {
		x, by = by, x
	}
	if op != "*" && op != "/" || !g.isNumber(by) {
		return nil, false
	}
	seconds, elapsed := g.inSeconds(x)
	if seconds == nil {
		return nil, false
	}
	return operator(op, seconds, by), elapsed
}

// isNumber tells a constant number.
func (g *Grouping) isNumber(n *pg.Node) bool {
	e, refusal := g.Below("an aggregate").Expr(n)
	return refusal == nil && e.IsConstant() && e.Parameter == 0 && (e.Type().Integer() || e.Type() == policy.NumericType)
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
