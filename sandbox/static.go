package sandbox

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/rewrite/pgcatalog"
)

// catalogFiles hold the rows of PostgreSQL 15's catalogs that are the same in every database, read off a server: its
// built-in types and what belongs to them. names.tsv is format_type of each type.
//
//go:embed catalog15
var catalogFiles embed.FS

// Oids of PostgreSQL's own objects.
const (
	oidPgCatalog   = int64(11)
	oidPublic      = int64(2200)
	oidInfoSchema  = int64(13000)
	oidDP          = int64(16000)
	oidOwner       = int64(10)
	oidPgClass     = int64(1259)
	oidTablespace  = int64(1663)
	oidHeap        = int64(2)
	firstUserOid   = int64(16384)
	ownerName      = pgcatalog.OwnerName
	typeNamesTable = "dpproxy.types"
)

// record is a row of a catalog relation by column names; columns that it leaves out are NULL, or the zero of their type
// where the relation does not allow NULL.
type record map[string]policy.Value

// catalogTable makes a table of a catalog relation from records.
func catalogTable(schema, name string, records ...record) table {
	rel := pgcatalog.Lookup(schema, name)
	t := table{name: schema + "." + name}
	for _, c := range rel.Columns {
		t.rows.Columns = append(t.rows.Columns, Column{Name: c.Name, Type: c.Type, Typmod: -1})
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
		t.rows.Data = append(t.rows.Data, row)
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

// staticTables are all relations of the catalogs for a database of that name, with the rows that every database has.
func staticTables(database string) ([]table, error) {
	procs, err := readRows("pg_proc", nil)
	if err != nil {
		return nil, err
	}
	names := map[string]int64{"-": 0}
	for _, row := range procs {
		names[row[1].(string)] = row[0].(int64)
	}
	var all []table
	for _, rel := range pgcatalog.Relations() {
		all = append(all, catalogTable(rel.Schema, rel.Name))
	}
	for _, name := range []string{"pg_type", "pg_range", "pg_am", "pg_language", "pg_collation", "pg_proc"} {
		rows, err := readRows(name, names)
		if err != nil {
			return nil, err
		}
		t := catalogTable("pg_catalog", name)
		t.rows.Data = rows
		all = append(all, t)
	}
	all = append(all, ownSchema(database)...)
	typeNames := table{name: typeNamesTable, rows: Rows{Columns: []Column{{"oid", 26, -1}, {"name", policy.Text, -1}}}}
	for oid, name := range typeNameRows() {
		typeNames.rows.Data = append(typeNames.rows.Data, []policy.Value{int64(oid), name})
	}
	return append(all, typeNames), nil
}

// ownSchema describes the catalogs themselves: the namespaces, relations and columns of pg_catalog, information_schema
// and dp.
func ownSchema(database string) []table {
	namespaces := map[string]int64{"pg_catalog": oidPgCatalog, "information_schema": oidInfoSchema, "dp": oidDP}
	var d description
	for _, rel := range pgcatalog.Relations() {
		r := relation{database: database, schema: rel.Schema, namespace: namespaces[rel.Schema], name: rel.Name, oid: rel.Oid, kind: rel.Kind}
		for _, c := range rel.Columns {
			r.columns = append(r.columns, attribute{name: c.Name, oid: c.Type, typmod: -1, notNull: c.NotNull})
		}
		d.add(r)
	}
	d.schema(database, "pg_catalog", oidPgCatalog)
	d.schema(database, "information_schema", oidInfoSchema)
	d.schema(database, "dp", oidDP)
	return append(d.tables(),
		catalogTable("pg_catalog", "pg_tablespace", tablespaces()...),
		catalogTable("information_schema", "information_schema_catalog_name", record{"catalog_name": database}),
		catalogTable("information_schema", "character_sets", record{"character_set_name": "UTF8", "character_repertoire": "UCS",
			"form_of_use": "UTF8", "default_collate_catalog": database, "default_collate_schema": "pg_catalog", "default_collate_name": "C"}))
}

func tablespaces() []record {
	return []record{{"oid": oidTablespace, "spcname": "pg_default", "spcowner": oidOwner},
		{"oid": int64(1664), "spcname": "pg_global", "spcowner": oidOwner}}
}

// readRows reads a file of catalogFiles. Functions are named in it; procs gives their numbers, nil keeps them at 0.
func readRows(name string, procs map[string]int64) ([][]policy.Value, error) {
	text, err := catalogFiles.ReadFile("catalog15/" + name + ".tsv")
	if err != nil {
		return nil, err
	}
	rel := pgcatalog.Lookup("pg_catalog", name)
	var rows [][]policy.Value
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != len(rel.Columns) {
			return nil, fmt.Errorf("sandbox: %s: a line of %d fields, %d columns", name, len(fields), len(rel.Columns))
		}
		row := make([]policy.Value, len(fields))
		for i, f := range fields {
			if row[i], err = readValue(rel.Columns[i].Type, f, procs); err != nil {
				return nil, fmt.Errorf("sandbox: %s.%s: %w", name, rel.Columns[i].Name, err)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

const regproc policy.Type = 24

// readValue reads a field of a file in COPY's text form.
func readValue(t policy.Type, field string, procs map[string]int64) (policy.Value, error) {
	if field == `\N` {
		return nil, nil
	}
	if element, ok := outer.ArrayElement(t); ok {
		list := []policy.Value{}
		separator := func(r rune) bool { return r == ' ' || r == ',' || r == '{' || r == '}' }
		for _, part := range strings.FieldsFunc(field, separator) {
			v, err := readValue(element, part, procs)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	if t == regproc {
		return procs[field], nil
	}
	switch outer.Storage(t) {
	case "BOOLEAN":
		return field == "t", nil
	case "SMALLINT", "INTEGER", "BIGINT":
		return strconv.ParseInt(field, 10, 64)
	case "FLOAT", "DOUBLE":
		return strconv.ParseFloat(field, 64)
	}
	return field, nil
}

// typeNameRows maps the built-in types to their names as format_type writes them.
func typeNameRows() map[policy.Type]string {
	text, err := catalogFiles.ReadFile("catalog15/names.tsv")
	if err != nil {
		return nil
	}
	names := map[policy.Type]string{}
	for line := range strings.Lines(string(text)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseUint(oid, 10, 32)
		if err == nil {
			names[policy.Type(n)] = name
		}
	}
	return names
}
