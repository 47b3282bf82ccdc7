package catalog

import (
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
)

// How one relation is described: a table orders(id int4, paid numeric) is a row of pg_class, two of pg_attribute, one of
// pg_tables, and rows of information_schema.tables, columns and table_privileges. Which columns a relation of the catalogs has
// is package pgcatalog's to say.

// relation is a table or view as the catalogs describe it.
type relation struct {
	database, schema, name string
	namespace, oid         int64
	kind                   string // "r" or "v"
	rowType                int64  // what a row of it is; 0 for the catalogs' own
	comment                string
	columns                []attribute
}

// attribute is a column as the catalogs describe it.
type attribute struct {
	name    string
	oid     policy.Type
	typmod  int32
	notNull bool
	comment string
}

// description collects the rows of the relations that describe schemas, tables and columns.
type description struct{ rows map[string][]record }

func (d *description) put(schema, name string, r record) {
	if d.rows == nil {
		d.rows = map[string][]record{}
	}
	d.rows[schema+"."+name] = append(d.rows[schema+"."+name], r)
}

// tables returns what was collected.
func (d *description) tables() []Table {
	var all []Table
	for _, rel := range pgcatalog.Relations() {
		if records := d.rows[rel.Schema+"."+rel.Name]; records != nil {
			all = append(all, newTable(rel.Schema, rel.Name, records...))
		}
	}
	return all
}

// schema describes a namespace.
func (d *description) schema(database, name string, oid int64) {
	d.put("pg_catalog", "pg_namespace", record{"oid": oid, "nspname": name, "nspowner": OwnerOid})
	d.put("information_schema", "schemata", record{"catalog_name": database, "schema_name": name, "schema_owner": ownerName})
}

// add describes a relation. Its number of rows and its size are never told: −1 rows, no page.
func (d *description) add(r relation) {
	access, yes := oidHeap, "BASE TABLE"
	if r.kind == "v" {
		access, yes = 0, "VIEW"
	}
	d.put("pg_catalog", "pg_class", record{"oid": r.oid, "relname": r.name, "relnamespace": r.namespace, "reltype": r.rowType, "relowner": OwnerOid,
		"relam": access, "relfilenode": int64(0), "reltuples": float64(-1), "relpersistence": "p", "relkind": r.kind,
		"relnatts": int64(len(r.columns)), "relispopulated": true, "relreplident": "d"})
	d.put("information_schema", "tables", record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name,
		"table_type": yes, "is_insertable_into": "NO", "is_typed": "NO"})
	d.put("information_schema", "table_privileges", record{"grantor": ownerName, "grantee": "PUBLIC", "table_catalog": r.database,
		"table_schema": r.schema, "table_name": r.name, "privilege_type": "SELECT", "is_grantable": "NO", "with_hierarchy": "YES"})
	if r.kind == "v" {
		d.put("pg_catalog", "pg_views", record{"schemaname": r.schema, "viewname": r.name, "viewowner": ownerName})
		d.put("information_schema", "views", record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name,
			"check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO",
			"is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO"})
	} else {
		d.put("pg_catalog", "pg_tables", record{"schemaname": r.schema, "tablename": r.name, "tableowner": ownerName,
			"hasindexes": false, "hasrules": false, "hastriggers": false, "rowsecurity": false})
	}
	if r.rowType != 0 {
		d.put("pg_catalog", "pg_type", record{"oid": r.rowType, "typname": r.name, "typnamespace": r.namespace, "typowner": OwnerOid, "typlen": int64(-1),
			"typtype": "c", "typcategory": "C", "typisdefined": true, "typdelim": ",", "typrelid": r.oid, "typinput": int64(2290), "typoutput": int64(2291),
			"typreceive": int64(2402), "typsend": int64(2403), "typalign": "d", "typstorage": "x", "typtypmod": int64(-1)}) // record_in, _out, _recv, _send
	}
	d.comment(r.oid, 0, r.comment)
	for i, a := range r.columns {
		d.column(r, int64(i+1), a)
		d.comment(r.oid, int64(i+1), a.comment)
	}
}

func (d *description) comment(oid, column int64, text string) {
	if text != "" {
		d.put("pg_catalog", "pg_description", record{"objoid": oid, "classoid": oidPgClass, "objsubid": column, "description": text})
	}
}

func (d *description) column(r relation, number int64, a attribute) {
	t := typeRow(a.oid)
	d.put("pg_catalog", "pg_attribute", record{"attrelid": r.oid, "attname": a.name, "atttypid": int64(a.oid),
		"attstattarget": int64(-1), "attlen": t["typlen"], "attnum": number, "attcacheoff": int64(-1), "atttypmod": int64(a.typmod),
		"attbyval": t["typbyval"], "attalign": t["typalign"], "attstorage": t["typstorage"], "attnotnull": a.notNull,
		"attislocal": true, "attcollation": t["typcollation"]})
	nullable := "YES"
	if a.notNull {
		nullable = "NO"
	}
	c := record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name, "column_name": a.name,
		"ordinal_position": number, "is_nullable": nullable, "data_type": dataType(a.oid), "udt_catalog": r.database,
		"udt_schema": "pg_catalog", "udt_name": t["typname"], "dtd_identifier": itoa(number), "is_self_referencing": "NO",
		"is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO", "identity_cycle": "NO"}
	for name, v := range measures(a) {
		c[name] = v
	}
	d.put("information_schema", "columns", c)
}
