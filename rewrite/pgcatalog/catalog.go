// Package pgcatalog describes the catalogs that a session sees: the relations of PostgreSQL 15's pg_catalog and
// information_schema with their columns, those of schema dp, and what of them is not shown as it stands.
//
// SELECT datname, datdba FROM pg_database is bound by the columns that Lookup("pg_catalog", "pg_database") lists
// (rewrite/outer). Their rows are the cluster's, so Replaced is true of it: a PostgreSQL sandbox reads a table expression of
// rows that package sandbox makes, the embedded sandbox a table of such rows. Of pg_class, whose rows are the policy's own
// tables, only reltuples and the like are Masked.
package pgcatalog

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

// catalogText lists the relations of PostgreSQL 15's pg_catalog and information_schema, a column a line: schema,
// relation, relkind, oid, attnum, column, type oid (of a domain: its base type), NOT NULL. It was read off a server.
//
//go:embed catalog15.tsv
var catalogText string

// Relation is a relation of PostgreSQL's own catalogs, or of schema dp.
type Relation struct {
	Schema, Name string
	Kind         string // "r" or "v"
	Oid          int64
	Columns      []Column
}

// Column is a column of a Relation.
type Column struct {
	Name    string
	Type    policy.Type
	NotNull bool
}

// Relations returns every relation of pg_catalog, information_schema and dp. The caller does not change it.
var Relations = sync.OnceValue(func() []Relation {
	var all []Relation
	for line := range strings.Lines(catalogText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(all) == 0 || all[len(all)-1].Name != f[1] || all[len(all)-1].Schema != f[0] {
			all = append(all, Relation{Schema: f[0], Name: f[1], Kind: f[2], Oid: number(f[3])})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, Column{Name: f[5], Type: policy.Type(number(f[6])), NotNull: f[7] == "1"})
	}
	return append(all, ownRelations()...)
})

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic("pgcatalog: catalog file: " + err.Error())
	}
	return n
}

var catalogByName = sync.OnceValue(func() map[string]*Relation {
	all := Relations()
	m := map[string]*Relation{}
	for i := range all {
		m[all[i].Schema+"."+all[i].Name] = &all[i]
	}
	return m
})

// Lookup returns the relation of that name, or nil. The caller does not change it.
func Lookup(schema, name string) *Relation { return catalogByName()[schema+"."+name] }

// ownOids number the tables of schema dp. They lie in the range that PostgreSQL keeps for its own objects, so that no
// table of a policy has one.
const ownOids = 16000

// ownRelations are the tables of schema dp: what an analyst may know of her budget and of the policy.
func ownRelations() []Relation {
	text, number, amount := policy.Text, policy.Int8, policy.NumericType
	relation := func(i int64, name string, columns ...Column) Relation {
		return Relation{Schema: "dp", Name: name, Kind: "v", Oid: ownOids + i, Columns: columns}
	}
	return []Relation{
		relation(1, "budget", Column{"user_name", text, true}, Column{"dataset", text, true},
			Column{"accountant", text, true}, Column{"spent", amount, true}, Column{"budget", amount, true},
			Column{"remaining", amount, true}, Column{"window_ends", policy.TimestampTZ, false},
			Column{"lifetime_spent", amount, false}, Column{"lifetime_budget", amount, false}),
		relation(2, "charges", Column{"charge", number, true}, Column{"at", policy.TimestampTZ, true},
			Column{"user_name", text, true}, Column{"kind", text, true}, Column{"name", text, true},
			Column{"cost", amount, true}),
		relation(3, "releases", Column{"name", text, true}, Column{"kind", text, true},
			Column{"table_name", text, true}, Column{"cells", number, true}, Column{"cost", amount, true},
			Column{"shared", policy.Bool, true}, Column{"paid", policy.Bool, true},
			Column{"released_at", policy.TimestampTZ, false}),
		relation(4, "tables", Column{"table_schema", text, true}, Column{"table_name", text, true},
			Column{"public", policy.Bool, true}, Column{"unit", text, false},
			Column{"expected_rows", number, false}, Column{"max_rows_per_unit", number, false},
			Column{"trusted", policy.Bool, true}),
		relation(5, "columns", Column{"table_schema", text, true}, Column{"table_name", text, true},
			Column{"column_name", text, true}, Column{"data_type", text, true}, Column{"domain", text, false},
			Column{"cells", number, false}, Column{"nulls", text, false}, Column{"outside", text, false}),
		relation(6, "last", Column{"cost", amount, false}, Column{"remaining", amount, false}, Column{"budget", amount, false},
			Column{"error", amount, false}, Column{"confidence", amount, false}, Column{"notice", text, false}, Column{"detail", text, false}),
	}
}
