package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// A name is looked up from the inside out, as PostgreSQL does: first among the columns of the query's own FROM, then of the
// queries around it; the name of a table that no column has is its whole row.
//
//	SELECT n, (SELECT max(b.n) FROM leaf_1 AS b WHERE b.k = a.k) FROM leaf_1 AS a
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT "t1"."n" AS "c1", (SELECT max("t2"."n") AS "c1" FROM "leaf_1" AS "t2"
//	  WHERE ("t2"."k" = "t1"."k")) AS "c2" FROM "leaf_1" AS "t1") AS "q3"

// column resolves a column reference.
func (b *binder) column(ref *pg.ColumnRef, sc *scope) expr {
	names := identifiers(ref.GetFields())
	last := names[len(names)-1]
	if len(names) > 1 {
		if e := b.entry(names[:len(names)-1], sc); e != nil {
			if ref.GetFields()[len(names)-1].GetAStar() != nil {
				return wholeRow(e)
			}
			for _, c := range named(e.columns, last) {
				return c.value()
			}
			if e.oid != 0 {
				if value, ok := systemColumnOf(last, e); ok {
					return value
				}
			}
			wrong("42703", "column "+strings.Join(names, ".")+" does not exist", ref.GetLocation())
		}
		wrong("42P01", `missing FROM-clause entry for table "`+names[len(names)-2]+`"`, ref.GetLocation())
	}
	for s := sc; s != nil; s = s.parent {
		found := named(s.visible, last)
		if len(found) > 1 {
			wrong("42702", `column reference "`+last+`" is ambiguous`, ref.GetLocation())
		}
		if len(found) == 1 {
			return found[0].value()
		}
	}
	for s := sc; s != nil; s = s.parent {
		if len(s.entries) == 1 && s.entries[0].oid != 0 {
			if value, ok := systemColumnOf(last, s.entries[0]); ok {
				return value
			}
		}
	}
	// The name of a table means its whole row.
	if e := b.entry(names, sc); e != nil {
		return wholeRow(e)
	}
	return wrong("42703", `column "`+last+`" does not exist`, ref.GetLocation())
}

// systemColumnOf is a column that PostgreSQL keeps for itself, of a relation of the catalogs: its rows are all frozen.
func systemColumnOf(name string, e *entry) (expr, bool) {
	switch name {
	case "tableoid":
		return expr{sql: valueText(typeOid, e.oid), typed: of(typeOid)}, true
	case "xmin", "xmax":
		return expr{sql: valueText(typeXid, int64(2)), typed: of(typeXid)}, true
	case "cmin", "cmax":
		return expr{sql: valueText(typeXid, int64(0)), typed: of(29)}, true
	}
	return expr{}, false
}

// named are the columns of that name.
func named(columns []column, name string) (found []column) {
	for _, c := range columns {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// wholeRow is a row as a value; a function's only column stands for itself.
func wholeRow(e *entry) expr {
	if len(e.columns) == 1 && e.columns[0].name == e.alias {
		return e.columns[0].value()
	}
	row := expr{typed: typed{oid: typeRecord, mod: -1}}
	var parts []string
	for i, c := range e.columns {
		name := columnName("f", i)
		row.fields = append(row.fields, column{name: c.name, sql: name, typed: c.typed})
		parts = append(parts, name+": "+c.sql)
	}
	row.sql = "{" + strings.Join(parts, ", ") + "}"
	return row
}

// entry finds a table by its alias, or by schema and name.
func (b *binder) entry(names []string, sc *scope) *entry {
	alias, schema := names[len(names)-1], ""
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	for s := sc; s != nil; s = s.parent {
		for i := len(s.entries) - 1; i >= 0; i-- {
			if e := s.entries[i]; e.alias == alias && (schema == "" || e.schema == schema) {
				return e
			}
		}
	}
	return nil
}

// lastName is the last name of a list, in which stars and subscripts are none.
func lastName(nodes []*pg.Node) string {
	for i := len(nodes) - 1; i >= 0; i-- {
		if s := nodes[i].GetString_(); s != nil {
			return s.GetSval()
		}
	}
	return ""
}

func identifiers(nodes []*pg.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.GetString_().GetSval()
	}
	return out
}
