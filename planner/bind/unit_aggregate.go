package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// unitAggregates binds aggregates over rows of one unit: over all of them, sum(price) of SELECT person_id, sum(price)
// FROM visits GROUP BY person_id, or over those of a window's frame, sum(price) OVER (PARTITION BY person_id ORDER BY
// day).
type unitAggregates struct {
	b      *Binder
	source *Rows
	filled bool                                                                      // there is a row in any case
	put    func(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) // adds an aggregate once, and returns its column
}

// aggregate binds an aggregate over a unit's rows.
func (g *unitAggregates) aggregate(f *pg.FuncCall) (*semantics.Expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, refusal := AggregateName(f)
	if refusal != nil {
		return nil, refusal
	}
	if f.AggWithinGroup || f.AggDistinct && name != "count" || !overUnits[name] || !f.AggStar && len(f.Args) != 1 {
		return nil, unitAggregate.At(pos, name)
	}
	t := g.b.OverRows(g.source, "an aggregate")
	if small := Filtered(f); small != f && (f.AggDistinct || name != "count" && small.Args[0].GetAConst() == nil) {
		f = small
	}
	where, refusal := FilterOf(f, t)
	if refusal != nil {
		return nil, refusal
	}
	if f.AggStar {
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	if present := g.source.Whole(f.Args[0]); present != nil && name == "count" && !f.AggDistinct {
		if !present.IsConstant() {
			where = append(where, present)
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	if k, _ := g.source.KeyNode(f.Args[0]); k != nil && name == "count" && g.isKey(f.Args[0], k) && (!f.AggDistinct || !g.source.KeyColumn(k).Unit) {
		g.b.SaysPartner(g.source, k)
		if f.AggDistinct { // orders of a customer, of whom the rows are order lines
			return g.add(derived.UnitAggregate{Kind: derived.UnitDistinctKeys, Key: g.source.KeyColumn(k)}, where, policy.Int8, pos)
		}
		switch {
		case k.Present > 0:
			where = append(where, g.source.Present(k, pos))
		case !g.source.KeyColumn(k).Unit:
			where = append(where, g.b.Known(g.source, k, pos))
		}
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, where, policy.Int8, pos)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if name == "sum" && semantics.Numeric(arg) {
		if c, holds, refusal := g.constantOf(f.Args[0], t); c != nil || refusal != nil {
			if refusal != nil {
				return nil, refusal
			}
			return g.sumOfConstant(arg, c, holds, where, pos)
		}
	}
	if refusal := semantics.Closed(g.source.Table, arg); refusal != nil && (name != "count" || f.AggDistinct) {
		return nil, refusal
	}
	if name == "count" && !f.AggDistinct {
		return g.add(derived.UnitAggregate{Kind: derived.UnitCount}, append(where, semantics.NotNull(arg)), policy.Int8, pos)
	}
	return g.ofValues(name, f.Args[0], arg, where, pos)
}

// overUnits are the aggregates over a unit's rows.
var overUnits = map[string]bool{"count": true, "sum": true, "avg": true, "min": true, "max": true, "bool_or": true,
	"bool_and": true, "every": true}

// ends are the aggregates that are the least or the largest value, and which it is where the order of values is turned.
// Of truth values false is the least.
var ends = map[string]struct {
	end, turned string
	truths      bool
}{"min": {end: "min", turned: "max"}, "max": {end: "max", turned: "min"}, "bool_or": {"max", "min", true},
	"bool_and": {"min", "max", true}, "every": {"min", "max", true}}

// ofValues binds count(DISTINCT x), sum(x), avg(x), min(x), max(x), bool_or(x) and bool_and(x). An expression is a
// column first: that which it grows with, of an end, or one that lists what it is.
func (g *unitAggregates) ofValues(name string, n *pg.Node, arg *semantics.Expr, where []*semantics.Expr, pos int) (
	*semantics.Expr, *refuse.Refusal) {
	end, isEnd := ends[name]
	if isEnd && end.truths != (arg.Type() == policy.Bool) {
		return nil, unitAggregate.At(pos, name+" of this type")
	}
	t := g.b.OverRows(g.source, "an aggregate")
	arg = t.Settler.Settled(arg)
	if grows, known := semantics.Grows(g.source.Table, g.b.Env, arg); known && isEnd {
		of := end.end
		if !grows {
			of = end.turned
		}
		e, refusal := g.ofColumn(of, g.source.Table.Columns[arg.Cols[0]], where, pos)
		if refusal != nil || arg.Form == semantics.FormColumn {
			return e, refusal
		}
		return arg.Moved(e.Cols[0]), nil
	}
	own, refusal := g.listed(arg, n, isEnd)
	if refusal != nil {
		return nil, refusal
	}
	if own == nil || own.Form != semantics.FormColumn {
		return nil, unitAggregate.At(pos, name+" of an expression")
	}
	if isEnd {
		name = end.end
	}
	return g.ofColumn(name, g.source.Table.Columns[own.Cols[0]], where, pos)
}

// listed is an expression as a column of the rows, or nil where it has too many values. Conditions are a column first,
// of what they say; what has few values is listed (ADR 146), as are values whose cells are not in their order, where an
// end of them is asked for.
func (g *unitAggregates) listed(arg *semantics.Expr, n *pg.Node, isEnd bool) (*semantics.Expr, *refuse.Refusal) {
	switch {
	case arg.Form == semantics.FormColumn && (!isEnd || inOrder(g.source.Table.Columns[arg.Cols[0]])):
		return arg, nil
	case arg.Form == semantics.FormColumn && g.source.Table.Columns[arg.Cols[0]].Enum:
		return nil, nil
	case arg.Answered || arg.Awaited: // it may have no list once it is known
		return nil, nil
	case g.b.AsWritten || g.source.MeetsList():
		return nil, nil
	}
	arg, refusal := g.b.Tested(g.source, "an aggregate", n, arg, len(arg.Cols) > 1)
	if refusal != nil {
		return nil, refusal
	}
	x := &lookup.Tabulator{Env: g.b.Env, Table: g.source.Table}
	own, refusal := x.Listed(arg)
	g.source.Become(x.Table)
	return own, refusal
}

// inOrder reports whether a column's cells are in the order of their values. An enum's is another than of its texts.
func inOrder(c *policy.Column) bool {
	d := c.Domain
	return d.Ordered() || d.Other < 0 && (c.Type == policy.Bool || c.Type.Integer() ||
		c.Type.Textual() && c.Type != policy.Bpchar && !c.Enum && slices.IsSorted(d.Values))
}

// endType is the type of min and max of a column: text of any text.
func endType(c *policy.Column) policy.Type {
	if c.Type.Textual() {
		return policy.Text
	}
	return c.Type
}

// FilterOf are the conditions of an aggregate's FILTER.
func FilterOf(f *pg.FuncCall, t *semantics.Translator) ([]*semantics.Expr, *refuse.Refusal) {
	if f.AggFilter == nil {
		return nil, nil
	}
	e, refusal := t.Condition(f.AggFilter, "FILTER")
	if refusal != nil {
		return nil, refusal
	}
	return linear.Conjuncts([]*semantics.Expr{e}), nil
}

// Filtered writes an aggregate that leaves NULLs out over CASE WHEN p THEN x END as one of x with FILTER (WHERE p),
// which says the same: how reports turn rows into columns, avg(CASE WHEN concept_id = 5089 THEN value END).
func Filtered(f *pg.FuncCall) *pg.FuncCall {
	if f.AggStar || f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 || len(f.Args) != 1 {
		return f
	}
	c := f.Args[0].GetCaseExpr()
	if c == nil || c.Arg != nil || len(c.Args) != 1 || c.Defresult != nil && !c.Defresult.GetAConst().GetIsnull() {
		return f
	}
	w := c.Args[0].GetCaseWhen()
	where := w.Expr
	if f.AggFilter != nil {
		where = &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_AND_EXPR, Args: []*pg.Node{f.AggFilter, w.Expr}, Location: c.Location}}}
	}
	return &pg.FuncCall{Funcname: f.Funcname, Args: []*pg.Node{w.Result}, AggDistinct: f.AggDistinct, AggFilter: where, Funcformat: f.Funcformat, Location: f.Location}
}

// isKey tells a reference to a key that is not a column with a domain as well, or one whose rows may be missing.
func (g *unitAggregates) isKey(n *pg.Node, k *linear.Key) bool {
	if g.source.KeyColumn(k).Unit || k.Present > 0 {
		return true
	}
	_, refusal := g.source.Column(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	return refusal != nil
}

// constantOf reads what is summed up over a unit's rows as a constant in those for which a condition holds (nil means
// in all), and nothing in the others: 5, CASE WHEN p THEN 5 ELSE 0 END. The constant is nil for anything else.
func (g *unitAggregates) constantOf(n *pg.Node, t *semantics.Translator) (c, holds *semantics.Expr, refusal *refuse.Refusal) {
	if holds, refusal = t.IsOne(n); refusal != nil || holds != nil {
		return semantics.ConstantExpr(int64(1), policy.Int4, ast.Location(n)), holds, refusal
	}
	if w := n.GetCaseExpr(); w != nil && w.Arg == nil && len(w.Args) == 1 && t.AddsNothing(w.Defresult) {
		if holds, refusal = t.Condition(w.Args[0].GetCaseWhen().Expr, "CASE/WHEN"); refusal != nil {
			return nil, nil, refusal
		}
		n = w.Args[0].GetCaseWhen().Result
	}
	if c, refusal = t.Expr(n); refusal != nil || !c.IsConstant() || c.Parameter > 0 || semantics.MustConstant(c) == nil {
		return nil, nil, refusal
	}
	return c, holds, nil
}

// sumOfConstant is c times the number of a unit's rows for which it is summed up, NULL where the argument is in all of
// them.
func (g *unitAggregates) sumOfConstant(arg, c, holds *semantics.Expr, where []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	counted := slices.Clone(where)
	if holds != nil {
		counted = append(counted, holds)
	}
	typ := semantics.AggregateType("sum", arg.Type())
	n, refusal := g.add(derived.UnitAggregate{Kind: derived.UnitCount}, counted, typ, pos)
	if refusal != nil {
		return nil, refusal
	}
	total := n
	if c.Canon != semantics.ConstantExpr(int64(1), policy.Int4, -1).Canon {
		s, err := g.b.Env.Call("*", n.Expr, c.Expr)
		if err == nil {
			s, err = g.b.Env.Cast(s, typ, -1)
		}
		if err != nil {
			return nil, semantics.ScalarRefusal(err, pos)
		}
		total = semantics.Node(semantics.FormOther, "*", s, pos, n, c)
	}
	some := append(slices.Clone(where), semantics.NotNull(arg))
	if where, refusal := g.b.Lowered(g.source.Table, some); refusal != nil || where == nil && g.filled { // each unit has a row
		return total, refusal
	}
	rows, refusal := g.add(derived.UnitAggregate{Kind: derived.UnitCount}, some, policy.Int8, pos)
	if refusal != nil {
		return nil, refusal
	}
	any, err := g.b.Env.Call(">", rows.Expr, scalar.Constant(int64(0), policy.Int4))
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	s, err := g.b.Env.Case([]scalar.When{{If: any, Then: total.Expr}}, nil)
	return semantics.Made(semantics.FormOther, "case0", s, err, pos, semantics.Node(semantics.FormCompare, ">", any, pos, rows, semantics.ConstantExpr(int64(0), policy.Int4, pos)), total)
}

// ofColumn binds count(DISTINCT c), sum(c), avg(c), min(c) and max(c).
func (g *unitAggregates) ofColumn(name string, c *policy.Column, where []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	counts := c.Type.Integer() && !c.Listed() || c.Type == policy.NumericType && c.Domain.Scale >= 0
	switch {
	case name == "count":
		return g.add(derived.UnitAggregate{Kind: derived.UnitDistinct, Column: c}, where, policy.Int8, pos)
	case name == "sum" && counts:
		return g.add(derived.UnitAggregate{Kind: derived.UnitSum, Column: c}, where, semantics.AggregateType(name, c.Type), pos)
	case name == "avg" && counts:
		return g.add(derived.UnitAggregate{Kind: derived.UnitMean, Column: c}, where, policy.NumericType, pos)
	case name == "min" && inOrder(c):
		return g.add(derived.UnitAggregate{Kind: derived.UnitMin, Column: c}, where, endType(c), pos)
	case name == "max" && inOrder(c):
		return g.add(derived.UnitAggregate{Kind: derived.UnitMax, Column: c}, where, endType(c), pos)
	}
	return nil, unitAggregate.At(pos, name+"("+c.Name+")")
}

// add returns the column of an aggregate, in the type that SQL gives it.
func (g *unitAggregates) add(a derived.UnitAggregate, where []*semantics.Expr, typ policy.Type, pos int) (*semantics.Expr, *refuse.Refusal) {
	var refusal *refuse.Refusal
	if a.Where, refusal = g.b.Lowered(g.source.Table, where); refusal != nil {
		return nil, refusal
	}
	e, refusal := g.put(a, pos)
	if refusal != nil || e.Type() == typ {
		return e, refusal
	}
	s, err := g.b.Env.Cast(e.Expr, typ, -1)
	return semantics.Made(semantics.FormOther, "cast:"+typ.Name(), s, err, pos, e)
}

// AggregateName is the name of an aggregate call, which holds neither another nor a window function.
func AggregateName(f *pg.FuncCall) (string, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return "", refusal
	}
	for _, a := range append([]*pg.Node{f.AggFilter}, f.Args...) {
		if ast.HasAggregate(a) {
			return "", nested.At(ast.Location(a))
		}
		if ast.HasWindow(a) {
			return "", semantics.WindowIn.At(ast.Location(a), "an aggregate")
		}
	}
	return name, nil
}
