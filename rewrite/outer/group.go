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
	if len(s.GetGroupClause()) == 0 {
		return ""
	}
	return " GROUP BY " + b.groupTerms(s.GetGroupClause(), sc, targets, false)
}

func (b *binder) groupTerms(nodes []*pg.Node, sc *scope, targets []target, sets bool) string {
	var terms []string
	for _, node := range nodes {
		terms = append(terms, b.groupTerm(node, sc, targets, sets))
	}
	return strings.Join(terms, ", ")
}

// groupTerm is one term, of grouping sets or not. By a numeric is by its decimal too, since what stands above may name either: the one is a function of
// the other.
func (b *binder) groupTerm(node *pg.Node, sc *scope, targets []target, sets bool) string {
	if set := node.GetGroupingSet(); set != nil {
		word := map[pg.GroupingSetKind]string{pg.GroupingSetKind_GROUPING_SET_ROLLUP: "ROLLUP ", pg.GroupingSetKind_GROUPING_SET_CUBE: "CUBE ",
			pg.GroupingSetKind_GROUPING_SET_SETS: "GROUPING SETS "}[set.GetKind()]
		return word + "(" + b.groupTerms(set.GetContent(), sc, targets, true) + ")"
	}
	if row := node.GetRowExpr(); row != nil {
		return "(" + b.groupTerms(row.GetArgs(), sc, targets, false) + ")"
	}
	e := b.groupExpr(node, sc, targets)
	comparable(e, "GROUP BY")
	switch {
	case e.decimal == nil:
		return e.sql
	case sets:
		return "(" + e.sql + ", " + e.decimal.sql + ")"
	}
	return e.sql + ", " + e.decimal.sql
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
	return named(sc.visible, name) != nil
}
