package mysql

import (
	"slices"
	"strings"
	"unicode/utf8"

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

// texts compares two texts. MySQL's collations do not tell upper from lower case, so a constant means all values
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
		// compare refuses what cannot be compared so; its right side is the constant as it must be written
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

// What MySQL's collations have in common is used, and nothing else: ASCII letters are equal but for their case, other
// ASCII characters differ from each other, and characters beyond ASCII may equal anything. Spaces at the end may count
// or not.

// alikeTexts reports whether two texts are equal, and whether that is certain under every collation.
func alikeTexts(a, b string) (equal, sure bool) {
	if a == b {
		return true, true
	}
	x, y := folded(a), folded(b)
	if x == y {
		return true, true
	}
	if !plain(a) || !plain(b) {
		return false, !mayMeet(pattern(x), pattern(y))
	}
	if strings.TrimRight(x, " ") == strings.TrimRight(y, " ") {
		return false, false
	}
	return false, true
}

// folded has the ASCII letters in lower case.
func folded(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// plain tells printable ASCII.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f })
}

func allPlain(list []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !plain(s) })
}

// letterless tells ASCII without letters, in which no collation sees two texts as one.
func letterless(s string) bool {
	return plain(s) && s == strings.TrimRight(s, " ") && strings.ToUpper(s) == strings.ToLower(s)
}

// wild matches any characters, none included.
const wild = utf8.RuneError

// pattern has what a collation may take for anything replaced by wild.
func pattern(s string) []rune {
	var out []rune
	for _, c := range strings.TrimRight(s, " ") {
		if c >= ' ' && c < 0x7f {
			out = append(out, c)
		} else if len(out) == 0 || out[len(out)-1] != wild {
			out = append(out, wild)
		}
	}
	return out
}

// mayMeet reports whether two patterns have a text in common.
func mayMeet(a, b []rune) bool {
	row := make([]bool, len(b)+1) // row[j]: a[i:] and b[j:] may meet
	for i := len(a); i >= 0; i-- {
		below := slices.Clone(row)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == wild:
				row[j] = below[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == wild:
				row[j] = row[j+1] || i < len(a) && below[j]
			default:
				row[j] = i < len(a) && j < len(b) && a[i] == b[j] && below[j+1]
			}
		}
	}
	return row[0]
}

// maxCompared bounds the values that are compared with each other.
const maxCompared = 2000

// distinctTexts refuses to group texts of which MySQL may take two for one.
func distinctTexts(v value) {
	if v.class != text || v.key || v.binary || v.caseless || v.literal != nil {
		return
	}
	if v.values == nil || len(v.values) > maxCompared {
		bail(Collation, "grouping by these texts", "GROUP BY BINARY column groups by the bytes; so does SELECT DISTINCT BINARY column.")
	}
	seen := map[string]string{}
	for _, s := range v.values {
		key := strings.TrimRight(folded(s), " ")
		if other, ok := seen[key]; ok && other != s {
			merged(other, s)
		}
		seen[key] = s
	}
	for _, e := range slices.DeleteFunc(slices.Clone(v.values), plain) {
		for _, s := range v.values {
			if equal, sure := alikeTexts(e, s); e != s && (equal || !sure) {
				merged(e, s)
			}
		}
	}
}

func merged(a, b string) {
	bail(Collation, `grouping by these texts, of which MySQL may take '`+a+`' and '`+b+`' for one`, "GROUP BY BINARY column groups by the bytes.")
}

// inByteOrder tells that the values' order by bytes is MySQL's: letters and digits whose case does not change the
// order.
func inByteOrder(values []string) bool {
	if !inFoldedOrder(values) {
		return false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.IsSortedFunc(sorted, func(a, b string) int { return strings.Compare(folded(a), folded(b)) })
}

// inFoldedOrder tells that the order of the values in lower case is MySQL's, whatever the collation.
func inFoldedOrder(values []string) bool {
	if values == nil {
		return false
	}
	for _, v := range values {
		for i := range len(v) {
			if c := v[i] | 0x20; !(c >= 'a' && c <= 'z' || isDigit(v[i]) || v[i] == ' ') {
				return false
			}
		}
	}
	return true
}
