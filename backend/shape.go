package backend

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/backend/mysql"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// columnName names a column of the private database.
type columnName struct{ schema, table, column string }

// columnShape is what a database's catalog says of a column and its relation.
type columnShape struct {
	relation int64  // the relation's number, which a replaced table does not keep
	kind     string // "table", "partitioned table", "view", "foreign table", …
	kindOf   string // the column's type: "integer", "DECIMAL(12,2)", "email"
	base     string // the type that a domain is over, kindOf itself where it is none; "enum" for every enumerated type, "domain of an enum" for one over it
	scale    int    // of a numeric column, −1: none
	loose    bool   // its collation takes different texts for equal
	notNull  bool
	secured  bool        // the relation has row-level security
	readable bool        // by dpproxy's role
	mysql    mysql.Shape // of MySQL alone
}

// shape is what the catalog says of the columns that a dataset's policy names. Columns that do not exist are absent.
type shape map[columnName]columnShape

// columnsRead are the columns that a dataset's tables read, the unit columns among them.
func columnsRead(d *policy.Dataset, in dialect.Dialect) []columnName {
	var list []columnName
	for _, t := range d.Tables {
		if t.View.Text != "" {
			continue
		}
		schema, name := rewrite.Relation(t.Source, in)
		for _, key := range keyColumns(t) {
			list = append(list, columnName{schema, name, key})
		}
		for _, c := range t.Columns {
			list = append(list, columnName{schema, name, c.Source})
		}
	}
	slices.SortFunc(list, func(a, b columnName) int {
		return strings.Compare(a.schema+"\x00"+a.table+"\x00"+a.column, b.schema+"\x00"+b.table+"\x00"+b.column)
	})
	return slices.Compact(list)
}

// keyColumns are the columns that name a table's units and join its rows, each once.
func keyColumns(t *policy.Table) []string {
	var list []string
	if t.UnitColumn != "" {
		list = append(list, t.UnitColumn)
	}
	for _, k := range t.Keys {
		if !slices.Contains(list, k.Source) {
			list = append(list, k.Source)
		}
	}
	if t.RowRank != "" && !slices.Contains(list, t.RowRank) {
		list = append(list, t.RowRank)
	}
	return list
}
