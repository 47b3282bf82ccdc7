package outerquery

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// A projection of one leaf that Go evaluates, without an engine: SELECT ward, count(*) * 2 FROM visits GROUP BY ward
// HAVING count(*) > 5 ORDER BY 2 DESC LIMIT 3 is two expressions, a condition, an order and a limit over the rows of
// leaf_1.

// direct is a Direct that is being written, with the structure of its expressions.
type direct struct {
	plans.Direct
	exprs  []*semantics.Expr // by item
	rest   []*semantics.Expr // of Having and Sort
	counts []int             // by item, see shown
	linear []*Linear         // the same
}

// direct tries to write the SELECT above a leaf (or, with g nil, a SELECT without FROM) as a projection that needs no
// engine. A nil Direct without a refusal means that it takes the engine.
func (b *Query) direct(sel *pg.SelectStmt, g *aggregate.Grouping) (*direct, []plans.OutColumn, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT"}
	out := &direct{Direct: plans.Direct{Leaf: -1, Limit: -1}}
	targets := make([]bind.Target, 0, len(sel.TargetList))
	if g != nil {
		sel = g.Sel
		t.Hook, out.Leaf, targets = g.Hook, g.Leaf, g.Targets
	} else {
		for _, n := range sel.TargetList {
			targets = append(targets, bind.Target{Label: ast.Label(n.GetResTarget()), Node: n.GetResTarget().Val})
		}
	}
	if b.needsEngine(sel, g) {
		return nil, nil, nil
	}
	return b.project(sel, out, t, targets, nil, sel.HavingClause, "HAVING")
}

// project writes a SELECT over a leaf's rows, or over a projection of them, of which out is what there is. Of targets
// that have no node the expressions are given.
func (b *Query) project(
	sel *pg.SelectStmt, out *direct, t *semantics.Translator, targets []bind.Target, given []*semantics.Expr, condition *pg.Node, clause string,
) (*direct, []plans.OutColumn, *refuse.Refusal) {
	columns := make([]plans.OutColumn, len(targets))
	for i, tg := range targets {
		var e *semantics.Expr
		var refusal *refuse.Refusal
		if tg.Node == nil {
			e, given = given[0], given[1:]
		} else if e, refusal = t.Output(tg.Node); refusal != nil {
			return nil, nil, engineCan(refusal)
		}
		if shown, refusal := out.show(t, b, e); !shown || refusal != nil {
			return nil, nil, refusal
		}
		columns[i] = outColumn(tg.Label, e, b.isNoisy(out.Leaf, e))
	}
	if condition != nil {
		e, refusal := t.Condition(condition, clause)
		if refusal != nil {
			return nil, nil, engineCan(refusal)
		}
		out.rest = append(out.rest, e)
		if before := out.Having; before == nil {
			out.Having = e.Expr
		} else if both, err := scalar.And(before, e.Expr); err != nil {
			return nil, nil, semantics.ScalarRefusal(err, e.Pos)
		} else {
			out.Having = both
		}
	}
	for i, n := range sel.SortClause {
		if i == 0 {
			out.Sort = nil
		}
		key, refusal := out.sortKey(n.GetSortBy(), t, targets)
		if refusal != nil {
			return nil, nil, engineCan(refusal)
		}
		out.Sort = append(out.Sort, key)
	}
	if sel.LimitCount != nil || sel.LimitOffset != nil {
		if refusal := b.limits(sel, out); refusal != nil {
			return nil, nil, refusal
		}
	}
	return out, columns, nil
}

// needsEngine tells what a projection in Go does not do. A parameter of a type that package scalar does not have is
// among it: its text is not what PostgreSQL shows of it.
func (b *Query) needsEngine(sel *pg.SelectStmt, g *aggregate.Grouping) bool {
	if g != nil && g.Above || len(sel.WindowClause) > 0 || sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES || len(sel.LockingClause) > 0 || len(sel.TargetList) == 0 {
		return true
	}
	test := func(n *pg.Node) bool {
		switch v := n.GetNode().(type) {
		case *pg.Node_FuncCall:
			return v.FuncCall.Over != nil || g == nil && ast.IsAggregate(v.FuncCall)
		case *pg.Node_ParamRef:
			return ast.OthersType(b.Params.TypeOf(int(v.ParamRef.Number)))
		case *pg.Node_SubLink:
			return v.SubLink.SubLinkType != pg.SubLinkType_EXPR_SUBLINK || !semantics.IsBareSelect(v.SubLink.Subselect.GetSelectStmt())
		}
		return false
	}
	for _, list := range [][]*pg.Node{sel.TargetList, sel.SortClause, {sel.HavingClause, sel.LimitCount, sel.LimitOffset}} {
		for _, n := range list {
			if ast.Holds(n, test) {
				return true
			}
		}
	}
	return false
}

// engineCan drops a refusal that only says that package scalar does not know the expression: the engine may, or
// refuses it itself.
func engineCan(refusal *refuse.Refusal) *refuse.Refusal {
	switch refusal.ID {
	case semantics.NoForm.ID, semantics.Unsupported.ID, refuse.UnknownFunction.ID, semantics.NotAllowed.ID, refuse.UnknownType.ID, refuse.BlankPadded.ID, semantics.NoOperator.ID, semantics.RowSubquery.ID:
		return nil
	}
	return refusal
}

// sortKey binds ORDER BY: a position, an output name, or an expression.
func (d *direct) sortKey(s *pg.SortBy, t *semantics.Translator, targets []bind.Target) (plans.SortKey, *refuse.Refusal) {
	key := plans.SortKey{Descending: s.SortbyDir == pg.SortByDir_SORTBY_DESC}
	if key.NullsFirst = key.Descending; s.SortbyNulls != pg.SortByNulls_SORTBY_NULLS_DEFAULT {
		key.NullsFirst = s.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_FIRST
	}
	if s.SortbyDir == pg.SortByDir_SORTBY_USING {
		return key, semantics.NoForm.At(ast.Location(s.Node), "ORDER BY USING")
	}
	at, refusal := SortTarget(s.Node, targets)
	if refusal != nil {
		return key, refusal
	}
	if at >= 0 {
		key.By = d.exprs[at].Expr
		return key, nil
	}
	e, refusal := t.Output(s.Node)
	if refusal != nil {
		return key, refusal
	}
	key.By, d.rest = e.Expr, append(d.rest, e)
	return key, nil
}

// SortTarget is the output column that an ORDER BY item names, −1 for an expression.
func SortTarget(n *pg.Node, targets []bind.Target) (int, *refuse.Refusal) {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil && !c.Isnull {
		i := int(c.GetIval().Ival)
		if i < 1 || i > len(targets) {
			return -1, bind.BadOrdinal.At(int(c.Location), "ORDER BY", i)
		}
		return i - 1, nil
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 && len(n.GetColumnRef().Fields) == 1 {
		for i, t := range targets {
			if t.Label == names[0] {
				return i, nil
			}
		}
	}
	return -1, nil
}

func (b *Query) limits(sel *pg.SelectStmt, out *direct) *refuse.Refusal {
	limit, refusal := b.Whole(sel.LimitCount, "LIMIT", -1)
	if refusal != nil {
		return refusal
	}
	offset, refusal := b.Whole(sel.LimitOffset, "OFFSET", 0)
	out.Limit, out.Offset = limit, offset
	return refusal
}
