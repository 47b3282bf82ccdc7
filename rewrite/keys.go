package rewrite

import (
	"errors"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// CompareKeys writes a query that compares two join keys as joins and sub-queries do. A database that accepts it accepts
// the comparison in every measure. It is prepared and never run.
func CompareKeys(a, b *policy.Column, d dialect.Dialect) (string, error) {
	if d.Words == nil {
		return "", errors.New("rewrite: no such dialect")
	}
	w := &writer{composed: &composed{dialect: d, seen: map[string]string{}}, table: a.Table, alias: "a"}
	sql := "SELECT " + w.equal("a."+w.name(a.Source), "b."+w.name(b.Source)) +
		" FROM " + w.relation(a.Table) + " AS a, " + w.relation(b.Table) + " AS b"
	return sql, w.err
}
