package outerquery

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

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
