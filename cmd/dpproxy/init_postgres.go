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
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname`

	schemasSQL = `SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1`

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
  AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attrelid, a.attnum`

	// What is unique by an index alone is unique, too: most frameworks make no constraints. One of WITHOUT OVERLAPS is
	// not: a person has a row for each span of time. A foreign key holds where it is valid, a unique one where it is
	// immediate.
	constraintsSQL = `SELECT k.of, k.kind, k.other, k.holds,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.columns) WITH ORDINALITY AS w(n, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.of AND a.attnum = w.n ORDER BY w.i),
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.keys) WITH ORDINALITY AS w(n, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = k.other AND a.attnum = w.n ORDER BY w.i),
  CASE WHEN k.kind = 'c' THEN pg_catalog.pg_get_expr(k.condition, k.of) ELSE '' END
FROM (SELECT c.conrelid, c.contype::text, c.confrelid, c.convalidated, c.conkey, c.confkey, c.conbin, c.conname
    FROM pg_catalog.pg_constraint c WHERE c.contype = 'f' OR c.contype = 'c' AND c.convalidated
  UNION ALL SELECT i.indrelid, CASE WHEN i.indisprimary THEN 'p' ELSE 'u' END, 0, i.indimmediate,
      (i.indkey::int2[])[0:i.indnkeyatts - 1], '{}', NULL, r.relname
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class r ON r.oid = i.indexrelid
    WHERE i.indisunique AND i.indisvalid AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL
  ) AS k(of, kind, other, holds, columns, keys, condition, name)
WHERE k.of = ANY ($1) ORDER BY k.of, k.kind = 'p' DESC, k.columns, k.name`
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
		var holds bool
		var columns, keys []string
		if err := rows.Scan(&of, &kind, &to, &holds, &columns, &keys, &condition); err != nil {
			return err
		}
		switch t := byOID[of]; kind {
		case "c":
			t.Checks = append(t.Checks, condition)
		case "f":
			if byOID[to] != nil && holds {
				t.Foreign = append(t.Foreign, draft.Foreign{Columns: columns, To: byOID[to], Keys: keys})
			} else {
				t.Unsure = append(t.Unsure, columns...)
			}
		default:
			if kind == "p" {
				t.Primary = columns
			}
			if holds {
				t.Unique = append(t.Unique, columns)
			}
		}
	}
	return rows.Err()
}
