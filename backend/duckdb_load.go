package backend

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Files are read once, at the start, with the policy's declared types: every CSV field as text, then TRY_CAST. Nothing is
// sniffed, neither types nor the file's dialect, because then one person's cell could change how all others are read
// (privacy rule 12). A text that is no value of its column's type is NULL, in CSV and Parquet alike. Columns that the policy
// does not name are not read into the database at all.

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

func (b *DuckDB) loadFile(ctx context.Context, s policy.Source, tables []*policy.Table) error {
	file := tables[0].File
	columns, err := fileColumns(tables)
	if err != nil {
		return err
	}
	schema, name := rewrite.Relation(s, dialect.DuckDB)
	within := dialect.Catalog + "." + dialect.QuoteName(schema)
	if _, err := b.db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+within); err != nil {
		return errors.New("its schema cannot be created")
	}
	var items []string
	for _, c := range columns {
		items = append(items, "TRY_CAST("+dialect.QuoteName(c.name)+" AS "+c.kind+") AS "+dialect.QuoteName(c.name))
	}
	create := "CREATE TABLE " + within + "." + dialect.QuoteName(name) + " AS SELECT " + strings.Join(items, ", ") + " FROM "
	if strings.HasSuffix(strings.ToLower(file), ".parquet") {
		reader, err := parquetReader(file)
		if err != nil {
			return err
		}
		if _, err := b.db.ExecContext(ctx, create+reader); err != nil {
			return errors.New("cannot be read with the policy's columns")
		}
		return nil
	}
	staged, err := b.stage(ctx, file, schema, columns)
	if err != nil {
		return err
	}
	if staged.all > 0 {
		b.leftOut = append(b.leftOut, leftOut{tables[0].Source, staged})
	}
	for _, sql := range []string{create + within + "." + dialect.QuoteName(staging), "DROP TABLE " + within + "." + dialect.QuoteName(staging)} {
		if _, err := b.db.ExecContext(ctx, sql); err != nil {
			return errors.New("cannot be read with the policy's columns")
		}
	}
	return nil
}

// staging is the table that holds the texts of a CSV file until they are values.
const staging = "dpproxy: texts of a file"

// leftOut are the lines of a relation's file that are not in it.
type leftOut struct {
	source policy.Source
	lines  ragged
}

// stage copies the texts of a CSV file's columns into the database. It returns the lines that it leaves out.
func (b *DuckDB) stage(ctx context.Context, path, schema string, columns []fileColumn) (out ragged, err error) {
	c, err := openCSV(path)
	if err != nil {
		return out, err
	}
	defer c.file.Close()
	var at []int
	var items []string
	for _, column := range columns {
		i := slices.Index(c.names, strings.ToLower(column.name))
		if i < 0 {
			return out, fmt.Errorf("has no column %s", column.name)
		}
		at, items = append(at, i), append(items, dialect.QuoteName(column.name)+" VARCHAR")
	}
	if _, err := b.db.ExecContext(ctx, "CREATE TABLE "+dialect.Catalog+"."+dialect.QuoteName(schema)+"."+dialect.QuoteName(staging)+" ("+strings.Join(items, ", ")+")"); err != nil {
		return out, errors.New("its texts cannot be stored")
	}
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return out, ErrUnavailable
	}
	defer conn.Close()
	err = conn.Raw(func(inner any) (err error) {
		into, err := duckdb.NewAppender(inner.(driver.Conn), dialect.Catalog, schema, staging)
		if err != nil {
			return errors.New("its texts cannot be stored")
		}
		defer func() {
			if closed := into.Close(); err == nil && closed != nil {
				err = errors.New("its texts cannot be stored")
			}
		}()
		out, err = c.appendTo(ctx, into, at)
		return err
	})
	return out, err
}

// appendTo copies the fields with these numbers of each line.
func (c *csvFile) appendTo(ctx context.Context, into *duckdb.Appender, at []int) (out ragged, err error) {
	row := make([]driver.Value, len(at))
	for n := 0; ; n++ {
		fields, err := c.read()
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		case n%4096 == 0 && ctx.Err() != nil:
			return out, ctx.Err()
		case len(fields) != len(c.names):
			out.add(c.line)
			continue
		}
		for i, k := range at {
			row[i] = fields[k].value()
		}
		if err := into.AppendRow(row...); err != nil {
			return out, errors.New("its texts cannot be stored")
		}
	}
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
	return rewrite.ColumnType(c, dialect.DuckDB)
}

// parquetReader writes the table function that reads a Parquet file.
func parquetReader(file string) (string, error) {
	if strings.ContainsAny(file, "*?[]{}") {
		return "", errors.New("its path must not contain * ? [ ] { or }, which DuckDB takes for a pattern")
	}
	if _, err := os.Stat(file); err != nil {
		return "", err
	}
	return "read_parquet(" + dialect.QuoteText(file) + ", hive_partitioning = false)", nil
}
