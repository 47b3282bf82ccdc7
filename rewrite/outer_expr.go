package rewrite

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

var (
	boolType = typed{oid: policy.Bool, mod: -1}
	textType = typed{oid: policy.Text, mod: -1}
	int4Type = typed{oid: policy.Int4, mod: -1}
	int8Type = typed{oid: policy.Int8, mod: -1}
)

func of(t policy.Type) typed { return typed{oid: t, mod: -1} }

// expr binds an expression.
func (b *binder) expr(node *pg.Node, sc *scope) expr {
	switch n := node.GetNode().(type) {
	case *pg.Node_AConst:
		return constant(n.AConst)
	case *pg.Node_ColumnRef:
		return b.column(n.ColumnRef, sc)
	case *pg.Node_TypeCast:
		return b.typeCast(n.TypeCast, sc)
	case *pg.Node_AExpr:
		return b.operatorExpr(n.AExpr, sc)
	case *pg.Node_BoolExpr:
		return b.boolExpr(n.BoolExpr, sc)
	case *pg.Node_NullTest:
		return b.nullTest(n.NullTest, sc)
	case *pg.Node_BooleanTest:
		return b.truthTest(n.BooleanTest, sc)
	case *pg.Node_CaseExpr:
		return b.caseExpr(n.CaseExpr, sc)
	case *pg.Node_CoalesceExpr:
		return b.variadic("coalesce", n.CoalesceExpr.GetArgs(), sc)
	case *pg.Node_MinMaxExpr:
		name := "greatest"
		if n.MinMaxExpr.GetOp() == pg.MinMaxOp_IS_LEAST {
			name = "least"
		}
		return b.variadic(name, n.MinMaxExpr.GetArgs(), sc)
	case *pg.Node_FuncCall:
		return b.function(n.FuncCall, sc)
	case *pg.Node_SqlvalueFunction:
		return b.sqlValue(n.SqlvalueFunction)
	case *pg.Node_SubLink:
		return b.subLink(n.SubLink, sc)
	case *pg.Node_AArrayExpr:
		return b.arrayExpr(n.AArrayExpr.GetElements(), sc)
	case *pg.Node_AIndirection:
		return b.indirection(n.AIndirection, sc)
	case *pg.Node_CollateClause:
		return b.collate(n.CollateClause, sc)
	case *pg.Node_RowExpr:
		return b.rowExpr(n.RowExpr, sc)
	case *pg.Node_GroupingFunc:
		return b.grouping(n.GroupingFunc, sc)
	}
	cannot("this kind of expression")
	return expr{}
}

func (b *binder) exprs(nodes []*pg.Node, sc *scope) []expr {
	out := make([]expr, len(nodes))
	for i, n := range nodes {
		out[i] = b.expr(n, sc)
	}
	return out
}

// boolean gives a condition the type boolean.
func (b *binder) boolean(e expr) expr {
	if e.oid == policy.Unknown {
		return b.cast(e, boolType, false)
	}
	if e.oid != policy.Bool {
		wrong("42804", "argument of a condition must be type boolean, not type "+typeNameOf(e.oid), 0)
	}
	return e
}

func (b *binder) boolExpr(n *pg.BoolExpr, sc *scope) expr {
	var parts []string
	for _, a := range n.GetArgs() {
		parts = append(parts, b.boolean(b.expr(a, sc)).sql)
	}
	switch n.GetBoolop() {
	case pg.BoolExprType_AND_EXPR:
		return expr{sql: "(" + strings.Join(parts, " AND ") + ")", typed: boolType}
	case pg.BoolExprType_OR_EXPR:
		return expr{sql: "(" + strings.Join(parts, " OR ") + ")", typed: boolType}
	}
	return expr{sql: "(NOT " + parts[0] + ")", typed: boolType}
}

func (b *binder) nullTest(n *pg.NullTest, sc *scope) expr {
	e := b.expr(n.GetArg(), sc)
	if e.oid == typeRecord {
		cannot("IS NULL of a row")
	}
	if n.GetNulltesttype() == pg.NullTestType_IS_NULL {
		return expr{sql: "(" + e.sql + " IS NULL)", typed: boolType}
	}
	return expr{sql: "(" + e.sql + " IS NOT NULL)", typed: boolType}
}

func (b *binder) truthTest(n *pg.BooleanTest, sc *scope) expr {
	e := b.boolean(b.expr(n.GetArg(), sc)).sql
	forms := map[pg.BoolTestType]string{
		pg.BoolTestType_IS_TRUE: "(%s IS NOT DISTINCT FROM true)", pg.BoolTestType_IS_NOT_TRUE: "(%s IS DISTINCT FROM true)",
		pg.BoolTestType_IS_FALSE: "(%s IS NOT DISTINCT FROM false)", pg.BoolTestType_IS_NOT_FALSE: "(%s IS DISTINCT FROM false)",
		pg.BoolTestType_IS_UNKNOWN: "(%s IS NULL)", pg.BoolTestType_IS_NOT_UNKNOWN: "(%s IS NOT NULL)",
	}
	return expr{sql: strings.Replace(forms[n.GetBooltesttype()], "%s", e, 1), typed: boolType}
}

func (b *binder) caseExpr(n *pg.CaseExpr, sc *scope) expr {
	var conditions []string
	var results []expr
	for _, w := range n.GetArgs() {
		when := w.GetCaseWhen()
		condition := b.expr(when.GetExpr(), sc)
		if n.GetArg() != nil {
			condition = b.compare("=", b.expr(n.GetArg(), sc), condition)
		}
		conditions = append(conditions, b.boolean(condition).sql)
		results = append(results, b.expr(when.GetResult(), sc))
	}
	if n.GetDefresult() != nil {
		results = append(results, b.expr(n.GetDefresult(), sc))
	}
	t := b.unify(results, "CASE")
	if n.GetDefresult() == nil {
		t.even = t.even && t.oid == policy.NumericType
	}
	sql := "CASE"
	for i, c := range conditions {
		sql += " WHEN " + c + " THEN " + results[i].sql
	}
	if n.GetDefresult() != nil {
		sql += " ELSE " + results[len(results)-1].sql
	}
	return expr{sql: "(" + sql + " END)", typed: t}
}

// variadic binds COALESCE, GREATEST and LEAST.
func (b *binder) variadic(name string, nodes []*pg.Node, sc *scope) expr {
	args := b.exprs(nodes, sc)
	t := b.unify(args, strings.ToUpper(name))
	if t.oid == policy.NumericType && name != "coalesce" {
		// Lists leave NULLs out, as GREATEST and LEAST do.
		return expr{sql: "num_" + name + "([" + joined(args) + "])", typed: of(policy.NumericType)}
	}
	return expr{sql: name + "(" + joined(args) + ")", typed: t}
}

func joined(args []expr) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = a.sql
	}
	return strings.Join(parts, ", ")
}

// subLink binds a sub-query in an expression.
func (b *binder) subLink(n *pg.SubLink, sc *scope) expr {
	q := b.nested(n.GetSubselect().GetSelectStmt(), sc)
	switch n.GetSubLinkType() {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return expr{sql: "EXISTS (" + q.sql + ")", typed: boolType}
	case pg.SubLinkType_EXPR_SUBLINK:
		if len(q.columns) != 1 {
			wrong("42601", "subquery must return only one column", n.GetLocation())
		}
		return expr{sql: "(" + q.sql + ")", typed: q.columns[0].typed}
	case pg.SubLinkType_ARRAY_SUBLINK:
		if len(q.columns) != 1 {
			wrong("42601", "subquery must return only one column", n.GetLocation())
		}
		array, ok := arrays[q.columns[0].oid]
		if !ok {
			cannot("an ARRAY of this type")
		}
		return expr{sql: "ARRAY(" + q.sql + ")", typed: of(array)}
	case pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return b.quantified(n, q, sc)
	}
	cannot("this kind of sub-query")
	return expr{}
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
		l, r := b.matched(left[i], expr{sql: alias + "." + c.sql, typed: c.typed})
		lefts, rights = append(lefts, b.keyOf(l)), append(rights, b.keyOf(r)+" AS "+c.sql)
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

// rowParts binds the parts of a row, or the one expression that stands there.
func (b *binder) rowParts(node *pg.Node, sc *scope) []expr {
	if row := node.GetRowExpr(); row != nil {
		return b.exprs(row.GetArgs(), sc)
	}
	return []expr{b.expr(node, sc)}
}

func (b *binder) rowExpr(n *pg.RowExpr, sc *scope) expr {
	e := &entry{alias: "\x00"}
	for _, a := range b.exprs(n.GetArgs(), sc) {
		e.columns = append(e.columns, column{name: "f", sql: a.sql, typed: a.typed})
	}
	return wholeRow(e)
}

func (b *binder) arrayExpr(nodes []*pg.Node, sc *scope) expr {
	if len(nodes) == 0 {
		return expr{sql: "[]", typed: of(typeTextArr)}
	}
	parts := b.exprs(nodes, sc)
	t := b.unify(parts, "ARRAY")
	array, ok := arrays[t.oid]
	if !ok {
		cannot("an ARRAY of type " + typeNameOf(t.oid))
	}
	return expr{sql: "[" + joined(parts) + "]", typed: of(array)}
}

// indirection binds subscripts and fields: a[1], a[1:2], (row).field.
func (b *binder) indirection(n *pg.A_Indirection, sc *scope) expr {
	e := b.expr(n.GetArg(), sc)
	for _, step := range n.GetIndirection() {
		if name := step.GetString_(); name != nil {
			e = field(e, name.GetSval())
			continue
		}
		index := step.GetAIndices()
		element, ok := elements[e.oid]
		if index == nil || !ok {
			wrong("42804", "cannot subscript type "+typeNameOf(e.oid), 0)
		}
		// The vectors of the catalogs count from 0.
		shift := ""
		if e.oid == typeInt2Vec || e.oid == typeOidVec {
			shift = " + 1"
		}
		bound := func(node *pg.Node) string {
			return b.cast(b.expr(node, sc), int4Type, false).sql + shift
		}
		if !index.GetIsSlice() {
			at := bound(index.GetUidx())
			// DuckDB counts negative subscripts from the end; PostgreSQL has nothing there.
			e = expr{sql: "(CASE WHEN " + at + " < 1 THEN NULL ELSE (" + e.sql + ")[" + at + "] END)", typed: of(element)}
			continue
		}
		if shift != "" || len(n.GetIndirection()) > 1 { // one slice makes every subscript a slice of its own dimension
			cannot("this array slice")
		}
		e.sql = b.slice(e.sql, index, bound)
	}
	return e
}

// slice is list[low:high]; a bound that is left out is the list's own, one that is NULL makes the slice NULL.
func (b *binder) slice(list string, index *pg.A_Indices, bound func(*pg.Node) string) string {
	low, high, given := "1", "len("+list+")", ""
	if node := index.GetLidx(); node != nil {
		at := bound(node)
		low, given = "greatest(1, "+at+")", at+" IS NULL"
	}
	if node := index.GetUidx(); node != nil {
		at := bound(node)
		high = "greatest(0, " + at + ")"
		if given != "" {
			given += " OR "
		}
		given += at + " IS NULL"
	}
	text := "(" + list + ")[" + low + ":" + high + "]"
	if given == "" {
		return text
	}
	return "(CASE WHEN " + given + " THEN NULL ELSE " + text + " END)"
}

func field(e expr, name string) expr {
	for _, f := range e.fields {
		if f.name == name {
			return expr{sql: "(" + e.sql + ")." + f.sql, typed: f.typed}
		}
	}
	wrong("42703", `column "`+name+`" not found in this data type`, 0)
	return expr{}
}

// collate accepts the collations under which text compares by code point.
func (b *binder) collate(n *pg.CollateClause, sc *scope) expr {
	names := identifiers(n.GetCollname())
	switch names[len(names)-1] {
	case "default", "C", "POSIX", "ucs_basic":
		return b.expr(n.GetArg(), sc)
	}
	cannot("COLLATE " + names[len(names)-1])
	return expr{}
}

func (b *binder) grouping(n *pg.GroupingFunc, sc *scope) expr {
	return expr{sql: "CAST(grouping(" + joined(b.exprs(n.GetArgs(), sc)) + ") AS INTEGER)", typed: int4Type}
}
