package outerquery

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The places in a SELECT where groups that nobody is in decide what is shown without being shown (emptygroups.go). Of
//
//	SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 0) t
//
// the sub-query's rows are the leaf's, without the groups that its HAVING leaves out, with n for a count; then avg is
// asked whether what it reads at such a group changes it. None is looked for where a walk does not ask for groups.

// Occupied returns the SELECTs of a bound statement whose groups are counted, averaged or listed above them, so that
// those that nobody is in would decide the answer: see emptygroups.go. A statement is bound again where there are some.
func Occupied(b *aggregate.Binder, listed bool) map[*pg.SelectStmt]bool {
	w := walkOf(b, false)
	w.searches(&emptySearch{occupied: map[*pg.SelectStmt]bool{}})
	w.all(listed)
	return w.groups.occupied
}

// all is the whole statement, which may be a list in another.
func (w *walk) all(listed bool) relation {
	out := w.query(w.b.Top)
	if listed && (w.b.Top.LimitCount == nil || ast.IsNoLimit(w.b.Top.LimitCount)) {
		w.takePart(out.from)
	}
	return out
}

// groupsOfLeaf tells the groups of an aggregation over private rows, and what its columns are worth there.
func (w *walk) groupsOfLeaf(g *aggregate.Grouping, sel *pg.SelectStmt, out *relation) {
	if w.groups == nil {
		return
	}
	e := w.groups.known[sel]
	if e == nil {
		e = w.groupsOf(g, sel)
		w.groups.known[sel] = e
	}
	for i, t := range g.Targets {
		empty := emptyValue{of: e, without: w.atLeaf(g, t.Node, false)}
		if e.rows > 0 { // else there is no such group: how far noise reaches is not asked
			empty.noise = w.atLeaf(g, t.Node, true)
		}
		empty.counts = empty.without != nil && t.Node.GetFuncCall() != nil && empty.without.Type() == policy.Int8 && isCall(t.Node, "count")
		out.columns[i].empty = empty
	}
	if e.rows == 0 || w.groups.plan != nil && w.b.Occupied[sel] {
		return
	}
	at := func(n *pg.Node, _ *emptyGroups, noise bool) *semantics.Expr { return w.atLeaf(g, n, noise) }
	if e = e.left(at, ast.Conjuncts(aggregate.Having(g))); e != nil {
		out.from = []*emptyGroups{e}
	}
	if w.choosesBlindly(g, *out) {
		w.tell(out.from)
	}
	over := w.over(*out)
	over.windows(g.Sel, at)
	over.cut(g.Sel, *out, at)
}

// over is a walk that sees one relation alone.
func (w *walk) over(r relation) *walk {
	return &walk{asked: w.asked, sight: sight{relations: []relation{r}}, leaf: w.leaf}
}

// choosesBlindly tells a SELECT that shows what is chosen among a group's rows and no count of them: of SELECT ward,
// mode() WITHIN GROUP (ORDER BY kind) … GROUP BY ward a ward without rows has a kind too.
func (w *walk) choosesBlindly(g *aggregate.Grouping, out relation) bool {
	return slices.ContainsFunc(g.Question.Counters, func(c linear.Counter) bool { return c.Choice != nil }) && !slices.ContainsFunc(out.columns, func(c column) bool { return c.empty.counts })
}

// subQueries goes through the sub-queries of expressions. Rows that are asked for, and not read, tell nothing of their
// counts.
func (w *walk) subQueries(sel *pg.SelectStmt, where *pg.Node) {
	if w.groups == nil {
		return
	}
	for _, n := range slices.Concat([]*pg.Node{where, sel.HavingClause}, sel.TargetList, sel.SortClause) {
		ast.Holds(n, func(n *pg.Node) bool {
			if s := n.GetSubLink(); s != nil {
				out := w.query(s.Subselect.GetSelectStmt())
				if s.SubLinkType != pg.SubLinkType_EXPR_SUBLINK {
					w.takePart(out.from)
				}
			}
			return false
		})
	}
}

// where leaves out the groups that a condition leaves out of the relations from a place on.
func (w *walk) where(condition *pg.Node, first int) {
	for i := first; i < len(w.relations); i++ {
		r := &w.relations[i]
		from := r.from
		r.from = nil
		for _, e := range from {
			if e = e.left(w.valueAt, ast.Conjuncts(condition)); e != nil {
				r.from = append(r.from, e)
			}
		}
	}
}

// computed is what an expression over the relations in sight is worth.
func (w *walk) computed(n *pg.Node) (value emptyValue) {
	for _, r := range w.relations {
		for _, e := range r.from {
			if v := w.valueAt(n, e, false); v != nil {
				value = emptyValue{of: e, without: v, noise: w.valueAt(n, e, true)}
			}
		}
	}
	return value
}

// groupsAmong tells the groups that are among the rows of a SELECT above the leaves.
func (w *walk) groupsAmong(sel *pg.SelectStmt, out *relation) {
	if w.groups == nil {
		return
	}
	for _, r := range w.relations { // two that are one WITH query have its groups twice
		w.b.Env.Work.Step(len(r.from) << 6)
		out.from = append(out.from, r.from...)
	}
	if !bind.IsGrouped(sel) {
		w.windows(sel, w.valueAt)
		w.cut(sel, *out, w.valueAt)
		return
	}
	for _, n := range slices.Concat([]*pg.Node{sel.HavingClause}, sel.TargetList, sel.SortClause) {
		ast.Holds(n, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
				w.takePart(w.moved(f, w.valueAt))
			}
			return false
		})
	}
	for i := range out.columns {
		out.columns[i].empty = emptyValue{}
	}
	if len(sel.GroupClause) == 0 && !bind.IsDistinct(sel) {
		out.from = nil
	}
	// A group of groups that nobody is in: a sum over it is 0, and of what else it has nothing is known.
	w.over(*out).windows(sel, func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr {
		if f := n.GetFuncCall(); f != nil && isCall(n, "sum") && len(f.Args) == 1 && isNothing(w.valueAt(f.Args[0], e, noise), true) {
			return semantics.ConstantExpr(int64(0), policy.Int8, -1)
		}
		return nil
	})
}

// windows tells groups that window functions read. Ranks from the most to the least end with those that nobody is in.
func (w *walk) windows(sel *pg.SelectStmt, at valueAt) {
	for _, n := range slices.Concat(sel.SortClause, sel.TargetList) {
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
			for _, e := range w.moved(f, at) {
				ranks := name == "rank" || name == "dense_rank" || name == "row_number"
				if !ranks || len(order) == 0 || !fromTheMost(order[0], e, at) {
					w.tell([]*emptyGroups{e})
				}
			}
			return false
		})
	}
}

// lastBy reports whether groups that nobody is in come last by an item that may name a column of the output.
func lastBy(by *pg.Node, out relation, e *emptyGroups, at valueAt) bool {
	i := shownAt(by.GetSortBy(), out)
	if i < 0 {
		return fromTheMost(by, e, at)
	}
	c := out.columns[i].empty
	return by.GetSortBy().SortbyDir == pg.SortByDir_SORTBY_DESC && c.of != nil && isNothing(c.without, true)
}

// cut tells groups that LIMIT and OFFSET choose among, but from the most down.
func (w *walk) cut(sel *pg.SelectStmt, out relation, at valueAt) {
	if w.groups == nil || sel.LimitOffset == nil && (sel.LimitCount == nil || ast.IsNoLimit(sel.LimitCount)) {
		return
	}
	limit, refusal := w.b.Whole(sel.LimitCount, "LIMIT", -1)
	if refusal != nil {
		return
	}
	for _, e := range out.from {
		if len(out.from) == 1 && len(w.relations) == 1 && sel.LimitOffset == nil && limit >= e.rows {
			continue
		}
		if len(sel.SortClause) > 0 && lastBy(sel.SortClause[0], out, e, at) {
			continue
		}
		w.tell([]*emptyGroups{e})
	}
}

// shownAt is the column of the output that an ORDER BY item names, −1 for none.
func shownAt(s *pg.SortBy, out relation) int {
	targets := make([]bind.Target, len(out.columns))
	for i, c := range out.columns {
		targets[i].Label = c.Name
	}
	i, refusal := SortTarget(s.GetNode(), targets)
	if refusal != nil {
		return -1
	}
	return i
}
