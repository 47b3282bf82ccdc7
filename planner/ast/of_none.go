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

// valueAggregates are NULL where all values of their argument are.
var valueAggregates = []string{"avg", "bool_and", "bool_or", "every", "max", "min", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp", "variance"}

// NullsOfNone are the aggregates that make an expression NULL where there are no rows: those that are no counts, by
// themselves or in what is NULL where a part of it is. Each of them does, so that sum(x) + sum(y) is NULL where either
// is. None: the expression is another one, such as coalesce(sum(x), 5) + 1 or sum(x) IS NULL, of which rows without a
// group would have to be told from those with one.
func NullsOfNone(n *pg.Node) []*pg.FuncCall {
	switch v := n.GetNode().(type) {
	case *pg.Node_TypeCast:
		return NullsOfNone(v.TypeCast.Arg)
	case *pg.Node_AExpr:
		if v.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP {
			return append(NullsOfNone(v.AExpr.Lexpr), NullsOfNone(v.AExpr.Rexpr)...)
		}
	case *pg.Node_FuncCall:
		if IsAggregate(v.FuncCall) {
			if IsCount(n) {
				return nil
			}
			return []*pg.FuncCall{v.FuncCall}
		}
		if name, refusal := FunctionName(v.FuncCall); refusal == nil && slices.Contains(strictFunctions, name) {
			var list []*pg.FuncCall
			for _, a := range v.FuncCall.Args {
				list = append(list, NullsOfNone(a)...)
			}
			return list
		}
	}
	return nil
}

// Counting counts what such an aggregate reads: where that is none it is NULL, as where there are no rows. avg(x)
// FILTER (WHERE c) reads what count(x) FILTER (WHERE c) counts. Of an aggregate that may have a value of values that
// are all NULL it is the rows that are counted.
func Counting(f *pg.FuncCall) *pg.Node {
	out := &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("count")}, Location: -1}
	name, refusal := FunctionName(f)
	if refusal == nil && len(f.Args) == 1 && slices.Contains(valueAggregates, name) {
		out.Args, out.AggFilter = f.Args, f.AggFilter
	} else {
		out.AggStar = true
	}
	return &pg.Node{Node: &pg.Node_FuncCall{FuncCall: out}}
}
