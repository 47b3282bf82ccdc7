package backend

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Files are read once, at the start, with the policy's declared types: every CSV field as text, then TRY_CAST. Nothing is
// sniffed, neither types nor the file's dialect, because then one person's cell could change how all others are read
// (privacy rule 12). A field that is no value of its column's type is NULL. Columns that the policy does not name are not
// read into the database at all.

// load reads the files of all tables; two tables may share one.
func (b *DuckDB) load(ctx context.Context, p *policy.Policy) error {
	sources := map[policy.Source][]*policy.Table{}
	var order []policy.Source
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.View.Text != "" {
				continue
			}
			if t.File == "" {
				return fmt.Errorf("table %s has no file, and the database duckdb: in memory has nothing else", t.Name)
			}
			if sources[t.Source] == nil {
				order = append(order, t.Source)
			}
			sources[t.Source] = append(sources[t.Source], t)
		}
	}
	for _, s := range order {
		if err := b.loadFile(ctx, s, sources[s]); err != nil {
			return fmt.Errorf("file of table %s: %w", sources[s][0].Name, err)
		}
	}
	return nil
}

// lineNumber finds the line of a CSV error, the only part of its text that is not the file's own.
var lineNumber = regexp.MustCompile(`(?m)^Invalid Input Error: CSV Error on Line: (\d+)$`)

func (b *DuckDB) loadFile(ctx context.Context, s policy.Source, tables []*policy.Table) error {
	file := tables[0].File
	reader, header, err := fileReader(file)
	if err != nil {
		return err
	}
	columns, err := fileColumns(tables)
	if err != nil {
		return err
	}
	var items []string
	for _, c := range columns {
		if header != nil && !header[strings.ToLower(c.name)] {
			return fmt.Errorf("has no column %s", c.name)
		}
		items = append(items, "TRY_CAST("+quoteName(c.name)+" AS "+c.kind+") AS "+quoteName(c.name))
	}
	schema, name := rewrite.Relation(s, rewrite.DuckDB)
	if _, err := b.db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+rewrite.Catalog+"."+quoteName(schema)); err != nil {
		return errors.New("its schema cannot be created")
	}
	create := "CREATE TABLE " + rewrite.Catalog + "." + quoteName(schema) + "." + quoteName(name) + " AS SELECT " + strings.Join(items, ", ") + " FROM " + reader
	if _, err := b.db.ExecContext(ctx, create); err != nil {
		if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("line %s is not well-formed CSV with the header's number of fields", m[1])
		}
		return errors.New("cannot be read with the policy's columns")
	}
	return nil
}

// fileColumn is one column to read.
type fileColumn struct{ name, kind string }

// fileColumns are the columns that the tables of one file name. Where two tables disagree on a type, and for a unit column
// that is not declared, it is read as text; queries cast it.
func fileColumns(tables []*policy.Table) ([]fileColumn, error) {
	var list []fileColumn
	at := map[string]int{}
	add := func(name, kind string) {
		i, known := at[strings.ToLower(name)]
		switch {
		case !known:
			at[strings.ToLower(name)] = len(list)
			list = append(list, fileColumn{name, kind})
		case kind != list[i].kind:
			list[i].kind = "VARCHAR"
		}
	}
	for _, t := range tables {
		for _, c := range t.Columns {
			kind, err := storedType(c)
			if err != nil {
				return nil, err
			}
			add(c.Source, kind)
		}
	}
	for _, t := range tables {
		for _, key := range keyColumns(t) {
			if _, declared := at[strings.ToLower(key)]; !declared {
				add(key, "VARCHAR")
			}
		}
	}
	return list, nil
}

// storedType is the type that a file's column is kept in: the declared one.
func storedType(c *policy.Column) (string, error) {
	switch c.Type {
	case policy.Int2:
		return "SMALLINT", nil
	case policy.Int4:
		return "INTEGER", nil
	}
	return rewrite.ColumnType(c)
}

// fileReader writes the table function that reads a file, and returns the names in a CSV file's header.
func fileReader(file string) (reader string, header map[string]bool, err error) {
	if strings.ContainsAny(file, "*?[]{}") {
		return "", nil, errors.New("its path must not contain * ? [ ] { or }, which DuckDB takes for a pattern")
	}
	if strings.HasSuffix(strings.ToLower(file), ".parquet") {
		if _, err := os.Stat(file); err != nil {
			return "", nil, err
		}
		return "read_parquet(" + quoteText(file) + ", hive_partitioning = false)", nil, nil
	}
	names, err := csvHeader(file)
	if err != nil {
		return "", nil, err
	}
	header = map[string]bool{}
	var columns []string
	for _, name := range names {
		if low := strings.ToLower(name); name == "" || header[low] {
			return "", nil, errors.New("its header has an empty name, or one twice")
		} else {
			header[low] = true
		}
		columns = append(columns, quoteText(name)+": 'VARCHAR'")
	}
	return "read_csv(" + quoteText(file) + `, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', nullstr = '',
  allow_quoted_nulls = false, columns = {` + strings.Join(columns, ", ") + "})", header, nil
}

// csvHeader reads the first line of a CSV file.
func csvHeader(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := csv.NewReader(io.LimitReader(f, 1<<20)).Read()
	if err != nil {
		return nil, errors.New("has no header line of CSV")
	}
	names[0] = strings.TrimPrefix(names[0], "\ufeff")
	return names, nil
}

func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
