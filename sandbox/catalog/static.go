package catalog

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What the catalogs hold in every database: PostgreSQL 15's types, functions and access methods, from files, and the catalogs'
// description of themselves.

// files hold the rows of PostgreSQL 15's catalogs that are the same in every database, read off a server: its
// built-in types and what belongs to them. names.tsv is format_type of each type.
//
//go:embed postgres15
var files embed.FS

// Static are the relations of the catalogs that have rows in a database of that name or in a session there, with the rows that
// every database has.
func Static(database string) ([]Table, error) {
	procs, err := readRows("pg_proc", nil)
	if err != nil {
		return nil, err
	}
	procNumbers := map[string]int64{"-": 0}
	for _, row := range procs {
		procNumbers[row[1].(string)] = row[0].(int64)
	}
	var all []Table
	for _, rel := range pgcatalog.Relations() {
		if pgcatalog.Filled(rel.Schema, rel.Name) {
			all = append(all, newTable(rel.Schema, rel.Name))
		}
	}
	for _, name := range []string{"pg_type", "pg_range", "pg_am", "pg_language", "pg_collation", "pg_proc"} {
		rows, err := readRows(name, procNumbers)
		if err != nil {
			return nil, err
		}
		t := newTable("pg_catalog", name)
		t.Rows.Data = rows
		all = append(all, t)
	}
	all = append(all, ownSchema(database)...)
	names := typeNamesTable()
	for oid, name := range typeNameRows() {
		names.Rows.Data = append(names.Rows.Data, []policy.Value{int64(oid), name})
	}
	return append(all, names, definitionsTable(), keywordTable()), nil
}

// ownSchema describes the catalogs themselves: the namespaces, relations and columns of pg_catalog, information_schema
// and dp.
func ownSchema(database string) []Table {
	namespaces := map[string]int64{"pg_catalog": oidPgCatalog, "information_schema": oidInfoSchema, "dp": oidDP}
	var d description
	for _, rel := range pgcatalog.Relations() {
		r := relation{database: database, schema: rel.Schema, namespace: namespaces[rel.Schema], name: rel.Name, oid: rel.Oid, kind: rel.Kind}
		if rel.Schema == "dp" {
			r.rowType = numbers{used: map[int64]bool{}}.pair("type dp." + rel.Name)
		}
		for _, c := range rel.Columns {
			r.columns = append(r.columns, attribute{name: c.Name, oid: c.Type, typmod: -1, notNull: c.NotNull})
		}
		d.add(r)
	}
	d.schema(database, "pg_catalog", oidPgCatalog)
	d.schema(database, "information_schema", oidInfoSchema)
	d.schema(database, "dp", oidDP)
	return append(d.tables(),
		newTable("pg_catalog", "pg_tablespace", tablespaces()...), newTable("pg_catalog", "pg_opclass", operatorClassRows()...),
		newTable("information_schema", "information_schema_catalog_name", record{"catalog_name": database}),
		newTable("information_schema", "character_sets", record{"character_set_name": "UTF8", "character_repertoire": "UCS",
			"form_of_use": "UTF8", "default_collate_catalog": database, "default_collate_schema": "pg_catalog", "default_collate_name": "C"}))
}

func tablespaces() []record {
	return []record{{"oid": oidTablespace, "spcname": "pg_default", "spcowner": OwnerOid},
		{"oid": int64(1664), "spcname": "pg_global", "spcowner": OwnerOid}}
}

// readRows reads one of the files. Functions are named in it; procs gives their numbers, nil keeps them at 0.
func readRows(name string, procs map[string]int64) ([][]policy.Value, error) {
	text, err := files.ReadFile("postgres15/" + name + ".tsv")
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

// Keyword is a word of PostgreSQL 15's grammar, as pg_get_keywords lists it.
type Keyword struct {
	Word, Category  string // U: unreserved, C: may be a column's name, T: a type's or a function's, R: reserved
	Bare            bool   // it may be an output's name without AS
	Means, BareSays string // the two in words
}

// AllKeywords are the grammar's words, read once: each name that a catalog shows is looked up among them. Nobody changes them.
var AllKeywords = sync.OnceValue(func() (list []Keyword) {
	text, _ := files.ReadFile("postgres15/pg_get_keywords.tsv")
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		list = append(list, Keyword{f[0], f[1], f[2] == "t", f[3], f[4]})
	}
	return list
})

// Keywords are the words that quote_ident quotes though they are letters alone.
var Keywords = sync.OnceValue(func() (words []string) {
	for _, k := range AllKeywords() {
		if k.Category != "U" {
			words = append(words, k.Word)
		}
	}
	return words
})

// keywordTable is what pg_get_keywords reads in the embedded engine.
func keywordTable() Table {
	t := Table{Name: outer.KeywordTable, Rows: sandbox.Rows{Columns: []sandbox.Column{{Name: "word", Type: policy.Text, Typmod: -1}, {Name: "catcode", Type: 18, Typmod: -1},
		{Name: "barelabel", Type: policy.Bool, Typmod: -1}, {Name: "catdesc", Type: policy.Text, Typmod: -1}, {Name: "baredesc", Type: policy.Text, Typmod: -1}}}}
	for _, k := range AllKeywords() {
		t.Rows.Data = append(t.Rows.Data, []policy.Value{k.Word, k.Category, k.Bare, k.Means, k.BareSays})
	}
	return t
}
