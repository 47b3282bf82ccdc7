package mysql

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/format"
	"github.com/sqlc-dev/marino/mysql"
	"github.com/sqlc-dev/marino/opcode"
)

// scalarSubquery translates a sub-query that is a value.
func (t *translator) scalarSubquery(n *ast.SubqueryExpr, sc *scope) value {
	query, items := t.query(n.Query, sc, false)
	if len(items) != 1 {
		bail(Construct, "a sub-query of several columns as a value", "Select one column.")
	}
	k := items[0].kind
	k.literal, k.column, k.quotient = nil, false, false
	return value{subLink(pg.SubLinkType_EXPR_SUBLINK, nil, query), k}
}

// expr translates an expression.
func (t *translator) expr(e ast.ExprNode, sc *scope) value {
	t.enter()
	defer t.leave()
	if isPredicate(e) {
		return value{t.predicate(e, sc), kind{class: boolean}}
	}
	switch n := e.(type) {
	case *ast.ValueExprBase:
		return t.literal(n)
	case *ast.ParamMarkerExprBase:
		return t.param(n)
	case *ast.ColumnNameExpr:
		return t.column(n.Name, sc)
	case *ast.ParenthesesExpr:
		return t.expr(n.Expr, sc)
	case *ast.BinaryOperationExpr:
		return t.arithmetic(n, sc)
	case *ast.UnaryOperationExpr:
		return t.unary(n, sc)
	case *ast.FuncCallExpr:
		return t.call(n, sc)
	case *ast.AggregateFuncExpr:
		name := strings.ToLower(n.F)
		if !aggregates[name] {
			bail(Construct, strings.ToUpper(name), "Group by the column, and put what it holds together where it arrives.")
		}
		return t.aggregate(name, n.Args, n.Distinct, sc)
	case *ast.WindowFuncExpr:
		return t.window(n, sc)
	case *ast.CaseExpr:
		return t.caseOf(n, sc)
	case *ast.FuncCastExpr:
		return t.convert(n, sc)
	case *ast.SubqueryExpr:
		return t.scalarSubquery(n, sc)
	case *ast.SetCollationExpr:
		bail(Collation, "COLLATE", "Compare by bytes: BINARY column = 'value'.")
	}
	bail(Construct, printed(e), "Write it with comparisons, arithmetic, CASE and the usual functions.")
	return value{}
}

// printed is a part of the parser's tree for a message.
func printed(n interface {
	Restore(*format.RestoreCtx) error
}) string {
	var b strings.Builder
	flags := format.RestoreStringSingleQuotes | format.RestoreKeyWordUppercase | format.RestoreStringWithoutCharset
	if n.Restore(format.NewRestoreCtx(flags, &b)) != nil {
		return "this expression"
	}
	s := b.String()
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + " …"
	}
	return s
}

// at is what the token at a place of the text says: the parser's numbers have lost the digits that were written.
func (t *translator) at(offset int) string {
	lex := lexer{text: t.text, at: offset}
	found, _ := lex.next()
	return found.value
}

func (t *translator) literal(n *ast.ValueExprBase) value {
	switch n.Kind() {
	case ast.KindNull:
		return value{nullNode(), kind{class: null}}
	case ast.KindString:
		s := n.GetString()
		if n.Type.GetFlag()&mysql.UnderScoreCharsetFlag != 0 {
			bail(Construct, "a character set before a string", "Leave it out.")
		}
		return value{textNode(s), kind{class: text, literal: &s}}
	case ast.KindInt64, ast.KindUint64, ast.KindMysqlDecimal, ast.KindFloat64:
		if n.Type.GetFlag()&mysql.IsBooleanFlag != 0 {
			return value{boolNode(n.GetInt64() == 1), kind{class: boolean}}
		}
		s := t.at(n.OriginTextPosition())
		if strings.ContainsAny(s, "eE") {
			return value{toFloat(numberNode(s)), kind{class: float}}
		}
		if _, fraction, ok := strings.Cut(s, "."); ok {
			return value{numberNode(strings.TrimSuffix(s, ".")), kind{class: decimal, scale: len(fraction)}}
		}
		return value{numberNode(s), kind{class: integer}}
	}
	bail(Construct, "a hexadecimal or bit literal", "Write the number or the text.")
	return value{}
}

func (t *translator) param(n *ast.ParamMarkerExprBase) value {
	number, err := strconv.ParseUint(t.at(n.Offset), 10, 16)
	if err != nil {
		bail(Construct, "a parameter of so high a number", "Number the parameters from $1.")
	}
	return value{pg.MakeParamRefNode(int32(number), -1), kind{param: true}}
}

const anotherName = "It names a column and an alias of something else: give the alias another name."

func (t *translator) column(n *ast.ColumnName, sc *scope) value {
	name, qualifier := n.Name.L, n.Table.L
	t.schemaOf(n.Schema.O)
	c, known := sc.find(qualifier, name)
	if sc.named && qualifier == "" {
		if it := sc.aliases[name]; it != nil && it.node != nil && !it.bare {
			if known {
				bail(Ambiguous, `"`+n.Name.O+`"`, anotherName)
			}
			return it.value
		}
	}
	fields := []*pg.Node{pg.MakeStrNode(c.name)}
	if qualifier != "" {
		fields = append([]*pg.Node{pg.MakeStrNode(sc.refOf(qualifier))}, fields...)
	}
	return value{pg.MakeColumnRefNode(fields, -1), c.kind}
}

// refOf is how PostgreSQL spells a table's name or alias.
func (s *scope) refOf(alias string) string {
	for ; s != nil; s = s.outer {
		for _, r := range s.relations {
			if r.alias == alias {
				return r.ref
			}
		}
	}
	return alias
}

// number is a value where MySQL takes a number: a condition is 1 or 0, a text of digits its number.
func number(v value, what string) value {
	switch {
	case v.class == boolean:
		if c := v.node.GetAConst(); c != nil && c.GetBoolval() != nil {
			n := 0
			if c.GetBoolval().Boolval {
				n = 1
			}
			return value{intNode(n), kind{class: integer}}
		}
		return value{choice(nil, v.node, intNode(1), not(v.node), intNode(0)), kind{class: integer}}
	case v.literal != nil:
		if k, ok := numeral(*v.literal); ok {
			return value{numberNode(*v.literal), k}
		}
		bail(Construct, "a text as a number in "+what, "Write the number without quotes.")
	case v.class == text:
		bail(Construct, "a text as a number in "+what, "MySQL reads the digits at its beginning: CAST it where that is meant.")
	case v.isTime() || v.class == clock:
		bail(Temporal, "a date or time as a number in "+what, "Add and subtract INTERVALs, or take YEAR, MONTH, DAY, DATEDIFF.")
	}
	return v
}

// numeral tells a plain decimal number.
func numeral(s string) (kind, bool) {
	digits, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	if digits == "" || strings.Trim(digits+fraction, "0123456789") != "" || point && fraction == "" || len(s) > 40 {
		return kind{}, false
	}
	if point {
		return kind{class: decimal, scale: len(fraction)}, true
	}
	return kind{class: integer}, true
}

// condition is an expression as a condition: a number is true unless it is 0.
func (t *translator) condition(e ast.ExprNode, sc *scope) *pg.Node {
	if isPredicate(e) {
		t.enter()
		defer t.leave()
		return t.predicate(e, sc)
	}
	v := t.expr(e, sc)
	switch v.class {
	case boolean, null:
		return v.node
	case integer, decimal, float:
		return operator("<>", v.node, intNode(0))
	}
	bail(Untyped, printed(e)+" as a condition", "Compare it with something.")
	return nil
}

// isPredicate reports whether an expression is true, false or NULL by its form.
func isPredicate(e ast.ExprNode) bool {
	switch n := e.(type) {
	case *ast.BinaryOperationExpr:
		return comparisons[n.Op] != "" || n.Op == opcode.LogicAnd || n.Op == opcode.LogicOr || n.Op == opcode.LogicXor
	case *ast.UnaryOperationExpr:
		return n.Op == opcode.Not || n.Op == opcode.Not2
	case *ast.ExistsSubqueryExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.BetweenExpr, *ast.PatternInExpr,
		*ast.PatternLikeOrIlikeExpr, *ast.PatternRegexpExpr:
		return true
	}
	return false
}

// predicate translates what is true, false or NULL.
func (t *translator) predicate(e ast.ExprNode, sc *scope) *pg.Node {
	switch n := e.(type) {
	case *ast.BinaryOperationExpr:
		return t.binary(n, sc)
	case *ast.UnaryOperationExpr:
		return not(t.condition(n.V, sc))
	case *ast.ExistsSubqueryExpr:
		query, _ := t.query(n.Sel.(*ast.SubqueryExpr).Query, sc, false)
		link := subLink(pg.SubLinkType_EXISTS_SUBLINK, nil, query)
		if n.Not {
			return not(link)
		}
		return link
	case *ast.IsNullExpr:
		return isNull(t.expr(n.Expr, sc).node, n.Not)
	case *ast.IsTruthExpr:
		return isTrue(t.condition(n.Expr, sc), truths[[2]bool{n.True != 0, n.Not}])
	case *ast.BetweenExpr:
		return t.between(n, sc)
	case *ast.PatternInExpr:
		return t.in(n, sc)
	case *ast.PatternLikeOrIlikeExpr:
		if n.EscapeExplicit || !n.IsLike {
			bail(Construct, "ESCAPE or ILIKE", "Write LIKE, and escape with the backslash, which is the standard.")
		}
		return like(t.expr(n.Expr, sc), t.expr(n.Pattern, sc), n.Not)
	case *ast.PatternRegexpExpr:
		return matches(t.expr(n.Expr, sc), t.expr(n.Pattern, sc), n.Not)
	}
	bail(Construct, printed(e), "Write it with comparisons.")
	return nil
}

// truths are IS [NOT] TRUE and IS [NOT] FALSE by what is asked and whether it is negated.
var truths = map[[2]bool]pg.BoolTestType{
	{true, false}: pg.BoolTestType_IS_TRUE, {true, true}: pg.BoolTestType_IS_NOT_TRUE,
	{false, false}: pg.BoolTestType_IS_FALSE, {false, true}: pg.BoolTestType_IS_NOT_FALSE,
}

// binary translates a connective or a comparison. XOR is true where one is true and the other false, and NULL where one
// is NULL, as <> is of conditions.
func (t *translator) binary(n *ast.BinaryOperationExpr, sc *scope) *pg.Node {
	switch n.Op {
	case opcode.LogicAnd:
		return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, t.spine(n, sc), -1)
	case opcode.LogicOr:
		return pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, t.spine(n, sc), -1)
	case opcode.LogicXor:
		return operator("<>", t.condition(n.L, sc), t.condition(n.R, sc))
	case opcode.NullEQ:
		return same(t.expr(n.L, sc), t.expr(n.R, sc))
	}
	return compare(comparisons[n.Op], t.expr(n.L, sc), t.expr(n.R, sc))
}

func (t *translator) between(n *ast.BetweenExpr, sc *scope) *pg.Node {
	v := t.expr(n.Expr, sc)
	low := compare(">=", v, t.expr(n.Left, sc))
	high := compare("<=", v, t.expr(n.Right, sc))
	if a, b := low.GetAExpr(), high.GetAExpr(); a != nil && b != nil && a.Lexpr == v.node && b.Lexpr == v.node {
		kind, op := pg.A_Expr_Kind_AEXPR_BETWEEN, "BETWEEN"
		if n.Not {
			kind, op = pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, "NOT BETWEEN"
		}
		return special(kind, op, v.node, pg.MakeListNode([]*pg.Node{a.Rexpr, b.Rexpr}))
	}
	both := pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, []*pg.Node{low, high}, -1)
	if n.Not {
		return not(both)
	}
	return both
}

// spine flattens a chain of one connective, which the parser nests to the left.
func (t *translator) spine(e *ast.BinaryOperationExpr, sc *scope) []*pg.Node {
	parts, left := []ast.ExprNode{e.R}, e.L
	for {
		next, ok := left.(*ast.BinaryOperationExpr)
		if !ok || next.Op != e.Op {
			break
		}
		parts, left = append(parts, next.R), next.L
	}
	out := []*pg.Node{t.condition(left, sc)}
	for _, part := range slices.Backward(parts) {
		out = append(out, t.condition(part, sc))
	}
	return out
}

func (t *translator) unary(n *ast.UnaryOperationExpr, sc *scope) value {
	v := t.expr(n.V, sc)
	switch n.Op {
	case opcode.Plus:
		return number(v, "an addition")
	case opcode.Minus:
		v = number(v, "a subtraction")
		v.node, v.column = negated(v.node), false
		return v
	}
	bail(Construct, "the operator "+printed(n.Op), "Operators on bits are not read.")
	return value{}
}

// shown is a value as a column of an answer: a quotient has MySQL's digits, a condition is 1 or 0.
func shown(v value) value {
	switch {
	case v.class == decimal && v.quotient && v.scale >= 0:
		v.node, v.quotient = call("round", v.node, intNode(v.scale)), false
	case v.class == boolean && !v.column:
		return number(v, "")
	}
	return v
}

// caseOf is CASE. With an operand its arms are compared as = compares.
func (t *translator) caseOf(n *ast.CaseExpr, sc *scope) value {
	var pairs []*pg.Node
	var results []value
	for _, w := range n.WhenClauses {
		var test *pg.Node
		if n.Value != nil {
			test = compare("=", t.expr(n.Value, sc), t.expr(w.Expr, sc))
		} else {
			test = t.condition(w.Expr, sc)
		}
		results = append(results, t.expr(w.Result, sc))
		pairs = append(pairs, test, nil)
	}
	if n.ElseClause != nil {
		results = append(results, t.expr(n.ElseClause, sc))
	}
	results, k := alike(results)
	for i := range n.WhenClauses {
		pairs[2*i+1] = results[i].node
	}
	var otherwise *pg.Node
	if n.ElseClause != nil {
		otherwise = results[len(results)-1].node
	}
	return value{choice(otherwise, pairs...), k}
}

// alike makes the branches of one expression of one type, as MySQL does: conditions among numbers are numbers.
func alike(list []value) ([]value, kind) {
	allConditions := true
	for _, v := range list {
		allConditions = allConditions && (v.class == boolean || v.class == null)
	}
	if !allConditions {
		for i, v := range list {
			if v.class == boolean {
				list[i] = number(v, "")
			}
		}
	}
	k := common(list)
	if k.class == unknown {
		for _, v := range list {
			if v.class == text || v.isTime() || v.class == clock {
				bail(Untyped, "branches of different types", "CAST them to one type.")
			}
		}
	}
	return list, k
}
