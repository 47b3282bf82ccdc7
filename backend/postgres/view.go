package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// typeSQL names a type, what ColumnShape calls its base, and whether its values have a collation: PostgreSQL describes
// a column of a domain by the type below it.
const typeSQL = `SELECT pg_catalog.format_type(y.oid, NULL), CASE y.typtype WHEN 'e' THEN 'enum' ELSE pg_catalog.format_type(y.oid, NULL) END,
y.typcollation <> 0 FROM pg_catalog.pg_type y WHERE y.oid = $1::pg_catalog.text::pg_catalog.oid`

// viewCollationSQL asks whether a collation takes different texts of a SELECT's column for equal. No row is read.
const viewCollationSQL = `SELECT COALESCE((SELECT NOT c.collisdeterministic FROM pg_catalog.pg_collation c
  WHERE c.oid = pg_catalog.pg_collation_for((SELECT v.%s FROM (%s) AS v WHERE false))::pg_catalog.regcollation), false)`

// viewShape adds what a trusted SELECT would show. One that PostgreSQL does not accept shows nothing. It is described
// within a transaction of its own, which a failure does not end.
func viewShape(ctx context.Context, tx pgx.Tx, t *policy.Table, into inspect.Shape) error {
	whole, err := rewrite.DescribeView(t, dialect.PostgreSQL)
	if err != nil {
		return err
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = inner.Rollback(ctx) }()
	described, err := inner.Prepare(ctx, "", whole)
	if err != nil {
		return nil
	}
	schema, name := inspect.RelationOf(t, dialect.PostgreSQL)
	wanted := inspect.Viewed(t)
	for _, f := range described.Fields {
		if !slices.Contains(wanted, f.Name) {
			continue
		}
		c := inspect.ColumnShape{Kind: inspect.KindTrusted, Scale: -1}
		collated := false
		if err := inner.QueryRow(ctx, typeSQL, strconv.FormatUint(uint64(f.DataTypeOID), 10)).Scan(&c.KindOf, &c.Base, &collated); err != nil {
			return execute.ErrResult
		}
		if collated && slices.Contains(inspect.KeyColumns(t), f.Name) {
			if err := inner.QueryRow(ctx, fmt.Sprintf(viewCollationSQL, dialect.QuoteName(f.Name), whole)).Scan(&c.Loose); err != nil {
				return execute.ErrResult
			}
		}
		if f.TypeModifier >= 4 && c.KindOf == "numeric" {
			c.Scale = int((f.TypeModifier - 4) & 2047)
		}
		into[inspect.ColumnOf(schema, name, f.Name)] = c
	}
	return nil
}
