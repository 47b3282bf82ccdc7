package outerquery

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
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
func (t *tree) grouped(out *pg.SelectStmt, branch bool) (refusal *refuse.Refusal) {
	sel := t.g.Sel
	distinctBranch(t.g, branch)
	name := plans.LeafName(t.g.Leaf)
	out.FromClause = []*pg.Node{pg.MakeSimpleRangeVarNode(name, -1)}
	for _, tg := range t.g.Targets {
		n, refusal := t.node(tg.Node)
		if refusal != nil {
			return refusal
		}
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(tg.Label, n, -1))
	}
	if out.WhereClause, refusal = t.node(aggregate.Having(t.g)); refusal != nil {
		return refusal
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

// distinctBranch has a branch of a set operation be of the values that are there, unless it has a condition on them.
func distinctBranch(g *aggregate.Grouping, branch bool) {
	if branch && !g.Above && g.Fanned == nil && g.Sel.HavingClause == nil {
		g.Present(linear.OfValues)
	}
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

// FROM and calls in the tree for an engine: FROM pg_class c keeps its name and gets its schema, FROM dp.my_rows becomes
// a leaf, and a call is rebuilt where its function is on the list.

// relation rebuilds a name in FROM: a WITH query, or a relation of the sandbox with its schema.
func (t *tree) relation(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	node, refusal := ast.Copied(n, t.node)
	v, out := n.GetRangeVar(), node.GetRangeVar()
	out.Catalogname, out.Schemaname = "", ""
	if refusal != nil || v.Schemaname == "" && t.scope.Find(v.Relname) != nil {
		return node, refusal
	}
	private, other, refusal := t.b.Resolve(v)
	if refusal != nil {
		return nil, refusal
	}
	if private != nil && t.preview != nil && private.Schema == t.preview.table.Schema && private.Name == t.preview.table.Name {
		return t.leafAs(node, v.Relname, t.preview.leaf), nil
	}
	if private != nil {
		return nil, bind.PrivateJoin.At(int(v.Location), private.Name)
	}
	if other.Release != nil {
		leaf, refusal := t.syntheticTable(other.Release, int(v.Location))
		return t.leafAs(node, v.Relname, leaf), refusal
	}
	out.Schemaname = other.Schema
	for _, have := range t.b.relations {
		if have == other {
			return node, nil
		}
	}
	t.b.relations = append(t.b.relations, other)
	return node, nil
}

// leafAs turns a relation into a leaf that has its name.
func (t *tree) leafAs(n *pg.Node, name, leaf string) *pg.Node {
	v := n.GetRangeVar()
	if v.Relname = leaf; v.Alias == nil {
		v.Alias = &pg.Alias{Aliasname: name}
	}
	return n
}

func (t *tree) callable(f *pg.FuncCall) *refuse.Refusal {
	if refusal := semantics.EngineFunction(f); refusal != nil {
		return refusal
	}
	return seriesBounded(t.b.Binder, f)
}

// subLink rebuilds a sub-query of an expression: a query of its own, with leaves of its own.
func (t *tree) subLink(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	asked, s := len(t.b.Questions), n.GetSubLink()
	out, refusal := ast.Copied(n, t.node)
	if refusal != nil && t.g == nil && s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && t.b.around(refusal).ID == bind.CountedAround.ID {
		t.b.Forget(asked)
		each, also := t.b.ForEach(s.Subselect.GetSelectStmt(), t.scope, t.conditions)
		if each != nil && also == nil {
			return t.node(lookedUp(each))
		}
	}
	return out, refusal
}

// ownType refuses the name of a type that is none of PostgreSQL's own schemas.
func ownType(t *pg.TypeName) *refuse.Refusal {
	words := ast.Strings(t.Names)
	if len(words) > 2 || len(words) == 2 && words[0] != "pg_catalog" && words[0] != "information_schema" || t.Setof || t.PctType {
		return refuse.UnknownType.At(int(t.Location), strings.Join(words, "."))
	}
	if slices.ContainsFunc(t.Typmods, func(m *pg.Node) bool { return m.GetAConst() == nil }) {
		return refuse.Construct.At(int(t.Location), "this type modifier")
	}
	return nil
}

// parameter writes $n as a typed literal.
func (t *tree) parameter(p *pg.ParamRef) (*pg.Node, *refuse.Refusal) {
	n := int(p.Number)
	params := t.b.Params
	params.Seen = max(params.Seen, n)
	typ := params.TypeOf(n)
	if typ == policy.Bpchar || typ == ast.BpcharArray {
		return t.char(n, typ), nil
	}
	untyped := typ == 0 || typ == policy.Unknown
	null := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
	if params.Describing {
		if untyped && n > 0 {
			return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: -int32(n), Location: -1}}}, nil
		}
		return ast.Cast(null, typ), nil
	}
	if n < 1 || n > len(params.Values) {
		return nil, refuse.UnknownParam.At(int(p.Location), n)
	}
	v := params.Values[n-1]
	if given := semantics.TypeOfValue(v); typ == 0 && given != policy.Unknown {
		typ = given
	}
	switch v := v.(type) {
	case nil:
		return ast.Cast(null, typ), nil
	case string:
		if set := &t.b.Context.Settings; untyped && !set.Literals.SameSettings(set.Zone, set.Form) {
			t.b.Given = append(t.b.Given, v)
			return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: int32(len(t.b.Given)), Location: -1}}}, nil
		}
		return ast.Cast(pg.MakeAConstStrNode(v, -1), typ), nil
	case []policy.Value:
		return ast.Cast(pg.MakeAConstStrNode(t.arrayText(v), -1), typ), nil
	}
	return ast.Cast(pg.MakeAConstStrNode(t.b.Env.FormatText(semantics.TypeOfValue(v), v), -1), typ), nil
}

// char writes a parameter of type bpchar, or of an array of them, which has the blanks that it has.
func (t *tree) char(n int, typ policy.Type) *pg.Node {
	value := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
	if params := t.b.Params; !params.Describing && n <= len(params.Values) {
		switch v := params.Values[n-1].(type) {
		case string:
			value = pg.MakeAConstStrNode(v, -1)
		case []policy.Value:
			value = pg.MakeAConstStrNode(t.arrayText(v), -1)
		}
	}
	cast := ast.CastTo(value, policy.Bpchar, -1)
	if typ == ast.BpcharArray {
		cast.GetTypeCast().TypeName.ArrayBounds = []*pg.Node{pg.MakeIntNode(-1)}
	}
	return cast
}

func (t *tree) arrayText(values []policy.Value) string {
	parts := make([]string, len(values))
	for i, v := range values {
		if parts[i] = "NULL"; v != nil {
			text := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(semantics.PlainText(t.b.Env, v))
			parts[i] = `"` + text + `"`
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
