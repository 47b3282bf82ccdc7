package ast

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// What aggregates come to where there are no rows: sum(x) / 2 is NULL, count(*) is 0, coalesce(sum(x), 5) is 5.

// IsCount tells a bare count, which is 0 of no rows.
func IsCount(n *pg.Node) bool {
	f := n.GetFuncCall()
	if f == nil || !IsAggregate(f) {
		return false
	}
	name, _ := FunctionName(f)
	return name == "count"
}

// IsConstant tells a constant, cast or not.
func IsConstant(n *pg.Node) bool {
	if c := n.GetTypeCast(); c != nil {
		n = c.Arg
	}
	return n.GetAConst() != nil
}

// strictFunctions are NULL where an argument is.
var strictFunctions = []string{"abs", "ceil", "ceiling", "exp", "floor", "ln", "log", "mod", "power", "round", "sign", "sqrt", "trunc"}

// IsNullOfNone tells an expression that is NULL where there are no rows: an aggregate that is no count, and what is NULL where a part of it is. Of others, such as
// coalesce(sum(x), 5) + 1 or sum(x) IS NULL, rows without a group would have to be told from those with one.
func IsNullOfNone(n *pg.Node) bool {
	switch v := n.GetNode().(type) {
	case *pg.Node_TypeCast:
		return IsNullOfNone(v.TypeCast.Arg)
	case *pg.Node_AExpr:
		e := v.AExpr
		return e.Kind == pg.A_Expr_Kind_AEXPR_OP && (e.Lexpr != nil && IsNullOfNone(e.Lexpr) || e.Rexpr != nil && IsNullOfNone(e.Rexpr))
	case *pg.Node_FuncCall:
		if IsAggregate(v.FuncCall) {
			return !IsCount(n)
		}
		name, refusal := FunctionName(v.FuncCall)
		return refusal == nil && slices.Contains(strictFunctions, name) && slices.ContainsFunc(v.FuncCall.Args, IsNullOfNone)
	}
	return false
}
