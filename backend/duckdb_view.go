package backend

import (
	"context"
	"slices"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// viewShape adds what a trusted SELECT would show. One that DuckDB does not accept shows nothing.
func (b *DuckDB) viewShape(ctx context.Context, t *policy.Table, into shape) {
	whole, err := rewrite.DescribeView(t, dialect.DuckDB)
	if err != nil {
		return
	}
	alone, err := b.db.PrepareContext(ctx, t.View.Text)
	if err != nil {
		return
	}
	alone.Close()
	schema, name := relationOf(t, dialect.DuckDB)
	wanted := viewed(t)
	err = b.eachRow(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+whole+")", func(row []*string) error {
		if row[0] == nil || row[1] == nil {
			return errResult
		}
		if slices.Contains(wanted, *row[0]) {
			c := columnShape{kind: kindTrusted, kindOf: *row[1], base: *row[1], scale: -1}
			c.loose = b.loose(ctx, c, *row[0], "("+whole+")")
			into[columnName{schema, name, *row[0]}] = c
		}
		return nil
	})
	if err != nil {
		b.log.Warn("a trusted SELECT is not accepted", "table", t.Name, "cause", cause(err))
	}
}
