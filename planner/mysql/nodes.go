package mysql

import (
	"math"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// The nodes are made as PostgreSQL's own parser makes them, so that the tree equals what its text is parsed to.

func intNode(n int) *pg.Node { return pg.MakeAConstIntNode(int64(n), -1) }

// numberNode is a constant: an integer where it fits PostgreSQL's, else the text of a number.
func numberNode(text string) *pg.Node {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > math.MinInt32 {
		return pg.MakeAConstIntNode(n, -1)
	}
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Fval{Fval: &pg.Float{Fval: text}}, Location: -1}}}
}

func textNode(s string) *pg.Node { return pg.MakeAConstStrNode(s, -1) }

func nullNode() *pg.Node {
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
}

func boolNode(b bool) *pg.Node {
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: b}}, Location: -1}}}
}

// operator is an operator between two operands; left may be nil.
func operator(op string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(op)}, left, right, -1)
}

func special(kind pg.A_Expr_Kind, op string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(kind, []*pg.Node{pg.MakeStrNode(op)}, left, right, -1)
}

func call(name string, args ...*pg.Node) *pg.Node {
	n := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode(name)}, args, -1)
	n.GetFuncCall().Funcformat = pg.CoercionForm_COERCE_EXPLICIT_CALL
	return n
}

// extract is EXTRACT(field FROM arg), as the grammar has it.
func extract(field string, arg *pg.Node) *pg.Node {
	n := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("extract")}, []*pg.Node{textNode(field), arg}, -1)
	n.GetFuncCall().Funcformat = pg.CoercionForm_COERCE_SQL_SYNTAX
	return n
}

// cast is CAST(arg AS type): the grammar's own types have their internal names.
func cast(arg *pg.Node, names ...string) *pg.Node {
	var list []*pg.Node
	for _, n := range names {
		list = append(list, pg.MakeStrNode(n))
	}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: arg, TypeName: &pg.TypeName{Names: list, Typemod: -1, Location: -1}, Location: -1}}}
}

func toDate(n *pg.Node) *pg.Node      { return cast(n, "date") }
func toTimestamp(n *pg.Node) *pg.Node { return cast(n, "pg_catalog", "timestamp") }
func toNumeric(n *pg.Node) *pg.Node   { return cast(n, "pg_catalog", "numeric") }
func toFloat(n *pg.Node) *pg.Node     { return cast(n, "pg_catalog", "float8") }
func toInteger(n *pg.Node) *pg.Node   { return cast(n, "pg_catalog", "int4") }
func toBigint(n *pg.Node) *pg.Node    { return cast(n, "pg_catalog", "int8") }
func toText(n *pg.Node) *pg.Node      { return cast(n, "text") }

func not(n *pg.Node) *pg.Node {
	return pg.MakeBoolExprNode(pg.BoolExprType_NOT_EXPR, []*pg.Node{n}, -1)
}

// isNull is n IS [NOT] NULL. Of a condition it is written IS UNKNOWN, which says the same, since the grammar's deparser
// forgets the parentheses of (NOT a) IS NULL.
func isNull(n *pg.Node, negated bool) *pg.Node {
	if n.GetBoolExpr() != nil && negated {
		return isTrue(n, pg.BoolTestType_IS_NOT_UNKNOWN)
	} else if n.GetBoolExpr() != nil {
		return isTrue(n, pg.BoolTestType_IS_UNKNOWN)
	}
	kind := pg.NullTestType_IS_NULL
	if negated {
		kind = pg.NullTestType_IS_NOT_NULL
	}
	return &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: n, Nulltesttype: kind, Location: -1}}}
}

// nullIfZero is a divisor as MySQL sees it: by zero, a quotient is NULL.
func nullIfZero(n *pg.Node) *pg.Node {
	if c := n.GetAConst(); c != nil && !c.Isnull {
		if i := c.GetIval(); i != nil && i.Ival != 0 {
			return n
		}
	}
	return special(pg.A_Expr_Kind_AEXPR_NULLIF, "=", n, intNode(0))
}

// choice is CASE WHEN … THEN … ELSE … END over pairs; otherwise may be nil.
func choice(otherwise *pg.Node, pairs ...*pg.Node) *pg.Node {
	var arms []*pg.Node
	for i := 0; i+1 < len(pairs); i += 2 {
		arms = append(arms, pg.MakeCaseWhenNode(pairs[i], pairs[i+1], -1))
	}
	n := pg.MakeCaseExprNode(nil, arms, -1)
	n.GetCaseExpr().Defresult = otherwise
	return n
}

func coalesce(args ...*pg.Node) *pg.Node {
	return &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: args, Location: -1}}}
}

// isTrue is n IS [NOT] TRUE or FALSE.
func isTrue(n *pg.Node, kind pg.BoolTestType) *pg.Node {
	return &pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: &pg.BooleanTest{Arg: n, Booltesttype: kind, Location: -1}}}
}

func statementNode(query *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}
}

func subLink(kind pg.SubLinkType, test *pg.Node, query *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: kind, Testexpr: test, Subselect: statementNode(query), Location: -1}}}
}
