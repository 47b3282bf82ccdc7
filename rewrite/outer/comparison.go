package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// Two operands of a comparison are brought to one type by PostgreSQL's rules before DuckDB compares them. Numerics are compared
// as decimals where they have them (decimal.go), else by the first part of their text, whose order is theirs.
//
//	SELECT k FROM leaf_1 WHERE n = 2.5
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1" FROM "leaf_1" AS "t1" WHERE (CAST(CAST("t1"."n" AS DECIMAL(19, 0)) AS
//	  DECIMAL(20, 1)) = CAST(CAST('2.5' AS DECIMAL(2, 1)) AS DECIMAL(20, 1)))) AS "q2"

// matched brings two operands of a comparison to one comparable form.
func (b *binder) matched(l, r expr) (expr, expr) {
	if l.oid == policy.Unknown && r.oid == policy.Unknown {
		return b.cast(l, textType), b.cast(r, textType)
	}
	switch interval := of(policy.IntervalT); { // a time is compared with an interval as one
	case l.oid == policy.TimeT && r.oid == policy.IntervalT:
		return b.cast(l, interval), r
	case l.oid == policy.IntervalT && r.oid == policy.TimeT:
		return l, b.cast(r, interval)
	}
	if l.oid == policy.Unknown {
		return b.cast(l, bare(r.typed)), r
	}
	if r.oid == policy.Unknown {
		return l, b.cast(r, bare(l.typed))
	}
	if (l.oid == policy.Bpchar) != (r.oid == policy.Bpchar) && textLike(l.oid) && textLike(r.oid) {
		return padded(l, r)
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
	return b.cast(l, t), b.cast(r, t)
}

// padded are the sides of a comparison of character(n) with another kind of text: varchar is compared as character(n), in which
// blanks at the end say nothing, text, name and "char" as text, in which they do.
func padded(l, r expr) (expr, expr) {
	for _, e := range []*expr{&l, &r} {
		switch e.oid {
		case policy.Varchar:
			e.typed = of(policy.Bpchar)
		case policy.Bpchar, policy.Text, typeName, typeChar:
		default:
			cannot("a comparison of character(n) with type " + typeNameOf(e.oid))
		}
	}
	return l, r
}

// bare is a type without its modifier, for a literal beside a column.
func bare(t typed) typed { return typed{oid: t.oid, mod: -1} }

// compare binds a comparison.
func (b *binder) compare(op string, l, r expr) expr {
	if op == "!=" {
		op = "<>"
	}
	b.toldByCall(op, l, r)
	l, r = b.matched(l, r)
	if l.oid == typeRecord {
		cannot("a comparison of rows")
	}
	left, right := b.keysOf(l, r)
	return expr{sql: "(" + left + " " + op + " " + right + ")", typed: boolType}
}

func (b *binder) compareRows(op string, l, r []expr) expr {
	if len(l) != len(r) || op != "=" && op != "<>" {
		cannot("this comparison of rows")
	}
	var parts []string
	for i := range l {
		parts = append(parts, b.compare("=", l[i], r[i]).sql)
	}
	return truth("("+strings.Join(parts, " AND ")+")", op == "<>")
}

func (b *binder) in(not bool, n *pg.A_Expr, sc *scope) expr {
	var parts, items []string
	left := b.rowParts(n.GetLexpr(), sc)
	one := ""
	var all []expr
	var list [][]expr
	var types []typed
	var fixed []bool
	for _, node := range n.GetRexpr().GetList().GetItems() {
		right := b.rowParts(node, sc)
		list, fixed = append(list, right), append(fixed, !ast.Holds(node, func(n *pg.Node) bool { return n.GetColumnRef() != nil }))
		if fixed[len(fixed)-1] {
			types = append(types, right[0].typed)
		}
	}
	if len(left) == 1 && len(types) > 1 {
		b.toldBeside(append([]typed{left[0].typed}, types...)...)
	}
	open, told := left, left
	if len(left) == 1 && left[0].oid == policy.Unknown && len(types) > 1 { // beside several constants it has the type of all of them together: '0.5' IN (1.5::float8, 2) is of double precisions
		if t := common(types, "IN"); t.oid != policy.Unknown {
			told = []expr{b.cast(left[0], of(t.oid))}
		}
	}
	for i, right := range list {
		if left = open; fixed[i] {
			left = told
		}
		if len(left) > 1 {
			parts = append(parts, b.compareRows("=", left, right).sql)
			continue
		}
		b.toldByCall("=", left[0], right[0])
		l, r := b.matched(left[0], right[0])
		if i == 0 {
			one = b.textKey(l)
			all = append(all, l)
		}
		if b.textKey(l) == one {
			items, all = append(items, b.textKey(r)), append(all, r)
		}
		parts = append(parts, b.compare("=", left[0], right[0]).sql)
	}
	sql := "(" + strings.Join(parts, " OR ") + ")"
	if len(items) == len(parts) {
		// A long chain of OR would be deeper than the engine's parser goes.
		if keys := aligned(all...); keys != nil {
			one, items = keys[0], keys[1:]
		}
		sql = "(" + one + " IN (" + strings.Join(items, ", ") + "))"
	}
	return truth(sql, not)
}

func (b *binder) between(n *pg.A_Expr, sc *scope) expr {
	ends := n.GetRexpr().GetList().GetItems()
	e, low, high := b.expr(n.GetLexpr(), sc), b.expr(ends[0], sc), b.expr(ends[1], sc)
	sql := "(" + b.compare(">=", e, low).sql + " AND " + b.compare("<=", e, high).sql + ")"
	kind := n.GetKind()
	if kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		sql = "(" + sql + " OR (" + b.compare(">=", e, high).sql + " AND " + b.compare("<=", e, low).sql + "))"
	}
	return truth(sql, kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM)
}
