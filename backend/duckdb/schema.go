package duckdb

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
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

// What DB answers of its tables, and of files that it reads (questions).

// Class implements questions. Whole numbers that int8 does not hold are texts.
func (*DB) Class(c inspect.ColumnShape) string {
	switch kind, rest, _ := strings.Cut(c.Base, "("); kind {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER":
		return "whole"
	case "UBIGINT", "HUGEINT", "UHUGEINT":
		return "wide whole"
	case "VARCHAR", "ENUM":
		if !c.Loose {
			return "text"
		}
	case "DECIMAL":
		_, scale, _ := strings.Cut(rest, ",")
		return "numeric of scale " + strings.TrimSuffix(scale, ")")
	case "UUID", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "TIME", "BLOB", "BIT":
		return c.Base
	}
	return ""
}

// Types implements questions.
func (*DB) Types() string {
	return "a type of whole numbers, DECIMAL, UUID, or VARCHAR without a collation"
}

// Joined implements questions: types of any kinds may meet, whose conversions can fail but for those to text.
func (*DB) Joined(inspect.ColumnShape, inspect.ColumnShape) inspect.Equality { return inspect.OfTexts }

// Fails implements questions: values are read by TRY_CAST, and a file is refused when it is opened (parquetRows).
func (*DB) Fails(*policy.Table, inspect.ColumnShape) string { return "" }

// harmless are the steps of a plan that read no relation.
var harmless = []string{"DUMMY_SCAN", "EXPRESSION_GET", "COLUMN_DATA_SCAN", "CHUNK_GET", "CTE_SCAN", "CTE_REF", "DELIM_GET", "DELIM_SCAN", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES", "UNNEST"}

// steps are those of a plan.
type steps []step

// step is one of a plan as DB writes it.
type step struct {
	Name     string          `json:"name"`
	Children steps           `json:"children"`
	Extra    json.RawMessage `json:"extra_info"`
}

// Shows implements questions. Of a file it is the file itself, whatever it is called: its device and number. Of a
// relation of a DB file it is what DB's plan for all of its rows reads, before it is optimised: views, macros and
// functions that read tables are no more than their scans there. No row is read.
func (b *DB) Shows(ctx context.Context, tables []*policy.Table) ([]inspect.Extent, error) {
	list := make([]inspect.Extent, len(tables))
	var files []os.FileInfo
	var paths []string
	for i, t := range tables {
		if t.File != "" {
			info, err := os.Stat(t.File)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(files, func(f os.FileInfo) bool { return os.SameFile(f, info) })
			if at < 0 {
				at, files, paths = len(files), append(files, info), append(paths, t.File)
			}
			list[i].Add("the file " + paths[at])
			continue
		}
		list[i].Opaque = "is not planned by DuckDB"
		schema, name := rewrite.Relation(t.Source, dialect.DuckDB)
		text := "EXPLAIN (FORMAT json) SELECT * FROM " + dialect.Fill(dialect.DuckDB.Relation, dialect.QuoteName(schema), dialect.QuoteName(name))
		err := b.EachRow(ctx, text, func(row []*string) error {
			var plan []step
			if len(row) != 2 || row[0] == nil || row[1] == nil || *row[0] != "logical_plan" {
				return nil
			}
			if json.Unmarshal([]byte(*row[1]), &plan) != nil {
				return execute.ErrResult
			}
			list[i].Opaque = ""
			follow(&list[i], plan)
			return nil
		})
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		list[i].View = !list[i].Of[strings.ToLower(schema+"."+name)]
	}
	return list, nil
}

// follow adds what the steps of a plan read.
func follow(s *inspect.Extent, plan steps) {
	for _, p := range plan {
		var extra struct{ Table string }
		switch {
		case len(p.Children) > 0:
			follow(s, p.Children)
		case json.Unmarshal(p.Extra, &extra) == nil && extra.Table != "":
			s.Add(strings.TrimPrefix(strings.ToLower(extra.Table), dialect.Catalog+"."))
		case !slices.Contains(harmless, strings.TrimSpace(p.Name)):
			s.Opaque = "reads what is no table of the file"
		}
	}
}

// uniqueKey is what a constraint of DB says: no two rows share the values of its columns.
type uniqueKey struct {
	columns []inspect.ColumnName
	notNull bool                 // all of them
	broken  []inspect.ColumnName // those whose values need not be whole numbers
}

// provenForm reports whether constraints prove what a shorter text takes for proven.
func (b *DB) provenForm(s rewrite.Shorter) bool {
	return !slices.ContainsFunc(s.Ranks, func(r rewrite.Rank) bool { return !b.ranksSaid(r) }) && b.proven(s.Needs)
}

// proven reports whether constraints prove all that is needed. In DB they hold in every snapshot: the schema cannot
// change.
func (b *DB) proven(needs []rewrite.Unique) bool {
	return !slices.ContainsFunc(needs, func(u rewrite.Unique) bool {
		schema, name := rewrite.Relation(u.Table.Source, dialect.DuckDB)
		var columns []inspect.ColumnName
		for _, c := range u.Columns {
			columns = append(columns, folded(schema, name, c))
		}
		if u.Nullable && u.Table.UnitColumn != "" {
			columns = append(columns, folded(schema, name, u.Table.UnitColumn))
		}
		return u.Table.View.Text != "" || !slices.ContainsFunc(b.unique, func(k uniqueKey) bool {
			return (k.notNull || u.Nullable) && (u.Whole == "" || !slices.Contains(k.broken, folded(schema, name, u.Whole))) && !slices.ContainsFunc(k.columns, func(p inspect.ColumnName) bool { return !slices.Contains(columns, p) })
		})
	})
}

// viewShape adds what a trusted SELECT would show. One that DB does not accept shows nothing.
func (b *DB) viewShape(ctx context.Context, t *policy.Table, into inspect.Shape) {
	whole, err := rewrite.DescribeView(t, dialect.DuckDB)
	if err != nil {
		return
	}
	alone, err := b.Pool.PrepareContext(ctx, t.View.Text)
	if err != nil {
		return
	}
	alone.Close()
	schema, name := inspect.RelationOf(t, dialect.DuckDB)
	wanted := inspect.Viewed(t)
	err = b.EachFull(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+whole+")", func(row []string) {
		if slices.Contains(wanted, row[0]) {
			c := inspect.ColumnShape{Kind: inspect.KindTrusted, KindOf: row[1], Base: row[1], Scale: -1}
			c.Loose = b.loose(ctx, c, row[0], "("+whole+")")
			into[inspect.ColumnOf(schema, name, row[0])] = c
		}
	})
	if err != nil {
		b.log.Warn("a trusted SELECT is not accepted", "table", t.Name, "cause", execute.Cause(err))
	}
}
