package outerquery

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
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
	having := sel.HavingClause
	if g != nil {
		having = aggregate.Having(g)
	}
	return b.project(sel, out, t, targets, nil, having, "HAVING")
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

// A projection of a projection, as BI tools wrap a query: SELECT t.ward, t.n FROM (SELECT ward, count(*) AS n FROM
// visits GROUP BY ward) t WHERE t.n > 5 LIMIT 1000 is one projection of leaf_1, and needs no engine.

// projection are the columns of a sub-query that is itself a projection of a leaf.
type projection struct {
	alias string
	names []string
	exprs []*semantics.Expr // over the leaf's row
}

func (d *projection) column(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	name := fields[len(fields)-1]
	if words := fields[:len(fields)-1]; len(words) > 1 || len(words) == 1 && words[0] != d.alias {
		return nil, bind.UnknownAlias.At(pos, strings.Join(words, "."))
	}
	at := -1
	for i, n := range d.names {
		if n == name {
			if at >= 0 {
				return nil, bind.Ambiguous.At(pos, name)
			}
			at = i
		}
	}
	if at < 0 && len(fields) == 1 && name == d.alias {
		return nil, semantics.NoForm.At(pos, "a whole row") // which an engine has
	}
	if at < 0 {
		return nil, semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
	}
	return d.exprs[at], nil
}

// wrapper plans SELECT … FROM (SELECT … GROUP BY …) AS t as one projection of the leaf, the way BI tools wrap a query.
// A nil Direct sends it to the engine.
func (b *Query) wrapper(sel *pg.SelectStmt) (*direct, []plans.OutColumn, *refuse.Refusal) {
	sub := sel.FromClause[0].GetRangeSubselect()
	query := sub.GetSubquery().GetSelectStmt()
	if query == nil || sub.Alias == nil || bind.IsGrouped(sel) || bind.IsDistinctOn(sel) || b.needsEngine(sel, nil) || ast.Holds(sel.WhereClause, ast.IsSubLink) {
		return nil, nil, nil
	}
	inner, columns, refusal := b.simple(query)
	if inner == nil || refusal != nil {
		return nil, nil, refusal
	}
	cut := inner.Limit >= 0 || inner.Offset > 0
	if cut && (sel.WhereClause != nil || len(sel.SortClause) > 0 || sel.LimitCount != nil || sel.LimitOffset != nil) {
		return nil, nil, nil
	}
	d := &projection{alias: sub.Alias.Aliasname, exprs: inner.exprs}
	for _, c := range columns {
		d.names = append(d.names, c.Name)
	}
	for i, name := range ast.Strings(sub.Alias.Colnames) {
		if i >= len(d.names) {
			return nil, nil, bind.ColumnCount.At(-1, d.alias, len(d.names), len(sub.Alias.Colnames))
		}
		d.names[i] = name
	}
	return b.compose(sel, d, inner)
}

// compose writes the outer SELECT over the inner one's expressions.
func (b *Query) compose(sel *pg.SelectStmt, d *projection, inner *direct) (*direct, []plans.OutColumn, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Columns: d.column, Place: "SELECT"}
	out := &direct{Direct: plans.Direct{Leaf: inner.Leaf, Having: inner.Having, Sort: inner.Sort, Limit: inner.Limit, Offset: inner.Offset}, rest: inner.rest}
	var targets []bind.Target
	var given []*semantics.Expr
	for _, n := range sel.TargetList {
		r := n.GetResTarget()
		if !ast.IsStar(r.Val) {
			targets = append(targets, bind.Target{Label: ast.Label(r), Node: r.Val})
			continue
		}
		if words := ast.Strings(r.Val.GetColumnRef().Fields); len(words) > 0 && words[len(words)-1] != d.alias {
			return nil, nil, bind.UnknownAlias.At(ast.Location(r.Val), words[len(words)-1])
		}
		for _, name := range d.names {
			targets = append(targets, bind.Target{Label: name})
		}
		given = append(given, d.exprs...)
	}
	return b.project(sel, out, t, targets, given, sel.WhereClause, "WHERE")
}

// show adds an output column, of a char with its blanks. False: it is a choice made above the leaf, coalesce(c, 'x'),
// of which an engine knows them.
func (d *direct) show(t *semantics.Translator, b *Query, e *semantics.Expr) (bool, *refuse.Refusal) {
	if !e.Ragged() {
		item, refusal := t.Filled(e)
		if refusal != nil {
			return false, refusal
		}
		d.add(b, e, item.Expr)
		return true, nil
	}
	if e.Form == semantics.FormColumn {
		d.add(b, e, e.Expr)
	}
	return e.Form == semantics.FormColumn, nil
}

func (d *direct) add(b *Query, e *semantics.Expr, item scalar.Expr) {
	d.Items, d.exprs = append(d.Items, item), append(d.exprs, e)
	d.counts = append(d.counts, b.countShown(d.Leaf, e))
	d.linear = append(d.linear, b.linearShown(d.Leaf, e))
}

// countShown is the leaf's count column that an expression is, or −1.
func (b *Query) countShown(leaf int, e *semantics.Expr) int {
	if leaf < 0 || e.Form != semantics.FormColumn || e.Cols[0] < len(b.Questions[leaf].Keys) {
		return -1
	}
	return e.Cols[0] - len(b.Questions[leaf].Keys)
}

// isNoisy reports whether an expression over a leaf's row reads a count.
func (b *Query) isNoisy(leaf int, e *semantics.Expr) bool {
	return leaf >= 0 && len(e.Cols) > 0 && e.Cols[len(e.Cols)-1] >= len(b.Questions[leaf].Keys)
}

// The types of window functions: in SELECT ward, count(*), rank() OVER (ORDER BY count(*) DESC) FROM visits GROUP BY
// ward the third column is a bigint that depends on the counts, the second a count as it is.

// Shown says which output columns are counts of one leaf as they are.
type Shown struct {
	Leaf   int
	Counts []int // by output column: the leaf's count column, or −1
	Linear []*Linear
}

// windowTypes are the types of window functions that do not depend on their arguments.
var windowTypes = map[string]policy.Type{
	"count": policy.Int8, "row_number": policy.Int8, "rank": policy.Int8, "dense_rank": policy.Int8, "ntile": policy.Int4,
	"percent_rank": policy.Float8, "cume_dist": policy.Float8,
}

func windowResult(name string, arg policy.Type) policy.Type {
	switch name {
	case "min", "max", "first_value", "last_value", "nth_value", "lag", "lead":
		return arg
	case "sum":
		if arg == policy.IntervalT {
			return arg
		}
		return semantics.AggregateType(name, arg)
	case "bool_and", "bool_or", "every":
		return policy.Bool
	case "string_agg":
		return policy.Text
	case "avg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		return semantics.AggregateType(name, arg)
	}
	return 0
}
