// Package ast reads and makes trees of PostgreSQL's grammar: what a call is named, which nodes hang below an
// expression, where in the text a node stands, what a type's name means, and what PostgreSQL calls a column. Of
//
//	SELECT date_trunc('month', d)::date, count(*) FILTER (WHERE n > 3) FROM visits GROUP BY 1
//
// it says that the first column is named date_trunc and is cast to date, that the second holds an aggregate and is
// named count, and that n > 3 is among the operands of that call. It knows no table and no session: what the names mean
// is bound above it.
package ast

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Aggregates are the aggregate functions that the planner tells from other functions.
var Aggregates = map[string]bool{
	"count": true, "sum": true, "avg": true, "min": true, "max": true, "stddev": true, "stddev_pop": true, "stddev_samp": true,
	"variance": true, "var_pop": true, "var_samp": true, "bool_and": true, "bool_or": true, "every": true, "bit_and": true, "bit_or": true,
	"bit_xor": true, "array_agg": true, "string_agg": true, "json_agg": true, "jsonb_agg": true, "json_object_agg": true,
	"jsonb_object_agg": true, "percentile_cont": true, "percentile_disc": true, "mode": true, "corr": true, "covar_pop": true,
	"covar_samp": true, "regr_avgx": true, "regr_avgy": true, "regr_count": true, "regr_intercept": true, "regr_r2": true,
	"regr_slope": true, "regr_sxx": true, "regr_sxy": true, "regr_syy": true, "any_value": true, "xmlagg": true, "range_agg": true,
	"median": true,
}

// FunctionName is the name of a function of PostgreSQL's own schemas.
func FunctionName(f *pg.FuncCall) (string, *refuse.Refusal) {
	names := Strings(f.Funcname)
	last := names[len(names)-1]
	switch {
	case last == "" || !(last[0] >= 'a' && last[0] <= 'z' || last[0] == '_'): // "<="(): no function is called as an operator is
	case len(names) == 1:
		return names[0], nil
	case len(names) == 2 && (names[0] == "pg_catalog" || names[0] == "information_schema"):
		return names[1], nil
	}
	if name := strings.Join(names, "."); name == "dp.low" || name == "dp.high" {
		return "", refuse.BoundPlace.At(int(f.Location), name)
	}
	return "", refuse.UnknownFunction.At(int(f.Location), strings.Join(names, ".")+"()")
}

// NamedArgument is the first argument of a call that is given by its name, as years in make_interval(years => 2);
// empty: none is.
func NamedArgument(f *pg.FuncCall) string {
	for _, a := range f.Args {
		if n := a.GetNamedArgExpr(); n != nil {
			return n.Name
		}
	}
	return ""
}

// IsAggregate tells a call of an aggregate that is not a window function.
func IsAggregate(f *pg.FuncCall) bool {
	names := Strings(f.Funcname)
	return f.Over == nil && len(names) > 0 && (Aggregates[names[len(names)-1]] || f.AggStar || f.AggWithinGroup)
}

// Holds reports whether a node of the expression, outside its sub-queries, satisfies the test.
func Holds(n *pg.Node, test func(*pg.Node) bool) bool {
	return n != nil && (test(n) || slices.ContainsFunc(Children(n), func(c *pg.Node) bool { return Holds(c, test) }))
}

// HasAggregate tells an expression with an aggregate outside its sub-queries.
func HasAggregate(n *pg.Node) bool {
	return Holds(n, func(n *pg.Node) bool { f := n.GetFuncCall(); return f != nil && IsAggregate(f) })
}

// HasWindow tells an expression with a window function outside its sub-queries.
func HasWindow(n *pg.Node) bool {
	return Holds(n, func(n *pg.Node) bool { f := n.GetFuncCall(); return f != nil && f.Over != nil })
}

// Children are the operands of an expression; a sub-query has only its test.
func Children(n *pg.Node) []*pg.Node {
	switch v := n.GetNode().(type) {
	case *pg.Node_AExpr:
		return []*pg.Node{v.AExpr.Lexpr, v.AExpr.Rexpr}
	case *pg.Node_BoolExpr:
		return v.BoolExpr.Args
	case *pg.Node_FuncCall:
		out := append(append([]*pg.Node{v.FuncCall.AggFilter}, v.FuncCall.Args...), v.FuncCall.AggOrder...)
		if w := v.FuncCall.Over; w != nil {
			out = append(append(append(out, w.PartitionClause...), w.OrderClause...), w.StartOffset, w.EndOffset)
		}
		return out
	case *pg.Node_TypeCast:
		return []*pg.Node{v.TypeCast.Arg}
	case *pg.Node_NullTest:
		return []*pg.Node{v.NullTest.Arg}
	case *pg.Node_BooleanTest:
		return []*pg.Node{v.BooleanTest.Arg}
	case *pg.Node_CaseExpr:
		return append([]*pg.Node{v.CaseExpr.Arg, v.CaseExpr.Defresult}, v.CaseExpr.Args...)
	case *pg.Node_CaseWhen:
		return []*pg.Node{v.CaseWhen.Expr, v.CaseWhen.Result}
	case *pg.Node_CoalesceExpr:
		return v.CoalesceExpr.Args
	case *pg.Node_MinMaxExpr:
		return v.MinMaxExpr.Args
	case *pg.Node_AArrayExpr:
		return v.AArrayExpr.Elements
	case *pg.Node_RowExpr:
		return v.RowExpr.Args
	case *pg.Node_List:
		return v.List.Items
	case *pg.Node_SubLink:
		return []*pg.Node{v.SubLink.Testexpr}
	case *pg.Node_CollateClause:
		return []*pg.Node{v.CollateClause.Arg}
	case *pg.Node_AIndirection:
		return append([]*pg.Node{v.AIndirection.Arg}, v.AIndirection.Indirection...)
	case *pg.Node_AIndices:
		return []*pg.Node{v.AIndices.Lidx, v.AIndices.Uidx}
	case *pg.Node_GroupingFunc:
		return v.GroupingFunc.Args
	case *pg.Node_ResTarget:
		return []*pg.Node{v.ResTarget.Val}
	case *pg.Node_SortBy:
		return []*pg.Node{v.SortBy.Node}
	case *pg.Node_NamedArgExpr:
		return []*pg.Node{v.NamedArgExpr.Arg}
	}
	return nil
}

// Location is the byte offset of a node, −1 where the grammar keeps none.
func Location(n *pg.Node) int {
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return int(v.ColumnRef.Location)
	case *pg.Node_AConst:
		return int(v.AConst.Location)
	case *pg.Node_ParamRef:
		return int(v.ParamRef.Location)
	case *pg.Node_AExpr:
		return operationAt(v.AExpr)
	case *pg.Node_BoolExpr:
		return int(v.BoolExpr.Location)
	case *pg.Node_FuncCall:
		return int(v.FuncCall.Location)
	case *pg.Node_TypeCast:
		return int(v.TypeCast.Location)
	case *pg.Node_CaseExpr:
		return int(v.CaseExpr.Location)
	case *pg.Node_CoalesceExpr:
		return int(v.CoalesceExpr.Location)
	case *pg.Node_SubLink:
		return int(v.SubLink.Location)
	case *pg.Node_NullTest:
		return int(v.NullTest.Location)
	case *pg.Node_RangeVar:
		return int(v.RangeVar.Location)
	case *pg.Node_ResTarget:
		return int(v.ResTarget.Location)
	case *pg.Node_RowExpr:
		return int(v.RowExpr.Location)
	case *pg.Node_AArrayExpr:
		return int(v.AArrayExpr.Location)
	}
	return -1
}

// operationAt is where an operation begins: at its left operand, or at the operator where there is none.
func operationAt(e *pg.A_Expr) int {
	if left := Location(e.Lexpr); left >= 0 {
		return left
	}
	return int(e.Location)
}

// Conjuncts flattens ANDs.
func Conjuncts(n *pg.Node) []*pg.Node {
	if n == nil {
		return nil
	}
	b := n.GetBoolExpr()
	if b == nil || b.Boolop != pg.BoolExprType_AND_EXPR {
		return []*pg.Node{n}
	}
	var out []*pg.Node
	for _, a := range b.Args {
		out = append(out, Conjuncts(a)...)
	}
	return out
}
