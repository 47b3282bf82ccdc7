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

	schemasSQL = `SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1`

	tableSQL = `SELECT c.oid, n.nspname::text, c.relname::text, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)`

	// Of all tables at once. OFFSET 0 has a type looked up by its number, where PostgreSQL, which expects many, would
	// read all types for each column.
	columnsSQL = `SELECT a.attrelid, a.attname::text, pg_catalog.format_type(b.type, b.mod),
  coalesce((SELECT t.typname::text FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid AND t.typtype = 'd'), ''),
  ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = b.type ORDER BY e.enumsortorder),
  ARRAY(SELECT pg_catalog.pg_get_expr(k.conbin, 0) FROM pg_catalog.pg_constraint k
    WHERE k.contypid = a.atttypid AND k.contype = 'c' AND k.convalidated ORDER BY k.conname),
  coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''),
  EXISTS (SELECT FROM pg_catalog.pg_index i
    WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
FROM pg_catalog.pg_attribute a
CROSS JOIN LATERAL (WITH RECURSIVE below(type, mod) AS (SELECT a.atttypid, a.atttypmod
    UNION ALL SELECT y.typbasetype, CASE WHEN y.typtypmod < 0 THEN below.mod ELSE y.typtypmod END
      FROM below CROSS JOIN LATERAL (SELECT d.typbasetype, d.typtypmod FROM pg_catalog.pg_type d
        WHERE d.oid = below.type AND d.typtype = 'd' OFFSET 0) AS y)
  SELECT below.type, below.mod FROM below CROSS JOIN LATERAL (
    SELECT d.typtype FROM pg_catalog.pg_type d WHERE d.oid = below.type AND d.typtype <> 'd' OFFSET 0) AS y) AS b
WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
ORDER BY a.attrelid, a.attnum`

	constraintsSQL = `SELECT k.conrelid, k.contype::text, coalesce(k.confrelid, 0), k.condeferrable, k.convalidated,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS w(n, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = w.n ORDER BY w.i),
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS w(n, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = w.n ORDER BY w.i),
  CASE WHEN k.contype = 'c' THEN pg_catalog.pg_get_expr(k.conbin, k.conrelid) ELSE '' END
FROM pg_catalog.pg_constraint k WHERE k.conrelid = ANY ($1) AND k.contype IN ('p', 'u', 'f', 'c')
  AND (k.convalidated OR k.contype = 'f')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i -- WITHOUT OVERLAPS: a person has a row for each span of time
    WHERE i.indexrelid = k.conindid AND i.indisexclusion)
ORDER BY k.conrelid, k.contype = 'p' DESC, k.conkey, k.conname`
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
			return nil, noTables(ctx, conn, f.schemas)
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
	if err := readColumns(ctx, conn, oids, byOID); err != nil {
		return nil, err
	}
	return s, readConstraints(ctx, conn, oids, byOID)
}

// noTables says which schemas have tables where those that were named have none.
func noTables(ctx context.Context, conn *pgx.Conn, schemas []string) error {
	rows, err := conn.Query(ctx, schemasSQL)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return nothingIn("schema", strings.Join(schemas, ", "), "role", names)
}

func nothingIn(what, named, who string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%s %s has no table that this %s can see, nor has any other %s", what, named, who, what)
	}
	const text = "%s %s has no table that this %s can see; --schema takes one that has some: %s"
	return fmt.Errorf(text, what, named, who, strings.Join(names, ", "))
}

func readColumns(ctx context.Context, conn *pgx.Conn, oids []uint32, byOID map[uint32]*draft.Table) error {
	rows, err := conn.Query(ctx, columnsSQL, oids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var of uint32
		var c draft.Column
		if err := rows.Scan(&of, &c.Name, &c.Type, &c.Domain, &c.Labels, &c.Checks, &c.Comment, &c.Unshared); err != nil {
			return err
		}
		byOID[of].Columns = append(byOID[of].Columns, &c)
	}
	return rows.Err()
}

func readConstraints(ctx context.Context, conn *pgx.Conn, oids []uint32, byOID map[uint32]*draft.Table) error {
	rows, err := conn.Query(ctx, constraintsSQL, oids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, condition string
		var of, to uint32
		var deferrable, valid bool
		var columns, keys []string
		if err := rows.Scan(&of, &kind, &to, &deferrable, &valid, &columns, &keys, &condition); err != nil {
			return err
		}
		switch t := byOID[of]; kind {
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
