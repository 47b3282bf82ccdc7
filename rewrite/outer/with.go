package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Table expressions keep their place before the SELECT under generated names. Of a recursive one the first part decides the types.
//
//	WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 9) SELECT i FROM r
//	⇒ SELECT "c1" AS "c1" FROM (WITH RECURSIVE "w1"("c1") AS ((SELECT CAST(1 AS INTEGER) AS "c1") UNION ALL (SELECT
//	  ("t2"."c1" + CAST(1 AS INTEGER)) AS "c1" FROM "w1" AS "t2" WHERE ("t2"."c1" < CAST(9 AS INTEGER)))) SELECT "t3"."c1" AS
//	  "c1" FROM "w1" AS "t3") AS "q4"

// withClause binds the table expressions of a WITH clause into the scope and returns the text before the SELECT.
func (b *binder) withClause(w *pg.WithClause, sc *scope) string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, node := range w.GetCtes() {
		cte := node.GetCommonTableExpr()
		query := cte.GetCtequery().GetSelectStmt()
		if query == nil || cte.GetSearchClause() != nil || cte.GetCycleClause() != nil {
			cannot("this WITH clause")
		}
		item := &shared{name: cte.GetCtename(), sql: b.fresh("w")}
		var q relation
		if w.GetRecursive() && query.GetOp() == pg.SetOperation_SETOP_UNION && mentions(query.GetRarg(), item.name) {
			q = b.recursive(cte, query, item, sc)
		} else {
			q = b.nested(query, sc)
			item.columns, item.certain = commonColumns(q.columns, cte), q.certain
		}
		sc.with = append(sc.with, item)
		parts = append(parts, item.sql+"("+columnList(orNone(item.columns))+") AS ("+q.sql+")")
	}
	word := "WITH "
	if w.GetRecursive() {
		word = "WITH RECURSIVE "
	}
	return word + strings.Join(parts, ", ") + " "
}

func orNone(columns []column) []column {
	if len(columns) == 0 {
		return []column{{sql: "c0"}}
	}
	return columns
}

// commonColumns are the columns of a table expression under their own names.
func commonColumns(columns []column, cte *pg.CommonTableExpr) []column {
	out := renamed(columns, cte.GetAliascolnames())
	for i := range out {
		out[i].sql = columnName("c", i)
		if d := out[i].decimal; d != nil {
			out[i].decimal = &decimal{sql: columnName("x", i), digits: d.digits, scale: d.scale}
		}
	}
	return out
}

// recursive binds a recursive table expression: its types are those of the first part.
func (b *binder) recursive(cte *pg.CommonTableExpr, query *pg.SelectStmt, item *shared, sc *scope) relation {
	if len(query.GetSortClause()) > 0 || query.GetLimitCount() != nil || query.GetWithClause() != nil {
		cannot("ORDER BY, LIMIT or WITH in a recursive query")
	}
	first := b.plain(b.nested(query.GetLarg(), sc))
	for i := range first.columns {
		first.columns[i].whole = false // the second part may have decimals
	}
	item.columns = commonColumns(first.columns, cte)
	inner := &scope{parent: sc, with: []*shared{item}}
	second := b.plain(b.settle(b.query(query.GetRarg(), inner)))
	if len(second.columns) != len(first.columns) {
		wrong("42601", "each UNION query must have the same number of columns", 0)
	}
	second = b.coerced(second, first.columns)
	word := " UNION "
	if query.GetAll() {
		word = " UNION ALL "
	}
	return relation{sql: "(" + first.sql + ")" + word + "(" + second.sql + ")", columns: first.columns}
}

// mentions tells whether a query reads a table of that name anywhere in its FROM clauses.
func mentions(s *pg.SelectStmt, name string) bool {
	text, err := deparsed(&pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: s}})
	return err != nil || strings.Contains(strings.ToLower(text), strings.ToLower(name))
}

// renamed gives columns the names of a column alias list.
func renamed(columns []column, aliases []*pg.Node) []column {
	out := slices.Clone(columns)
	if len(aliases) > len(out) {
		wrong("42P10", "more column aliases than columns", 0)
	}
	for i, a := range aliases {
		out[i].name = a.GetString_().GetSval()
	}
	return out
}
