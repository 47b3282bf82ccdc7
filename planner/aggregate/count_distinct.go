package aggregate

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates of different values. SELECT count(DISTINCT person_id) FROM visits counts units, of which each is in one
// row of a derived table; SELECT count(DISTINCT city) FROM people counts those of the declared values that have rows,
// and SELECT sum(DISTINCT age) FROM people adds them up.

func (g *Grouping) different(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	switch {
	case pairs[name] && len(f.Args) == 2 && !f.FuncVariadic:
		return nil, noDistinct.At(pos, name)
	case name == "count" && len(f.Args) > 1:
		return nil, refuse.UnknownFunction.At(pos, name).Hinting("Count different rows of columns: count(DISTINCT (a, b)).")
	case len(f.Args) != 1 || f.FuncVariadic:
		return nil, refuse.UnknownFunction.At(pos, name)
	case name != "count":
		return g.differentNumbers(name, f, where, t)
	}
	arg, where, refusal := g.taken(f.Args[0], where, t)
	if refusal != nil {
		return nil, refusal
	}
	if k, _ := g.Rows.KeyNode(arg); k != nil && g.Rows.IsKeyOnly(arg) {
		return g.differentKeys(k, where, pos)
	}
	v := &linear.DistinctValues{}
	list := []*pg.Node{arg}
	if r := arg.GetRowExpr(); r != nil {
		list, v.Row = r.Args, true
	}
	for _, n := range list {
		if k, _ := g.Rows.KeyNode(n); k != nil && v.Row && g.Rows.IsKeyOnly(n) {
			return nil, distinctRow.At(ast.Location(n), k.Name)
		}
		e, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		v.Of = append(v.Of, t.Settler.Settled(e))
	}
	if !v.Row {
		if found, refusal := g.presence(arg, v.Of[0], where, t); found != nil || refusal != nil {
			return found, refusal
		}
	}
	if !v.Row && v.Of[0].IsConstant() {
		if _, refusal := v.Of[0].Value(nil); refusal != nil {
			return nil, refusal
		}
	}
	if !v.Row && v.Of[0].IsConstant() && !g.b.Params.Describing && semantics.MustConstant(v.Of[0]) == nil {
		where = append(where, semantics.ConstantExpr(false, policy.Bool, pos))
	}
	return &Found{Key: -1, Counter: g.Question.Add(linear.Counter{Where: where, Values: v}), Type: policy.Int8}, nil
}

// differentNumbers binds sum, avg, variance and stddev of different values.
func (g *Grouping) differentNumbers(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	arg, where, refusal := g.taken(f.Args[0], where, t)
	if refusal != nil {
		return nil, refusal
	}
	e, refusal := t.Expr(arg)
	if refusal != nil {
		return nil, refusal
	}
	if found, refusal := g.presentMoment(name, arg, e, where, t); found != nil || refusal != nil {
		return found, refusal
	}
	return g.moment(name, e, where, &linear.DistinctValues{Of: []*semantics.Expr{t.Settler.Settled(e)}}, int(f.Location))
}

// taken reads count(DISTINCT CASE WHEN p THEN x END), which is count(DISTINCT x) FILTER (WHERE p).
func (g *Grouping) taken(n *pg.Node, where []*semantics.Expr, t *semantics.Translator) (*pg.Node, []*semantics.Expr, *refuse.Refusal) {
	c := n.GetCaseExpr()
	if c == nil || c.Arg != nil || len(c.Args) != 1 || c.Defresult != nil && !c.Defresult.GetAConst().GetIsnull() {
		return n, where, nil
	}
	w := c.Args[0].GetCaseWhen()
	e, refusal := t.Condition(w.Expr, "CASE/WHEN")
	if refusal != nil {
		return nil, nil, refusal
	}
	return w.Result, append(slices.Clone(where), linear.Conjuncts([]*semantics.Expr{e})...), nil
}

// differentKeys counts different units, or values of another join key within each. Where a unit has one row they are
// rows.
func (g *Grouping) differentKeys(k *linear.Key, where []*semantics.Expr, pos int) (*Found, *refuse.Refusal) {
	if present := g.Rows.Present(k, pos); !present.IsConstant() {
		where = append(where, present)
	}
	c := linear.Counter{Where: where, Units: &linear.Units{}}
	switch {
	case g.Rows.KeyColumn(k).Unit && g.Rows.Table.MaxRowsPerUnit == 1:
		c.Units = nil
	case !g.Rows.KeyColumn(k).Unit:
		g.b.LeavesOut(g.Rows.Table, "different "+k.Name+" are counted")
		c.Units.Key = k
	}
	return &Found{Key: -1, Counter: g.Question.Add(c), Type: policy.Int8}, nil
}
