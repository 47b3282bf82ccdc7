package aggregate

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
)

// SELECT city FROM people GROUP BY city ORDER BY count(*) DESC LIMIT 3 shows an order and no count: the question says
// that the first three keys will do, so that they may be chosen instead of counted.

// showsFirstKeys reports whether a grouping shows its keys, those alone that come first in one order.
func (g *Grouping) showsFirstKeys() bool {
	sel := g.Sel
	return !g.Above && sel.HavingClause == nil && sel.LimitOffset == nil && len(sel.SortClause) == 1 && sel.LimitCount != nil && sel.LimitOption != pg.LimitOption_LIMIT_OPTION_WITH_TIES &&
		!slices.ContainsFunc(g.Targets, func(t bind.Target) bool { return ast.HasAggregate(t.Node) || ast.HasWindow(t.Node) })
}

// findTop notes that a grouping shows the first n keys alone.
func (g *Grouping) findTop() {
	sel := g.Sel
	if len(g.Question.Keys) == 0 || g.Question.Sets != nil || !g.showsFirstKeys() {
		return
	}
	by := sel.SortClause[0].GetSortBy()
	f := by.Node.GetFuncCall()
	if by.SortbyDir != pg.SortByDir_SORTBY_DESC || f == nil || !ast.IsAggregate(f) || f.AggDistinct {
		return
	}
	if name, refusal := ast.FunctionName(f); refusal != nil || name != "count" {
		return
	}
	if n, refusal := g.b.Whole(sel.LimitCount, "LIMIT", -1); refusal == nil && n >= 1 && n <= mechanisms.MaxChosen {
		g.Question.Top = int(n)
	}
}
