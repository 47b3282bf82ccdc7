package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// How one relation is described: a table orders(id int4, paid numeric) is a row of pg_class, two of pg_attribute, one of
// pg_tables, and rows of information_schema.tables, columns and table_privileges. Which columns a relation of the catalogs has
// is package pgcatalog's to say.

// relation is a table or view as the catalogs describe it.
type relation struct {
	database, schema, name string
	namespace, oid         int64
	rowType                int64  // the number of the type of its rows, 0 where none is listed; that of a list of them is one less
	kind                   string // "r" or "v"
	comment                string
	columns                []attribute
	keyed, led             bool // it has an index; a foreign key leads from it or to it
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
type description struct {
	rows  map[string][]record
	shown [][]policy.Value // rows of TypeNames

	definitions [][]policy.Value // rows of Definitions
}

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
	if d.shown != nil {
		names := typeNamesTable()
		names.Rows.Data = d.shown
		all = append(all, names)
	}
	if d.definitions != nil {
		definitions := definitionsTable()
		definitions.Rows.Data = d.definitions
		all = append(all, definitions)
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
	d.put("pg_catalog", "pg_class", record{"oid": r.oid, "relname": r.name, "relnamespace": r.namespace, "relowner": OwnerOid,
		"reltype": r.rowType, "relam": access, "relfilenode": int64(0), "reltuples": float64(-1), "relpersistence": "p", "relkind": r.kind,
		"relnatts": int64(len(r.columns)), "relhasindex": r.keyed, "relhastriggers": r.led, "relhasrules": r.kind == "v", "relispopulated": true, "relreplident": "d"})
	d.put("information_schema", "tables", record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name,
		"table_type": yes, "is_insertable_into": "NO", "is_typed": "NO"})
	d.put("information_schema", "table_privileges", record{"grantor": ownerName, "grantee": "PUBLIC", "table_catalog": r.database,
		"table_schema": r.schema, "table_name": r.name, "privilege_type": "SELECT", "is_grantable": "NO", "with_hierarchy": "YES"})
	if r.kind == "v" {
		// A view is its rule: pgAdmin, for one, shows no view without.
		d.put("pg_catalog", "pg_rewrite", record{"oid": Oid("rule " + r.schema + "." + r.name), "rulename": "_RETURN", "ev_class": r.oid, "ev_type": "1", "ev_enabled": "O", "is_instead": true})
		d.put("pg_catalog", "pg_views", record{"schemaname": r.schema, "viewname": r.name, "viewowner": ownerName, "definition": viewDefinition(r)})
		d.put("information_schema", "views", record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name,
			"check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO",
			"is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO"})
	} else {
		d.put("pg_catalog", "pg_tables", record{"schemaname": r.schema, "tablename": r.name, "tableowner": ownerName,
			"hasindexes": r.keyed, "hasrules": false, "hastriggers": r.led, "rowsecurity": false})
	}
	if r.rowType != 0 {
		d.types(r)
	}
	d.comment(r.oid, 0, r.comment)
	for i, a := range r.columns {
		d.column(r, int64(i+1), a)
		d.comment(r.oid, int64(i+1), a.comment)
	}
}

// viewDefinition is what a view of the program's own is to a server, the twin among them: columns without rows.
func viewDefinition(r relation) string {
	var items []string
	for _, c := range r.columns {
		item := "NULL"
		if name, ok := TypeName(c.oid); ok {
			item += "::" + name
		}
		items = append(items, item+" AS "+QuoteIdentifier(c.name))
	}
	return " SELECT " + strings.Join(items, ",\n    ") + "\n  WHERE false;"
}

// types describes the types that a table brings with it: that of its rows, and that of lists of them. Prisma, for one, takes a
// relation without one for no table.
func (d *description) types(r relation) {
	const (
		arrayIn, recordIn = 750, 2290 // each followed by its sister that writes
		arrayReceive      = 2400      // followed by array_send, record_recv and record_send
	)
	common := record{"typnamespace": r.namespace, "typowner": OwnerOid, "typlen": int64(-1), "typisdefined": true, "typdelim": ",", "typalign": "d",
		"typstorage": "x", "typtypmod": int64(-1)}
	row, list := maps.Clone(common), maps.Clone(common)
	maps.Copy(row, record{"oid": r.rowType, "typname": r.name, "typtype": "c", "typcategory": "C", "typrelid": r.oid, "typarray": r.rowType - 1,
		"typinput": int64(recordIn), "typoutput": int64(recordIn + 1), "typreceive": int64(arrayReceive + 2), "typsend": int64(arrayReceive + 3)})
	maps.Copy(list, record{"oid": r.rowType - 1, "typname": "_" + r.name, "typtype": "b", "typcategory": "A", "typelem": r.rowType, "typsubscript": int64(6179),
		"typanalyze": int64(3816), "typinput": int64(arrayIn), "typoutput": int64(arrayIn + 1), "typreceive": int64(arrayReceive), "typsend": int64(arrayReceive + 1)})
	d.put("pg_catalog", "pg_type", row)
	d.put("pg_catalog", "pg_type", list)
	name := QuoteIdentifier(r.name)
	if r.schema != "public" {
		name = QuoteIdentifier(r.schema) + "." + name
	}
	d.shown = append(d.shown, []policy.Value{r.rowType, name}, []policy.Value{r.rowType - 1, name + "[]"})
}

// QuoteIdentifier quotes a name as PostgreSQL shows it: where it needs quotes.
func QuoteIdentifier(name string) string {
	if plainName.MatchString(name) && !slices.Contains(Keywords(), name) {
		return name
	}
	return dialect.QuoteName(name)
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

func (d *description) comment(oid, column int64, text string) {
	if text != "" {
		d.put("pg_catalog", "pg_description", record{"objoid": oid, "classoid": oidPgClass, "objsubid": column, "description": text})
	}
}

func (d *description) attribute(relation, number int64, a attribute) {
	t := typeRow(a.oid)
	d.put("pg_catalog", "pg_attribute", record{"attrelid": relation, "attname": a.name, "atttypid": int64(a.oid),
		"attstattarget": int64(-1), "attlen": t["typlen"], "attnum": number, "attcacheoff": int64(-1), "atttypmod": int64(a.typmod),
		"attbyval": t["typbyval"], "attalign": t["typalign"], "attstorage": t["typstorage"], "attnotnull": a.notNull,
		"attislocal": true, "attcollation": t["typcollation"]})
}

func (d *description) column(r relation, number int64, a attribute) {
	d.attribute(r.oid, number, a)
	nullable := "YES"
	if a.notNull {
		nullable = "NO"
	}
	c := record{"table_catalog": r.database, "table_schema": r.schema, "table_name": r.name, "column_name": a.name,
		"ordinal_position": number, "is_nullable": nullable, "data_type": dataType(a.oid), "udt_catalog": r.database,
		"udt_schema": "pg_catalog", "udt_name": typeRow(a.oid)["typname"], "dtd_identifier": itoa(number), "is_self_referencing": "NO",
		"is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO", "identity_cycle": "NO"}
	for name, v := range measures(a) {
		c[name] = v
	}
	d.put("information_schema", "columns", c)
}
