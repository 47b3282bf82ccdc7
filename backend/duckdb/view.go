package duckdb

import (
	"context"
	"slices"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// viewShape adds what a trusted SELECT would show. One that DB does not accept shows nothing.
func (b *DB) viewShape(ctx context.Context, t *policy.Table, into inspect.Shape) {
	whole, err := rewrite.DescribeView(t, dialect.DuckDB)
	if err != nil {
		return
	}
	alone, err := b.Pool.PrepareContext(ctx, t.View.Text)
	if err != nil {
		return
	}
	alone.Close()
	schema, name := inspect.RelationOf(t, dialect.DuckDB)
	wanted := inspect.Viewed(t)
	err = b.EachFull(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+whole+")", func(row []string) {
		if slices.Contains(wanted, row[0]) {
			c := inspect.ColumnShape{Kind: inspect.KindTrusted, KindOf: row[1], Base: row[1], Scale: -1}
			c.Loose = b.loose(ctx, c, row[0], "("+whole+")")
			into[inspect.ColumnOf(schema, name, row[0])] = c
		}
	})
	if err != nil {
		b.log.Warn("a trusted SELECT is not accepted", "table", t.Name, "cause", execute.Cause(err))
	}
}
