package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dpproxy/dpproxy/backend/parquet"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A Parquet file says of what types its columns are, and a cell that is no value of its column's type fails DB's read
// of the whole file: bytes that are no UTF-8 in a text, a moment in milliseconds that microseconds do not hold. Such a
// file is read again with these columns as bytes and as numbers (package parquet), of which values are made cell by
// cell: of bytes that are no text U+FFFD and their digits, so that two stay two, and NULL of other moments. The columns
// come with the same types and values either way, so that nobody else's cells are read otherwise (privacy rules 12 and
// 30).
//
// A file also says between which values a column's lie, and DB believes it: it takes a comparison for true or false
// that these values decide, and leaves out the rows of a filter. NaN is in no such statistics (of most writers), and
// what a writer got wrong is in none, so that a value outside a domain would be taken for one within it. Claim. No
// statistics of a file decide how a cell is read. Proof. Each column is read through TRY, of whose value DB knows
// neither the ends nor whether it may be NULL, and below which it pushes no filter; the engine's own tables have the
// engine's statistics, of the values that they hold. Limits. Such is the DB that is built in: TestFarValues asks it
// (docs/adr/0201).

// readableTypes are the types of a Parquet file's columns of which values of the declared types are made. Of others
// (times of the day, lists, structures, intervals) DB's conversion to text may fail at a cell, or give equal values
// several texts.
var readableTypes = regexp.MustCompile(`^(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|JSON|BLOB|UUID|DATE|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?|ENUM\(.*\))$`)

// mostDigits is how many digits a decimal of a Parquet file may have: of more, DB 1.5 makes a DOUBLE, which for 39 to
// 55 and 58 to 74 digits is another number than is written there.
const mostDigits = 38

// parquetRows is what a Parquet file's columns are read from, and which of them are texts.
func (l *Loader) parquetRows(ctx context.Context, file string, columns []FileColumn) (from string, isText func(string) bool, err error) {
	from, err = parquetReader(file)
	if err != nil {
		return "", nil, err
	}
	types, err := l.columnTypes(ctx, from)
	if err != nil {
		return "", nil, errColumns
	}
	parts := map[string]string{} // columns that are read otherwise than as they come, and how
	var hashes []string          // those of which a cell may fail the read
	for _, c := range columns {
		name := strings.ToLower(c.Name)
		kind, ok := types[name]
		switch {
		case ok && !readableTypes.MatchString(kind):
			return "", nil, fmt.Errorf("its column %s is %s, of which no values are read", c.Name, kind)
		case kind == "JSON":
			parts[c.Name] = "CAST(" + dialect.QuoteName(c.Name) + " AS VARCHAR)"
			types[name] = "VARCHAR"
		}
		if types[name] == "VARCHAR" || strings.HasPrefix(kind, "TIMESTAMP") {
			hashes = append(hashes, "bit_xor(hash("+dialect.QuoteName(c.Name)+"))")
		}
	}
	wide, err := l.wideDecimals(ctx, file)
	if err != nil {
		return "", nil, errColumns
	}
	for _, c := range columns {
		if digits := wide[strings.ToLower(c.Name)]; digits != "" {
			return "", nil, fmt.Errorf("its column %s has decimals of %s digits, of which DuckDB reads other numbers than stand there: write them with %d at most", c.Name, digits, mostDigits)
		}
	}
	if l.How != Bare && len(hashes) > 0 {
		err := l.EachRow(ctx, "SELECT ("+strings.Join(hashes, " + ")+")::VARCHAR FROM "+from, func([]*string) error { return nil })
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		if err != nil {
			if from, parts, err = l.bareParquet(file, columns, types); err != nil {
				return "", nil, err
			}
			l.LeftOut = append(l.LeftOut, LeftOut{file, "cells of its file are no UTF-8, or moments beyond DuckDB's: such a text lies outside each domain, such a moment is NULL"})
		}
	}
	items := make([]string, len(columns))
	for i, c := range columns {
		name := dialect.QuoteName(c.Name)
		items[i] = "TRY(" + cmp.Or(parts[c.Name], name) + ") AS " + name
	}
	from = "(SELECT " + strings.Join(items, ", ") + " FROM " + from + ")"
	return from, func(name string) bool { return types[strings.ToLower(name)] == "VARCHAR" }, nil
}

var errColumns = errors.New("cannot be read with the policy's columns")

// bareParquet writes a file of which no cell fails a read, below the instance's own directory, and how columns of it
// are read.
func (l *Loader) bareParquet(file string, columns []FileColumn, types map[string]string) (from string, parts map[string]string, err error) {
	directory, err := os.MkdirTemp(l.Directory, "read-")
	if err != nil {
		return "", nil, errors.New("there is no room to read it again")
	}
	l.again = append(l.again, directory)
	path := filepath.Join(directory, "bare.parquet")
	kinds, err := parquet.Bare(file, path)
	if err != nil {
		return "", nil, errColumns
	}
	parts = map[string]string{}
	for _, c := range columns {
		name := dialect.QuoteName(c.Name)
		switch kinds[strings.ToLower(c.Name)] {
		case parquet.Text:
			parts[c.Name] = "COALESCE(TRY(decode(" + name + ")), '\uFFFD' || hex(" + name + "))"
		case parquet.Millis:
			parts[c.Name] = "CAST(make_timestamp_ms(" + name + ") AS " + types[strings.ToLower(c.Name)] + ")"
		}
	}
	from, err = parquetReader(path)
	return from, parts, err
}

// columnTypes are the types of what is read from somewhere, by the columns' names in small letters.
func (l *Loader) columnTypes(ctx context.Context, from string) (map[string]string, error) {
	list := map[string]string{}
	err := l.EachFull(ctx, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM "+from+")",
		func(row []string) { list[strings.ToLower(row[0])] = row[1] })
	return list, err
}

// wideDecimals are the digits of decimals that have too many, by their columns.
func (l *Loader) wideDecimals(ctx context.Context, file string) (map[string]string, error) {
	list := map[string]string{}
	err := l.EachFull(ctx, fmt.Sprintf("SELECT name, precision::VARCHAR FROM parquet_schema(%s) WHERE precision > %d", dialect.QuoteText(file), mostDigits),
		func(row []string) { list[strings.ToLower(row[0])] = row[1] })
	return list, err
}
