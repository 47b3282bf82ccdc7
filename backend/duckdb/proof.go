package duckdb

import (
	"slices"

	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// uniqueKey is what a constraint of DB says: no two rows share the values of its columns.
type uniqueKey struct {
	columns []inspect.ColumnName
	notNull bool                 // all of them
	broken  []inspect.ColumnName // those whose values need not be whole numbers
}

// provenForm reports whether constraints prove what a shorter text takes for proven.
func (b *DB) provenForm(s rewrite.Shorter) bool {
	return !slices.ContainsFunc(s.Ranks, func(r rewrite.Rank) bool { return !b.ranksSaid(r) }) && b.proven(s.Needs)
}

// proven reports whether constraints prove all that is needed. In DB they hold in every snapshot: the schema cannot
// change.
func (b *DB) proven(needs []rewrite.Unique) bool {
	return !slices.ContainsFunc(needs, func(u rewrite.Unique) bool {
		schema, name := rewrite.Relation(u.Table.Source, dialect.DuckDB)
		var columns []inspect.ColumnName
		for _, c := range u.Columns {
			columns = append(columns, folded(schema, name, c))
		}
		if u.Nullable && u.Table.UnitColumn != "" {
			columns = append(columns, folded(schema, name, u.Table.UnitColumn))
		}
		return u.Table.View.Text != "" || !slices.ContainsFunc(b.unique, func(k uniqueKey) bool {
			return (k.notNull || u.Nullable) && (u.Whole == "" || !slices.Contains(k.broken, folded(schema, name, u.Whole))) && !slices.ContainsFunc(k.columns, func(p inspect.ColumnName) bool { return !slices.Contains(columns, p) })
		})
	})
}
