package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// PostgreSQL's arrays are DuckDB's lists. Where the two differ (subscripts below 1, bounds that are NULL, the vectors of the
// catalogs, which count from 0) the text says what PostgreSQL would do.
//
//	SELECT (ARRAY[1, g])[2] FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM (SELECT (CASE WHEN CAST(2 AS INTEGER) < 1 THEN NULL ELSE ([CAST(1 AS INTEGER),
//	  "t1"."g"])[CAST(2 AS INTEGER)] END) AS "c1" FROM "leaf_1" AS "t1") AS "q2"

func (b *binder) arrayExpr(nodes []*pg.Node, sc *scope) expr {
	if len(nodes) == 0 {
		return expr{sql: "[]", typed: of(typeTextArr)}
	}
	parts := b.exprs(nodes, sc)
	t := b.unify(parts, "ARRAY")
	filled(expr{typed: t})
	return expr{sql: "[" + joined(parts) + "]", typed: arrayOf(t.oid, "an ARRAY of type "+typeNameOf(t.oid))}
}

// indirection binds subscripts and fields: a[1], a[1:2], (row).field.
func (b *binder) indirection(n *pg.A_Indirection, sc *scope) expr {
	e := b.expr(n.GetArg(), sc)
	for _, step := range n.GetIndirection() {
		if name := step.GetString_(); name != nil {
			e = field(e, name.GetSval())
			continue
		}
		index := step.GetAIndices()
		element, ok := elements[e.oid]
		if index == nil || !ok {
			wrong("42804", "cannot subscript type "+typeNameOf(e.oid), 0)
		}
		// The vectors of the catalogs count from 0.
		shift := ""
		if vectors(e.oid) {
			shift = " + 1"
		}
		bound := func(node *pg.Node) string {
			return b.cast(b.expr(node, sc), int4Type).sql + shift
		}
		if !index.GetIsSlice() {
			at := bound(index.GetUidx())
			// DuckDB counts negative subscripts from the end; PostgreSQL has nothing there.
			e = expr{sql: "(CASE WHEN " + at + " < 1 THEN NULL ELSE (" + e.sql + ")[" + at + "] END)", typed: of(element)}
			continue
		}
		if shift != "" || len(n.GetIndirection()) > 1 { // one slice makes every subscript a slice of its own dimension
			cannot("this array slice")
		}
		e.sql = b.slice(e.sql, index, bound)
	}
	return e
}

// slice is list[low:high]; a bound that is left out is the list's own, one that is NULL makes the slice NULL.
func (b *binder) slice(list string, index *pg.A_Indices, bound func(*pg.Node) string) string {
	low, high, given := "1", "len("+list+")", ""
	if node := index.GetLidx(); node != nil {
		at := bound(node)
		low, given = "greatest(1, "+at+")", at+" IS NULL"
	}
	if node := index.GetUidx(); node != nil {
		at := bound(node)
		high = "greatest(0, " + at + ")"
		if given != "" {
			given += " OR "
		}
		given += at + " IS NULL"
	}
	text := "(" + list + ")[" + low + ":" + high + "]"
	if given == "" {
		return text
	}
	return "(CASE WHEN " + given + " THEN NULL ELSE " + text + " END)"
}

func field(e expr, name string) expr {
	for _, f := range named(e.fields, name) {
		return expr{sql: "(" + e.sql + ")." + f.sql, typed: f.typed}
	}
	return wrong("42703", `column "`+name+`" not found in this data type`, 0)
}

func (b *binder) arrayToString(args []expr) expr {
	takes("array_to_string", args, 2, 3)
	element := elementOf(args[0], "42883", "function array_to_string is for arrays")
	if isNamed(element) {
		args[0] = expr{sql: b.namesOf(args[0].sql, element), typed: of(typeTextArr)}
		element = policy.Text
	}
	missing := "CAST(NULL AS VARCHAR)"
	if len(args) == 3 {
		missing = b.cast(args[2], textType).sql
	}
	list := "list_transform(" + args[0].sql + ", lambda x : " + b.sent(expr{sql: "x", typed: of(element)}).sql + ")"
	return expr{sql: "pg_join(" + b.cast(args[1], textType).sql + ", " + missing + ", " + list + ")", typed: textType}
}

// arrayBound binds array_length, array_upper and array_lower of the first dimension; there is no other.
func (b *binder) arrayBound(name string, args []expr) expr {
	takes(name, args, 2, 2)
	elementOf(args[0], "42883", "function "+name+" is for arrays")
	vector := vectors(args[0].oid)
	value := "CAST(len(" + args[0].sql + ") AS INTEGER)"
	switch {
	case name == "array_lower" && vector:
		value = "0"
	case name == "array_lower":
		value = "1"
	case name == "array_upper" && vector:
		value += " - 1"
	}
	dimension := b.cast(args[1], int4Type).sql
	return expr{sql: "(CASE WHEN " + dimension + " = 1 AND len(" + args[0].sql + ") > 0 THEN " + value + " END)", typed: int4Type}
}

func (b *binder) arrayPosition(args []expr) expr {
	if len(args) != 2 {
		cannot("array_position with a start")
	}
	element, ok := elements[args[0].oid]
	if !ok || vectors(args[0].oid) {
		cannot("array_position of this type")
	}
	if element == policy.Bpchar {
		cannot("array_position of chars")
	}
	item := b.cast(args[1], of(element))
	return expr{sql: "nullif(CAST(list_position(" + args[0].sql + ", " + item.sql + ") AS INTEGER), 0)", typed: int4Type}
}

func (b *binder) arrayOperator(op string, l, r expr) expr {
	if l.oid == policy.Unknown {
		l = b.cast(l, bare(r.typed))
	}
	if r.oid == policy.Unknown {
		r = b.cast(r, bare(l.typed))
	}
	el, okL := elements[l.oid]
	er, okR := elements[r.oid]
	if !okL || !okR || Storage(el) != Storage(er) || el == policy.NumericType || el == policy.Bpchar || er == policy.Bpchar {
		cannot("operator " + op + " of these types")
	}
	name := map[string]string{"@>": "list_has_all", "&&": "list_has_any"}[op]
	if op == "<@" {
		name, l, r = "list_has_all", r, l
	}
	sql := name + "(" + l.sql + ", " + r.sql + ")"
	if name == "list_has_all" { // no array has a NULL, which equals nothing
		sql = "(CASE WHEN " + l.sql + " IS NOT NULL AND len(" + r.sql + ") > list_count(" + r.sql + ") THEN false ELSE " + sql + " END)"
	}
	return expr{sql: sql, typed: boolType}
}

// elementsAsTexts makes texts of an array's elements where none of them has a type, as PostgreSQL does.
func (b *binder) elementsAsTexts(list []expr) {
	if slices.ContainsFunc(list, func(e expr) bool { return e.oid != policy.Unknown || e.parameter > 0 }) {
		return
	}
	for i := range list {
		list[i] = b.cast(list[i], textType)
	}
}

// anyAll binds x op ANY (array) and x op ALL (array).
func (b *binder) anyAll(op string, all bool, l expr, node *pg.Node, sc *scope) expr {
	if list := node.GetAArrayExpr(); list != nil && len(list.GetElements()) > 0 {
		var parts []string
		elements := b.exprs(list.GetElements(), sc)
		if !textLike(l.oid) && l.oid != policy.Unknown {
			b.elementsAsTexts(elements)
		}
		if slices.ContainsFunc(append(slices.Clone(elements), l), func(e expr) bool { return e.oid == policy.Bpchar }) { // beside which a literal would be one, and is a text in an array
			b.unify(elements, "ARRAY")
		}
		for _, e := range elements {
			parts = append(parts, b.binary(op, l, e).sql)
		}
		word := " OR "
		if all {
			word = " AND "
		}
		return expr{sql: "(" + strings.Join(parts, word) + ")", typed: boolType}
	}
	r := b.expr(node, sc)
	b.toldByElement(op, l, r)
	if r.oid == policy.Unknown {
		t := l.oid
		if t == policy.Unknown {
			t = policy.Text
		}
		r = b.cast(r, arrayOf(t, "ANY over this type"))
	}
	element := elementOf(r, "42809", "op ANY/ALL (array) requires array on right side")
	if !(op == "=" && !all || op == "<>" && all) || element == policy.NumericType {
		cannot("operator " + op + " with ANY or ALL of an array")
	}
	l, item := b.matched(l, expr{typed: of(element)})
	if item.oid == policy.Bpchar { // blanks at its end say nothing
		x := b.fresh("x")
		r.sql = "list_transform(" + r.sql + ", lambda " + x + " : rtrim(" + x + ", ' '))"
	}
	if l.oid == policy.Bpchar {
		l.sql = b.textKey(l)
	}
	switch {
	case Storage(l.oid) == Storage(item.oid):
	case (oidLike(l.oid) || l.oid == policy.Int8) && item.oid.Integer(), l.oid == policy.Int4 && item.oid == policy.Int2:
		r.sql = "CAST(" + r.sql + " AS " + Storage(l.oid) + "[])" // the wider of the two, or an oid would not fit
	default:
		l = expr{sql: "CAST(" + l.sql + " AS " + Storage(item.oid) + ")", typed: item.typed}
	}
	return truth("pg_any("+l.sql+", "+r.sql+")", all)
}
