package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// A plain SELECT: FROM, WHERE, the select list, GROUP BY and HAVING, DISTINCT. Columns get the names that PostgreSQL gives them,
// which travel beside the text (Query.Columns).
//
//	SELECT DISTINCT k FROM leaf_1 WHERE n > 0
//	⇒ SELECT "c1" AS "c1" FROM (SELECT DISTINCT "t1"."k" AS "c1" FROM "leaf_1" AS "t1" WHERE ("t1"."n" > CAST(0 AS INTEGER)))
//	  AS "q2"

// target is an item of a select list.
type target struct {
	name string
	expr expr
}

// selection binds a plain SELECT.
func (b *binder) selection(s *pg.SelectStmt, sc *scope) relation {
	from := b.from(s.GetFromClause(), sc)
	where := b.condition(s.GetWhereClause(), sc)
	sc.windows = map[string]*pg.WindowDef{}
	for _, w := range s.GetWindowClause() {
		sc.windows[w.GetWindowDef().GetName()] = w.GetWindowDef()
	}
	targets := b.targets(s.GetTargetList(), sc)
	group := b.groupBy(s, sc, targets)
	if having := b.condition(s.GetHavingClause(), sc); having != "" {
		group += " HAVING " + having
	}
	q := relation{}
	series := false
	var items []string
	for i, t := range targets {
		name := columnName("c", i)
		q.columns = append(q.columns, column{name: t.name, sql: name, typed: t.expr.typed})
		items = append(items, t.expr.sql+" AS "+name)
		series = series || t.expr.series
	}
	if len(s.GetDistinctClause()) == 0 {
		items = append(items, besides(targets, q.columns)...)
	}
	tail := from
	if where != "" {
		tail += " WHERE " + where
	}
	tail += group
	if len(s.GetDistinctClause()) > 0 {
		return b.distinct(s, sc, targets, q, items, tail)
	}
	if series {
		q.sql = "SELECT " + orTrue(items) + tail
		q.certain = b.selected(s, sc.certain, targets)
		q.rows = false // a series may be empty
		return b.sorted(s, q, sc)
	}
	order, keys := b.orderBy(s, sc, targets)
	q.certain = b.selected(s, sc.certain, targets)
	items = append(items, keys...)
	q.sql = "SELECT " + orTrue(items) + tail
	q.orderBy = order + b.limits(s, sc)
	return q
}

func orTrue(items []string) string {
	if len(items) == 0 {
		return "true AS c0"
	}
	return strings.Join(items, ", ")
}

// distinct binds SELECT DISTINCT and DISTINCT ON.
func (b *binder) distinct(s *pg.SelectStmt, sc *scope, targets []target, q relation, items []string, tail string) relation {
	on := s.GetDistinctClause()
	if len(on) == 1 && on[0].GetNode() == nil {
		for _, t := range targets {
			comparable(t.expr, "DISTINCT")
		}
		q.sql = "SELECT DISTINCT " + orTrue(items) + tail
		q.certain = b.selected(s, sc.certain, targets)
		return b.sorted(b.sortedByTargets(s, sc, targets), q, sc)
	}
	order, keys := b.orderBy(s, sc, targets)
	var names []string
	for i, node := range on {
		name := columnName("d", i)
		keys = append(keys, b.keyOf(b.output(node, sc, targets, "DISTINCT ON"))+" AS "+name)
		names = append(names, name)
	}
	inner := "SELECT " + orTrue(append(items, keys...)) + tail
	q.sql = "SELECT DISTINCT ON (" + strings.Join(names, ", ") + ") * FROM (" + inner + ") AS " + b.fresh("q") + order
	q.orderBy = order + b.limits(s, sc)
	q.certain = b.selected(s, sc.certain, targets)
	return q
}

// comparable refuses what cannot be compared for equality by its stored form.
func comparable(e expr, where string) {
	if e.oid == policy.NumericType && !e.even {
		cannot(where + " over computed numeric values")
	}
	if e.oid == policy.Bpchar && !looksAlike(e.typed) || elements[e.oid] == policy.Bpchar {
		cannot(where + " over chars of several lengths")
	}
	if e.oid == typeRecord {
		cannot(where + " over rows")
	}
}

// looksAlike tells whether equal chars have the same blanks.
func looksAlike(t typed) bool { return t.even || t.mod >= 4 }

// condition binds a WHERE or HAVING clause.
func (b *binder) condition(node *pg.Node, sc *scope) string {
	if node == nil {
		return ""
	}
	return b.boolean(b.expr(node, sc)).sql
}

// targets binds a select list.
func (b *binder) targets(list []*pg.Node, sc *scope) []target {
	var out []target
	for _, node := range list {
		item := node.GetResTarget()
		if columns, star := b.star(item.GetVal(), sc); star {
			for _, c := range columns {
				out = append(out, target{c.name, c.value()})
			}
			continue
		}
		name := item.GetName()
		if name == "" {
			name, _ = ast.ColumnName(item.GetVal())
		}
		if name == "" {
			name = ast.Unnamed
		}
		out = append(out, target{name, b.expr(item.GetVal(), sc)})
	}
	return out
}

// star expands *, t.* and (row).*.
func (b *binder) star(node *pg.Node, sc *scope) ([]column, bool) {
	if ind := node.GetAIndirection(); ind != nil {
		last := ind.GetIndirection()[len(ind.GetIndirection())-1]
		if last.GetAStar() == nil || len(ind.GetIndirection()) > 1 {
			return nil, false
		}
		row := b.expr(ind.GetArg(), sc)
		var out []column
		for _, f := range row.fields {
			out = append(out, column{name: f.name, sql: "(" + row.sql + ")." + f.sql, typed: f.typed})
		}
		return out, true
	}
	ref := node.GetColumnRef()
	if ref == nil || ref.GetFields()[len(ref.GetFields())-1].GetAStar() == nil {
		return nil, false
	}
	names := identifiers(ref.GetFields()[:len(ref.GetFields())-1])
	if len(names) == 0 {
		return sc.visible, true
	}
	e := b.entry(names, sc)
	if e == nil {
		wrong("42P01", `missing FROM-clause entry for table "`+names[len(names)-1]+`"`, ref.GetLocation())
	}
	return e.columns, true
}
