// Package catalog generates what analysts see in pg_catalog, information_schema and schema dp: rows that the policy,
// the session and PostgreSQL itself give, and none from a database. The twin has catalogs of its own, of which it hides
// what tells of its server: SELECT usename FROM pg_stat_activity reads Overlay, the sessions of who asks.
package catalog

import (
	"embed"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
)

// OwnerOid is the number of the role that owns everything, whose name is pgcatalog.OwnerName.
const OwnerOid = int64(10)

const oidTablespace = int64(1663)

// record is a row of a catalog relation by column names; columns that it leaves out are NULL, or the zero of their type
// where the relation does not allow NULL.
type record map[string]policy.Value

// rowsOf are the rows of a catalog relation made of records.
func rowsOf(schema, name string, records ...record) (rows sandbox.Rows) {
	rel := pgcatalog.Lookup(schema, name)
	for _, c := range rel.Columns {
		rows.Columns = append(rows.Columns, sandbox.Column{Name: c.Name, Type: c.Type, Typmod: -1})
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
		rows.Data = append(rows.Data, row)
	}
	return rows
}

// zeroOf is the zero of a type.
func zeroOf(t policy.Type) policy.Value {
	_, array := Element(t)
	switch {
	case array:
		return []policy.Value{}
	case t == policy.Bool:
		return false
	case t.Floating():
		return float64(0)
	case t.Integer() || oidLike(t):
		return int64(0)
	case t == policy.NumericType || t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ || t == policy.TimeT || t == policy.IntervalT:
		return nil
	}
	return ""
}

func datasetOf(p *policy.Policy, id string) *policy.Dataset {
	if p == nil {
		return nil
	}
	return p.Dataset(id)
}

// Oid is the number by which catalogs know what has no table: a role, a database. It depends on the name alone.
func Oid(name string) int64 {
	const firstUserOid = 16384
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return firstUserOid + int64(h.Sum32()>>2)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func roleOid(user string) int64 { return Oid("role " + user) }

func databaseOid(id string) int64 { return Oid("database " + id) }

// What is the same in every database of PostgreSQL 15, read off a server: names.tsv is format_type of each built-in
// type, pg_get_keywords.tsv the grammar's words.
//
//go:embed postgres15
var files embed.FS

// TypeName is a built-in type's name as format_type writes it.
func TypeName(t policy.Type) (string, bool) {
	name, ok := typeNames()[t]
	return name, ok
}

var typeNames = sync.OnceValue(func() map[policy.Type]string {
	names := map[policy.Type]string{}
	text, _ := files.ReadFile("postgres15/names.tsv")
	for line := range strings.Lines(string(text)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if n, err := strconv.ParseUint(oid, 10, 32); err == nil {
			names[policy.Type(n)] = name
		}
	}
	return names
})

// elements maps array types to the types of their elements; int2vector and oidvector are among them.
var elements = map[policy.Type]policy.Type{
	1000: policy.Bool, 1002: 18, 1003: 19, 1005: policy.Int2, 1007: policy.Int4, 1009: policy.Text, 1015: policy.Varchar, 1016: policy.Int8,
	1021: policy.Float4, 1022: policy.Float8, 1028: 26, 1034: 1033, 1115: policy.TimestampT, 1182: policy.DateType, 1185: policy.TimestampTZ,
	1187: policy.IntervalT, 1183: policy.TimeT, 1231: policy.NumericType, 2951: policy.UUID, 2211: 2206, 2210: 2205, 1008: 24, 22: policy.Int2,
	30: 26, 1263: 2275, 1014: policy.Bpchar, 4090: 4089,
}

// Element returns the element type of an array or vector type.
func Element(t policy.Type) (policy.Type, bool) {
	e, ok := elements[t]
	return e, ok
}

// oidLike reports whether values of a type are object identifiers: oid, xid, cid, regclass and their like.
func oidLike(t policy.Type) bool {
	return slices.Contains([]policy.Type{26, 28, 29, 24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096}, t)
}

// keywords are the words that quote_ident quotes though they are letters alone, read once: each name that a catalog
// shows is looked up among them.
var keywords = sync.OnceValue(func() (words []string) {
	text, _ := files.ReadFile("postgres15/pg_get_keywords.tsv")
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); f[1] != "U" {
			words = append(words, f[0])
		}
	}
	return words
})

// QuoteIdentifier quotes a name as PostgreSQL shows it: where it needs quotes.
func QuoteIdentifier(name string) string {
	if plainName.MatchString(name) && !slices.Contains(keywords(), name) {
		return name
	}
	return dialect.QuoteName(name)
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

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

// Schema dp describes the data as dpproxy sees them. SELECT * FROM dp.columns lists domains, cells, and what becomes of
// NULL and of values outside; the rows of dp.budget, dp.charges and dp.releases come with each query, from the ledger.

// DPTables are the columns of the tables of schema dp. The rows of budget, charges and releases come with a query;
// those of tables and columns are made here.
func DPTables() map[string][]sandbox.Column {
	all := map[string][]sandbox.Column{}
	for _, rel := range pgcatalog.Relations() {
		if rel.Schema == "dp" {
			all[rel.Name] = rowsOf(rel.Schema, rel.Name).Columns
		}
	}
	return all
}

func dpTables(d *policy.Dataset) sandbox.Rows {
	var records []record
	for _, t := range d.Tables {
		r := record{"table_schema": t.Schema, "table_name": t.Name, "public": t.Public, "trusted": t.View.Trusted}
		if !t.Public {
			if r["unit"] = "row"; !t.Analysed() {
				if r["expected_rows"] = t.ExpectedRows; !t.AnyRows {
					r["max_rows_per_unit"] = t.MaxRowsPerUnit
				}
			}
			if !d.Unit.Row {
				r["unit"] = d.Unit.Name
			}
			if f, _ := t.MinFrequency(); f.Units > 0 {
				r["min_frequency"] = f.Units
			}
		}
		records = append(records, r)
	}
	return rowsOf("dp", "tables", records...)
}

func dpColumns(d *policy.Dataset) sandbox.Rows {
	var records []record
	for _, t := range d.Tables {
		for _, c := range t.Described() {
			typ, typmod := c.DescribedType()
			r := record{"table_schema": t.Schema, "table_name": t.Name, "column_name": c.Name, "data_type": typ.Format(typmod)}
			if c.Join {
				r["domain"] = keyText(c)
			} else if c.Domain != nil {
				r["domain"], r["cells"] = domainText(c), int64(c.Domain.Size())
				r["nulls"], r["outside"] = "cell", "other"
				if c.Nulls == policy.NullExclude {
					r["nulls"] = "exclude"
				}
				switch c.Outside {
				case policy.OutsideClamp:
					r["outside"] = "clamp"
				case policy.OutsideExclude:
					r["outside"] = "exclude"
				}
				if c.Frequency.Units > 0 {
					r["min_frequency"] = c.Frequency.Units
				}
			}
			records = append(records, r)
		}
	}
	return rowsOf("dp", "columns", records...)
}
