package backend

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// typeSQL names a type, what columnShape calls its base, and whether its values have a collation: PostgreSQL describes a column of a domain by the type below it.
const typeSQL = `SELECT pg_catalog.format_type(y.oid, NULL), CASE y.typtype WHEN 'e' THEN 'enum' ELSE pg_catalog.format_type(y.oid, NULL) END,
y.typcollation <> 0 FROM pg_catalog.pg_type y WHERE y.oid = $1::pg_catalog.text::pg_catalog.oid`

// viewCollationSQL asks whether a collation takes different texts of a SELECT's column for equal. No row is read.
const viewCollationSQL = `SELECT COALESCE((SELECT NOT c.collisdeterministic FROM pg_catalog.pg_collation c
  WHERE c.oid = pg_catalog.pg_collation_for((SELECT v.%s FROM (%s) AS v WHERE false))::pg_catalog.regcollation), false)`

// viewShape adds what a trusted SELECT would show. One that PostgreSQL does not accept shows nothing. It is described within
// a transaction of its own, which a failure does not end.
func viewShape(ctx context.Context, tx pgx.Tx, t *policy.Table, into shape) error {
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
	schema, name := relationOf(t, dialect.PostgreSQL)
	wanted := viewed(t)
	for _, f := range described.Fields {
		if !slices.Contains(wanted, f.Name) {
			continue
		}
		c := columnShape{kind: kindTrusted, scale: -1}
		collated := false
		if err := inner.QueryRow(ctx, typeSQL, strconv.FormatUint(uint64(f.DataTypeOID), 10)).Scan(&c.kindOf, &c.base, &collated); err != nil {
			return errResult
		}
		if collated && slices.Contains(keyColumns(t), f.Name) {
			if err := inner.QueryRow(ctx, fmt.Sprintf(viewCollationSQL, dialect.QuoteName(f.Name), whole)).Scan(&c.loose); err != nil {
				return errResult
			}
		}
		if f.TypeModifier >= 4 && c.kindOf == "numeric" {
			c.scale = int((f.TypeModifier - 4) & 2047)
		}
		into[columnName{schema, name, f.Name}] = c
	}
	return nil
}
