package backend

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What DuckDB answers of its tables, and of files that it reads (questions).

// class implements questions. Whole numbers that int8 does not hold are texts.
func (*DuckDB) class(c columnShape) string {
	switch kind, rest, _ := strings.Cut(c.base, "("); kind {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER":
		return "whole"
	case "UBIGINT", "HUGEINT", "UHUGEINT":
		return "wide whole"
	case "VARCHAR", "ENUM":
		if !c.loose {
			return "text"
		}
	case "DECIMAL":
		_, scale, _ := strings.Cut(rest, ",")
		return "numeric of scale " + strings.TrimSuffix(scale, ")")
	case "UUID", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "TIME", "BLOB", "BIT":
		return c.base
	}
	return ""
}

// types implements questions.
func (*DuckDB) types() string {
	return "a type of whole numbers, DECIMAL, UUID, or VARCHAR without a collation"
}

// joined implements questions: types of any kinds may meet, whose conversions can fail but for those to text.
func (*DuckDB) joined(columnShape, columnShape) equality { return ofTexts }

// fails implements questions: values are read by TRY_CAST, and a file is refused when it is opened (parquetRows).
func (*DuckDB) fails(*policy.Table, columnShape) string { return "" }

// harmless are the steps of a plan that read no relation.
var harmless = []string{"DUMMY_SCAN", "EXPRESSION_GET", "COLUMN_DATA_SCAN", "CHUNK_GET", "CTE_SCAN", "CTE_REF", "DELIM_GET", "DELIM_SCAN", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES", "UNNEST"}

// step is one of a plan as DuckDB writes it.
type step struct {
	Name     string          `json:"name"`
	Children []step          `json:"children"`
	Extra    json.RawMessage `json:"extra_info"`
}

// shows implements questions. Of a file it is the file itself, whatever it is called: its device and number. Of a relation of a DuckDB file it
// is what DuckDB's plan for all of its rows reads, before it is optimised: views, macros and functions that read tables are no more than their
// scans there. No row is read.
func (b *DuckDB) shows(ctx context.Context, tables []*policy.Table) ([]extent, error) {
	list := make([]extent, len(tables))
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
			list[i].add("the file " + paths[at])
			continue
		}
		list[i].opaque = "is not planned by DuckDB"
		schema, name := rewrite.Relation(t.Source, dialect.DuckDB)
		text := "EXPLAIN (FORMAT json) SELECT * FROM " + dialect.Fill(dialect.DuckDB.Relation, dialect.QuoteName(schema), dialect.QuoteName(name))
		err := b.eachRow(ctx, text, func(row []*string) error {
			var plan []step
			if len(row) != 2 || row[0] == nil || row[1] == nil || *row[0] != "logical_plan" {
				return nil
			}
			if json.Unmarshal([]byte(*row[1]), &plan) != nil {
				return errResult
			}
			list[i].opaque = ""
			list[i].follow(plan)
			return nil
		})
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		list[i].view = !list[i].of[strings.ToLower(schema+"."+name)]
	}
	return list, nil
}

// follow adds what the steps of a plan read.
func (s *extent) follow(plan []step) {
	for _, p := range plan {
		var extra struct{ Table string }
		switch {
		case len(p.Children) > 0:
			s.follow(p.Children)
		case json.Unmarshal(p.Extra, &extra) == nil && extra.Table != "":
			s.add(strings.TrimPrefix(strings.ToLower(extra.Table), dialect.Catalog+"."))
		case !slices.Contains(harmless, strings.TrimSpace(p.Name)):
			s.opaque = "reads what is no table of the file"
		}
	}
}
