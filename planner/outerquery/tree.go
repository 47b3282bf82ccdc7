package outerquery

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// The tree of an outer query for an engine. Of SELECT ward, rank() OVER (ORDER BY n DESC) FROM (SELECT ward, count(*)
// AS n FROM visits GROUP BY ward) t everything is rebuilt but the sub-query, which becomes SELECT k1, n1 FROM leaf_1.

// tree rebuilds an outer query node by node. It knows every node that may reach the sandbox and refuses all others, so
// nothing passes that is not listed here. Nodes of the statement are never shared with the tree.
type tree struct {
	b          *Query
	scope      *bind.Scope
	conditions []*pg.Node          // that hold of a row beside what is rebuilt: of WHERE
	g          *aggregate.Grouping // set above a leaf: keys and aggregates become columns of the leaf

	branch     bool     // set in a branch of UNION, INTERSECT or EXCEPT
	preview    *preview // set where private rows are made up
	aggregates bool     // set in a SELECT with aggregates, which may buy made-up rows
}

// query rebuilds a SELECT in a scope of its own.
func (t *tree) query(sel *pg.SelectStmt) (*pg.SelectStmt, *refuse.Refusal) {
	if sel == nil {
		return nil, refuse.Construct.At(-1, "this sub-query")
	}
	if refusal := t.b.RowPickers(sel, false); refusal != nil {
		return nil, refusal
	}
	in := &tree{b: t.b, scope: t.scope}
	out := &pg.SelectStmt{LimitOption: sel.LimitOption, Op: sel.Op, All: sel.All, GroupDistinct: sel.GroupDistinct}
	var refusal *refuse.Refusal
	if out.WithClause, refusal = in.with(sel.WithClause); refusal != nil {
		return nil, refusal
	}
	if refusal = t.b.failingClause(sel); refusal != nil {
		return nil, refusal
	}
	if sel.Larg != nil {
		return out, in.setOperation(sel, out)
	}
	from, refusal := t.b.FromRows(sel, in.scope)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case from != nil && !bind.IsGrouped(sel) && !t.branch:
		refusal = in.emptyRows(sel, from, out)
	case from != nil:
		written := sel
		if t.branch {
			sel = distinct(sel)
		}
		if in.g, refusal = t.b.Group(sel, from); refusal == nil {
			t.b.Groups[written] = in.g
			refusal = in.grouped(out, t.branch)
		}
	default:
		in.aggregates = bind.IsGrouped(sel) && !bind.IsDistinct(sel)
		refusal = in.plain(sel, out)
	}
	return out, refusal
}

// with rebuilds the WITH queries that are released tables; private rows are pulled into the leaves that read them.
func (t *tree) with(w *pg.WithClause) (*pg.WithClause, *refuse.Refusal) {
	if w == nil {
		return nil, nil
	}
	out := &pg.WithClause{Recursive: w.Recursive}
	if w.Recursive {
		for _, n := range w.Ctes {
			t.scope = t.scope.Released(n.GetCommonTableExpr().Ctename)
		}
	}
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		one := &pg.SelectStmt{WithClause: &pg.WithClause{Ctes: []*pg.Node{n}, Recursive: w.Recursive}}
		before := t.scope
		scope, refusal := t.b.With(one, before)
		if refusal != nil {
			return nil, refusal
		}
		if scope.Rows == nil {
			if c.SearchClause != nil || c.CycleClause != nil {
				return nil, refuse.Construct.At(int(c.Location), "SEARCH or CYCLE")
			}
			query, refusal := t.query(c.Ctequery.GetSelectStmt())
			if refusal != nil {
				return nil, refusal
			}
			out.Ctes = append(out.Ctes, &pg.Node{Node: &pg.Node_CommonTableExpr{CommonTableExpr: &pg.CommonTableExpr{
				Ctename: c.Ctename, Aliascolnames: ast.StringNodes(c.Aliascolnames), Ctematerialized: c.Ctematerialized, Ctequery: ast.Select(query)}}})
		}
		t.scope = scope
	}
	if len(out.Ctes) == 0 {
		return nil, nil
	}
	return out, nil
}

// setOperation rebuilds UNION, INTERSECT and EXCEPT. But for those with ALL no row is there twice, so that a branch of
// private rows is grouped by what it shows: SELECT ward FROM visits INTERSECT SELECT code FROM regions asks which wards
// enough rows have.
func (t *tree) setOperation(sel, out *pg.SelectStmt) (refusal *refuse.Refusal) {
	for _, side := range []struct {
		from *pg.SelectStmt
		to   **pg.SelectStmt
	}{{sel.Larg, &out.Larg}, {sel.Rarg, &out.Rarg}} {
		in := t
		if from := side.from; !sel.All && from != nil && from.Larg == nil && len(from.ValuesLists) == 0 && !bind.IsDistinctOn(from) &&
			(bind.IsDistinct(from) || !bind.IsGrouped(from) && from.LimitCount == nil && from.LimitOffset == nil) {
			in = &tree{b: t.b, scope: t.scope, branch: true}
		}
		if *side.to, refusal = in.query(side.from); refusal != nil {
			return refusal
		}
	}
	return t.tail(sel, out)
}

func (t *tree) tail(sel, out *pg.SelectStmt) (refusal *refuse.Refusal) {
	if out.SortClause, refusal = t.nodes(sel.SortClause); refusal != nil {
		return refusal
	}
	if out.LimitCount, refusal = t.node(sel.LimitCount); refusal != nil {
		return refusal
	}
	out.LimitOffset, refusal = t.node(sel.LimitOffset)
	return refusal
}

// plain rebuilds a SELECT over released tables.
func (t *tree) plain(sel, out *pg.SelectStmt) *refuse.Refusal {
	t.conditions = ast.Conjuncts(sel.WhereClause)
	for _, part := range []struct {
		from []*pg.Node
		to   *[]*pg.Node
	}{{sel.FromClause, &out.FromClause}, {sel.TargetList, &out.TargetList}, {sel.GroupClause, &out.GroupClause},
		{sel.WindowClause, &out.WindowClause}, {sel.ValuesLists, &out.ValuesLists}, {sel.DistinctClause, &out.DistinctClause}} {
		list, refusal := t.nodes(part.from)
		if refusal != nil {
			return refusal
		}
		*part.to = list
	}
	for _, part := range []struct {
		from *pg.Node
		to   **pg.Node
	}{{sel.WhereClause, &out.WhereClause}, {sel.HavingClause, &out.HavingClause}} {
		n, refusal := t.node(part.from)
		if refusal != nil {
			return refusal
		}
		*part.to = n
	}
	return t.tail(sel, out)
}

// distinct is a SELECT with DISTINCT.
func distinct(sel *pg.SelectStmt) *pg.SelectStmt {
	if len(sel.DistinctClause) > 0 {
		return sel
	}
	return &pg.SelectStmt{DistinctClause: []*pg.Node{{}}, TargetList: sel.TargetList, FromClause: sel.FromClause, WhereClause: sel.WhereClause, WithClause: sel.WithClause, WindowClause: sel.WindowClause,
		SortClause: sel.SortClause, LimitCount: sel.LimitCount, LimitOffset: sel.LimitOffset, LimitOption: sel.LimitOption, LockingClause: sel.LockingClause, Op: sel.Op}
}

// grouped rebuilds an aggregation over private rows as a SELECT over the rows of its leaf: HAVING becomes WHERE.
func (t *tree) grouped(out *pg.SelectStmt, present bool) (refusal *refuse.Refusal) {
	sel := t.g.Sel
	name := plans.LeafName(t.g.Leaf)
	out.FromClause = []*pg.Node{pg.MakeSimpleRangeVarNode(name, -1)}
	for _, tg := range t.g.Targets {
		n, refusal := t.node(tg.Node)
		if refusal != nil {
			return refusal
		}
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(tg.Label, n, -1))
	}
	if out.WhereClause, refusal = t.node(sel.HavingClause); refusal != nil {
		return refusal
	}
	if present && !t.g.Above && t.g.Fanned == nil && sel.HavingClause == nil {
		out.WhereClause = t.g.Present()
	}
	if t.g.Above {
		if out.DistinctClause, refusal = t.nodes(sel.DistinctClause); refusal != nil {
			return refusal
		}
	}
	if out.WindowClause, refusal = t.nodes(sel.WindowClause); refusal != nil {
		return refusal
	}
	for _, n := range sel.SortClause {
		s := n.GetSortBy()
		at, refusal := SortTarget(s.Node, t.g.Targets)
		if refusal != nil {
			return refusal
		}
		by := pg.MakeAConstIntNode(int64(at+1), -1)
		if at < 0 {
			if by, refusal = t.node(s.Node); refusal != nil {
				return refusal
			}
		}
		if len(s.UseOp) > 0 {
			return refuse.Construct.At(ast.Location(s.Node), "ORDER BY USING")
		}
		out.SortClause = append(out.SortClause, pg.MakeSortByNode(by, s.SortbyDir, s.SortbyNulls, -1))
	}
	above := &tree{b: t.b, scope: t.scope}
	if out.LimitCount, refusal = above.node(sel.LimitCount); refusal != nil {
		return refusal
	}
	out.LimitOffset, refusal = above.node(sel.LimitOffset)
	return refusal
}

// emptyRows rebuilds a preview of no private rows as typed NULLs that a false condition hides.
func (t *tree) emptyRows(sel *pg.SelectStmt, from *bind.Rows, out *pg.SelectStmt) *refuse.Refusal {
	d, columns, refusal := t.b.preview(sel, from)
	if refusal != nil {
		return refusal
	}
	if d == nil {
		return t.syntheticRows(sel, from, out)
	}
	out.LimitOption = pg.LimitOption_LIMIT_OPTION_DEFAULT
	for _, c := range columns {
		null := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(c.Name, ast.CastTo(null, c.Type, c.Typmod), -1))
	}
	out.WhereClause = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{}}, Location: -1}}}
	return nil
}
