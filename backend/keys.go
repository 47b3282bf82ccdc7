package backend

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// comparedKeys lists the pairs of columns that the planner may compare: those that name units, those through which units
// are found, and join keys of like declared types. A key is also compared with itself, in a self-join.
func comparedKeys(d *policy.Dataset) [][2]*policy.Column {
	var keys []*policy.Column
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		keys = append(keys, t.Keys...)
	}
	var pairs [][2]*policy.Column
	for i, a := range keys {
		for _, b := range keys[i:] {
			if a.Comparable(b) {
				pairs = append(pairs, [2]*policy.Column{a, b})
			}
		}
	}
	return pairs
}

// collationSQL asks whether both columns have collations of their own that differ: PostgreSQL prepares a comparison of
// them, and fails when it comes to the first pair of rows.
const collationSQL = `SELECT count(*) = 2 AND min(a.attcollation) <> max(a.attcollation)
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(s, t, a)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.a AND NOT a.attisdropped
WHERE a.attcollation <> 0 AND a.attcollation <> 'pg_catalog."default"'::pg_catalog.regcollation`

// keyFindings has PostgreSQL parse, without running them, comparisons of the keys that measures may compare. In DuckDB keys
// are compared as text, which no type refuses.
func (b *Postgres) keyFindings(ctx context.Context, d *policy.Dataset) []Finding {
	var list []Finding
	for _, pair := range comparedKeys(d) {
		if b.compares(ctx, pair) {
			continue
		}
		list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s, column %s, and table %s, column %s: PostgreSQL does not compare them, but statements over both tables do; give them one type and collation",
			pair[0].Table.Name, pair[0].Source, pair[1].Table.Name, pair[1].Source)})
	}
	return list
}

func (b *Postgres) compares(ctx context.Context, pair [2]*policy.Column) bool {
	text, err := rewrite.CompareKeys(pair[0], pair[1], dialect.PostgreSQL)
	if err != nil {
		return false
	}
	var schemas, tables, columns []string
	for _, k := range pair {
		schema, name := rewrite.Relation(k.Table.Source, dialect.PostgreSQL)
		schemas, tables, columns = append(schemas, schema), append(tables, name), append(columns, k.Source)
	}
	conflict := false
	err = b.transactionAside(ctx, defaultDeadline, func(tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, "", text); err != nil {
			return err
		}
		return tx.QueryRow(ctx, collationSQL, schemas, tables, columns).Scan(&conflict)
	})
	return err == nil && !conflict
}
