package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// GROUP BY names columns, output columns or their numbers, alone or in grouping sets. Values that are equal without looking alike
// (numerics of several scales) cannot be grouped by their stored form and are refused.
//
//	SELECT g, count(*) FROM leaf_1 GROUP BY ROLLUP (1)
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT "t1"."g" AS "c1", count(*) AS "c2" FROM "leaf_1" AS "t1" GROUP BY ROLLUP
//	  ("t1"."g")) AS "q2"

// groupBy binds GROUP BY.
func (b *binder) groupBy(s *pg.SelectStmt, sc *scope, targets []target) string {
	if s.GetGroupDistinct() {
		cannot("GROUP BY DISTINCT")
	}
	var terms []string
	for _, node := range s.GetGroupClause() {
		terms = append(terms, b.groupTerm(node, sc, targets))
	}
	if terms == nil {
		return ""
	}
	return " GROUP BY " + strings.Join(terms, ", ")
}

func (b *binder) groupTerm(node *pg.Node, sc *scope, targets []target) string {
	if set := node.GetGroupingSet(); set != nil {
		var parts []string
		for _, n := range set.GetContent() {
			parts = append(parts, b.groupTerm(n, sc, targets))
		}
		list := "(" + strings.Join(parts, ", ") + ")"
		switch set.GetKind() {
		case pg.GroupingSetKind_GROUPING_SET_ROLLUP:
			return "ROLLUP " + list
		case pg.GroupingSetKind_GROUPING_SET_CUBE:
			return "CUBE " + list
		case pg.GroupingSetKind_GROUPING_SET_SETS:
			return "GROUPING SETS " + list
		}
		return list
	}
	if row := node.GetRowExpr(); row != nil {
		var parts []string
		for _, n := range row.GetArgs() {
			parts = append(parts, b.groupTerm(n, sc, targets))
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	e := b.groupExpr(node, sc, targets)
	comparable(e, "GROUP BY")
	return e.sql
}

func (b *binder) groupExpr(node *pg.Node, sc *scope, targets []target) expr {
	if t := numbered(node, targets, "GROUP BY"); t != nil {
		return t.expr
	}
	if name := simpleName(node); !b.known(name, sc) {
		if t := called(name, targets, "GROUP BY"); t != nil {
			return t.expr
		}
	}
	return b.expr(node, sc)
}

// known tells whether the query's own FROM has a column of that name.
func (b *binder) known(name string, sc *scope) bool {
	for _, c := range sc.visible {
		if c.name == name {
			return true
		}
	}
	return false
}
