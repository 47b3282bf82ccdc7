package backend

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// uniqueSQL asks whether a unit has at most one row: the relation is a plain table without children, its unit column is
// NOT NULL and alone in a unique index that is valid, immediate, total, and compares as PARTITION BY would. It runs with an
// empty search_path, so that its operators are pg_catalog's.
const uniqueSQL = `SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
  JOIN pg_catalog.pg_index i ON i.indrelid = c.oid
  JOIN pg_catalog.pg_opclass o ON o.oid = i.indclass[0]
  WHERE s.nspname = $1::pg_catalog.name AND c.relname = $2::pg_catalog.name
    AND a.attname = $3::pg_catalog.name AND c.relkind = 'r' AND a.attnotnull
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)
    AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
    AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1
    AND i.indkey[0] = a.attnum AND i.indcollation[0] = a.attcollation AND o.opcdefault)`

// uniqueUnit tells whether a constraint proves, in tx's snapshot, that each unit has at most one row in the table.
func uniqueUnit(ctx context.Context, tx pgx.Tx, t *policy.Table) (bool, error) {
	schema, name := rewrite.Relation(t.Source, rewrite.PostgreSQL)
	var unique bool
	err := tx.QueryRow(ctx, uniqueSQL, schema, name, t.UnitColumn).Scan(&unique)
	return unique, err
}
