package rewrite

import (
	"regexp"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// compileEnv is good for resolving types; what depends on the clock or the zone is computed when the query runs.
var compileEnv = scalar.Env{Now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Zone: time.UTC}

// operatorExpr binds an operator.
func (b *binder) operatorExpr(n *pg.A_Expr, sc *scope) expr {
	names := identifiers(n.GetName())
	op := names[len(names)-1]
	if len(names) > 1 && names[0] != "pg_catalog" {
		wrong("42883", "operator does not exist: "+strings.Join(names, "."), n.GetLocation())
	}
	switch n.GetKind() {
	case pg.A_Expr_Kind_AEXPR_OP:
		if n.GetLexpr() == nil {
			return b.unary(op, b.expr(n.GetRexpr(), sc))
		}
		if n.GetLexpr().GetRowExpr() != nil && n.GetRexpr().GetRowExpr() != nil {
			return b.compareRows(op, b.rowParts(n.GetLexpr(), sc), b.rowParts(n.GetRexpr(), sc))
		}
		return b.binary(op, b.expr(n.GetLexpr(), sc), b.expr(n.GetRexpr(), sc))
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return b.anyAll(op, n.GetKind() == pg.A_Expr_Kind_AEXPR_OP_ALL, b.expr(n.GetLexpr(), sc), n.GetRexpr(), sc)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		word := " IS DISTINCT FROM "
		if n.GetKind() == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT {
			word = " IS NOT DISTINCT FROM "
		}
		l, r := b.matched(b.expr(n.GetLexpr(), sc), b.expr(n.GetRexpr(), sc))
		return expr{sql: "(" + b.keyOf(l) + word + b.keyOf(r) + ")", typed: boolType}
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		left := b.expr(n.GetLexpr(), sc)
		if left.oid == policy.Unknown {
			left = b.cast(left, textType, false)
		}
		same := b.compare("=", left, b.expr(n.GetRexpr(), sc))
		return expr{sql: "(CASE WHEN " + same.sql + " THEN NULL ELSE " + left.sql + " END)", typed: left.typed}
	case pg.A_Expr_Kind_AEXPR_IN:
		return b.in(op == "<>", n, sc)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return b.like(op, b.expr(n.GetLexpr(), sc), n.GetRexpr(), sc)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return b.between(n, sc)
	}
	cannot("operator " + op)
	return expr{}
}

func (b *binder) unary(op string, e expr) expr {
	if op == "-" && e.oid.Integer() {
		return expr{sql: "(-" + e.sql + ")", typed: of(e.oid)}
	}
	if op != "-" && op != "+" {
		cannot("operator " + op)
	}
	out := b.call(op, e)
	out.even = e.even
	return out
}

// binary binds an operator with two operands.
func (b *binder) binary(op string, l, r expr) expr {
	switch op {
	case "=", "<>", "!=", "<", "<=", ">", ">=":
		return b.compare(op, l, r)
	case "~~", "!~~", "~~*", "!~~*":
		return likeSQL(op, b.text(l), b.text(r))
	case "~", "!~", "~*", "!~*":
		return b.matches(op, l, r)
	case "||":
		return b.concat(l, r)
	case "@>", "<@", "&&":
		return b.arrayOperator(op, l, r)
	}
	unknown := l.null || r.null
	l, r = b.number(l, r), b.number(r, l)
	if !l.oid.Integer() || !r.oid.Integer() {
		return b.call(op, l, r)
	}
	t := of(l.oid)
	if ranks[r.oid] > ranks[l.oid] {
		t = of(r.oid)
	}
	if unknown && (op == "/" || op == "%") {
		return expr{sql: "CAST(NULL AS " + Storage(t.oid) + ")", typed: t}
	}
	switch op {
	case "+", "-", "*":
		return expr{sql: "(" + l.sql + " " + op + " " + r.sql + ")", typed: t}
	case "&", "|":
		return expr{sql: "(" + l.sql + " " + op + " " + r.sql + ")", typed: t}
	case "/", "%":
		if op == "/" {
			op = "//"
		}
		// DuckDB answers NULL for a division by zero.
		sql := "(CASE WHEN " + r.sql + " = 0 THEN " + raise("22012", "division by zero") + " ELSE " + l.sql + " " + op + " " + r.sql + " END)"
		return expr{sql: "CAST(" + sql + " AS " + Storage(t.oid) + ")", typed: t}
	}
	return b.call(op, l, r)
}

// number gives an untyped operand of integer arithmetic the other's type, and an oid an integer one.
func (b *binder) number(e, other expr) expr {
	if oidLike(e.oid) {
		return b.cast(e, int8Type, false)
	}
	if e.oid == policy.Unknown && other.oid.Integer() {
		return b.cast(e, of(other.oid), false)
	}
	return e
}

func (b *binder) text(e expr) expr {
	if textLike(e.oid) {
		return e
	}
	if e.oid == policy.Unknown {
		return b.cast(e, textType, false)
	}
	wrong("42883", "operator does not exist: it is for text, not for "+typeNameOf(e.oid), 0)
	return e
}

// matched brings two operands of a comparison to one comparable form.
func (b *binder) matched(l, r expr) (expr, expr) {
	if l.oid == policy.Unknown && r.oid == policy.Unknown {
		return b.cast(l, textType, false), b.cast(r, textType, false)
	}
	if l.oid == policy.Unknown {
		return b.cast(l, bare(r.typed), false), r
	}
	if r.oid == policy.Unknown {
		return l, b.cast(r, bare(l.typed), false)
	}
	if l.oid == r.oid || textLike(l.oid) && textLike(r.oid) || l.oid.Integer() && r.oid.Integer() ||
		(oidLike(l.oid) || l.oid.Integer()) && (oidLike(r.oid) || r.oid.Integer()) {
		return l, r
	}
	if isNamed(l.oid) && textLike(r.oid) || isNamed(r.oid) && textLike(l.oid) {
		wrong("42883", "operator does not exist: "+typeNameOf(l.oid)+" = "+typeNameOf(r.oid), 0)
	}
	el, arrayL := elements[l.oid]
	er, arrayR := elements[r.oid]
	if arrayL && arrayR && Storage(el) == Storage(er) {
		return l, r
	}
	if ranks[l.oid] == 0 || ranks[r.oid] == 0 {
		wrong("42883", "operator does not exist: "+typeNameOf(l.oid)+" = "+typeNameOf(r.oid), 0)
	}
	// numeric with floating point is compared as double precision, everything else as the wider type.
	t := wider(l.oid, r.oid, "comparison")
	if t.oid == policy.Float4 {
		t = of(policy.Float8)
	}
	return b.cast(l, t, false), b.cast(r, t, false)
}

// bare is a type without its modifier, for a literal beside a column.
func bare(t typed) typed { return typed{oid: t.oid, mod: -1} }

// compare binds a comparison.
func (b *binder) compare(op string, l, r expr) expr {
	if op == "!=" {
		op = "<>"
	}
	l, r = b.matched(l, r)
	if l.oid == typeRecord {
		cannot("a comparison of rows")
	}
	return expr{sql: "(" + b.keyOf(l) + " " + op + " " + b.keyOf(r) + ")", typed: boolType}
}

func (b *binder) compareRows(op string, l, r []expr) expr {
	if len(l) != len(r) || op != "=" && op != "<>" {
		cannot("this comparison of rows")
	}
	var parts []string
	for i := range l {
		parts = append(parts, b.compare("=", l[i], r[i]).sql)
	}
	sql := "(" + strings.Join(parts, " AND ") + ")"
	if op == "<>" {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

func (b *binder) in(not bool, n *pg.A_Expr, sc *scope) expr {
	var parts, items []string
	left := b.rowParts(n.GetLexpr(), sc)
	one := ""
	for i, node := range n.GetRexpr().GetList().GetItems() {
		right := b.rowParts(node, sc)
		if len(left) > 1 {
			parts = append(parts, b.compareRows("=", left, right).sql)
			continue
		}
		l, r := b.matched(left[0], right[0])
		if i == 0 {
			one = b.keyOf(l)
		}
		if b.keyOf(l) == one {
			items = append(items, b.keyOf(r))
		}
		parts = append(parts, b.compare("=", left[0], right[0]).sql)
	}
	sql := "(" + strings.Join(parts, " OR ") + ")"
	if len(items) == len(parts) {
		// A long chain of OR would be deeper than the engine's parser goes.
		sql = "(" + one + " IN (" + strings.Join(items, ", ") + "))"
	}
	if not {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

func (b *binder) between(n *pg.A_Expr, sc *scope) expr {
	ends := n.GetRexpr().GetList().GetItems()
	e, low, high := b.expr(n.GetLexpr(), sc), b.expr(ends[0], sc), b.expr(ends[1], sc)
	sql := "(" + b.compare(">=", e, low).sql + " AND " + b.compare("<=", e, high).sql + ")"
	kind := n.GetKind()
	if kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		sql = "(" + sql + " OR (" + b.compare(">=", e, high).sql + " AND " + b.compare("<=", e, low).sql + "))"
	}
	if kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

// like binds LIKE and ILIKE, with ESCAPE where one is given.
func (b *binder) like(op string, l expr, pattern *pg.Node, sc *scope) expr {
	if f := pattern.GetFuncCall(); f != nil {
		if names := identifiers(f.GetFuncname()); names[len(names)-1] == "like_escape" {
			escape := b.expr(f.GetArgs()[1], sc)
			if escape.literal == nil || len(*escape.literal) != 1 {
				cannot("this ESCAPE")
			}
			out := likeSQL(op, b.text(l), b.text(b.expr(f.GetArgs()[0], sc)))
			out.sql = strings.Replace(out.sql, ` ESCAPE '\'`, " ESCAPE "+quoteText(*escape.literal), 1)
			return out
		}
	}
	return likeSQL(op, b.text(l), b.text(b.expr(pattern, sc)))
}

func likeSQL(op string, l, r expr) expr {
	word := " LIKE "
	if strings.HasSuffix(op, "*") {
		word = " ILIKE "
	}
	sql := "(" + l.sql + word + r.sql + ` ESCAPE '\')`
	if strings.HasPrefix(op, "!") {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

// foreignRegexp finds what PostgreSQL's regular expressions and RE2 read differently.
var foreignRegexp = regexp.MustCompile(`\\[^.\\$^*+?()\[\]{}|/\-_ dswDSW]|\(\?|^\*\*\*|\[\[|\[\.|\[=|\{,`)

// matches binds the operators of regular expressions, for constant patterns that mean the same in RE2.
func (b *binder) matches(op string, l, r expr) expr {
	if r.literal == nil {
		if r.null {
			return expr{sql: "CAST(NULL AS BOOLEAN)", typed: boolType}
		}
		cannot("a regular expression that is not a constant")
	}
	if foreignRegexp.MatchString(*r.literal) {
		cannot("this regular expression")
	}
	if _, err := regexp.Compile(*r.literal); err != nil {
		wrong("2201B", "invalid regular expression", 0)
	}
	flags := "s"
	if strings.HasSuffix(op, "*") {
		flags = "si"
	}
	sql := "regexp_matches(" + b.text(l).sql + ", " + quoteText(*r.literal) + ", '" + flags + "')"
	if strings.HasPrefix(op, "!") {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}

// concat binds ||: of texts, of arrays, of arrays and elements.
func (b *binder) concat(l, r expr) expr {
	el, arrayL := elements[l.oid]
	er, arrayR := elements[r.oid]
	switch {
	case arrayL && (arrayR || r.literal != nil && strings.HasPrefix(*r.literal, "{")):
		if !arrayR {
			r = b.cast(r, l.typed, false)
		} else if Storage(el) != Storage(er) {
			cannot("|| of two kinds of arrays")
		}
		return expr{sql: "list_concat(" + l.sql + ", " + r.sql + ")", typed: l.typed}
	case arrayL:
		return expr{sql: "list_append(" + l.sql + ", " + b.cast(r, of(el), false).sql + ")", typed: l.typed}
	case arrayR:
		return expr{sql: "list_prepend(" + b.cast(l, of(er), false).sql + ", " + r.sql + ")", typed: r.typed}
	}
	if !textLike(l.oid) && !textLike(r.oid) && l.oid != policy.Unknown && r.oid != policy.Unknown {
		wrong("42883", "operator does not exist: "+typeNameOf(l.oid)+" || "+typeNameOf(r.oid), 0)
	}
	l, r = b.cast(l, textType, true), b.cast(r, textType, true)
	return expr{sql: "(" + l.sql + " || " + r.sql + ")", typed: textType}
}

func (b *binder) arrayOperator(op string, l, r expr) expr {
	if l.oid == policy.Unknown {
		l = b.cast(l, bare(r.typed), false)
	}
	if r.oid == policy.Unknown {
		r = b.cast(r, bare(l.typed), false)
	}
	el, okL := elements[l.oid]
	er, okR := elements[r.oid]
	if !okL || !okR || Storage(el) != Storage(er) || el == policy.NumericType {
		cannot("operator " + op + " of these types")
	}
	name := map[string]string{"@>": "list_has_all", "&&": "list_has_any"}[op]
	if op == "<@" {
		name, l, r = "list_has_all", r, l
	}
	return expr{sql: name + "(" + l.sql + ", " + r.sql + ")", typed: boolType}
}

// anyAll binds x op ANY (array) and x op ALL (array).
func (b *binder) anyAll(op string, all bool, l expr, node *pg.Node, sc *scope) expr {
	if list := node.GetAArrayExpr(); list != nil && len(list.GetElements()) > 0 {
		var parts []string
		for _, e := range b.exprs(list.GetElements(), sc) {
			parts = append(parts, b.binary(op, l, e).sql)
		}
		word := " OR "
		if all {
			word = " AND "
		}
		return expr{sql: "(" + strings.Join(parts, word) + ")", typed: boolType}
	}
	r := b.expr(node, sc)
	if r.oid == policy.Unknown {
		t := l.oid
		if t == policy.Unknown {
			t = policy.Text
		}
		array, ok := arrays[t]
		if !ok {
			cannot("ANY over this type")
		}
		r = b.cast(r, of(array), false)
	}
	element, ok := elements[r.oid]
	if !ok {
		wrong("42809", "op ANY/ALL (array) requires array on right side", 0)
	}
	if !(op == "=" && !all || op == "<>" && all) || element == policy.NumericType {
		cannot("operator " + op + " with ANY or ALL of an array")
	}
	l, item := b.matched(l, expr{typed: of(element)})
	if Storage(l.oid) != Storage(item.oid) {
		l = expr{sql: "CAST(" + l.sql + " AS " + Storage(item.oid) + ")", typed: item.typed}
	}
	sql := "pg_any(" + l.sql + ", " + r.sql + ")"
	if all {
		sql = "(NOT " + sql + ")"
	}
	return expr{sql: sql, typed: boolType}
}
