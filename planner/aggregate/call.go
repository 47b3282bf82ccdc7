package aggregate

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregate calls. Of SELECT count(*) FILTER (WHERE active), sum(income) FROM people the first adds a counter of rows
// with a condition, the second one of a sum; avg and the like are arithmetic over several counters (moments.go), and
// what does not add up is chosen (quantiles.go).

// listing are the aggregates that show each row's value.
var listing = semantics.WordSet("array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg xmlagg")

// Aggregate binds an aggregate call to a counter.
func (g *Grouping) Aggregate(f *pg.FuncCall) (*Found, *refuse.Refusal) {
	if g.Fanned != nil {
		return g.Fanned.aggregate(f)
	}
	pos := int(f.Location)
	name, refusal := bind.AggregateName(f)
	if refusal != nil {
		return nil, refusal
	}
	if name == "min" || name == "max" || moments[name] {
		f = bind.Filtered(f)
	}
	switch {
	case selections[name]:
		return g.selected(name, f)
	case hypothetical[name] && f.AggWithinGroup:
		return g.among(name, f)
	case !addsUp(name) || f.AggWithinGroup:
		return nil, g.doesNotAddUp(name, f)
	}
	t := g.Below("FILTER")
	where, refusal := bind.FilterOf(f, t)
	if refusal != nil {
		return nil, refusal
	}
	t.Place = "an aggregate"
	switch {
	case digitAggregates[name]:
		return g.digits(name, f, where, t)
	case boolAggregates[name]:
		return g.boolean(name, f, where, t)
	case f.AggDistinct:
		return g.different(name, f, where, t)
	case name == "count" && f.AggStar:
		return g.counted(where, policy.Int8), nil
	case pairs[name] && len(f.Args) == 2 && !f.FuncVariadic:
		y, refusal := t.Expr(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		x, refusal := t.Expr(f.Args[1])
		if refusal != nil {
			return nil, refusal
		}
		return g.pair(name, y, x, where, pos)
	case len(f.Args) != 1 || f.FuncVariadic || pairs[name]:
		return nil, refuse.UnknownFunction.At(pos, name)
	case name == "count" && g.Rows.Whole(f.Args[0]) != nil:
		if present := g.Rows.Whole(f.Args[0]); !present.IsConstant() {
			where = append(where, present)
		}
		return g.counted(where, policy.Int8), nil
	case name == "count" && g.Rows.IsKeyOnly(f.Args[0]):
		return g.countKeys(f.Args[0], where), nil
	case name == "count":
		return g.countValues(f.Args[0], where, t)
	case name == "sum":
		return g.sum(f.Args[0], where, t, pos)
	}
	return g.momentOf(name, f.Args[0], where, t, pos)
}

// addsUp tells the aggregates that are arithmetic over counters.
func addsUp(name string) bool {
	return name == "count" || name == "sum" || moments[name] || pairs[name] || digitAggregates[name] || boolAggregates[name]
}

// doesNotAddUp refuses an aggregate that is none.
func (g *Grouping) doesNotAddUp(name string, f *pg.FuncCall) *refuse.Refusal {
	switch {
	case listing[name]:
		return g.listed(name, f)
	case name == "any_value":
		return g.anyOf(name, f)
	case !ast.Aggregates[name] && !semantics.EngineFunctions[name]:
		return refuse.UnknownFunction.At(int(f.Location), name)
	}
	return bind.NoAggregate.At(int(f.Location), name)
}

// counted is a counter of rows, as a value of a type.
func (g *Grouping) counted(where []*semantics.Expr, typ policy.Type) *Found {
	return &Found{Key: -1, Counter: g.Question.CounterFor(where), Type: typ}
}

// countKeys is count of a join key: of the rows that have one.
func (g *Grouping) countKeys(n *pg.Node, where []*semantics.Expr) *Found {
	k, _ := g.Rows.KeyNode(n)
	g.b.SaysPartner(g.Rows, k)
	if !g.Rows.KeyColumn(k).Unit && k.Present == 0 {
		where = append(where, g.b.Known(g.Rows, k, ast.Location(n)))
	}
	if present := g.Rows.Present(k, ast.Location(n)); !present.IsConstant() {
		where = append(where, present)
	}
	return g.counted(where, policy.Int8)
}

// countValues is count of an expression: of the rows where it is not NULL.
func (g *Grouping) countValues(n *pg.Node, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	arg, refusal := t.Expr(n)
	if refusal != nil {
		return nil, refusal
	}
	arg = t.Settler.Settled(arg)
	present, refusal := t.Not(semantics.Node(semantics.FormIsNull, "isnull", scalar.IsNull(arg.Expr), arg.Pos, arg))
	if refusal != nil {
		return nil, refusal
	}
	if !(arg.IsConstant() && !g.b.Params.Describing && semantics.MustConstant(arg) != nil) {
		where = append(where, present)
	}
	return g.counted(where, policy.Int8), nil
}

// sum is that of an expression: a count of rows where it is 1 in some and 0 in the others.
func (g *Grouping) sum(n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	if arg, refusal := t.Expr(n); refusal == nil && addedAsInterval(arg.Type()) {
		return g.totalInterval("sum", n, arg.Type(), where, t, pos)
	}
	holds, typ, refusal := t.Indicator(n)
	if refusal != nil {
		return nil, refusal
	}
	if holds == nil {
		return g.summed(n, where, t, pos)
	}
	if !holds.IsConstant() || semantics.MustConstant(holds) != true {
		where = append(where, holds)
	}
	if whole, refusal := t.Expr(n); refusal == nil && typ == policy.NumericType { // sum(1.00) is 2.00 over two rows
		if digits := semantics.DecimalsIn(whole, g.Rows.Table); digits > 0 {
			w := g.formula("numeric")
			return g.found(fmt.Sprintf("round(%s::numeric, %d)", w.Counter(g.Question.CounterFor(where)), digits), typ)
		}
	}
	return g.counted(where, typ), nil
}

// summed is the sum of values. CASE WHEN p THEN x ELSE 0 END adds up x where p holds, and so does coalesce(x, 0) where
// x is not NULL.
func (g *Grouping) summed(n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	if c := n.GetCoalesceExpr(); len(c.GetArgs()) == 2 && t.AddsNothing(c.Args[1]) {
		whole, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		if arg, refusal := t.Expr(c.Args[0]); refusal == nil && arg.Type() == whole.Type() {
			return g.summed(c.Args[0], where, t, pos)
		}
	}
	if c := n.GetCaseExpr(); len(c.GetArgs()) == 1 && c.Arg == nil && t.AddsNothing(c.Defresult) {
		if found, refusal := g.summedWhere(c.Args[0].GetCaseWhen(), where, t, pos); found != nil || refusal != nil {
			return found, refusal
		}
	}
	if product := signed(n); product != nil {
		whole, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		if arg, refusal := t.Expr(product); refusal == nil && arg.Type() == whole.Type() {
			return g.momentOf("sum", product, where, t, pos)
		}
	}
	return g.momentOf("sum", n, where, t, pos)
}

// signed writes a column that is counted with its sign, CASE WHEN kind = 'refund' THEN -total ELSE total END, as
// total * CASE WHEN kind = 'refund' THEN -1 ELSE 1 END; nil means the expression is another.
func signed(n *pg.Node) *pg.Node {
	c := n.GetCaseExpr()
	if c == nil || c.Arg != nil || c.Defresult == nil {
		return nil
	}
	base, last := unsigned(c.Defresult)
	factor := &pg.CaseExpr{Defresult: pg.MakeAConstIntNode(last, c.Location), Location: c.Location}
	for _, arm := range c.Args {
		w := arm.GetCaseWhen()
		column, sign := unsigned(w.Result)
		if column == nil || base == nil || !slices.Equal(ast.Strings(column.Fields), ast.Strings(base.Fields)) {
			return nil
		}
		factor.Args = append(factor.Args, &pg.Node{Node: &pg.Node_CaseWhen{CaseWhen: &pg.CaseWhen{Expr: w.Expr, Result: pg.MakeAConstIntNode(sign, c.Location), Location: w.Location}}})
	}
	column := &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: base}}
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("*")}, column, &pg.Node{Node: &pg.Node_CaseExpr{CaseExpr: factor}}, c.Location)
}

// unsigned is the column of x and of -x, and 1 or -1.
func unsigned(n *pg.Node) (*pg.ColumnRef, int64) {
	if e := n.GetAExpr(); e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && e.Lexpr == nil && slices.Equal(ast.Strings(e.Name), []string{"-"}) {
		return e.Rexpr.GetColumnRef(), -1
	}
	return n.GetColumnRef(), 1
}

// summedWhere is the sum of CASE WHEN p THEN x END, over the rows where p holds; nil means of x there is no sum.
func (g *Grouping) summedWhere(w *pg.CaseWhen, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	holds, refusal := t.Condition(w.Expr, "CASE/WHEN")
	if refusal != nil {
		return nil, refusal
	}
	arg, refusal := t.Expr(w.Result)
	if refusal != nil || !semantics.Numeric(arg) {
		return nil, nil
	}
	if arg, refusal = g.inColumns(arg); refusal != nil {
		return nil, refusal
	}
	if arg.Form != semantics.FormColumn && semantics.LinearOf(arg) == nil {
		return nil, nil
	}
	return g.moment("sum", arg, append(slices.Clone(where), linear.Conjuncts([]*semantics.Expr{holds})...), nil, pos)
}

// momentOf binds an aggregate of one argument about its values.
func (g *Grouping) momentOf(name string, n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	arg, refusal := t.Expr(n)
	if refusal != nil {
		return nil, refusal
	}
	if name == "avg" && addedAsInterval(arg.Type()) {
		return g.totalInterval(name, n, arg.Type(), where, t, pos)
	}
	if arg, refusal = g.b.Tested(g.Rows, t.Place, n, arg); refusal != nil {
		return nil, refusal
	}
	return g.moment(name, arg, where, nil, pos)
}
