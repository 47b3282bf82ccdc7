package ast

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// ArrayElements are the elements of an array that a statement writes out, each cast as the array is: those of
// ARRAY[1.6, $1]::int[] are 1.6::int and $1::int, those of '{2,3}'::int[] are '2'::int and '3'::int. false means it is
// none.
func ArrayElements(n *pg.Node) (elements []*pg.Node, ok bool) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AArrayExpr:
		return v.AArrayExpr.Elements, true
	case *pg.Node_AConst:
		if v.AConst.GetSval() == nil {
			return nil, false
		}
		values, ok := SplitArray(v.AConst.GetSval().Sval)
		for _, value := range values {
			text, given := value.(string)
			element := pg.MakeAConstStrNode(text, v.AConst.Location)
			if !given {
				element = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: v.AConst.Location}}}
			}
			elements = append(elements, element)
		}
		return elements, ok
	case *pg.Node_TypeCast:
		t := v.TypeCast.TypeName
		if elements, ok = ArrayElements(v.TypeCast.Arg); !ok || len(t.ArrayBounds) != 1 {
			return nil, false
		}
		element := &pg.TypeName{Names: t.Names, Typmods: t.Typmods, Typemod: t.Typemod, Location: t.Location}
		cast := make([]*pg.Node, len(elements))
		for i, e := range elements {
			cast[i] = &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: e, TypeName: element, Location: v.TypeCast.Location}}}
		}
		return cast, true
	}
	return nil, false
}

// SplitArray reads a one-dimensional array literal: {a,"b c",NULL}.
func SplitArray(text string) ([]policy.Value, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	text = text[1 : len(text)-1]
	var out []policy.Value
	if strings.TrimSpace(text) == "" {
		return out, true
	}
	for {
		item, rest, ok := arrayItem(strings.TrimLeft(text, " \t\n"))
		if !ok || rest != "" && rest[0] != ',' {
			return nil, false
		}
		if out = append(out, item); rest == "" {
			return out, true
		}
		text = rest[1:]
	}
}

// arrayItem reads the item that a text begins with, and returns what follows it.
func arrayItem(text string) (item policy.Value, rest string, ok bool) {
	var b strings.Builder
	quoted := strings.HasPrefix(text, `"`)
	if quoted {
		text = text[1:]
	}
	for len(text) > 0 && !(quoted && text[0] == '"') && !(!quoted && text[0] == ',') {
		if text[0] == '\\' && len(text) > 1 {
			text = text[1:]
		} else if !quoted && strings.IndexByte(`{}"`, text[0]) >= 0 {
			return nil, "", false
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	if quoted {
		behind, closed := strings.CutPrefix(text, `"`)
		return b.String(), strings.TrimLeft(behind, " \t\n"), closed
	}
	plain := strings.TrimSpace(b.String())
	if strings.EqualFold(plain, "null") {
		return nil, text, true
	}
	return plain, text, plain != ""
}

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
// group would have to be distinguished from those with one.
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

// Deparsed writes a SELECT for people.
func Deparsed(sel *pg.SelectStmt) string {
	text, err := pg.Deparse(&pg.ParseResult{Version: GrammarVersion, Stmts: []*pg.RawStmt{{Stmt: Select(sel)}}})
	if err != nil {
		return ""
	}
	return text
}

// ParsedExpr reads an expression.
func ParsedExpr(text string) (*pg.Node, error) {
	tree, err := pg.Parse("SELECT " + text)
	if err != nil {
		return nil, err
	}
	return tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val, nil
}

// DeparsedExpr writes an expression for people, or returns "" if it cannot be written.
func DeparsedExpr(n *pg.Node) string {
	sel := &pg.SelectStmt{TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(n, -1)}}
	return strings.TrimPrefix(Deparsed(sel), "SELECT ")
}

// Joining are the conditions of WHERE that may join: its conjuncts, and what each arm of an OR among them asks alike.
func Joining(where *pg.Node) []*pg.Node {
	return append(Conjuncts(where), Alike(where)...)
}

// Alike are what each arm of an OR of WHERE asks alike.
func Alike(where *pg.Node) (all []*pg.Node) {
	for _, n := range Conjuncts(where) {
		if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_OR_EXPR {
			all = append(all, common(b.Args)...)
		}
	}
	return all
}

// common are the conjuncts that all arms have, as they are written.
func common(branches []*pg.Node) []*pg.Node {
	count, first := map[string]int{}, map[string]*pg.Node{}
	var order []string
	for _, branch := range branches {
		seen := map[string]bool{}
		for _, n := range Conjuncts(branch) {
			text := DeparsedExpr(n)
			if text == "" || seen[text] {
				continue
			}
			if seen[text] = true; count[text] == 0 {
				first[text], order = n, append(order, text)
			}
			count[text]++
		}
	}
	var out []*pg.Node
	for _, text := range order {
		if count[text] == len(branches) {
			out = append(out, first[text])
		}
	}
	return out
}

var lockNames = map[pg.LockClauseStrength]string{pg.LockClauseStrength_LCS_FORKEYSHARE: "FOR KEY SHARE",
	pg.LockClauseStrength_LCS_FORSHARE: "FOR SHARE", pg.LockClauseStrength_LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE"}

// LockName is how a locking clause is written.
func LockName(n *pg.Node) string {
	return cmp.Or(lockNames[n.GetLockingClause().GetStrength()], "FOR UPDATE")
}

// SetOperation is the word of one.
func SetOperation(op pg.SetOperation) string { return strings.TrimPrefix(op.String(), "SETOP_") }

// IsZero tells the constant 0, isNoLimit LIMIT ALL.
func IsZero(n *pg.Node) bool {
	c := n.GetAConst()
	return c != nil && !c.Isnull && c.GetVal() != nil && c.GetFval() == nil && c.GetSval() == nil && c.GetBoolval() == nil && c.GetIval().GetIval() == 0
}

func IsNoLimit(n *pg.Node) bool { return n.GetAConst().GetIsnull() }

// IsLimited reports whether a SELECT has LIMIT or OFFSET.
func IsLimited(sel *pg.SelectStmt) bool { return sel.LimitCount != nil || sel.LimitOffset != nil }

// IsRowByRow reports whether each column of a SELECT is an expression over a row of FROM, if there is one, but for
// aggregates and windows.
func IsRowByRow(sel *pg.SelectStmt) bool {
	clauses := len(sel.ValuesLists) + len(sel.GroupClause) + len(sel.SortClause) + len(sel.DistinctClause) + len(sel.LockingClause)
	return sel.Larg == nil && clauses == 0 && sel.HavingClause == nil && sel.WithClause == nil && !IsLimited(sel) && sel.IntoClause == nil
}

// HasAggregateClause reports whether a call has what only calls of aggregates have: a star, DISTINCT, ORDER BY, WITHIN
// GROUP or FILTER.
func HasAggregateClause(f *pg.FuncCall) bool {
	return f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 || f.AggFilter != nil
}

// IsPlainCall reports whether a call has nothing but arguments, each by itself.
func IsPlainCall(f *pg.FuncCall) bool {
	return f.Over == nil && !f.FuncVariadic && !HasAggregateClause(f)
}
