package planner

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// listing are the aggregates that show each row's value.
var listing = wordSet("array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg xmlagg")

// aggregate binds an aggregate call to a counter.
func (g *grouping) aggregate(f *pg.FuncCall) (*found, *refuse.Refusal) {
	if g.fanned != nil {
		return g.fanned.aggregate(f)
	}
	pos := int(f.Location)
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	for _, a := range append([]*pg.Node{f.AggFilter}, f.Args...) {
		if ast.HasAggregate(a) {
			return nil, nested.At(ast.Location(a))
		}
		if ast.HasWindow(a) {
			return nil, windowIn.At(ast.Location(a), "an aggregate")
		}
	}
	if pickers[name] {
		return g.picked(name, f)
	}
	if name != "count" && name != "sum" && !moments[name] && !pairs[name] || f.AggWithinGroup {
		if boolAggregates[name] {
			return nil, noAggregate.At(pos, name).Hinting("SET dp.alarms = 3 buys a run of yes-or-no questions, in which " + name + " and count(*) > n are answered. Or count: count(*) FILTER (WHERE …).")
		}
		if listing[name] {
			return nil, noList.At(pos, name)
		}
		if !ast.Aggregates[name] && !engineFunctions[name] {
			return nil, refuse.UnknownFunction.At(pos, name)
		}
		return nil, noAggregate.At(pos, name)
	}
	var where []*expr
	t := g.below("FILTER")
	if f.AggFilter != nil {
		e, refusal := t.condition(f.AggFilter, "FILTER")
		if refusal != nil {
			return nil, refusal
		}
		where = append(where, conjuncts([]*expr{e})...)
	}
	t.place = "an aggregate"
	typ := policy.Int8
	if f.AggDistinct {
		return g.different(name, f, where, t)
	}
	switch {
	case name == "count" && f.AggStar:
	case pairs[name] && len(f.Args) == 2 && !f.FuncVariadic:
		y, refusal := t.expr(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		x, refusal := t.expr(f.Args[1])
		if refusal != nil {
			return nil, refusal
		}
		return g.pair(name, y, x, where, pos)
	case len(f.Args) != 1 || f.FuncVariadic || pairs[name]:
		return nil, refuse.UnknownFunction.At(pos, name)
	case name == "count" && g.isKey(f.Args[0]):
		k, _ := g.rows.keyNode(f.Args[0])
		if !k.column.Unit && k.present == 0 {
			where = append(where, g.rows.known(k, ast.Location(f.Args[0])))
		}
		if present := g.rows.present(k, ast.Location(f.Args[0])); !present.isConstant() {
			where = append(where, present)
		}
	case name == "count":
		arg, refusal := t.expr(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		arg = t.settler.settled(arg)
		present, refusal := t.not(node(formIsNull, "isnull", scalar.IsNull(arg.Expr), arg.pos, arg))
		if refusal != nil {
			return nil, refusal
		}
		if !(arg.isConstant() && !g.b.params.describing && mustConstant(arg) != nil) {
			where = append(where, present)
		}
	default:
		var holds *expr
		if name == "sum" {
			if holds, typ, refusal = g.indicator(f.Args[0], t); refusal != nil {
				return nil, refusal
			}
		}
		if holds == nil {
			return g.summed(name, f.Args[0], where, t, pos)
		}
		if !holds.isConstant() || mustConstant(holds) != true {
			where = append(where, holds)
		}
		if whole, refusal := t.expr(f.Args[0]); refusal == nil && typ == policy.NumericType { // sum(1.00) is 2.00 over two rows
			if n := decimalsIn(whole, g.rows.table); n > 0 {
				w := &formula{g: g, number: "numeric"}
				return w.found(fmt.Sprintf("round(%s::numeric, %d)", w.counter(g.q.counterFor(where)), n), typ)
			}
		}
	}
	return &found{key: -1, counter: g.q.counterFor(where), typ: typ}, nil
}

// summed binds an aggregate of one argument about its values. CASE WHEN p THEN x ELSE 0 END adds up x where p holds.
func (g *grouping) summed(name string, n *pg.Node, where []*expr, t *translator, pos int) (*found, *refuse.Refusal) {
	if name == "sum" {
		if c := n.GetCaseExpr(); c != nil && c.Arg == nil && len(c.Args) == 1 && g.addsNothing(c.Defresult, t) {
			w := c.Args[0].GetCaseWhen()
			holds, refusal := t.condition(w.Expr, "CASE/WHEN")
			if refusal != nil {
				return nil, refusal
			}
			if arg, refusal := t.expr(w.Result); refusal == nil && numeric(arg) && (arg.form == formColumn || productOf(arg) != nil) {
				return g.moment(name, arg, append(slices.Clone(where), conjuncts([]*expr{holds})...), pos)
			}
		}
	}
	arg, refusal := t.expr(n)
	if refusal != nil {
		return nil, refusal
	}
	return g.moment(name, arg, where, pos)
}

// addsNothing tells what a sum is not changed by: nothing, NULL and zero.
func (g *grouping) addsNothing(n *pg.Node, t *translator) bool {
	if n == nil {
		return true
	}
	e, refusal := t.expr(n)
	if refusal != nil || !e.isConstant() || e.parameter > 0 {
		return false
	}
	v := mustConstant(e)
	if v == nil {
		return true
	}
	x, ok := derived.RatOf(v)
	return ok && x.Sign() == 0
}

// isKey tells a reference to a join key that is not a column with a domain as well.
func (g *grouping) isKey(n *pg.Node) bool {
	k, refusal := g.rows.keyNode(n)
	if k == nil || refusal != nil {
		return false
	}
	_, refusal = g.rows.column(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	return refusal != nil
}
