package outer

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// UNION, INTERSECT, EXCEPT and VALUES bring their parts to the types that PostgreSQL would choose.
//
//	SELECT g FROM leaf_1 UNION SELECT n FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM ((SELECT CAST("q3"."c1" AS BIGINT) AS "c1" FROM (SELECT "t1"."g" AS "c1" FROM "leaf_1" AS
//	  "t1") AS "q3") UNION (SELECT "t2"."n" AS "c1" FROM "leaf_1" AS "t2")) AS "q4"

// setOperation binds UNION, INTERSECT and EXCEPT.
func (b *binder) setOperation(s *pg.SelectStmt, sc *scope) relation {
	left, right := b.plain(b.query(s.GetLarg(), sc)), b.plain(b.query(s.GetRarg(), sc))
	words := map[pg.SetOperation]string{pg.SetOperation_SETOP_UNION: " UNION", pg.SetOperation_SETOP_INTERSECT: " INTERSECT",
		pg.SetOperation_SETOP_EXCEPT: " EXCEPT"}
	word := words[s.GetOp()]
	if len(left.columns) != len(right.columns) {
		wrong("42601", "each"+word+" query must have the same number of columns", 0)
	}
	if s.GetAll() {
		word += " ALL"
	}
	columns, uneven := slices.Clone(left.columns), false
	for i := range columns {
		b.toldBeside(left.columns[i].typed, right.columns[i].typed)
		columns[i].typed = common([]typed{left.columns[i].typed, right.columns[i].typed}, "UNION")
		if columns[i].oid == policy.Bpchar && (left.columns[i].oid == policy.Unknown || right.columns[i].oid == policy.Unknown) { // a literal has its own length
			columns[i].mod, columns[i].even = -1, false
		}
		if s.GetAll() {
			continue
		}
		if s.GetOp() == pg.SetOperation_SETOP_UNION && columns[i].oid == policy.NumericType && !columns[i].even {
			uneven = true
			continue
		}
		comparable(expr{typed: columns[i].typed}, "UNION")
	}
	left, right = b.coerced(left, columns), b.coerced(right, columns)
	known := b.united(s, left.certain, right.certain)
	if uneven {
		return relation{sql: b.byKeys(left, right, columns), columns: columns, certain: known}
	}
	return relation{sql: "(" + left.sql + ")" + word + " (" + right.sql + ")", columns: columns, certain: known}
}

// byKeys writes a UNION of numerics that may be equal and have unlike scales, as 1.0 and 1.00: of equal rows one is left, the first query's before
// the second's, as where PostgreSQL hashes them.
func (b *binder) byKeys(left, right relation, columns []column) string {
	var names, keys, looks []string
	for _, c := range columns {
		names, keys = append(names, c.sql), append(keys, b.keyOf(expr{sql: c.sql, typed: c.typed}))
		if c.oid == policy.NumericType {
			looks = append(looks, c.sql)
		}
	}
	side := func(of relation, number string) string {
		return "SELECT " + strings.Join(names, ", ") + ", " + number + " AS side FROM (" + of.sql + ") AS " + b.fresh("q")
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM (SELECT DISTINCT ON (" + strings.Join(keys, ", ") + ") * FROM (" + side(left, "1") + " UNION ALL " + side(right, "2") + ") AS " + b.fresh("q") +
		" ORDER BY side, " + strings.Join(looks, ", ") + ") AS " + b.fresh("q")
}

// coerced gives a query the column types of another.
func (b *binder) coerced(q relation, columns []column) relation {
	same := q.orderBy == ""
	for i := range columns {
		same = same && q.columns[i].oid == columns[i].oid
	}
	if same {
		return q
	}
	alias := b.fresh("q")
	var items []string
	for i, c := range q.columns {
		e := expr{sql: alias + "." + c.sql, typed: c.typed}
		if i < len(q.means) && c.oid == policy.Unknown && !c.given {
			if v, known := scalar.ConstantValue(q.means[i]); known && v != nil {
				b.literalRead(v.(string), columns[i].typed)
			}
		}
		if e.oid == policy.Unknown {
			e.typed = textType
		}
		if _, array := elements[columns[i].oid]; array && c.oid == policy.Unknown {
			// NULL, which stands under arrays; a literal of an array would have had to be read as one.
			e = expr{sql: "(CASE WHEN " + e.sql + " IS NOT NULL THEN " + raise("0A000", "an untyped literal under an array cannot be run by the sandbox") +
				" ELSE CAST(NULL AS " + Storage(columns[i].oid) + ") END)", typed: columns[i].typed}
		} else if c.oid == policy.Unknown && dated(columns[i].oid) {
			e = b.readCall(e.sql, columns[i].typed, c.given)
		} else if columns[i].oid != policy.Unknown {
			e = b.cast(e, columns[i].typed)
		}
		items = append(items, e.sql+" AS "+c.sql)
	}
	return relation{sql: "SELECT " + orTrue(items) + " FROM (" + q.sql + ") AS " + alias + q.orderBy, columns: columns, certain: q.certain}
}

// values binds VALUES.
func (b *binder) values(s *pg.SelectStmt, sc *scope) relation {
	var rows [][]expr
	for _, list := range s.GetValuesLists() {
		row := b.exprs(list.GetList().GetItems(), sc)
		if len(rows) > 0 && len(row) != len(rows[0]) {
			wrong("42601", "VALUES lists must all be the same length", 0)
		}
		rows = append(rows, row)
	}
	var columns []column
	for i := range rows[0] {
		var parts []expr
		for _, row := range rows {
			parts = append(parts, row[i])
		}
		t := b.unify(parts, "VALUES")
		for k := range rows {
			rows[k][i] = parts[k]
		}
		columns = append(columns, column{name: "column" + strconv.Itoa(i+1), sql: columnName("c", i), typed: t})
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, "("+joined(row)+")")
	}
	known := certain{rows: true}
	for _, list := range s.GetValuesLists() {
		b.evaluated(&known, list.GetList().GetItems()...)
	}
	return relation{sql: "SELECT * FROM (VALUES " + strings.Join(lines, ", ") + ") AS " + b.fresh("v") + "(" + columnList(columns) + ")", columns: columns, certain: known}
}

// unify casts expressions to their common type, in place, and returns it.
func (b *binder) unify(parts []expr, where string) typed {
	var types []typed
	for _, e := range parts {
		types = append(types, e.typed)
	}
	t := common(types, where)
	b.toldBeside(types...)
	if t.oid == policy.Unknown && where != "VALUES" {
		t = textType
	}
	for _, e := range parts {
		if e.literal != nil && e.oid == policy.Unknown { // it is read as the type without a modifier, neither cut nor rounded
			t.mod, t.even = -1, false
		}
	}
	for i, e := range parts {
		if t.oid != policy.Unknown {
			parts[i] = b.cast(e, t)
		}
	}
	return t
}

// ranks order the number types and the date types by implicit cast.
var ranks = map[policy.Type]int{policy.Int2: 1, policy.Int4: 2, policy.Int8: 3, policy.NumericType: 4, policy.Float4: 5, policy.Float8: 6,
	policy.DateType: 11, policy.TimestampT: 12, policy.TimestampTZ: 13}

// common is the type that values of several types are brought to, as PostgreSQL chooses it for CASE, UNION and VALUES.
func common(types []typed, where string) typed {
	out := of(policy.Unknown)
	for _, t := range types {
		switch {
		case t.oid == policy.Unknown:
		case out.oid == policy.Unknown:
			out = t
		case out.oid == t.oid:
			if out.mod != t.mod {
				out.mod = -1
			}
			out.even = out.even && t.even && out.mod >= 0
			out.ragged = out.ragged || t.ragged
		default:
			out = wider(out.oid, t.oid, where)
		}
	}
	out.whole = !slices.ContainsFunc(types, func(t typed) bool { return !t.whole })
	return out
}

func wider(a, c policy.Type, where string) typed {
	ra, rc := ranks[a], ranks[c]
	switch {
	case ra > 0 && rc > 0 && (ra < 10) == (rc < 10):
		if ra > rc {
			return of(a)
		}
		return of(c)
	case textLike(a) && textLike(c):
		// The kinds of text are cast into each other both ways, so that the first one stays; only "char" gives way.
		if a == typeChar {
			return of(c)
		}
		return of(a)
	case (oidLike(a) || a.Integer()) && (oidLike(c) || c.Integer()):
		return of(typeOid)
	}
	ea, okA := elements[a]
	ec, okC := elements[c]
	if okA && okC && Storage(ea) == Storage(ec) {
		return of(a)
	}
	wrong("42804", where+" types cannot be matched", 0)
	return typed{}
}
