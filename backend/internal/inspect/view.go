package inspect

import (
	"slices"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A trusted SELECT is held against the policy as a table is: the database describes what it would show, and does not
// run it.

// KindTrusted is the kind of relation that a trusted SELECT is.
const KindTrusted = "trusted SELECT"

// RelationOf is where the shape has a table: a SELECT has a place of its own, in no schema.
func RelationOf(t *policy.Table, in dialect.Dialect) (schema, name string) {
	if t.View.Text != "" {
		return "", t.Schema + "." + t.Name
	}
	return rewrite.Relation(t.Source, in)
}

// Viewed are the columns of a SELECT that the policy names.
func Viewed(t *policy.Table) []string {
	list := KeyColumns(t)
	for _, c := range t.Columns {
		if !slices.Contains(list, c.Source) {
			list = append(list, c.Source)
		}
	}
	return list
}
