package catalog

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Overlay are the rows of a relation that a PostgreSQL server is not to show as it is: those of the session, of schema
// dp, and none of what tells of the cluster. A name without a relation of that name has neither columns nor rows.
func Overlay(p *policy.Policy, s sandbox.Session, name string) sandbox.Rows {
	if rows, ok := sessionRows(p, s, name); ok {
		if name == "pg_catalog.pg_prepared_statements" {
			rows = withResultTypes(s, rows)
		}
		return rows
	}
	d := datasetOf(p, s.Database)
	switch {
	case d == nil:
	case name == "dp.tables":
		return dpTables(d)
	case name == "dp.columns":
		return dpColumns(d)
	}
	schema, relation, _ := strings.Cut(name, ".")
	if d != nil && schema == "information_schema" {
		if rows, ok := usageOf(d, relation); ok {
			return rows
		}
	}
	if name == "pg_catalog.pg_tablespace" {
		return rowsOf(schema, relation, record{"oid": oidTablespace, "spcname": "pg_default", "spcowner": OwnerOid},
			record{"oid": int64(1664), "spcname": "pg_global", "spcowner": OwnerOid})
	}
	if name == "pg_catalog.pg_available_extensions" { // what every database has; those of the host are not here
		return rowsOf(schema, relation, record{"name": "plpgsql", "default_version": "1.0", "installed_version": "1.0", "comment": "PL/pgSQL procedural language"})
	}
	if pgcatalog.Lookup(schema, relation) == nil {
		return sandbox.Rows{}
	}
	return rowsOf(schema, relation)
}

// typeRegtypes is regtype[].
const typeRegtypes policy.Type = 2211

// withResultTypes adds the column that pg_prepared_statements has from version 16 on, for a twin of such a version.
func withResultTypes(s sandbox.Session, rows sandbox.Rows) sandbox.Rows {
	rows.Columns = append(rows.Columns, sandbox.Column{Name: "result_types", Type: typeRegtypes, Typmod: -1})
	for i, p := range s.Prepared {
		var types policy.Value
		if p.Results != nil {
			types = typeList(p.Results)
		}
		rows.Data[i] = append(rows.Data[i], types)
	}
	return rows
}
