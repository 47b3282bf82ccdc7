package ast

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Unnamed is the name that PostgreSQL gives a column of the answer whose expression suggests none.
const Unnamed = "?column?"

// ColumnName is the name that PostgreSQL gives a column of the answer without an alias (FigureColname of its parser),
// and how surely: 2 for a name that stands there, 1 for one of a type or CASE, which a name inside goes before, 0 and
// "" for none. A sub-query's column has a name in any case, so that SELECT (SELECT 1)::int is named ?column?, and
// SELECT 1::int is int4.
func ColumnName(n *pg.Node) (name string, sure int) {
	if name = keywordOf(n); name != "" {
		return name, 2
	}
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return named(v.ColumnRef.GetFields())
	case *pg.Node_AIndirection:
		if name, sure = named(v.AIndirection.GetIndirection()); sure > 0 {
			return name, sure
		}
		return ColumnName(v.AIndirection.GetArg())
	case *pg.Node_FuncCall:
		return named(v.FuncCall.GetFuncname())
	case *pg.Node_TypeCast:
		if name, sure = ColumnName(v.TypeCast.GetArg()); sure > 1 {
			return name, sure
		}
		if name, sure = named(v.TypeCast.GetTypeName().GetNames()); sure > 0 {
			return name, 1
		}
	case *pg.Node_CollateClause:
		return ColumnName(v.CollateClause.GetArg())
	case *pg.Node_SubLink:
		return subLinkName(v.SubLink)
	case *pg.Node_CaseExpr:
		if name, sure = ColumnName(v.CaseExpr.GetDefresult()); sure > 1 {
			return name, sure
		}
		return "case", 1
	}
	return "", 0
}

// keywordOf is the word that begins an expression which has a syntax of its own, such as COALESCE (a, b) or
// CURRENT_DATE, in lower case. It is empty for other expressions.
func keywordOf(n *pg.Node) string {
	switch v := n.GetNode().(type) {
	case *pg.Node_AExpr:
		if v.AExpr.GetKind() == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif"
		}
	case *pg.Node_GroupingFunc:
		return "grouping"
	case *pg.Node_AArrayExpr:
		return "array"
	case *pg.Node_RowExpr:
		return "row"
	case *pg.Node_CoalesceExpr:
		return "coalesce"
	case *pg.Node_MinMaxExpr:
		return MinMaxName(v.MinMaxExpr)
	case *pg.Node_SqlvalueFunction:
		return SQLValueName(v.SqlvalueFunction.GetOp())
	}
	return ""
}

// subLinkName is the name of a sub-query's only column: of a set operation that of its first SELECT.
func subLinkName(n *pg.SubLink) (string, int) {
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
		if len(s.GetValuesLists()) > 0 {
			return "column1", 2
		}
		if len(s.GetTargetList()) > 0 {
			return Label(s.GetTargetList()[0].GetResTarget()), 2
		}
	}
	return "", 0
}

// named is the last name of a list, in which stars and subscripts are none.
func named(list []*pg.Node) (string, int) {
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i].GetString_(); s != nil {
			return s.GetSval(), 2
		}
	}
	return "", 0
}

// SQLValueName is the keyword of a function without parentheses, such as current_time.
func SQLValueName(op pg.SQLValueFunctionOp) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimPrefix(op.String(), "SVFOP_")), "_n")
}

// MinMaxName is the keyword of GREATEST or LEAST, in lower case.
func MinMaxName(e *pg.MinMaxExpr) string {
	return strings.ToLower(strings.TrimPrefix(e.GetOp().String(), "IS_"))
}

// Label is the name that PostgreSQL gives an output column.
func Label(t *pg.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	if name, _ := ColumnName(t.Val); name != "" {
		return name
	}
	return Unnamed
}

// IsStar tells * and alias.*.
func IsStar(n *pg.Node) bool {
	fields := n.GetColumnRef().GetFields()
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}
