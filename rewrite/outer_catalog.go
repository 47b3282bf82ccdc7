package rewrite

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
//go:embed outer_catalog15.tsv
var catalogText string

// CatalogRelation is a relation of PostgreSQL's own catalogs, or of schema dp.
type CatalogRelation struct {
	Schema, Name string
	Kind         string // "r" or "v"
	Oid          int64
	Columns      []CatalogColumn
}

// CatalogColumn is a column of a CatalogRelation.
type CatalogColumn struct {
	Name    string
	Type    policy.Type
	NotNull bool
}

// CatalogRelations returns every relation of pg_catalog, information_schema and dp. The caller does not change it.
var CatalogRelations = sync.OnceValue(func() []CatalogRelation {
	var all []CatalogRelation
	for line := range strings.Lines(catalogText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(all) == 0 || all[len(all)-1].Name != f[1] || all[len(all)-1].Schema != f[0] {
			all = append(all, CatalogRelation{Schema: f[0], Name: f[1], Kind: f[2], Oid: number(f[3])})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, CatalogColumn{Name: f[5], Type: policy.Type(number(f[6])), NotNull: f[7] == "1"})
	}
	return append(all, ownRelations()...)
})

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic("rewrite: catalog file: " + err.Error())
	}
	return n
}

var catalogByName = sync.OnceValue(func() map[string]*CatalogRelation {
	all := CatalogRelations()
	m := map[string]*CatalogRelation{}
	for i := range all {
		m[all[i].Schema+"."+all[i].Name] = &all[i]
	}
	return m
})

// LookupCatalog returns the catalog relation of that name, or nil.
func LookupCatalog(schema, name string) *CatalogRelation { return catalogByName()[schema+"."+name] }

// ownOids number the tables of schema dp. They lie in the range that PostgreSQL keeps for its own objects, so that no
// table of a policy has one.
const ownOids = 16000

// ownRelations are the tables of schema dp: what an analyst may know of her budget and of the policy.
func ownRelations() []CatalogRelation {
	text, number, amount := policy.Text, policy.Int8, policy.NumericType
	relation := func(i int64, name string, columns ...CatalogColumn) CatalogRelation {
		return CatalogRelation{Schema: "dp", Name: name, Kind: "v", Oid: ownOids + i, Columns: columns}
	}
	return []CatalogRelation{
		relation(1, "budget", CatalogColumn{"user_name", text, true}, CatalogColumn{"dataset", text, true},
			CatalogColumn{"accountant", text, true}, CatalogColumn{"spent", amount, true}, CatalogColumn{"budget", amount, true},
			CatalogColumn{"remaining", amount, true}, CatalogColumn{"window_ends", policy.TimestampTZ, false},
			CatalogColumn{"lifetime_spent", amount, false}, CatalogColumn{"lifetime_budget", amount, false}),
		relation(2, "charges", CatalogColumn{"charge", number, true}, CatalogColumn{"at", policy.TimestampTZ, true},
			CatalogColumn{"user_name", text, true}, CatalogColumn{"kind", text, true}, CatalogColumn{"name", text, true},
			CatalogColumn{"cost", amount, true}),
		relation(3, "releases", CatalogColumn{"name", text, true}, CatalogColumn{"kind", text, true},
			CatalogColumn{"table_name", text, true}, CatalogColumn{"cells", number, true}, CatalogColumn{"cost", amount, true},
			CatalogColumn{"shared", policy.Bool, true}, CatalogColumn{"paid", policy.Bool, true},
			CatalogColumn{"released_at", policy.TimestampTZ, false}),
		relation(4, "tables", CatalogColumn{"table_schema", text, true}, CatalogColumn{"table_name", text, true},
			CatalogColumn{"public", policy.Bool, true}, CatalogColumn{"unit", text, false},
			CatalogColumn{"expected_rows", number, false}, CatalogColumn{"max_rows_per_unit", number, false},
			CatalogColumn{"trusted", policy.Bool, true}),
		relation(5, "columns", CatalogColumn{"table_schema", text, true}, CatalogColumn{"table_name", text, true},
			CatalogColumn{"column_name", text, true}, CatalogColumn{"data_type", text, true}, CatalogColumn{"domain", text, false},
			CatalogColumn{"cells", number, false}, CatalogColumn{"nulls", text, false}, CatalogColumn{"outside", text, false}),
	}
}
