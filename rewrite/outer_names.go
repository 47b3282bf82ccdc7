package rewrite

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// figure returns the name that PostgreSQL gives a column of the answer without an alias, and how sure it is: 2 for a
// name that stands there, 1 for one of a type, 0 for none.
func figure(node *pg.Node) (string, int) {
	switch n := node.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return lastName(n.ColumnRef.GetFields()), 2
	case *pg.Node_AIndirection:
		if name := lastName(n.AIndirection.GetIndirection()); name != "" {
			return name, 2
		}
		return figure(n.AIndirection.GetArg())
	case *pg.Node_FuncCall:
		return lastName(n.FuncCall.GetFuncname()), 2
	case *pg.Node_AExpr:
		if n.AExpr.GetKind() == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg.Node_TypeCast:
		if name, sure := figure(n.TypeCast.GetArg()); sure > 1 {
			return name, sure
		}
		return lastName(n.TypeCast.GetTypeName().GetNames()), 1
	case *pg.Node_CollateClause:
		return figure(n.CollateClause.GetArg())
	case *pg.Node_GroupingFunc:
		return "grouping", 2
	case *pg.Node_SubLink:
		return figureSubLink(n.SubLink)
	case *pg.Node_CaseExpr:
		if name, sure := figure(n.CaseExpr.GetDefresult()); sure > 1 {
			return name, sure
		}
		return "case", 1
	case *pg.Node_AArrayExpr:
		return "array", 2
	case *pg.Node_RowExpr:
		return "row", 2
	case *pg.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg.Node_MinMaxExpr:
		if n.MinMaxExpr.GetOp() == pg.MinMaxOp_IS_LEAST {
			return "least", 2
		}
		return "greatest", 2
	case *pg.Node_SqlvalueFunction:
		return sqlValueName(n.SqlvalueFunction.GetOp()), 2
	}
	return "", 0
}

func figureSubLink(n *pg.SubLink) (string, int) {
	switch n.GetSubLinkType() {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", 2
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", 2
	case pg.SubLinkType_EXPR_SUBLINK:
		s := n.GetSubselect().GetSelectStmt()
		for s.GetLarg() != nil {
			s = s.GetLarg()
		}
		if len(s.GetTargetList()) == 1 {
			t := s.GetTargetList()[0].GetResTarget()
			if t.GetName() != "" {
				return t.GetName(), 2
			}
			return figure(t.GetVal())
		}
		if len(s.GetValuesLists()) > 0 {
			return "column1", 2
		}
	}
	return "", 0
}

func lastName(nodes []*pg.Node) string {
	for i := len(nodes) - 1; i >= 0; i-- {
		if s := nodes[i].GetString_(); s != nil {
			return s.GetSval()
		}
	}
	return ""
}

// sqlValueName is the keyword of a function without parentheses.
func sqlValueName(op pg.SQLValueFunctionOp) string {
	return map[pg.SQLValueFunctionOp]string{
		pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE: "current_date", pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP: "current_timestamp",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: "current_timestamp", pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP: "localtimestamp",
		pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N: "localtimestamp", pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE: "current_role",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_USER: "current_user", pg.SQLValueFunctionOp_SVFOP_USER: "user",
		pg.SQLValueFunctionOp_SVFOP_SESSION_USER: "session_user", pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG: "current_catalog",
		pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA: "current_schema",
	}[op]
}

// sqlValue binds CURRENT_USER, CURRENT_DATE and their like.
func (b *binder) sqlValue(n *pg.SQLValueFunction) expr {
	name := func(param string) expr { return expr{sql: b.param(param), typed: of(typeName)} }
	switch n.GetOp() {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER,
		pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return name("user")
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		return name("database")
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		return expr{sql: "CAST('public' AS VARCHAR)", typed: of(typeName)}
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return b.castCall(b.now(), of(policy.DateType))
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:
		return b.now()
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:
		return b.castCall(b.now(), of(policy.TimestampT))
	}
	cannot(sqlValueName(n.GetOp()))
	return expr{}
}

// now is the start of the query.
func (b *binder) now() expr {
	return expr{sql: "make_timestamp(CAST(" + b.param("now") + " AS BIGINT))", typed: of(policy.TimestampTZ)}
}
