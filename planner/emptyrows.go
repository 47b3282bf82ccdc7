package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// What the walk of emptywalk.go knows of a relation's rows.

// groupRows are the rows of a relation as far as groups are among them that nobody is in.
type groupRows struct {
	alias   string
	columns []groupColumn
	from    []*emptyGroups // whose groups are among the rows
}

// groupColumn is a column of such rows.
type groupColumn struct {
	name    string
	of      *emptyGroups    // whose count or sum it is computed from alone; nil: not known here
	without *semantics.Expr // its value at a group that nobody is in
	noise   *semantics.Expr // the same, if noise made as much of its counts as their error; nil: not known
	counts  bool            // it is a count, and so nowhere below 0 in truth
}

// named gives rows an alias, and their columns the names that it lists.
func (r groupRows) named(alias string, names []*pg.Node) groupRows {
	r.alias, r.columns = alias, slices.Clone(r.columns)
	for i, name := range ast.Strings(names) {
		if i < len(r.columns) {
			r.columns[i].name = name
		}
	}
	return r
}

func unknownColumns(columns []groupColumn) []groupColumn {
	out := make([]groupColumn, len(columns))
	for i, c := range columns {
		out[i].name = c.name
	}
	return out
}

// find finds a column.
func find(fields []string, seen []groupRows) *groupColumn {
	name, words := fields[len(fields)-1], fields[:len(fields)-1]
	for _, r := range seen {
		if len(words) > 0 && words[len(words)-1] != r.alias {
			continue
		}
		for i := range r.columns {
			if r.columns[i].name == name {
				return &r.columns[i]
			}
		}
	}
	return nil
}
