package duckdb

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The queries here read DB's catalog alone.

const duckShapeSQL = `SELECT c.schema_name, c.table_name, c.column_name, c.data_type,
  CASE WHEN EXISTS (SELECT 1 FROM duckdb_views() v WHERE v.database_name = c.database_name AND v.schema_name = c.schema_name AND v.view_name = c.table_name)
    THEN 'view' ELSE 'table' END
FROM duckdb_columns() c WHERE c.database_name = $1 AND NOT c.internal`

// readShape reads what the catalog says of columns. Names keep the policy's spelling, whose case DB disregards.
func (b *DB) readShape(ctx context.Context, columns []inspect.ColumnName) (inspect.Shape, error) {
	wanted := map[inspect.ColumnName][]inspect.ColumnName{}
	for _, p := range columns {
		key := folded(p.Schema, p.Table, p.Column)
		wanted[key] = append(wanted[key], p)
	}
	s := inspect.Shape{}
	err := b.EachFull(ctx, duckShapeSQL, func(row []string) {
		for _, p := range wanted[folded(row[0], row[1], row[2])] {
			s[p] = inspect.ColumnShape{Kind: row[4], KindOf: row[3], Base: row[3], Scale: -1}
		}
	}, dialect.Catalog)
	for p, c := range s {
		c.Loose = b.loose(ctx, c, p.Column, dialect.Fill(dialect.DuckDB.Relation, dialect.QuoteName(p.Schema), dialect.QuoteName(p.Table)))
		s[p] = c
	}
	return s, err
}

// loose reports whether a column's texts are compared by a collation, of which DB's catalog says nothing. It refuses to
// compare a text of one collation with a text of another, when it binds the comparison, and C is the collation that
// changes nothing.
func (b *DB) loose(ctx context.Context, c inspect.ColumnShape, column, relation string) bool {
	if c.Base != "VARCHAR" {
		return false
	}
	statement, err := b.Pool.PrepareContext(ctx, "SELECT t."+dialect.QuoteName(column)+" = ('' COLLATE C) FROM "+relation+" AS t")
	return err != nil || statement.Close() != nil
}

// uniqueKeys are the columns of each PRIMARY KEY and UNIQUE constraint.
func (b *DB) uniqueKeys(ctx context.Context) ([]uniqueKey, error) {
	const text = `SELECT k.schema_name, k.table_name, c.column_name, k.constraint_index::VARCHAR, c.is_nullable::VARCHAR, len(k.constraint_column_names)::VARCHAR,
  regexp_full_match(c.data_type, '(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER)')::VARCHAR
FROM duckdb_constraints() k
JOIN duckdb_columns() c ON c.database_name = k.database_name AND c.schema_name = k.schema_name AND c.table_name = k.table_name
  AND list_contains(k.constraint_column_names, c.column_name)
WHERE k.database_name = $1 AND k.constraint_type IN ('PRIMARY KEY', 'UNIQUE')
ORDER BY 1, 2, k.constraint_index`
	var keys []uniqueKey
	last, wide := [3]string{}, []string{}
	err := b.EachFull(ctx, text, func(row []string) {
		if at := [3]string{row[0], row[1], row[3]}; len(keys) == 0 || at != last {
			keys, last, wide = append(keys, uniqueKey{notNull: true}), at, append(wide, row[5])
		}
		k := &keys[len(keys)-1]
		at := folded(row[0], row[1], row[2])
		k.columns = append(k.columns, at)
		if row[6] != "true" {
			k.broken = append(k.broken, at)
		}
		k.notNull = k.notNull && row[4] == "false"
	}, dialect.Catalog)
	for i := range keys { // a column that was not found would make the rest of its key look unique
		if strconv.Itoa(len(keys[i].columns)) != wide[i] {
			return nil, execute.ErrResult
		}
	}
	return keys, err
}

// rowsSaid is what each table's CHECK and NOT NULL constraints say of every row of it, as DB writes it, in lower case:
// for DB's names have no case.
//
//	CREATE TABLE visits (who BIGINT NOT NULL, dp_rank BIGINT, CHECK (dp_rank >= 1)):  "who not null", "(dp_rank >= 1)"
//
// DB adds no CHECK to a table that is there, and holds every row that comes against those that it has.
func (b *DB) rowsSaid(ctx context.Context) (map[inspect.ColumnName]map[string]bool, error) {
	const text = `SELECT schema_name, table_name, CASE constraint_type WHEN 'CHECK' THEN expression ELSE array_to_string(constraint_column_names, '') || ' not null' END
FROM duckdb_constraints() WHERE database_name = $1 AND constraint_type IN ('CHECK', 'NOT NULL')`
	said := map[inspect.ColumnName]map[string]bool{}
	err := b.EachFull(ctx, text, func(row []string) {
		at := folded(row[0], row[1], "")
		if said[at] == nil {
			said[at] = map[string]bool{}
		}
		said[at][strings.ToLower(row[2])] = true
	}, dialect.Catalog)
	return said, err
}

// simple is a name that DB writes without quotes, where it is no keyword.
var simple = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// ranksSaid reports whether CHECK and NOT NULL constraints say of a column what a rewrite.Rank does. Of a keyword they
// do not: it is written in quotes.
func (b *DB) ranksSaid(r rewrite.Rank) bool {
	schema, name := rewrite.Relation(r.Table.Source, dialect.DuckDB)
	said, rank, unit := b.said[folded(schema, name, "")], strings.ToLower(r.Table.RowRank), strings.ToLower(r.Table.UnitColumn)
	if r.Beyond || r.Table.View.Text != "" || !simple.MatchString(rank) || !simple.MatchString(unit) {
		return false
	}
	return (said["("+rank+" >= 1)"] || said["("+rank+" > 0)"]) && (said[unit+" not null"] || said["(("+rank+" is null) or ("+unit+" is not null))"]) &&
		(!r.Within || said[rank+" not null"] && said["("+rank+" <= "+strconv.FormatInt(r.Table.MaxRowsPerUnit, 10)+")"])
}

// atMost matches what a CHECK says of the most that a column may be.
var atMost = regexp.MustCompile(`^\(([a-z_][a-z0-9_]*) <= ([0-9]{1,18})\)$`)

// fewerRanks warns of a table that keeps no rows as far as the bound: answers have no more, and their noise is for it.
func (b *DB) fewerRanks(t *policy.Table) (list []backend.Finding) {
	schema, name := rewrite.Relation(t.Source, dialect.DuckDB)
	for text := range b.said[folded(schema, name, "")] {
		part := atMost.FindStringSubmatch(text)
		if t.RowRank == "" || part == nil || part[1] != strings.ToLower(t.RowRank) {
			continue
		}
		if most, err := strconv.ParseInt(part[2], 10, 64); err == nil && most < t.MaxRowsPerUnit {
			list = append(list, backend.Finding{Text: fmt.Sprintf("table %s: a CHECK says that no %s is above %d, so that at most %[3]d rows of a %s are read where max_rows_per_unit allows %d: lower it to %[3]d, or run what dpproxy prepare prints again",
				t.Name, t.RowRank, most, t.Dataset.Unit.Name, t.MaxRowsPerUnit)})
		}
	}
	return list
}

// probe has DB bind, without running it, a query that uses the table as measures can.
func (b *DB) probe(ctx context.Context, t *policy.Table) []backend.Finding {
	q, err := rewrite.Probe(t, dialect.DuckDB)
	if err == nil {
		statement, prepareErr := b.Pool.PrepareContext(ctx, q.SQL())
		if prepareErr == nil {
			return inspect.FatalIf(statement.Close())
		}
		err = fmt.Errorf("table %s: DuckDB does not accept its queries", t.Name)
	}
	return inspect.FatalIf(err)
}
