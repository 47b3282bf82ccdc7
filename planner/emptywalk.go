package planner

import (
	"slices"
	"sync/atomic"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The walk through a bound statement to the places where groups that nobody is in decide what is shown without being shown
// (emptygroups.go): each SELECT tells the rows that it hands on, and of which leaves' groups they are.
//
//	SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 0) t
//
// is walked from the outside in: the sub-query's rows are the leaf's, without the groups that its HAVING leaves out, with n
// for a count; then avg is asked whether what it reads at such a group changes it.

// emptyWalk goes through a bound statement.
type emptyWalk struct {
	*emptySearch
	with []groupRows
}

// noteEmptyGroups notes where groups that nobody is in decide about what a statement shows; of one that is a list in another, also where they are in it: of
//
//	SELECT count(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE urgent GROUP BY ward)
//
// all visits are counted. Where LIMIT cuts the list, it is told of what it chooses among.
func (p assembly) noteEmptyGroups(b *aggregate.Binder, notes *semantics.Notes, listed bool) {
	quiet := *b
	quiet.Env.Asked = new(atomic.Bool)
	quiet.Params = &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	search := &emptySearch{b: &quiet, plan: p, notes: notes, known: map[*pg.SelectStmt]*emptyGroups{}, errors: map[*plans.CountColumn]int64{}}
	w := &emptyWalk{emptySearch: search}
	if out := w.query(b.Top); listed && (b.Top.LimitCount == nil || ast.IsNoLimit(b.Top.LimitCount)) {
		w.tell(out.from)
	}
}

// query goes through one SELECT and tells its rows.
func (w *emptyWalk) query(sel *pg.SelectStmt) (out groupRows) {
	if sel == nil {
		return out
	}
	in := &emptyWalk{emptySearch: w.emptySearch, with: slices.Clone(w.with)}
	for _, n := range sel.GetWithClause().GetCtes() {
		c := n.GetCommonTableExpr()
		in.with = append(in.with, in.query(c.Ctequery.GetSelectStmt()).named(c.Ctename, c.Aliascolnames))
	}
	if sel.Larg != nil {
		left, right := in.query(sel.Larg), in.query(sel.Rarg)
		out = groupRows{columns: left.columns, from: append(slices.Clone(left.from), right.from...)}
		if len(left.from) == 0 {
			out.columns = right.named("", nil).columns
			for i := range out.columns {
				if i < len(left.columns) {
					out.columns[i].name = left.columns[i].name
				}
			}
		} else if len(right.from) > 0 {
			out.columns = unknownColumns(left.columns)
		}
		in.cut(sel, out, []groupRows{out})
		return out
	}
	if g := w.b.Groups[sel]; g != nil {
		return in.leaf(g)
	}
	var seen []groupRows
	for _, n := range sel.FromClause {
		seen = append(seen, in.item(n)...)
	}
	in.subQueries(append(append([]*pg.Node{sel.WhereClause, sel.HavingClause}, sel.TargetList...), sel.SortClause...))
	seen = in.where(sel.WhereClause, seen)
	if bind.IsGrouped(sel) {
		return in.aggregated(sel, seen)
	}
	for _, r := range seen {
		out.from = append(out.from, r.from...)
	}
	for _, n := range sel.TargetList {
		out.columns = append(out.columns, in.columns(n.GetResTarget(), seen)...)
	}
	in.windows(sel, seen)
	in.cut(sel, out, seen)
	return out
}

// leaf tells the rows of an aggregation over private rows.
func (w *emptyWalk) leaf(g *aggregate.Grouping) (out groupRows) {
	e := w.known[g.Sel]
	if e == nil {
		e = w.groupsOf(g)
		w.known[g.Sel] = e
	}
	for _, t := range g.Targets {
		column := groupColumn{name: t.Label, of: e, without: w.atLeaf(g, t.Node, false)}
		if e.rows > 0 { // else there is no such group: how far noise reaches is not asked
			column.noise = w.atLeaf(g, t.Node, true)
		}
		column.counts = column.without != nil && t.Node.GetFuncCall() != nil && column.without.Type() == policy.Int8 && isCall(t.Node, "count")
		out.columns = append(out.columns, column)
	}
	if e.rows == 0 {
		return out
	}
	out.from = []*emptyGroups{e}
	if g.Sel.HavingClause != nil {
		out.from = w.left(out.from, func(n *pg.Node, noise bool) *semantics.Expr { return w.atLeaf(g, n, noise) }, ast.Conjuncts(g.Sel.HavingClause))
	}
	if w.choosesBlindly(g, out) {
		w.tell(out.from)
	}
	self := []groupRows{out}
	at := func(n *pg.Node, _ *emptyGroups, noise bool) *semantics.Expr { return w.atLeaf(g, n, noise) }
	w.windowsAt(g.Sel, self, at)
	w.cutAt(g.Sel, out, self, at)
	return out
}

// choosesBlindly tells a SELECT that shows what is chosen among a group's rows and no count of them: of SELECT ward, mode() WITHIN GROUP (ORDER BY kind) … GROUP BY ward
// a ward without rows has a kind too.
func (w *emptyWalk) choosesBlindly(g *aggregate.Grouping, out groupRows) bool {
	return slices.ContainsFunc(g.Question.Counters, func(c linear.Counter) bool { return c.Choice != nil }) && !slices.ContainsFunc(out.columns, func(c groupColumn) bool { return c.counts })
}

// item tells the rows of an item of FROM; a join's are those of its sides, as far as its condition leaves them.
func (w *emptyWalk) item(n *pg.Node) []groupRows {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeSubselect:
		return []groupRows{w.query(v.RangeSubselect.Subquery.GetSelectStmt()).named(v.RangeSubselect.GetAlias().GetAliasname(), v.RangeSubselect.GetAlias().GetColnames())}
	case *pg.Node_RangeVar:
		for i := len(w.with) - 1; i >= 0 && v.RangeVar.Schemaname == ""; i-- {
			if w.with[i].alias != v.RangeVar.Relname {
				continue
			}
			if a := v.RangeVar.Alias; a != nil {
				return []groupRows{w.with[i].named(a.Aliasname, a.Colnames)}
			}
			return []groupRows{w.with[i]}
		}
		return []groupRows{{alias: v.RangeVar.Relname}}
	case *pg.Node_JoinExpr:
		seen := append(w.item(v.JoinExpr.Larg), w.item(v.JoinExpr.Rarg)...)
		if v.JoinExpr.Jointype == pg.JoinType_JOIN_INNER {
			return w.where(v.JoinExpr.Quals, seen)
		}
		return seen
	}
	return []groupRows{{}}
}

// subQueries goes through the sub-queries of expressions. Rows that are asked for, and not read, tell nothing of their counts.
func (w *emptyWalk) subQueries(list []*pg.Node) {
	for _, n := range list {
		if n.GetResTarget() != nil {
			n = n.GetResTarget().Val
		}
		if n.GetSortBy() != nil {
			n = n.GetSortBy().Node
		}
		ast.Holds(n, func(n *pg.Node) bool {
			if s := n.GetSubLink(); s != nil {
				out := w.query(s.Subselect.GetSelectStmt())
				if s.SubLinkType != pg.SubLinkType_EXPR_SUBLINK {
					w.tell(out.from)
				}
			}
			return false
		})
	}
}

// where leaves out the groups that a condition leaves out.
func (w *emptyWalk) where(condition *pg.Node, seen []groupRows) []groupRows {
	if condition == nil {
		return seen
	}
	out := slices.Clone(seen)
	for i := range out {
		var from []*emptyGroups
		for _, e := range out[i].from {
			from = append(from, w.left([]*emptyGroups{e}, func(n *pg.Node, noise bool) *semantics.Expr { return w.at(n, seen, e, noise) }, ast.Conjuncts(condition))...)
		}
		out[i].from = from
	}
	return out
}

// columns are those that a target shows.
func (w *emptyWalk) columns(target *pg.ResTarget, seen []groupRows) (out []groupColumn) {
	if ref := target.GetVal().GetColumnRef(); ref != nil {
		if len(ref.Fields) > 0 && ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			words := ast.Strings(ref.Fields)
			for _, r := range seen {
				if len(words) == 0 || words[len(words)-1] == r.alias {
					out = append(out, r.columns...)
				}
			}
			return out
		}
		if c := find(ast.Strings(ref.Fields), seen); c != nil {
			same := *c
			same.name = ast.Label(target)
			return []groupColumn{same}
		}
	}
	column := groupColumn{name: ast.Label(target)}
	for _, r := range seen {
		for _, e := range r.from {
			if v := w.at(target.GetVal(), seen, e, false); v != nil {
				column.of, column.without, column.noise = e, v, w.at(target.GetVal(), seen, e, true)
			}
		}
	}
	return []groupColumn{column}
}

// aggregated tells groups that an aggregation above a leaf reads.
func (w *emptyWalk) aggregated(sel *pg.SelectStmt, seen []groupRows) (out groupRows) {
	nodes := []*pg.Node{sel.HavingClause}
	for _, n := range sel.TargetList {
		nodes = append(nodes, n.GetResTarget().Val)
	}
	for _, n := range sel.SortClause {
		nodes = append(nodes, n.GetSortBy().Node)
	}
	for _, n := range nodes {
		ast.Holds(n, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && f.Over == nil && ast.IsAggregate(f) {
				w.tell(w.moved(f, seen, func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr { return w.at(n, seen, e, noise) }))
			}
			return false
		})
	}
	for _, n := range sel.TargetList {
		out.columns = append(out.columns, groupColumn{name: ast.Label(n.GetResTarget())})
	}
	if len(sel.GroupClause) > 0 || bind.IsDistinct(sel) {
		for _, r := range seen {
			out.from = append(out.from, r.from...)
		}
	}
	// A group of groups that nobody is in: a sum over it is 0, and of what else it has nothing is known.
	w.windowsAt(sel, []groupRows{out}, func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr {
		if f := n.GetFuncCall(); f != nil && isCall(n, "sum") && len(f.Args) == 1 && isNothing(w.at(f.Args[0], seen, e, noise), true) {
			return semantics.ConstantExpr(int64(0), policy.Int8, -1)
		}
		return nil
	})
	return out
}

func (w *emptyWalk) windows(sel *pg.SelectStmt, seen []groupRows) {
	w.windowsAt(sel, seen, func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr { return w.at(n, seen, e, noise) })
}

// windowsAt tells groups that window functions read. Ranks from the most to the least end with those that nobody is in.
func (w *emptyWalk) windowsAt(sel *pg.SelectStmt, seen []groupRows, at func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr) {
	nodes := slices.Clone(sel.SortClause)
	for _, n := range sel.TargetList {
		nodes = append(nodes, n.GetResTarget().Val)
	}
	for _, n := range nodes {
		if n.GetSortBy() != nil {
			n = n.GetSortBy().Node
		}
		ast.Holds(n, func(n *pg.Node) bool {
			f := n.GetFuncCall()
			if f == nil || f.Over == nil {
				return false
			}
			order := f.Over.OrderClause
			for _, d := range sel.WindowClause {
				if d.GetWindowDef().GetName() == f.Over.Name && f.Over.Name != "" {
					order = d.GetWindowDef().OrderClause
				}
			}
			name, _ := ast.FunctionName(f)
			for _, e := range w.moved(f, seen, at) {
				ranks := name == "rank" || name == "dense_rank" || name == "row_number"
				if !ranks || len(order) == 0 || !fromTheMost(order[0], e, at) {
					w.tell([]*emptyGroups{e})
				}
			}
			return false
		})
	}
}

func (w *emptyWalk) cut(sel *pg.SelectStmt, out groupRows, seen []groupRows) {
	w.cutAt(sel, out, seen, func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr { return w.at(n, seen, e, noise) })
}

// cutAt tells groups that LIMIT and OFFSET choose among, but from the most down.
func (w *emptyWalk) cutAt(sel *pg.SelectStmt, out groupRows, seen []groupRows, at func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr) {
	if sel.LimitCount == nil && sel.LimitOffset == nil || ast.IsNoLimit(sel.LimitCount) && sel.LimitOffset == nil {
		return
	}
	limit, refusal := w.b.Whole(sel.LimitCount, "LIMIT", -1)
	if refusal != nil {
		return
	}
	for _, e := range out.from {
		if len(out.from) == 1 && len(seen) == 1 && sel.LimitOffset == nil && limit >= e.rows {
			continue
		}
		if len(sel.SortClause) > 0 {
			by := sel.SortClause[0]
			if i := w.shownAt(by.GetSortBy(), out); i >= 0 {
				if c := out.columns[i]; by.GetSortBy().SortbyDir == pg.SortByDir_SORTBY_DESC && c.of != nil && isNothing(c.without, true) {
					continue
				}
			} else if fromTheMost(by, e, at) {
				continue
			}
		}
		w.tell([]*emptyGroups{e})
	}
}

// shownAt is the column of the output that an ORDER BY item names, −1 for none.
func (w *emptyWalk) shownAt(s *pg.SortBy, out groupRows) int {
	targets := make([]bind.Target, len(out.columns))
	for i, c := range out.columns {
		targets[i].Label = c.name
	}
	i, refusal := outerquery.SortTarget(s.GetNode(), targets)
	if refusal != nil {
		return -1
	}
	return i
}
