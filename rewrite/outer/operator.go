package outer

import (
	"cmp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// Arithmetic on integers is DuckDB's, which raises an error where PostgreSQL would, but for division by zero; that on numerics
// is DuckDB's too where they are decimals (decimal.go); that on others, floats and dates is left to package scalar.
//
//	SELECT n + 1, n * 1.5 FROM leaf_1
//	⇒ SELECT "c1" AS "c1", "x2" AS "c2" FROM (SELECT ("t1"."n" + CAST(1 AS INTEGER)) AS "c1",
//	  num_in(CAST((CAST("t1"."n" AS DECIMAL(19, 0)) * CAST('1.5' AS DECIMAL(2, 1))) AS VARCHAR)) AS "c2",
//	  (CAST("t1"."n" AS DECIMAL(19, 0)) * CAST('1.5' AS DECIMAL(2, 1))) AS "x2" FROM "leaf_1" AS "t1") AS "q2"

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
		l, r := b.expr(n.GetLexpr(), sc), b.expr(n.GetRexpr(), sc)
		b.toldByCall("=", l, r)
		l, r = b.matched(l, r)
		left, right := b.keysOf(l, r)
		return expr{sql: "(" + left + word + right + ")", typed: boolType}
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		left, right := b.expr(n.GetLexpr(), sc), b.expr(n.GetRexpr(), sc)
		b.toldByCall("=", left, right)
		if left.oid == policy.Unknown {
			t := of(right.oid)
			if t.oid == policy.Unknown || t.oid == policy.Varchar {
				t = textType
			}
			left = b.cast(left, t)
		}
		same := b.compare("=", left, right)
		left = b.cast(left, comparedAs(left.typed, right.typed))
		return expr{sql: "(CASE WHEN " + same.sql + " THEN NULL ELSE " + left.sql + " END)", typed: left.typed}
	case pg.A_Expr_Kind_AEXPR_IN:
		return b.in(op == "<>", n, sc)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return b.like(op, b.expr(n.GetLexpr(), sc), n.GetRexpr(), sc)
	case pg.A_Expr_Kind_AEXPR_SIMILAR:
		return b.similarTo(n, sc)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return b.between(n, sc)
	}
	return cannot("operator " + op)
}

// comparedAs is the type that the left side of left = right has for the operator that PostgreSQL takes, which is NULLIF's: there is none of varchar, nor one of an integer and a numeric,
// so that NULLIF of a varchar is a text and nullif(1, 2.5) a numeric.
func comparedAs(left, right typed) typed {
	char := func(t typed) bool { return t.oid == policy.Bpchar }
	switch l, r := ranks[left.oid], ranks[right.oid]; {
	case char(left) && right.oid == policy.Text, left.oid == policy.Varchar && !char(right):
		return textType
	case left.oid == policy.Varchar:
		return of(policy.Bpchar)
	case l == 0 || r == 0 || l > 10 || (l > 4) == (r > 4) && (l == 4) == (r == 4) || l > r:
		return left
	case right.oid == policy.Float4: // an integer or a numeric is compared with a real as a double precision
		return of(policy.Float8)
	}
	return of(right.oid)
}

func (b *binder) unary(op string, e expr) expr {
	b.toldByCall(op, e)
	if op == "-" && e.oid.Integer() {
		return expr{sql: "(-" + e.sql + ")", typed: of(e.oid)}
	}
	if op != "-" && op != "+" && (op != "~" || !e.oid.Integer()) {
		cannot("operator " + op)
	}
	out := b.call(op, e)
	out.even = e.even
	if d := e.decimal; d != nil {
		out.decimal = &decimal{sql: "(" + op + d.sql + ")", digits: d.digits, scale: d.scale}
	}
	return out
}

// binary binds an operator with two operands.
func (b *binder) binary(op string, l, r expr) expr {
	b.toldByCall(op, l, r)
	switch op {
	case "=", "<>", "!=", "<", "<=", ">", ">=":
		return b.compare(op, l, r)
	case "~~", "!~~", "~~*", "!~~*":
		return likeSQL(op, b.text(l), b.plainly(r))
	case "~", "!~", "~*", "!~*":
		return b.matches(op, l, r)
	case "<<", ">>":
		known := l.oid.Integer() || r.oid.Integer() // of one, the other may be an untyped literal
		if known && (l.oid.Integer() || l.oid == policy.Unknown) && (r.oid.Integer() && r.oid != policy.Int8 || r.oid == policy.Unknown) {
			if l = b.number(l, r); op == "<<" {
				return b.call(op, l, b.cast(r, int4Type))
			}
			return b.shiftRight(l, r)
		}
	case "||":
		return b.concat(l, r)
	case "@>", "<@", "&&":
		return b.arrayOperator(op, l, r)
	}
	unknown := l.null || r.null
	l, r = b.number(l, r), b.number(r, l)
	if exact, ok := arithmetic(op, l, r); ok {
		return exact
	}
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
		whole := l.sql + " " + op + " " + r.sql
		if op == "%" { // which would overflow for the least number
			whole = "CASE WHEN " + r.sql + " = -1 THEN 0 ELSE " + whole + " END"
		}
		// DuckDB answers NULL for a division by zero.
		sql := "(CASE WHEN " + l.sql + " IS NULL THEN NULL WHEN " + r.sql + " = 0 THEN " + raise("22012", "division by zero") + " ELSE " + whole + " END)"
		return expr{sql: "CAST(" + sql + " AS " + Storage(t.oid) + ")", typed: t}
	}
	return b.call(op, l, r)
}

// shiftRight binds >> of whole numbers. PostgreSQL's processor reads as many digits of the count as the number's type needs, DuckDB
// shifts by a larger one to 0; a smallint is shifted as an integer.
func (b *binder) shiftRight(l, r expr) expr {
	wide, digits := "INTEGER", "31"
	if l.oid == policy.Int8 {
		wide, digits = "BIGINT", "63"
	}
	if r = b.cast(r, int4Type); l.null {
		return expr{sql: "CAST(NULL AS " + Storage(l.oid) + ")", typed: of(l.oid)}
	}
	return expr{sql: "CAST((CAST(" + l.sql + " AS " + wide + ") >> CAST((" + r.sql + " & " + digits + ") AS " + wide + ")) AS " + Storage(l.oid) + ")", typed: of(l.oid)}
}

// number gives an untyped operand of integer arithmetic the other's type, and an oid an integer one.
func (b *binder) number(e, other expr) expr {
	if oidLike(e.oid) {
		return b.cast(e, int8Type)
	}
	if e.oid == policy.Unknown && other.oid.Integer() {
		return b.cast(e, of(other.oid))
	}
	return e
}

func (b *binder) text(e expr) expr {
	if textLike(e.oid) {
		return filled(e)
	}
	if e.oid == policy.Unknown {
		return b.cast(e, textType)
	}
	if e.oid == typeBytea {
		return cannot("this operator of type bytea")
	}
	return wrong("42883", "operator does not exist: it is for text, not for "+typeNameOf(e.oid), 0)
}

// concat binds ||: of texts, of arrays, of arrays and elements.
func (b *binder) concat(l, r expr) expr {
	el, arrayL := elements[l.oid]
	er, arrayR := elements[r.oid]
	if arrayL || arrayR {
		a, c := cmp.Or(el, l.oid), cmp.Or(er, r.oid)
		if a != c && textLike(a) && textLike(c) && (a == policy.Bpchar || c == policy.Bpchar) { // whose type is the first one's
			cannot("|| of chars and other texts in an array")
		}
	}
	switch {
	case arrayL && (arrayR || r.literal != nil && strings.HasPrefix(*r.literal, "{")):
		if !arrayR {
			r = b.cast(r, l.typed)
		} else if Storage(el) != Storage(er) {
			cannot("|| of two kinds of arrays")
		}
		return expr{sql: "(CASE WHEN " + l.sql + " IS NULL THEN " + r.sql + " WHEN " + r.sql + " IS NULL THEN " + l.sql + " ELSE list_concat(" + l.sql + ", " + r.sql + ") END)", typed: l.typed}
	case arrayL:
		return expr{sql: "list_append(" + l.sql + ", " + b.cast(r, of(el)).sql + ")", typed: l.typed}
	case arrayR:
		return expr{sql: "list_prepend(" + b.cast(l, of(er)).sql + ", " + r.sql + ")", typed: r.typed}
	}
	if !textLike(l.oid) && !textLike(r.oid) && l.oid != policy.Unknown && r.oid != policy.Unknown {
		wrong("42883", "operator does not exist: "+typeNameOf(l.oid)+" || "+typeNameOf(r.oid), 0)
	}
	l, r = b.cast(l, textType), b.cast(r, textType)
	return expr{sql: "(" + l.sql + " || " + r.sql + ")", typed: textType}
}
