package sandbox

import (
	"sync"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/rewrite/pgcatalog"
)

// relation is a table or view as the catalogs describe it.
type relation struct {
	database, schema, name string
	namespace, oid         int64
	kind                   string // "r" or "v"
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
func (d *description) tables() []table {
	var all []table
	for _, rel := range pgcatalog.Relations() {
		if records := d.rows[rel.Schema+"."+rel.Name]; records != nil {
			all = append(all, catalogTable(rel.Schema, rel.Name, records...))
		}
	}
	return all
}

// schema describes a namespace.
func (d *description) schema(database, name string, oid int64) {
	d.put("pg_catalog", "pg_namespace", record{"oid": oid, "nspname": name, "nspowner": oidOwner})
	d.put("information_schema", "schemata", record{"catalog_name": database, "schema_name": name, "schema_owner": ownerName})
}

// add describes a relation. Its number of rows and its size are never told: −1 rows, no page.
func (d *description) add(r relation) {
	access, yes := oidHeap, "BASE TABLE"
	if r.kind == "v" {
		access, yes = 0, "VIEW"
	}
	d.put("pg_catalog", "pg_class", record{"oid": r.oid, "relname": r.name, "relnamespace": r.namespace, "relowner": oidOwner,
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

// dataType is information_schema's name of a type.
func dataType(t policy.Type) string {
	if _, ok := outer.ArrayElement(t); ok && t != 22 && t != 30 {
		return "ARRAY"
	}
	return typeNames()[t]
}

// measures are information_schema's lengths and precisions of a column.
func measures(a attribute) record {
	switch a.oid {
	case policy.Int2:
		return record{"numeric_precision": int64(16), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Int4:
		return record{"numeric_precision": int64(32), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Int8:
		return record{"numeric_precision": int64(64), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Float4:
		return record{"numeric_precision": int64(24), "numeric_precision_radix": int64(2)}
	case policy.Float8:
		return record{"numeric_precision": int64(53), "numeric_precision_radix": int64(2)}
	case policy.NumericType:
		if a.typmod >= 4 {
			return record{"numeric_precision": int64((a.typmod - 4) >> 16), "numeric_precision_radix": int64(10),
				"numeric_scale": int64((a.typmod - 4) & 0xffff)}
		}
		return record{"numeric_precision_radix": int64(10)}
	case policy.Varchar:
		if a.typmod >= 4 {
			return record{"character_maximum_length": int64(a.typmod - 4), "character_octet_length": int64(a.typmod-4) * 4}
		}
		return record{"character_octet_length": int64(1 << 30)}
	case policy.Text:
		return record{"character_octet_length": int64(1 << 30)}
	case policy.DateType:
		return record{"datetime_precision": int64(0)}
	case policy.TimestampT, policy.TimestampTZ:
		if a.typmod >= 0 {
			return record{"datetime_precision": int64(a.typmod)}
		}
		return record{"datetime_precision": int64(6)}
	}
	return nil
}

var typeNames = sync.OnceValue(typeNameRows)

// typeRow is the row of pg_type of a built-in type.
func typeRow(t policy.Type) record {
	if r, ok := typeRecords()[int64(t)]; ok {
		return r
	}
	return record{"typname": "", "typlen": int64(-1), "typbyval": false, "typalign": "i", "typstorage": "x", "typcollation": int64(0)}
}

var typeRecords = sync.OnceValue(func() map[int64]record {
	rows, err := readRows("pg_type", nil)
	if err != nil {
		panic(err) // the file is part of the program
	}
	rel := pgcatalog.Lookup("pg_catalog", "pg_type")
	all := map[int64]record{}
	for _, row := range rows {
		r := record{}
		for i, c := range rel.Columns {
			r[c.Name] = row[i]
		}
		all[row[0].(int64)] = r
	}
	return all
})
