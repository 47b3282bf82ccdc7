// Package files brings CSV and Parquet files into an embedded DuckDB.
package files

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

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/csv"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Files are read once, at the start, with the policy's declared types: every CSV field as text, then TRY_CAST. Nothing
// is sniffed, neither types nor the file's dialect, because then one person's cell could change how all others are read
// (privacy rule 12). A text that is no value of its column's type is NULL, in CSV and Parquet alike. Columns that the
// policy does not name are not read into the database at all.

// Loading is how files come into an engine.
type Loading uint8

const (
	Whole Loading = iota // their rows, into memory
	Bare                 // their columns alone
	Shown                // as views, of Parquet files over themselves, of CSV files over their texts, which lie in the catalog staged
)

// Loader brings files into the catalog of private tables.
type Loader struct {
	*embedded.Instance
	How     Loading
	LeftOut []LeftOut
	files   int      // of CSV, that are shown
	again   []string // directories of files that were written to be read again, which go when their rows are in memory, or else with the instance
}

// Load reads the files of tables; two may share one.
func (l *Loader) Load(ctx context.Context, tables []*policy.Table) error {
	sources := map[policy.Source][]*policy.Table{}
	var order []policy.Source
	for _, t := range tables {
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
	defer func() {
		if l.How == Whole {
			for _, directory := range l.again {
				_ = os.RemoveAll(directory)
			}
		}
	}()
	for _, s := range order {
		if err := l.loadFile(ctx, s, sources[s]); err != nil {
			return fmt.Errorf("file of table %s: %w", sources[s][0].Name, err)
		}
	}
	return nil
}

// TablesOf are all of a policy.
func TablesOf(p *policy.Policy) (list []*policy.Table) {
	for _, d := range p.Datasets {
		list = append(list, d.Tables...)
	}
	return list
}

func (l *Loader) loadFile(ctx context.Context, s policy.Source, tables []*policy.Table) error {
	file := tables[0].File
	columns, err := fileColumns(tables)
	if err != nil {
		return err
	}
	schema, name := rewrite.Relation(s, dialect.DuckDB)
	within := dialect.Catalog + "." + dialect.QuoteName(schema)
	if _, err := l.Pool.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+within); err != nil {
		return errors.New("its schema cannot be created")
	}
	kind, end := "TABLE ", ""
	switch l.How {
	case Bare:
		end = " LIMIT 0"
	case Shown:
		kind = "VIEW "
	}
	from, drop, isText := "", "", func(string) bool { return true }
	if strings.HasSuffix(strings.ToLower(file), ".parquet") {
		if from, isText, err = l.parquetRows(ctx, file, columns); err != nil {
			return err
		}
	} else {
		at := texts{dialect.Catalog, schema, staging}
		drop = "DROP TABLE " + at.quoted()
		if l.How == Shown {
			at, drop = texts{"staged", "main", fmt.Sprint("texts", l.files)}, ""
			l.files++
		}
		from = at.quoted()
		lines, err := l.stage(ctx, file, at, columns)
		if err != nil {
			return err
		}
		if lines.All > 0 {
			l.LeftOut = append(l.LeftOut, LeftOut{file, lines.String() + " of its file have another number of fields than the header, and are left out"})
		}
	}
	var items []string
	for _, c := range columns {
		items = append(items, c.Read(isText(c.Name))+" AS "+dialect.QuoteName(c.Name))
	}
	create := "CREATE " + kind + within + "." + dialect.QuoteName(name) + " AS SELECT " + strings.Join(items, ", ") + " FROM "
	for _, sql := range []string{create + from + end, drop} {
		if _, err := l.Pool.ExecContext(ctx, sql); sql != "" && err != nil {
			return errColumns
		}
	}
	return nil
}

// Which texts are values is PostgreSQL 15's to say, wherever the rows lie: ' 12 ' and '1e3' are numbers, as the engine
// has it, but to it '1_0', '0x10' and '0b11' are numbers too, and '1.5' is the whole number 2. To it anything may
// follow a date, '2025-03-02xyz', and 'on' is no truth. Dates are read where the year comes first and has four digits,
// so that no setting of DateStyle decides which number is which: others are NULL.
const (
	blanks     = `[ \t\n\v\f\r]*`
	wholeForm  = blanks + `[+-]?[0-9]+` + blanks
	numberForm = blanks + `[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?` + blanks
	wordForm   = blanks + `[+-]?(?i:nan|inf|infinity)` + blanks // of floating numbers
	trueForm   = blanks + `(?i:t|tr|tru|true|y|ye|yes|on|1)` + blanks
	falseForm  = blanks + `(?i:f|fa|fal|fals|false|n|no|of|off|0)` + blanks
	dayForm    = `[0-9]{4,6}[-/][0-9]{1,2}[-/][0-9]{1,2}`
	clockForm  = `[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:[.][0-9]*)?)?`
	zoneForm   = `[ \t]*(?:[A-Za-z][A-Za-z_/]*|[+-](?:0?[0-9]|1[0-5])(?::?[0-5][0-9]){0,2})`
	momentForm = blanks + `(?:` + dayForm + `(?:(?:T|[ \t]+)` + clockForm + `(?:` + zoneForm + `)?)?(?:[ \t]+(?i:bc))?|(?i:epoch|-?infinity))` + blanks
	yearZero   = blanks + `0+[-/].*`
	beforeOurs = `^(` + blanks + `[0-3][0-9]{3}[-/][0-9]{1,2}[-/][0-9]{1,2})(.*?)[ \t]+(?i:bc)` + blanks + `$` // which to the engine follows the day
)

// Read is the column of a file, a text or not, in the type that it is kept in: NULL where it is no value of that.
func (c FileColumn) Read(text bool) string {
	name := dialect.QuoteName(c.Name)
	value := "TRY_CAST(" + name + " AS " + c.Kind + ")"
	is := func(form string) string { return "regexp_full_match(" + name + ", " + dialect.QuoteText(form) + ")" }
	as := func(kind string) string {
		return "TRY_CAST(regexp_replace(" + name + ", " + dialect.QuoteText(beforeOurs) + `, '\1 (BC)\2') AS ` + kind + ")"
	}
	moment := is(momentForm) + " AND NOT " + is(yearZero)
	switch {
	case !text:
		return value
	case c.Kind == "SMALLINT", c.Kind == "INTEGER", c.Kind == "BIGINT":
		return "CASE WHEN " + is(wholeForm) + " THEN " + value + " END"
	case strings.HasPrefix(c.Kind, "DECIMAL"):
		return "CASE WHEN " + is(numberForm) + " THEN " + value + " END"
	case c.Kind == "FLOAT", c.Kind == "DOUBLE": // 1e400 is out of range, and no infinity
		return "CASE WHEN " + is(wordForm) + " OR " + is(numberForm) + " AND isfinite(" + value + ") THEN " + value + " END"
	case c.Kind == "BOOLEAN":
		return "CASE WHEN " + is(trueForm) + " THEN true WHEN " + is(falseForm) + " THEN false END"
	case c.Kind == "TIMESTAMP", c.Kind == "TIMESTAMPTZ":
		return "CASE WHEN " + moment + " THEN " + as(c.Kind) + " END"
	case c.Kind == "DATE": // what follows the day is a time
		return "CASE WHEN " + moment + " AND (" + as("TIMESTAMP") + " IS NOT NULL OR " + as("TIMESTAMPTZ") + " IS NOT NULL) THEN " + as(c.Kind) + " END"
	}
	return value
}

// staging is the table that holds the texts of a CSV file until they are values.
const staging = "dpproxy: texts of a file"

// LeftOut says what of a file is not in its relation.
type LeftOut struct{ File, What string }

// texts names a table in which the texts of a file wait.
type texts struct{ catalog, schema, table string }

func (t texts) quoted() string {
	return dialect.QuoteName(t.catalog) + "." + dialect.QuoteName(t.schema) + "." + dialect.QuoteName(t.table)
}

// stage copies the texts of a CSV file's columns into a table of the engine. It returns the lines that it leaves out.
func (l *Loader) stage(ctx context.Context, path string, into texts, columns []FileColumn) (out csv.Ragged, err error) {
	c, err := csv.Open(path)
	if err != nil {
		return out, err
	}
	defer c.Close()
	var at []int
	var items []string
	for _, column := range columns {
		i := slices.Index(c.Names, strings.ToLower(column.Name))
		if i < 0 {
			return out, fmt.Errorf("has no column %s", column.Name)
		}
		at, items = append(at, i), append(items, dialect.QuoteName(column.Name)+" VARCHAR")
	}
	if _, err := l.Pool.ExecContext(ctx, "CREATE TABLE "+into.quoted()+" ("+strings.Join(items, ", ")+")"); err != nil {
		return out, errors.New("its texts cannot be stored")
	}
	if l.How == Bare {
		return out, nil
	}
	conn, err := l.Pool.Conn(ctx)
	if err != nil {
		return out, backend.ErrUnavailable
	}
	defer conn.Close()
	err = conn.Raw(func(inner any) (err error) {
		add, err := duckdb.NewAppender(inner.(driver.Conn), into.catalog, into.schema, into.table)
		if err != nil {
			return errors.New("its texts cannot be stored")
		}
		defer func() {
			if closed := add.Close(); err == nil && closed != nil {
				err = errors.New("its texts cannot be stored")
			}
		}()
		out, err = appendTo(ctx, c, add, at)
		return err
	})
	return out, err
}

// appendTo copies the fields with these numbers of each line.
func appendTo(ctx context.Context, c *csv.File, into *duckdb.Appender, at []int) (out csv.Ragged, err error) {
	row := make([]driver.Value, len(at))
	for n := 0; ; n++ {
		fields, err := c.Read()
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		case n%4096 == 0 && ctx.Err() != nil:
			return out, ctx.Err()
		case len(fields) != len(c.Names):
			out.Add(c.Line)
			continue
		}
		for i, k := range at {
			row[i] = fields[k].Value()
		}
		if err := into.AppendRow(row...); err != nil {
			return out, errors.New("its texts cannot be stored")
		}
	}
}

// FileColumn is one column to read.
type FileColumn struct{ Name, Kind string }

// fileColumns are the columns that the tables of one file name. Where two tables disagree on a type, and for a unit
// column that is not declared, it is read as text; queries cast it. Keys that the policy says are whole numbers are:
// what is none is NULL, and 7, 07 and 007 are one.
func fileColumns(tables []*policy.Table) ([]FileColumn, error) {
	var list []FileColumn
	at := map[string]int{}
	add := func(name, kind string) {
		i, known := at[strings.ToLower(name)]
		switch {
		case !known:
			at[strings.ToLower(name)] = len(list)
			list = append(list, FileColumn{name, kind})
		case kind != list[i].Kind:
			list[i].Kind = "VARCHAR"
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
		for _, k := range t.Keys {
			if _, declared := at[strings.ToLower(k.Source)]; !declared && rewrite.WholeKey(t, k.Source) {
				add(k.Source, "BIGINT")
			}
		}
	}
	for _, t := range tables {
		for _, key := range inspect.KeyColumns(t) {
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
