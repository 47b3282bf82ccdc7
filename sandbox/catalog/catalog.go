// Package catalog generates what analysts see in pg_catalog, information_schema and schema dp: rows that the policy, the
// session and PostgreSQL 15 itself give, and none from a database. The embedded engine holds nothing else (Static, Dataset,
// SessionRows); the twin has catalogs of its own, of which it hides what tells of its server (Overlay).
//
// SELECT relname FROM pg_class WHERE relkind = 'r' reads the relation pg_catalog.pg_class: Static has the rows of the
// catalogs themselves, Dataset those of the policy's tables, each under an oid that depends on its name. SELECT usename
// FROM pg_stat_activity reads SessionRows: the sessions of who asks.
package catalog

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Table is a relation of the catalogs with rows; its name is schema.name.
type Table struct {
	Name string
	Rows sandbox.Rows
}

// OwnerOid is the number of the role that owns everything, whose name is pgcatalog.OwnerName.
const OwnerOid = int64(10)

// Oids of PostgreSQL's own objects.
const (
	oidPgCatalog  = int64(11)
	oidPublic     = int64(2200)
	oidInfoSchema = int64(13000)
	oidDP         = int64(16000)
	oidPgClass    = int64(1259)
	oidTablespace = int64(1663)
	oidHeap       = int64(2)
	firstUserOid  = int64(16384)
	ownerName     = pgcatalog.OwnerName
)

// record is a row of a catalog relation by column names; columns that it leaves out are NULL, or the zero of their type
// where the relation does not allow NULL.
type record map[string]policy.Value

// newTable makes a table of a catalog relation from records.
func newTable(schema, name string, records ...record) Table {
	rel := pgcatalog.Lookup(schema, name)
	t := Table{Name: schema + "." + name}
	for _, c := range rel.Columns {
		t.Rows.Columns = append(t.Rows.Columns, sandbox.Column{Name: c.Name, Type: c.Type, Typmod: -1})
	}
	for _, r := range records {
		row := make([]policy.Value, len(rel.Columns))
		for i, c := range rel.Columns {
			v, ok := r[c.Name]
			if !ok && c.NotNull {
				v = zeroOf(c.Type)
			}
			row[i] = v
		}
		t.Rows.Data = append(t.Rows.Data, row)
	}
	return t
}

// zeroOf is the zero of a type's stored form.
func zeroOf(t policy.Type) policy.Value {
	storage := outer.Storage(t)
	switch {
	case strings.HasSuffix(storage, "[]"):
		return []policy.Value{}
	case storage == "BOOLEAN":
		return false
	case storage == "SMALLINT" || storage == "INTEGER" || storage == "BIGINT":
		return int64(0)
	case storage == "FLOAT" || storage == "DOUBLE":
		return float64(0)
	case storage == "VARCHAR" && t != policy.NumericType:
		return ""
	}
	return nil
}
