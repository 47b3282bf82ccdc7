package mysql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/xwb1989/sqlparser"
)

// expr translates an expression.
func (t *translator) expr(e sqlparser.Expr, sc *scope) value {
	t.enter()
	defer t.leave()
	switch n := e.(type) {
	case *sqlparser.SQLVal:
		return t.literal(n)
	case *sqlparser.NullVal:
		return value{nullNode(), kind{class: null}}
	case sqlparser.BoolVal:
		return value{boolNode(bool(n)), kind{class: boolean}}
	case *sqlparser.ColName:
		return t.column(n, sc)
	case *sqlparser.ParenExpr:
		return t.expr(n.Expr, sc)
	case *sqlparser.AndExpr, *sqlparser.OrExpr, *sqlparser.NotExpr, *sqlparser.ExistsExpr, *sqlparser.IsExpr, *sqlparser.RangeCond, *sqlparser.ComparisonExpr:
		return value{t.predicate(e, sc), kind{class: boolean}}
	case *sqlparser.BinaryExpr:
		return t.arithmetic(n, sc)
	case *sqlparser.UnaryExpr:
		return t.unary(n, sc)
	case *sqlparser.FuncExpr:
		return t.call(n, sc)
	case *sqlparser.CaseExpr:
		return t.caseOf(n, sc)
	case *sqlparser.ConvertExpr:
		return t.convert(n, sc)
	case *sqlparser.Subquery:
		query, items := t.query(n.Select, sc, false)
		if len(items) != 1 {
			bail(Construct, "a sub-query of several columns as a value", "Select one column.")
		}
		k := items[0].kind
		k.literal, k.column, k.quotient = nil, false, false
		return value{subLink(pg.SubLinkType_EXPR_SUBLINK, nil, query), k}
	case *sqlparser.IntervalExpr:
		bail(Temporal, "INTERVAL in this place", "An interval is added to a date or time: d + INTERVAL 1 DAY.")
	case *sqlparser.CollateExpr:
		bail(Collation, "COLLATE", "Compare by bytes: BINARY column = 'value'.")
	case *sqlparser.GroupConcatExpr:
		bail(Construct, "GROUP_CONCAT", "Group by the column, and put the texts together where they arrive.")
	}
	bail(Construct, quoted(e), "Write it with comparisons, arithmetic, CASE and the usual functions.")
	return value{}
}

// quoted is an expression for a message.
func quoted(e sqlparser.Expr) string {
	s := sqlparser.String(e)
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + " …"
	}
	return s
}

func (t *translator) literal(n *sqlparser.SQLVal) value {
	s := string(n.Val)
	switch n.Type {
	case sqlparser.StrVal:
		return value{textNode(s), kind{class: text, literal: &s}}
	case sqlparser.IntVal:
		return value{numberNode(s), kind{class: integer}}
	case sqlparser.FloatVal:
		if strings.ContainsAny(s, "eE") {
			return value{toFloat(numberNode(s)), kind{class: float}}
		}
		_, fraction, _ := strings.Cut(s, ".")
		return value{numberNode(strings.TrimSuffix(s, ".")), kind{class: decimal, scale: len(fraction)}}
	case sqlparser.ValArg:
		n := 0
		for _, c := range strings.TrimPrefix(s, ":p") {
			if n = n*10 + int(c-'0'); n > 1<<16 {
				bail(Construct, "a parameter of so high a number", "Number the parameters from $1.")
			}
		}
		return value{pg.MakeParamRefNode(int32(n), -1), kind{param: true}}
	}
	bail(Construct, "a hexadecimal or bit literal", "Write the number or the text.")
	return value{}
}

func (t *translator) column(n *sqlparser.ColName, sc *scope) value {
	name, qualifier := n.Name.Lowered(), strings.ToLower(n.Qualifier.Name.String())
	if !n.Qualifier.Qualifier.IsEmpty() {
		t.schemaOf(n.Qualifier)
	}
	c, known := sc.find(qualifier, name)
	if sc.named && qualifier == "" {
		if it := sc.aliases[name]; it != nil && it.node != nil && !it.bare {
			if known {
				bail(Ambiguous, `"`+n.Name.String()+`"`, "It names a column and an alias of something else: give the alias another name.")
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
func (t *translator) condition(e sqlparser.Expr, sc *scope) *pg.Node {
	switch e.(type) {
	case *sqlparser.AndExpr, *sqlparser.OrExpr, *sqlparser.NotExpr, *sqlparser.ExistsExpr, *sqlparser.IsExpr, *sqlparser.RangeCond, *sqlparser.ComparisonExpr:
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
	bail(Untyped, quoted(e)+" as a condition", "Compare it with something.")
	return nil
}

// predicate translates what is true, false or NULL.
func (t *translator) predicate(e sqlparser.Expr, sc *scope) *pg.Node {
	switch n := e.(type) {
	case *sqlparser.AndExpr:
		return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, t.spine(e, sc), -1)
	case *sqlparser.OrExpr:
		return pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, t.spine(e, sc), -1)
	case *sqlparser.NotExpr:
		return not(t.condition(n.Expr, sc))
	case *sqlparser.ExistsExpr:
		query, _ := t.query(n.Subquery.Select, sc, false)
		return subLink(pg.SubLinkType_EXISTS_SUBLINK, nil, query)
	case *sqlparser.IsExpr:
		return t.is(n, sc)
	case *sqlparser.RangeCond:
		v := t.expr(n.Left, sc)
		low := compare(">=", v, t.expr(n.From, sc))
		high := compare("<=", v, t.expr(n.To, sc))
		var both *pg.Node
		if a, b := low.GetAExpr(), high.GetAExpr(); a != nil && b != nil && a.Lexpr == v.node && b.Lexpr == v.node {
			kind, op := pg.A_Expr_Kind_AEXPR_BETWEEN, "BETWEEN"
			if n.Operator == sqlparser.NotBetweenStr {
				kind, op = pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, "NOT BETWEEN"
			}
			return special(kind, op, v.node, pg.MakeListNode([]*pg.Node{a.Rexpr, b.Rexpr}))
		}
		both = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, []*pg.Node{low, high}, -1)
		if n.Operator == sqlparser.NotBetweenStr {
			return not(both)
		}
		return both
	case *sqlparser.ComparisonExpr:
		return t.comparison(n, sc)
	}
	bail(Construct, quoted(e), "Write it with comparisons.")
	return nil
}

// spine flattens a chain of one connective, which the parser nests to the left.
func (t *translator) spine(e sqlparser.Expr, sc *scope) []*pg.Node {
	_, and := e.(*sqlparser.AndExpr)
	var parts []sqlparser.Expr
	for {
		left, right := sqlparser.Expr(nil), sqlparser.Expr(nil)
		if a, ok := e.(*sqlparser.AndExpr); ok && and {
			left, right = a.Left, a.Right
		} else if o, ok := e.(*sqlparser.OrExpr); ok && !and {
			left, right = o.Left, o.Right
		}
		if right == nil {
			break
		}
		parts = append(parts, right)
		e = left
	}
	out := []*pg.Node{t.condition(e, sc)}
	for i := len(parts) - 1; i >= 0; i-- {
		out = append(out, t.condition(parts[i], sc))
	}
	return out
}

func (t *translator) is(n *sqlparser.IsExpr, sc *scope) *pg.Node {
	switch n.Operator {
	case sqlparser.IsNullStr, sqlparser.IsNotNullStr:
		return isNull(t.expr(n.Expr, sc).node, n.Operator == sqlparser.IsNotNullStr)
	}
	kind := map[string]pg.BoolTestType{sqlparser.IsTrueStr: pg.BoolTestType_IS_TRUE, sqlparser.IsNotTrueStr: pg.BoolTestType_IS_NOT_TRUE,
		sqlparser.IsFalseStr: pg.BoolTestType_IS_FALSE, sqlparser.IsNotFalseStr: pg.BoolTestType_IS_NOT_FALSE}[n.Operator]
	if kind == pg.BoolTestType_BOOL_TEST_TYPE_UNDEFINED {
		bail(Construct, "IS …", "IS NULL, IS TRUE and IS FALSE are read.")
	}
	return isTrue(t.condition(n.Expr, sc), kind)
}

func (t *translator) unary(n *sqlparser.UnaryExpr, sc *scope) value {
	v := t.expr(n.Expr, sc)
	switch n.Operator {
	case sqlparser.BinaryStr:
		if v.class != text && v.class != unknown && v.class != null {
			bail(Construct, "BINARY of what is no text", "Leave BINARY out.")
		}
		v.binary, v.column = true, false
		return v
	case sqlparser.UPlusStr:
		return number(v, "an addition")
	case sqlparser.UMinusStr:
		v = number(v, "a subtraction")
		v.node, v.column = negated(v.node), false
		return v
	case sqlparser.BangStr:
		return value{not(t.condition(n.Expr, sc)), kind{class: boolean}}
	}
	bail(Construct, "the operator "+strings.TrimSpace(n.Operator), "Operators on bits are not read.")
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
func (t *translator) caseOf(n *sqlparser.CaseExpr, sc *scope) value {
	var pairs []*pg.Node
	var results []value
	for _, w := range n.Whens {
		var test *pg.Node
		if n.Expr != nil {
			test = compare("=", t.expr(n.Expr, sc), t.expr(w.Cond, sc))
		} else {
			test = t.condition(w.Cond, sc)
		}
		results = append(results, t.expr(w.Val, sc))
		pairs = append(pairs, test, nil)
	}
	if n.Else != nil {
		results = append(results, t.expr(n.Else, sc))
	}
	results, k := alike(results)
	for i := range n.Whens {
		pairs[2*i+1] = results[i].node
	}
	var otherwise *pg.Node
	if n.Else != nil {
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
