package mysql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/opcode"
)

// comparisons are the operators that compare, as PostgreSQL has them.
var comparisons = map[opcode.Op]string{opcode.EQ: "=", opcode.NE: "<>", opcode.LT: "<", opcode.LE: "<=",
	opcode.GT: ">", opcode.GE: ">=", opcode.NullEQ: "<=>"}

// flipped is an operator with its operands changed round.
var flipped = map[string]string{"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

// compare is one of = <> < <= > >= as MySQL compares values of these types, or a refusal.
func compare(op string, a, b value) *pg.Node {
	switch {
	case a.class == null || b.class == null:
		return operator(op, a.node, b.node)
	case a.key && b.key:
		return operator(op, a.node, b.node)
	case a.literal != nil && b.literal == nil:
		return compare(flipped[op], b, a)
	case a.class == text && b.class == text:
		return texts(op, a, b)
	case a.isTime() && (b.isTime() || b.param):
		return operator(op, a.node, b.node)
	case b.isTime() && a.param:
		return operator(op, a.node, b.node)
	case a.isTime() && b.literal != nil:
		return moment(op, a, *b.literal)
	case a.class == clock && (b.class == clock || b.param), b.class == clock && a.param:
		return operator(op, a.node, b.node)
	case a.class == clock && b.literal != nil:
		return operator(op, a.node, textNode(clockText(*b.literal)))
	case a.class == boolean && b.class == boolean:
		return operator(op, a.node, b.node)
	case a.class == boolean && b.class == integer && (op == "=" || op == "<>"):
		if c := b.node.GetAConst().GetIval(); c != nil && (c.Ival == 0 || c.Ival == 1) {
			return operator(op, a.node, boolNode(c.Ival == 1))
		}
	case b.class == boolean && a.class == integer:
		return compare(flipped[op], b, a)
	case a.class == boolean && b.param:
		return operator(op, a.node, b.node)
	}
	if a.class == text && b.isNumber() || b.class == text && a.isNumber() {
		if a.literal == nil && b.literal == nil {
			bail(Construct, "a comparison of a text with a number", "MySQL reads the digits at the text's beginning: compare texts with texts.")
		}
	}
	if a.class == unknown && b.class == text || b.class == unknown && a.class == text {
		if a.binary || b.binary {
			return operator(op, a.node, b.node)
		}
		if a.param || b.param {
			bail(Collation, "a text compared with a parameter", "Compare by bytes: BINARY column = $1.")
		}
		bail(Untyped, "a comparison with a text", "Where the column holds texts, compare by bytes: BINARY column = 'value'.")
	}
	if a.class == unknown && b.class == unknown && !a.param && !b.param && !a.binary && !b.binary {
		bail(Untyped, "a comparison of two columns", "Where they hold texts, compare by bytes: BINARY a = b.")
	}
	a, b = number(a, "a comparison"), number(b, "a comparison")
	return operator(op, a.node, b.node)
}

// same is <=>, which is true of two NULLs.
func same(a, b value) *pg.Node {
	switch {
	case b.class == null:
		return isNull(a.node, false)
	case a.class == null:
		return isNull(b.node, false)
	}
	if n := compare("=", a, b).GetAExpr(); n != nil && n.Kind == pg.A_Expr_Kind_AEXPR_OP && n.Name[0].GetString_().GetSval() == "=" {
		return special(pg.A_Expr_Kind_AEXPR_NOT_DISTINCT, "=", n.Lexpr, n.Rexpr)
	} else if n != nil && n.Kind == pg.A_Expr_Kind_AEXPR_IN {
		return coalesce(&pg.Node{Node: &pg.Node_AExpr{AExpr: n}}, boolNode(false))
	}
	bail(Construct, "<=> of these types", "Write a = b OR a IS NULL AND b IS NULL.")
	return nil
}

const byBytes = "Compare by bytes: BINARY column = 'value'."

// texts compares two texts. MySQL's collations do not tell upper from lower case, so a constant stands for all values
// that are equal to it; where that is not certain, the comparison is refused. BINARY compares bytes, as PostgreSQL
// does.
func texts(op string, a, b value) *pg.Node {
	if a.binary || b.binary {
		return operator(op, a.node, b.node)
	}
	if op != "=" && op != "<>" {
		bail(Collation, "the order of texts", "Compare by bytes: BINARY column < 'value'.")
	}
	if a.literal != nil && b.literal != nil {
		equal, sure := alikeTexts(*a.literal, *b.literal)
		if !sure {
			bail(Collation, "this comparison of texts", byBytes)
		}
		return boolNode(equal == (op == "="))
	}
	if b.literal == nil {
		bail(Collation, "a comparison of texts with each other", "Compare by bytes: BINARY a = b.")
	}
	return oneOf(a, equals(a, *b.literal), *b.literal, op == "<>")
}

// oneOf is a IN (values), written = where there is one; without any it compares with the constant, which nothing
// equals.
func oneOf(a value, values []string, constant string, negated bool) *pg.Node {
	op, list := "=", values
	if negated {
		op = "<>"
	}
	if len(list) == 0 {
		list = []string{constant}
	}
	if len(list) == 1 {
		return operator(op, a.node, textNode(list[0]))
	}
	var items []*pg.Node
	for _, v := range list {
		items = append(items, textNode(v))
	}
	return special(pg.A_Expr_Kind_AEXPR_IN, op, a.node, pg.MakeListNode(items))
}

// equals are the values of a that MySQL takes for equal to a constant.
func equals(a value, constant string) []string {
	if a.values == nil {
		if a.caseless && letterless(constant) {
			return []string{constant}
		}
		bail(Collation, "this comparison of texts", byBytes)
	}
	var out []string
	for _, v := range a.values {
		equal, sure := alikeTexts(v, constant)
		if !sure {
			bail(Collation, `a comparison with '`+constant+`'`, "It may equal a declared value but for accents or spaces. "+byBytes)
		}
		if equal && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (t *translator) in(n *ast.PatternInExpr, sc *scope) *pg.Node {
	left := t.expr(n.Expr, sc)
	if sub, ok := n.Sel.(*ast.SubqueryExpr); ok {
		query, items := t.query(sub.Query, sc, false)
		if len(items) != 1 {
			bail(Construct, "IN over several columns", "Select one column.")
		}
		if k := items[0]; !(left.key && k.key) && (left.class == text || k.class == text || left.class == unknown || k.class == unknown) && !left.binary && !k.binary {
			bail(Collation, "IN over texts of a sub-query", "Compare by bytes: BINARY column IN (SELECT …).")
		}
		link := subLink(pg.SubLinkType_ANY_SUBLINK, left.node, query)
		if n.Not {
			return not(link)
		}
		return link
	}
	var values []string
	var items []*pg.Node
	plain := left.class == text && !left.binary
	for _, e := range n.List {
		v := t.expr(e, sc)
		if plain && v.literal != nil {
			found := equals(left, *v.literal)
			if len(found) == 0 {
				found = []string{*v.literal}
			}
			for _, f := range found {
				if !slices.Contains(values, f) {
					values = append(values, f)
					items = append(items, textNode(f))
				}
			}
			continue
		}
		if v.class == null {
			items = append(items, v.node)
			continue
		}
		// compare refuses what cannot be compared so; its right side is the constant as it must stand
		c := compare("=", left, v).GetAExpr()
		if c == nil || c.Lexpr != left.node {
			bail(Construct, "this IN", "Write a = 1 OR a = 2.")
		}
		items = append(items, c.Rexpr)
	}
	op := "="
	if n.Not {
		op = "<>"
	}
	return special(pg.A_Expr_Kind_AEXPR_IN, op, left.node, pg.MakeListNode(items))
}

// like is LIKE, which ignores case unless one side is BINARY.
func like(a, pattern value, negated bool) *pg.Node {
	kind, op := pg.A_Expr_Kind_AEXPR_ILIKE, "~~*"
	if a.binary || pattern.binary {
		kind, op = pg.A_Expr_Kind_AEXPR_LIKE, "~~"
	}
	if a.class != text && !a.binary {
		bail(Construct, "LIKE over what is no text", "Compare it with constants.")
	}
	if pattern.literal == nil {
		bail(Construct, "LIKE with a pattern that is no constant", "Write the pattern as a string.")
	}
	if trailing := len(*pattern.literal) - len(strings.TrimRight(*pattern.literal, `\`)); trailing%2 == 1 {
		bail(Construct, "a pattern that ends with a backslash", "Write the backslash twice.")
	}
	if kind == pg.A_Expr_Kind_AEXPR_ILIKE {
		if a.values == nil && a.caseless && letterless(*pattern.literal) {
			kind, op = pg.A_Expr_Kind_AEXPR_LIKE, "~~"
		} else if a.values == nil || !allPlain(append([]string{*pattern.literal}, a.values...)) {
			bail(Collation, "LIKE over these texts", "Compare by bytes: BINARY column LIKE 'pattern'.")
		}
	}
	if negated {
		op = "!" + op
	}
	return special(kind, op, a.node, pattern.node)
}

// matches is RLIKE for patterns that MySQL's engines and PostgreSQL's read alike: characters, ., [ ], ( | ), *, +, ?,
// ^, $.
func matches(a, pattern value, negated bool) *pg.Node {
	if a.class != text || pattern.literal == nil || !a.binary && !pattern.binary && (a.values == nil || !allPlain(a.values)) {
		bail(Collation, "RLIKE over these texts", "Use LIKE, or BINARY column RLIKE 'pattern'.")
	}
	p := *pattern.literal
	for i, c := range p {
		after := i > 0 && strings.ContainsRune("*+?(|", rune(p[i-1])) || i == 0
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(" _-,@/.^$()|[]", c) || strings.ContainsRune("*+?", c) && !after) ||
			c == '[' && i+1 < len(p) && strings.ContainsRune("[].:=", rune(p[i+1])) {
			bail(Construct, "this pattern of RLIKE", `Patterns of characters, ., [a-z], (a|b), *, +, ?, ^ and $ are read alike by both.`)
		}
	}
	op := "~*"
	if a.binary || pattern.binary {
		op = "~"
	}
	if negated {
		op = "!" + op
	}
	return operator(op, a.node, pattern.node)
}
