package backend

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// uniqueSQL asks whether a unit has at most one row: the relation is a plain table without children, its unit column is
// NOT NULL and alone in a unique index that is valid, immediate, total, and compares as PARTITION BY would. It runs with an
// empty search_path, so that its operators are pg_catalog's. It is believed of PostgreSQL itself alone, whose snapshot holds the
// constraint and the rows: where Citus or another engine keeps the rows, each part of the table has a moment of its own
// (privacy rule 25).
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
    AND ` + onlyPostgres + `
    AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1
    AND i.indkey[0] = a.attnum AND i.indcollation[0] = a.attcollation AND o.opcdefault)`

// onlyPostgres tells whether the rows lie in PostgreSQL's own storage, and not in that of an engine that speaks as it does.
const onlyPostgres = `pg_catalog.version() LIKE 'PostgreSQL %' AND pg_catalog.version() NOT LIKE '%-YB-%' AND pg_catalog.version() NOT LIKE '%Greenplum%'
    AND pg_catalog.version() NOT LIKE '%Redshift%' AND NOT EXISTS (SELECT FROM pg_catalog.pg_extension x WHERE x.extname = 'citus')`

// proven tells whether constraints prove, in tx's snapshot, that no two rows share a value of any of the columns.
func proven(ctx context.Context, tx pgx.Tx, columns []rewrite.Unique) (bool, error) {
	for _, u := range columns {
		schema, name := rewrite.Relation(u.Table.Source, rewrite.PostgreSQL)
		var unique bool
		if err := tx.QueryRow(ctx, uniqueSQL, schema, name, u.Column).Scan(&unique); err != nil || !unique {
			return false, err
		}
	}
	return true, nil
}

// proven tells whether constraints prove that no two rows share a value of any of the columns.
func (b *DuckDB) proven(columns []rewrite.Unique) bool {
	for _, u := range columns {
		schema, name := rewrite.Relation(u.Table.Source, rewrite.DuckDB)
		if !b.unique[folded(schema, name, u.Column)] {
			return false
		}
	}
	return true
}

// pathFinding says what a table whose units are found through another lacks.
func pathFinding(t *policy.Table, proven bool) []Finding {
	if t.Via == nil || proven {
		return nil
	}
	return []Finding{{Fatal: true, Text: fmt.Sprintf("table %s: its %ss are found through %s.%s, which no unique, NOT NULL constraint proves different in each row; one %[2]s's new row could move another's",
		t.Name, t.Dataset.Unit.Name, t.Via.Table.Name, t.Via.Key)}}
}
