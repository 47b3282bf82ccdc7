// Package pgcatalog describes the catalogs that a session sees: the relations of PostgreSQL 15's pg_catalog and
// information_schema with their columns, those of schema dp, and what of them is not shown as it is.
//
// SELECT datname, datdba FROM pg_database is bound by the columns that Lookup("pg_catalog", "pg_database") lists
// (rewrite/outer). Their rows are the cluster's, so Replaced is true of it: the sandbox reads a table expression of
// rows that package sandbox makes. Of pg_class, whose rows are the policy's own
// tables, only reltuples and the like are Masked.
package pgcatalog

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

// catalogText lists the relations of PostgreSQL 15's pg_catalog and information_schema, a column a line: schema,
// relation, relkind, oid (0 means it differs between servers), attnum, column, type oid and modifier (of a domain: its
// base type's), NOT NULL, whether any role may read it. TestFilesAreTheServers writes it.
//
//go:embed catalog15.tsv
var catalogText string

// Relation is a relation of PostgreSQL's own catalogs, or of schema dp.
type Relation struct {
	Schema, Name string
	Kind         string // "r" or "v"
	Oid          int64
	Readable     bool // by a role that nothing was granted to
	Columns      []Column
}

// Column is a column of a Relation.
type Column struct {
	Name    string
	Type    policy.Type
	Typmod  int32
	NotNull bool
}

// Relations returns every relation of pg_catalog, information_schema and dp. The caller does not change it.
var Relations = sync.OnceValue(func() []Relation {
	var all []Relation
	for line := range strings.Lines(catalogText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(all) == 0 || all[len(all)-1].Name != f[1] || all[len(all)-1].Schema != f[0] {
			all = append(all, Relation{Schema: f[0], Name: f[1], Kind: f[2], Readable: f[9] == "1",
				Oid: cmp.Or(number(f[3]), firstFreeOid+int64(len(all)))})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, Column{Name: f[5], Type: policy.Type(number(f[6])), Typmod: int32(number(f[7])), NotNull: f[8] == "1"})
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

// firstFreeOid begins the numbers of relations that have another one on each server.
const firstFreeOid = 12000

// ownOids number the tables of schema dp. They lie in the range that PostgreSQL keeps for its own objects, so that no
// table of a policy has one.
const ownOids = 16000

// ownRelations are the tables of schema dp: what an analyst may know of her budget and of the policy.
func ownRelations() []Relation {
	text, number, amount := policy.Text, policy.Int8, policy.NumericType
	relation := func(i int64, name string, columns ...Column) Relation {
		return Relation{Schema: "dp", Name: name, Kind: "v", Oid: ownOids + i, Readable: true, Columns: columns}
	}
	return []Relation{
		relation(1, "budget", Column{"user_name", text, -1, true}, Column{"dataset", text, -1, true},
			Column{"accountant", text, -1, true}, Column{"spent", amount, -1, true}, Column{"budget", amount, -1, true},
			Column{"remaining", amount, -1, true}, Column{"window_ends", policy.TimestampTZ, -1, false},
			Column{"lifetime_spent", amount, -1, false}, Column{"lifetime_budget", amount, -1, false}),
		relation(2, "charges", Column{"charge", number, -1, true}, Column{"at", policy.TimestampTZ, -1, true},
			Column{"user_name", text, -1, true}, Column{"kind", text, -1, true}, Column{"name", text, -1, true},
			Column{"cost", amount, -1, true}),
		relation(3, "releases", Column{"name", text, -1, true}, Column{"kind", text, -1, true},
			Column{"table_name", text, -1, true}, Column{"cells", number, -1, true}, Column{"cost", amount, -1, true},
			Column{"shared", policy.Bool, -1, true}, Column{"paid", policy.Bool, -1, true},
			Column{"released_at", policy.TimestampTZ, -1, false}),
		relation(4, "tables", Column{"table_schema", text, -1, true}, Column{"table_name", text, -1, true},
			Column{"public", policy.Bool, -1, true}, Column{"unit", text, -1, false},
			Column{"expected_rows", number, -1, false}, Column{"max_rows_per_unit", number, -1, false},
			Column{"trusted", policy.Bool, -1, true}, Column{"min_frequency", number, -1, false}),
		relation(5, "columns", Column{"table_schema", text, -1, true}, Column{"table_name", text, -1, true},
			Column{"column_name", text, -1, true}, Column{"data_type", text, -1, true}, Column{"domain", text, -1, false},
			Column{"cells", number, -1, false}, Column{"nulls", text, -1, false}, Column{"outside", text, -1, false},
			Column{"min_frequency", number, -1, false}),
		relation(6, "last", Column{"cost", amount, -1, false}, Column{"remaining", amount, -1, false}, Column{"budget", amount, -1, false},
			Column{"error", amount, -1, false}, Column{"confidence", amount, -1, false}, Column{"notice", text, -1, false}, Column{"detail", text, -1, false}),
	}
}
