package outer

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// A query within an expression sees the columns around it; IN and its like compare its column as PostgreSQL would compare the two
// types.
//
//	SELECT k FROM leaf_1 WHERE n IN (SELECT max(n) FROM leaf_1)
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1" FROM "leaf_1" AS "t1" WHERE ("t1"."n" IN (SELECT "q3"."c1" AS "c1"
//	  FROM (SELECT max("t2"."n") AS "c1" FROM "leaf_1" AS "t2") AS "q3"))) AS "q4"

// subLink binds a sub-query in an expression.
func (b *binder) subLink(n *pg.SubLink, sc *scope) expr {
	q := b.nested(n.GetSubselect().GetSelectStmt(), sc)
	kind := n.GetSubLinkType()
	if (kind == pg.SubLinkType_EXPR_SUBLINK || kind == pg.SubLinkType_ARRAY_SUBLINK) && len(q.columns) != 1 {
		wrong("42601", "subquery must return only one column", n.GetLocation())
	}
	switch kind {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return expr{sql: "EXISTS (" + q.sql + ")", typed: boolType}
	case pg.SubLinkType_EXPR_SUBLINK:
		e := b.single(q)
		if e.means = nil; len(q.means) > 0 {
			e.means = q.means[0]
		}
		return e
	case pg.SubLinkType_ARRAY_SUBLINK:
		q = b.plain(q)
		return expr{sql: "ARRAY(" + q.sql + ")", typed: arrayOf(filled(q.columns[0].value()).oid, "an ARRAY of this type")}
	case pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return b.quantified(n, q, sc)
	}
	return cannot("this kind of sub-query")
}

// quantified binds x IN (SELECT …), x = ANY (SELECT …), x <> ALL (SELECT …).
func (b *binder) quantified(n *pg.SubLink, q relation, sc *scope) expr {
	op := "="
	if names := identifiers(n.GetOperName()); len(names) > 0 {
		op = names[len(names)-1]
	}
	all := n.GetSubLinkType() == pg.SubLinkType_ALL_SUBLINK
	if !(op == "=" && !all || op == "<>" && all) {
		cannot("this comparison with a sub-query")
	}
	left := b.rowParts(n.GetTestexpr(), sc)
	if len(left) != len(q.columns) {
		wrong("42601", "subquery has too few or too many columns", n.GetLocation())
	}
	alias := b.fresh("q")
	var lefts, rights []string
	for i, c := range q.columns {
		value := c.of(alias).value()
		b.toldByCall("=", left[i], value)
		l, r := b.keysOf(b.matched(left[i], value))
		lefts, rights = append(lefts, l), append(rights, r+" AS "+c.sql)
	}
	word := " IN "
	if all {
		word = " NOT IN "
	}
	test := strings.Join(lefts, ", ")
	if len(lefts) > 1 {
		test = "(" + test + ")"
	}
	return expr{sql: "(" + test + word + "(SELECT " + strings.Join(rights, ", ") + " FROM (" + q.sql + ") AS " + alias + "))", typed: boolType}
}

// single is the value of a query of one column, of a numeric with its decimal.
func (b *binder) single(q relation) expr {
	c := q.columns[0]
	out := expr{sql: "(" + b.plain(q).sql + ")", typed: c.typed}
	if c.decimal != nil {
		out.decimal = &decimal{sql: "(SELECT " + c.decimal.sql + " FROM (" + q.sql + ") AS " + b.fresh("q") + ")", digits: c.decimal.digits, scale: c.decimal.scale}
	}
	return out
}

// rowParts binds the parts of a row, or the one expression that stands there.
func (b *binder) rowParts(node *pg.Node, sc *scope) []expr {
	if row := node.GetRowExpr(); row != nil {
		return b.exprs(row.GetArgs(), sc)
	}
	return []expr{b.expr(node, sc)}
}

func (b *binder) rowExpr(n *pg.RowExpr, sc *scope) expr {
	e := &entry{alias: "\x00"}
	for i, a := range b.exprs(n.GetArgs(), sc) {
		e.columns = append(e.columns, column{name: "f" + strconv.Itoa(i+1), sql: a.sql, typed: a.typed})
	}
	return wholeRow(e)
}
