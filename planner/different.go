package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// different binds count(DISTINCT …).
func (g *grouping) different(name string, f *pg.FuncCall, where []*expr, t *translator) (*found, *refuse.Refusal) {
	pos := int(f.Location)
	switch {
	case name != "count":
		return nil, noDistinct.At(pos, name)
	case len(f.Args) > 1:
		return nil, refuse.UnknownFunction.At(pos, name).Hinting("Count different rows of columns: count(DISTINCT (a, b)).")
	case len(f.Args) == 0 || f.FuncVariadic:
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, where, refusal := g.taken(f.Args[0], where, t)
	if refusal != nil {
		return nil, refusal
	}
	if k, _ := g.rows.keyNode(arg); k != nil && g.isKey(arg) {
		return g.differentKeys(k, where, pos)
	}
	v := &values{}
	list := []*pg.Node{arg}
	if r := arg.GetRowExpr(); r != nil {
		list, v.row = r.Args, true
	}
	for _, n := range list {
		if k, _ := g.rows.keyNode(n); k != nil && v.row && g.isKey(n) {
			return nil, distinctRow.At(ast.Location(n), k.name)
		}
		e, refusal := t.expr(n)
		if refusal != nil {
			return nil, refusal
		}
		v.of = append(v.of, t.settler.settled(e))
	}
	if !v.row && v.of[0].isConstant() && !g.b.params.describing && mustConstant(v.of[0]) == nil {
		where = append(where, constantExpr(false, policy.Bool, pos))
	}
	return &found{key: -1, counter: g.q.add(counter{where: where, values: v}), typ: policy.Int8}, nil
}

// taken reads count(DISTINCT CASE WHEN p THEN x END), which is count(DISTINCT x) FILTER (WHERE p).
func (g *grouping) taken(n *pg.Node, where []*expr, t *translator) (*pg.Node, []*expr, *refuse.Refusal) {
	c := n.GetCaseExpr()
	if c == nil || c.Arg != nil || len(c.Args) != 1 || c.Defresult != nil && !c.Defresult.GetAConst().GetIsnull() {
		return n, where, nil
	}
	w := c.Args[0].GetCaseWhen()
	e, refusal := t.condition(w.Expr, "CASE/WHEN")
	if refusal != nil {
		return nil, nil, refusal
	}
	return w.Result, append(slices.Clone(where), conjuncts([]*expr{e})...), nil
}

// differentKeys counts different units, or values of another join key within each. Where a unit has one row they are rows.
func (g *grouping) differentKeys(k *key, where []*expr, pos int) (*found, *refuse.Refusal) {
	if present := g.rows.present(k, pos); !present.isConstant() {
		where = append(where, present)
	}
	c := counter{where: where, units: &units{-1}}
	switch {
	case k.column.Unit && g.rows.table.MaxRowsPerUnit == 1:
		c.units = nil
	case !k.column.Unit:
		c.units.key = slices.Index(g.rows.table.Keys, k.column)
	}
	return &found{key: -1, counter: g.q.add(c), typ: policy.Int8}, nil
}
