package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// Expressions are bound node by node. Each has the text for DuckDB and the type that it would have in PostgreSQL, from which
// what stands around it is resolved.
//
//	SELECT CASE WHEN n > 5 THEN 'many' END FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM (SELECT (CASE WHEN ("t1"."n" > CAST(5 AS INTEGER)) THEN CAST('many' AS VARCHAR) END) AS "c1"
//	  FROM "leaf_1" AS "t1") AS "q2"

var (
	boolType = typed{oid: policy.Bool, mod: -1}
	textType = typed{oid: policy.Text, mod: -1}
	int4Type = typed{oid: policy.Int4, mod: -1}
	int8Type = typed{oid: policy.Int8, mod: -1}
)

func of(t policy.Type) typed { return typed{oid: t, mod: -1} }

// truth is a condition, or its opposite.
func truth(sql string, not bool) expr {
	if not {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

// expr binds an expression. Of a described query it may be one that cannot be bound, whose parts are (parameters.go).
func (b *binder) expr(node *pg.Node, sc *scope) (e expr) {
	if b.parameters == nil {
		return b.bound(node, sc)
	}
	b.visited[node] = typeUnknowable
	refusal := b.tried(func() { e = b.bound(node, sc) })
	if refusal != nil {
		b.within(sc, ast.Children(node)...)
		b.within(sc, node.GetSubLink().GetSubselect())
		e = expr{sql: "NULL", typed: of(b.ofCall(node))}
	}
	b.visited[node] = e.oid
	if b.finding != nil {
		return b.mean(node, e, refusal, sc)
	}
	return e
}

func (b *binder) bound(node *pg.Node, sc *scope) expr {
	switch n := node.GetNode().(type) {
	case *pg.Node_AConst:
		return constant(n.AConst)
	case *pg.Node_ParamRef:
		if n := -n.ParamRef.Number; n > 0 { // neither its value nor its type is there
			return b.parameter(int(n))
		}
		e := untyped(b.plan.Outer.Given[n.ParamRef.Number-1])
		e.given = true
		return e
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
	return cannot("this kind of expression")
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
		return b.cast(e, boolType)
	}
	if e.oid != policy.Bool {
		wrong("42804", "argument of a condition must be type boolean, not type "+typeNameOf(e.oid), 0)
	}
	return e
}

func (b *binder) boolExpr(n *pg.BoolExpr, sc *scope) expr {
	var parts []string
	for _, a := range n.GetArgs() {
		parts = append(parts, b.condition(a, sc))
	}
	word := map[pg.BoolExprType]string{pg.BoolExprType_AND_EXPR: " AND ", pg.BoolExprType_OR_EXPR: " OR "}[n.GetBoolop()]
	if word == "" {
		return truth(parts[0], true)
	}
	return truth("("+strings.Join(parts, word)+")", false)
}

func (b *binder) nullTest(n *pg.NullTest, sc *scope) expr {
	e := b.expr(n.GetArg(), sc)
	if e.oid == typeRecord {
		cannot("IS NULL of a row")
	}
	word := " IS NOT NULL)"
	if n.GetNulltesttype() == pg.NullTestType_IS_NULL {
		word = " IS NULL)"
	}
	return expr{sql: "(" + e.sql + word, typed: boolType}
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
	if n.GetDefresult() != nil { // whose type weighs first
		results = append(results, b.expr(n.GetDefresult(), sc))
	}
	arms := len(results)
	for _, w := range n.GetArgs() {
		when := w.GetCaseWhen()
		condition := b.expr(when.GetExpr(), sc)
		if n.GetArg() != nil {
			condition = b.compare("=", b.expr(n.GetArg(), sc), condition)
		}
		conditions = append(conditions, b.boolean(condition).sql)
		results = append(results, b.expr(when.GetResult(), sc))
	}
	t := b.unify(results, "CASE")
	if n.GetDefresult() == nil {
		t.even = t.even && (t.oid == policy.NumericType || t.oid == policy.Bpchar)
	}
	sql := "CASE"
	for i, c := range conditions {
		sql += " WHEN " + c + " THEN " + results[arms+i].sql
	}
	if n.GetDefresult() != nil {
		sql += " ELSE " + results[0].sql
	}
	return expr{sql: "(" + sql + " END)", typed: t}
}

// variadic binds COALESCE, GREATEST and LEAST.
func (b *binder) variadic(name string, nodes []*pg.Node, sc *scope) expr {
	args := b.exprs(nodes, sc)
	t := b.unify(args, strings.ToUpper(name))
	if t.oid == policy.Bpchar && name != "coalesce" {
		cannot(strings.ToUpper(name) + " of chars, of which several are equal,")
	}
	if t.oid == policy.IntervalT && name != "coalesce" {
		for i := range args {
			args[i].sql = asArgument(args[i])
		}
		return expr{sql: fromResult("pg_interval_"+name+"(["+joined(args)+"])", t.oid), typed: t}
	}
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

// collate accepts the collations under which text compares by code point.
func (b *binder) collate(n *pg.CollateClause, sc *scope) expr {
	names := identifiers(n.GetCollname())
	switch names[len(names)-1] {
	case "default", "C", "POSIX", "ucs_basic":
		return b.expr(n.GetArg(), sc)
	}
	return cannot("COLLATE " + names[len(names)-1])
}

func (b *binder) grouping(n *pg.GroupingFunc, sc *scope) expr {
	return expr{sql: "CAST(grouping(" + joined(b.exprs(n.GetArgs(), sc)) + ") AS INTEGER)", typed: int4Type}
}
