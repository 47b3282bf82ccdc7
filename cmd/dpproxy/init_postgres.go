package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/cmd/dpproxy/draft"
)

// What PostgreSQL's catalog says of tables: names, types, constraints and comments.

const (
	tablesSQL = `SELECT c.oid, n.nspname::text, c.relname::text, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY n.nspname, c.relname`

	tableSQL = `SELECT c.oid, n.nspname::text, c.relname::text, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)`

	columnsSQL = `SELECT a.attname::text, pg_catalog.format_type(b.type, b.mod), CASE WHEN t.typtype = 'd' THEN t.typname::text ELSE '' END,
  ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = b.type ORDER BY e.enumsortorder),
  ARRAY(SELECT pg_catalog.pg_get_expr(k.conbin, 0) FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated ORDER BY k.conname),
  coalesce(pg_catalog.col_description(a.attrelid, a.attnum), '')
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
CROSS JOIN LATERAL (WITH RECURSIVE below(type, mod) AS (SELECT a.atttypid, a.atttypmod
    UNION ALL SELECT y.typbasetype, CASE WHEN y.typtypmod < 0 THEN below.mod ELSE y.typtypmod END FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype = 'd')
  SELECT below.type, below.mod FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype <> 'd') AS b
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v' ORDER BY a.attnum`

	constraintsSQL = `SELECT k.contype::text, coalesce(k.confrelid, 0), k.condeferrable, k.convalidated,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS w(n, i) JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = w.n ORDER BY w.i),
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS w(n, i) JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = w.n ORDER BY w.i),
  CASE WHEN k.contype = 'c' THEN pg_catalog.pg_get_expr(k.conbin, k.conrelid) ELSE '' END
FROM pg_catalog.pg_constraint k WHERE k.conrelid = $1 AND k.contype IN ('p', 'u', 'f', 'c') AND (k.convalidated OR k.contype = 'f')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indexrelid = k.conindid AND i.indisexclusion) -- WITHOUT OVERLAPS: a person has a row for each of her spans of time
ORDER BY k.contype = 'p' DESC, k.conkey, k.conname`
)

// readCatalog reads the tables that the flags name.
func readCatalog(ctx context.Context, conn *pgx.Conn, f initFlags) (*draft.Schema, error) {
	s, byOID := &draft.Schema{}, map[uint32]*draft.Table{}
	var oids []uint32
	add := func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			var oid uint32
			var t draft.Table
			if err := rows.Scan(&oid, &t.Schema, &t.Name, &t.Comment); err != nil {
				return err
			}
			if byOID[oid] == nil {
				byOID[oid], oids, s.Tables = &t, append(oids, oid), append(s.Tables, &t)
			}
		}
		return rows.Err()
	}
	if f.all {
		rows, err := conn.Query(ctx, tablesSQL, f.schemas)
		if err == nil {
			err = add(rows)
		}
		if err != nil {
			return nil, err
		}
		if len(oids) == 0 {
			return nil, fmt.Errorf("schema %s has no table that this role can see", strings.Join(f.schemas, ", "))
		}
	}
	for _, name := range f.tables {
		rows, err := conn.Query(ctx, tableSQL, name)
		before := len(oids)
		if err == nil {
			err = add(rows)
		}
		if err != nil || len(oids) == before {
			return nil, fmt.Errorf("table %s: not found in the database", name)
		}
	}
	for i, oid := range oids {
		if err := readColumns(ctx, conn, oid, s.Tables[i]); err != nil {
			return nil, err
		}
		if err := readConstraints(ctx, conn, oid, s.Tables[i], byOID); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func readColumns(ctx context.Context, conn *pgx.Conn, oid uint32, t *draft.Table) error {
	rows, err := conn.Query(ctx, columnsSQL, oid)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c draft.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.Domain, &c.Labels, &c.Checks, &c.Comment); err != nil {
			return err
		}
		t.Columns = append(t.Columns, &c)
	}
	return rows.Err()
}

func readConstraints(ctx context.Context, conn *pgx.Conn, oid uint32, t *draft.Table, byOID map[uint32]*draft.Table) error {
	rows, err := conn.Query(ctx, constraintsSQL, oid)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, condition string
		var to uint32
		var deferrable, valid bool
		var columns, keys []string
		if err := rows.Scan(&kind, &to, &deferrable, &valid, &columns, &keys, &condition); err != nil {
			return err
		}
		switch kind {
		case "c":
			t.Checks = append(t.Checks, condition)
		case "f":
			if byOID[to] != nil && valid {
				t.Foreign = append(t.Foreign, draft.Foreign{Columns: columns, To: byOID[to], Keys: keys})
			} else {
				t.Unsure = append(t.Unsure, columns...)
			}
		default:
			if kind == "p" {
				t.Primary = columns
			}
			if !deferrable {
				t.Unique = append(t.Unique, columns)
			}
		}
	}
	return rows.Err()
}

// maxKeys is how many keys that are text a domain lists.
const maxKeys = 1000

// publicKeys reads the keys of a table that is to be public: ends of whole numbers, else all values.
func publicKeys(ctx context.Context, conn *pgx.Conn, t *draft.Table, c *draft.Column) (draft.Keys, error) {
	var k draft.Keys
	column, from := pgx.Identifier{c.Name}.Sanitize(), pgx.Identifier{t.Schema, t.Name}.Sanitize()
	if c.Type == "smallint" || c.Type == "integer" || c.Type == "bigint" {
		err := conn.QueryRow(ctx, fmt.Sprintf("SELECT coalesce(min(%[1]s)::text, ''), coalesce(max(%[1]s)::text, '') FROM %[2]s", column, from)).Scan(&k.Min, &k.Max)
		if k.Min == k.Max { // a domain has two ends
			k.Max = ""
		}
		return k, err
	}
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT DISTINCT %[1]s::text FROM %[2]s WHERE %[1]s IS NOT NULL ORDER BY 1 LIMIT %[3]d", column, from, maxKeys+1))
	if err != nil {
		return k, err
	}
	if k.Values, err = pgx.CollectRows(rows, pgx.RowTo[string]); len(k.Values) > maxKeys {
		k.Values = nil
	}
	return k, err
}
