package backend

import (
	"fmt"
	"slices"
	"strings"

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
	computed bool // when it is read (GENERATED ALWAYS AS … VIRTUAL, since PostgreSQL 18)
	secured  bool // the relation has row-level security
	readable bool // by dpproxy's role
	more     any  // what else the catalog of one engine says, of a type that == compares
}

// shape is what the catalog says of the columns that a dataset's policy names. Columns that do not exist are absent.
type shape map[columnName]columnShape

// columnsRead lists the columns that tables read, the unit columns among them.
func columnsRead(tables []*policy.Table, in dialect.Dialect) []columnName {
	var list []columnName
	for _, t := range tables {
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

// only is what it says of the columns that tables read.
func (s shape) only(tables []*policy.Table, in dialect.Dialect) shape {
	list := shape{}
	for _, at := range columnsRead(tables, in) {
		if c, ok := s[at]; ok {
			list[at] = c
		}
	}
	for _, t := range tables {
		if t.View.Text == "" {
			continue
		}
		schema, name := relationOf(t, in)
		for at, c := range s {
			if at.schema == schema && at.table == name {
				list[at] = c
			}
		}
	}
	return list
}

// drift is what became of the columns that a catalog had, in an operator's words: "people is another relation, a view, which was a table". It holds the names and types
// of columns that a policy names, and nothing else of the database's.
func (s shape) drift(now shape) (list []string) {
	add := func(format string, args ...any) {
		if said := fmt.Sprintf(format, args...); !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	for at, was := range s {
		relation := strings.TrimPrefix(at.schema+"."+at.table, ".")
		column := relation + "." + at.column
		is, there := now[at]
		switch {
		case !there:
			add("%s is gone", column)
		case is == was:
		case is.relation != was.relation || is.kind != was.kind:
			add("%s is another relation, a %s, which was a %s", relation, is.kind, was.kind)
		case is.kindOf != was.kindOf || is.base != was.base:
			add("%s is %s, which was %s", column, is.kindOf, was.kindOf)
		case is.computed != was.computed:
			add("%s became or ceased to be computed when it is read", column)
		case is.notNull != was.notNull:
			add("%s became or ceased to be NOT NULL", column)
		case is.secured != was.secured:
			add("row-level security of %s was switched on or off", relation)
		case is.readable != was.readable:
			add("the right to read %s was given or taken", column)
		default:
			add("%s has another scale or collation", column)
		}
	}
	for at := range now {
		if _, was := s[at]; !was {
			add("%s.%s.%s was not there", at.schema, at.table, at.column)
		}
	}
	slices.Sort(list)
	return list
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
