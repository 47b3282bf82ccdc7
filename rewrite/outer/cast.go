package outer

import (
	"regexp"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// A cast is DuckDB's own where both databases do the same, and a call of package scalar where it rounds, is checked, or reads or
// writes a text that the two write differently.
//
//	SELECT n::text, n::smallint FROM leaf_1
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT CAST("t1"."n" AS VARCHAR) AS "c1",
//	  CAST(pg_call('{"to":21,"mod":-1,"a":[{"t":20,"m":-1}]}', CAST("t1"."n" AS VARCHAR)) AS SMALLINT) AS "c2" FROM "leaf_1"
//	  AS "t1") AS "q2"

// typeOids are the type names of SQL that are understood, as PostgreSQL spells them.
var typeOids = map[string]policy.Type{
	"bool": policy.Bool, "boolean": policy.Bool, "int2": policy.Int2, "smallint": policy.Int2, "int4": policy.Int4, "int": policy.Int4,
	"integer": policy.Int4, "int8": policy.Int8, "bigint": policy.Int8, "float4": policy.Float4, "real": policy.Float4,
	"float8": policy.Float8, "double precision": policy.Float8, "numeric": policy.NumericType, "decimal": policy.NumericType,
	"text": policy.Text, "varchar": policy.Varchar, "character varying": policy.Varchar, "name": typeName, "char": typeChar,
	"bpchar": policy.Bpchar, "character": policy.Bpchar, "date": policy.DateType, "timestamp": policy.TimestampT,
	"timestamp without time zone": policy.TimestampT, "timestamptz": policy.TimestampTZ,
	"timestamp with time zone": policy.TimestampTZ, "time": policy.TimeT, "time without time zone": policy.TimeT, "interval": policy.IntervalT, "uuid": policy.UUID, "oid": typeOid,
	"xid": typeXid, "regclass": typeRegclass, "regtype": typeRegtype, "regproc": typeRegproc, "regprocedure": 2202, "regoperator": 2204,
	"regnamespace": typeRegNS, "regrole": typeRegRole, "int2vector": typeInt2Vec, "oidvector": typeOidVec, "json": typeJSON,
	"pg_node_tree": typeNodeTree, "bytea": typeBytea, "cstring": 2275, "sql_identifier": typeName, "yes_or_no": policy.Varchar,
	"cardinal_number": policy.Int4, "character_data": policy.Varchar, "aclitem": 1033, "pg_type": typeTypeRow, "pg_attribute": typeAttributeRow,
}

func typeKey(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// typeNameOf names a type in a message.
func typeNameOf(t policy.Type) string {
	if t == typeRecord {
		return "record"
	}
	return scalar.TypeName(t)
}

// typeOf reads the type of a cast.
func typeOf(n *pg.TypeName) typed {
	names := identifiers(n.GetNames())
	last := names[len(names)-1]
	if len(names) > 1 && names[0] != "pg_catalog" && names[0] != "information_schema" {
		wrong("42704", `type "`+strings.Join(names, ".")+`" does not exist`, n.GetLocation())
	}
	oid, ok := typeOids[last]
	if last == "char" && len(names) == 1 && len(n.GetTypmods()) > 0 {
		oid = policy.Bpchar
	}
	if !ok && strings.HasPrefix(last, "_") {
		element, known := typeOids[last[1:]]
		oid, ok = arrays[element], known
	}
	if !ok {
		cannot("type " + last)
	}
	t := typed{oid: oid, mod: modifier(oid, n.GetTypmods())}
	if len(n.GetArrayBounds()) > 0 {
		t = arrayOf(oid, "an array of type "+last)
	}
	return t
}

// modifier encodes the numbers behind a type as pg_attribute.atttypmod does.
func modifier(t policy.Type, mods []*pg.Node) int32 {
	var n []int32
	for _, m := range mods {
		if m.GetAConst().GetIval() == nil {
			cannot("a modifier that is no whole number")
		}
		n = append(n, m.GetAConst().GetIval().GetIval())
	}
	if fault := ast.WrongModifier(t, mods); fault != "" {
		wrong("22023", fault, 0)
	}
	switch {
	case len(n) == 0:
		return -1
	case t == policy.NumericType:
		scale := int32(0)
		if len(n) > 1 {
			scale = n[1]
		}
		return (n[0]<<16 | scale) + 4
	case t == policy.Varchar || t == policy.Bpchar:
		return n[0] + 4
	case t == policy.TimestampT || t == policy.TimestampTZ || t == policy.TimeT:
		return n[0]
	}
	cannot("a modifier of type " + typeNameOf(t))
	return -1
}

func (b *binder) typeCast(n *pg.TypeCast, sc *scope) expr {
	t := typeOf(n.GetTypeName())
	if array := n.GetArg().GetAArrayExpr(); array != nil && len(array.GetElements()) == 0 {
		return expr{sql: "CAST([] AS " + Storage(t.oid) + ")", typed: t}
	}
	if name := n.GetTypeName(); len(name.GetArrayBounds()) > 0 && len(name.GetTypmods()) > 0 { // varchar(4)[]: each element is cast
		elements, ok := ast.ArrayElements(&pg.Node{Node: &pg.Node_TypeCast{TypeCast: n}})
		if !ok || len(elements) == 0 {
			cannot("a cast of an array that is not written out to elements with a modifier")
		}
		return b.arrayExpr(elements, sc)
	}
	value := b.expr(n.GetArg(), sc)
	if (t.oid == typeTypeRow || t.oid == typeAttributeRow) && !value.null {
		cannot("a cast to a row")
	}
	e := b.cast(value, t)
	e.literal = nil
	return e
}

// plainNumber is a constant that is not negative.
var plainNumber = regexp.MustCompile(`^CAST\([0-9]+ AS INTEGER\)$`)

// cast gives an expression a type.
func (b *binder) cast(e expr, t typed) expr {
	switch {
	case e.null:
		b.told(e.typed, t.oid)
		return expr{sql: "CAST(NULL AS " + Storage(t.oid) + ")", typed: t}
	case e.literal != nil && e.oid == policy.Unknown:
		return b.literal(*e.literal, t, e.given)
	case e.oid == policy.Unknown:
		e.typed = textType
	}
	if e.oid == t.oid && (t.mod < 0 || t.mod == e.mod) {
		return e
	}
	out := expr{sql: e.sql, typed: t, series: e.series}
	from, arrayFrom := elements[e.oid]
	to, arrayTo := elements[t.oid]
	switch {
	case arrayFrom && arrayTo:
		return b.castArray(e, from, to, t)
	case arrayFrom || arrayTo:
		return b.castArrayText(e, t)
	case t.oid == policy.Bpchar:
		return b.castPadded(e, t)
	case e.oid == policy.Bpchar:
		// Only the text without its blanks at the end is another type's.
		return b.cast(expr{sql: "rtrim(" + e.sql + ", ' ')", typed: textType, series: e.series}, t)
	case plainText(e.oid) && t.oid == policy.Text:
	case textLike(e.oid) && t.oid == typeChar:
		out.sql = "left(" + e.sql + ", 1)"
	case textLike(e.oid) && textLike(t.oid) && t.mod < 0:
	case textLike(e.oid) && textLike(t.oid):
		out.sql = "left(" + e.sql + ", " + strconv.Itoa(int(t.mod-4)) + ")"
	case isNamed(e.oid) && textLike(t.oid):
		return expr{sql: b.nameOf(e).sql, typed: t}
	case textLike(e.oid) && oidLike(t.oid):
		out.sql = b.findByName(e, t.oid)
	case e.oid == typeXid && t.oid != typeXid:
		cannot("this cast of type xid")
	case oidLike(e.oid) && (oidLike(t.oid) || t.oid == policy.Int8):
	case e.oid == policy.Int8 && oidLike(t.oid):
		out.sql = "(CASE WHEN " + e.sql + " BETWEEN 0 AND 4294967295 THEN " + e.sql + " WHEN " + e.sql + " IS NOT NULL THEN CAST(" + raise("22003", "OID out of range") + " AS BIGINT) END)"
	case e.oid.Integer() && oidLike(t.oid) && plainNumber.MatchString(e.sql):
		out.sql = "CAST(" + e.sql + " AS BIGINT)"
	case e.oid.Integer() && oidLike(t.oid): // a negative number is the oid of the same bits
		out.sql = "((CAST(" + e.sql + " AS BIGINT) + 4294967296) % 4294967296)"
	case oidLike(e.oid) && t.oid == policy.Int4:
		out.sql = "CAST((CASE WHEN " + e.sql + " > 2147483647 THEN " + e.sql + " - 4294967296 ELSE " + e.sql + " END) AS INTEGER)"
	case oidLike(e.oid) && !textLike(t.oid):
		wrong("42846", "cannot cast type "+typeNameOf(e.oid)+" to "+typeNameOf(t.oid), 0)
	case oidLike(e.oid) && textLike(t.oid), e.oid.Integer() && (t.oid.Integer() && ranks[e.oid] < ranks[t.oid] || textLike(t.oid) && t.mod < 0):
		out.sql = "CAST(" + e.sql + " AS " + Storage(t.oid) + ")"
	default:
		cast := b.castCall(e, t)
		if e.oid.Integer() && t.oid == policy.NumericType && t.mod < 0 {
			cast.decimal = decimalOf(e)
		}
		return cast
	}
	return out
}

// castPadded casts to character(n), which is cut or filled with blanks, and to the same without a length, which is left as it is.
func (b *binder) castPadded(e expr, t typed) expr {
	if !textLike(e.oid) {
		e = b.cast(e, textType)
	}
	if t.mod >= 4 {
		n := strconv.Itoa(int(t.mod - 4))
		e.sql = "rpad(left(" + e.sql + ", " + n + "), " + n + ", ' ')"
	}
	t.even, t.ragged = t.mod >= 4, e.ragged && t.mod < 4
	return expr{sql: e.sql, typed: t, series: e.series}
}

// plainly is a text as functions of texts take it: of a char that which is without the blanks at its end.
func (b *binder) plainly(e expr) expr {
	if e.oid == policy.Bpchar {
		return b.cast(e, textType)
	}
	return b.text(e)
}

// filled is an expression whose value is looked at with the blanks at its end, as LIKE, concat and arrays do.
func filled(e expr) expr {
	if e.ragged {
		panic(&refusing{refuse.Unsupported("the blanks at the end of a choice among chars").Hinting(asText)})
	}
	return e
}

// asText says how a choice among chars has no blanks.
const asText = "As a text it has none, and can be asked of anything: GROUP BY coalesce(store, 'x')::text."

// castArray casts arrays element by element; where both sides are stored alike nothing needs be done. A vector stays
// one, because its subscripts begin at 0.
func (b *binder) castArray(e expr, from, to policy.Type, t typed) expr {
	if vectors(e.oid) {
		if Storage(from) == Storage(to) {
			return e
		}
		if from != policy.Int2 {
			cannot("this cast of a vector")
		}
		// The columns of this type tell of indexes, of which there are none: what is never there is cast, anything else is refused.
		return expr{sql: "(CASE WHEN len(" + e.sql + ") > 0 THEN " + raise("0A000", "this cast of a vector cannot be run by the sandbox") +
			" WHEN " + e.sql + " IS NOT NULL THEN CAST([] AS " + Storage(t.oid) + ") END)", typed: t}
	}
	if from == to || textLike(from) && textLike(to) && t.mod < 0 || oidLike(from) && oidLike(to) && !isNamed(from) {
		return expr{sql: e.sql, typed: t}
	}
	if isNamed(from) {
		if !textLike(to) {
			cannot("this cast of an array")
		}
		return expr{sql: b.namesOf(e.sql, from), typed: t}
	}
	x := b.fresh("x")
	inner := b.cast(expr{sql: x, typed: of(from)}, of(to))
	return expr{sql: "list_transform(" + e.sql + ", lambda " + x + " : " + inner.sql + ")", typed: t}
}

// castArrayText writes an array as text, in PostgreSQL's quotes where an element needs them.
func (b *binder) castArrayText(e expr, t typed) expr {
	element, ok := elements[e.oid]
	if !ok || !textLike(t.oid) || t.mod >= 0 || element == policy.Bpchar || element == 1033 || isNamed(element) {
		cannot("a cast of type " + typeNameOf(e.oid) + " to " + typeNameOf(t.oid))
	}
	if vectors(e.oid) {
		return expr{sql: "array_to_string(" + e.sql + ", ' ')", typed: t}
	}
	x := b.fresh("x")
	return expr{sql: "pg_array_text(list_transform(" + e.sql + ", lambda " + x + " : " + b.sent(expr{sql: x, typed: of(element)}).sql + "))", typed: t}
}
