package outer

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Types as regclass and regtype are numbers that are shown as names. Here they are numbers until the outermost SELECT shows them,
// so that they sort and compare as PostgreSQL's do. A name in the text is looked up when it is bound, where the catalog is the
// same for everybody.
//
//	SELECT 'pg_class'::regclass
//	⇒ SELECT pg_class_name("c1") AS "c1" FROM (SELECT CAST(1259 AS BIGINT) AS "c1") AS "q1"

// shownAs are the types whose values are numbers that are shown as names, and what our macros call them.
var shownAs = map[policy.Type]string{typeRegclass: "class", typeRegtype: "type", typeRegproc: "proc", 2202: "proc", typeRegNS: "namespace", typeRegRole: "role",
	2204: "operator"}

func isNamed(t policy.Type) bool { return shownAs[t] != "" }

// nameOf is the text in which a regclass, regtype … is shown.
func (b *binder) nameOf(e expr) expr {
	args := e.sql
	if e.oid == typeRegRole {
		args += ", " + b.param("user")
	}
	return expr{sql: "pg_" + shownAs[e.oid] + "_name(" + args + ")", typed: textType}
}

// namesOf are the names of the elements of an array. DuckDB allows no look-up in a lambda, so it is a sub-query.
func (b *binder) namesOf(list string, element policy.Type) string {
	x := b.fresh("x")
	name := b.nameOf(expr{sql: x + ".v", typed: of(element)}).sql
	return "(CASE WHEN " + list + " IS NOT NULL THEN ARRAY(SELECT " + name + " FROM (SELECT unnest(" + list + ") AS v) AS " + x + ") END)"
}

// findByName looks up an object whose name comes with the row.
func (b *binder) findByName(e expr, t policy.Type) string {
	switch t {
	case typeRegclass:
		return "pg_find_class_of(" + e.sql + ")"
	case typeRegtype, typeRegproc, 2202, typeRegNS:
		return "pg_find_" + shownAs[t] + "(" + e.sql + ")"
	case typeOid:
		return oidOfText(e.sql)
	}
	cannot("a cast of text to " + typeNameOf(t))
	return ""
}

// oidOfText reads a number as PostgreSQL reads an oid: a whole one, and a negative one is the oid of the same bits.
func oidOfText(text string) string {
	number := "TRY_CAST(regexp_extract(" + text + ", '-?[0-9]+') AS BIGINT)"
	return "(CASE WHEN NOT regexp_full_match(" + text + `, '\s*[-+]?[0-9]+\s*') THEN CAST(` + raise("22P02", "invalid input syntax for type oid") + " AS BIGINT) WHEN " + text +
		" IS NOT NULL AND NOT coalesce(" + number + " BETWEEN -2147483648 AND 4294967295, false) THEN CAST(" + raise("22003", "value is out of range for type oid") + " AS BIGINT) ELSE (" + number +
		" + 4294967296) % 4294967296 END)"
}

// oidLiteral is the number of the object that a literal names.
func (b *binder) oidLiteral(text string, t policy.Type) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && (n >= 0 || t == typeOid && n >= -1<<31) && n < 1<<32 {
		return valueText(typeOid, (n+1<<32)%(1<<32))
	}
	if text == "-" && t != typeOid {
		return "CAST(0 AS BIGINT)"
	}
	schema, name := splitName(text)
	switch t {
	case typeRegclass:
		if rel := pgcatalog.Lookup(cmp.Or(schema, "pg_catalog"), name); rel != nil {
			return valueText(typeOid, rel.Oid)
		}
		b.reads("pg_catalog.pg_class")
		return "pg_find_class(" + dialect.QuoteText(schema) + ", " + dialect.QuoteText(name) + ")"
	case typeRegtype:
		if n, ok := typeOids[typeKey(text)]; ok {
			return b.oidOf(n)
		}
		return b.findByName(expr{sql: dialect.QuoteText(name)}, t)
	case typeRegproc, 2202, typeRegNS:
		return b.findByName(expr{sql: dialect.QuoteText(name)}, t)
	case typeRegRole:
		cannot("a role by name")
	}
	wrong("22P02", "invalid input syntax for type "+typeNameOf(t), 0)
	return ""
}

// splitName splits a possibly qualified, possibly quoted name.
func splitName(text string) (schema, name string) {
	var parts []string
	part, quoted := strings.Builder{}, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			part.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		case !quoted && c >= 'A' && c <= 'Z':
			part.WriteByte(c + 'a' - 'A')
		default:
			part.WriteByte(c)
		}
	}
	if len(parts) > 0 {
		schema = parts[len(parts)-1]
	}
	return schema, part.String()
}
