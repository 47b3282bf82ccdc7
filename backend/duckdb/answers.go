package duckdb

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

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
