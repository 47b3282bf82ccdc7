package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// How rows get into DuckDB: a CREATE TABLE by the storage types of package outer, then its appender.

// load creates a table and fills it.
func load(ctx context.Context, conn *sql.Conn, t table, temporary bool) error {
	var ddl strings.Builder
	ddl.WriteString("CREATE ")
	if temporary {
		ddl.WriteString("TEMP ")
	}
	ddl.WriteString("TABLE " + dialect.QuoteName(t.name) + " (")
	for k, c := range t.rows.Columns {
		if k > 0 {
			ddl.WriteString(", ")
		}
		ddl.WriteString(dialect.QuoteName(c.Name) + " " + outer.Storage(c.Type))
	}
	if len(t.rows.Columns) == 0 {
		// DuckDB has no table without columns; a leaf without any is only ever counted.
		ddl.WriteString(`" " BOOLEAN`)
	}
	ddl.WriteString(")")
	if _, err := conn.ExecContext(ctx, ddl.String()); err != nil {
		return err
	}
	if len(t.rows.Data) == 0 {
		return nil
	}
	return conn.Raw(func(raw any) error { return fill(raw.(driver.Conn), t, temporary) })
}

func fill(conn driver.Conn, t table, temporary bool) (err error) {
	database := "memory"
	if temporary {
		database = "temp"
	}
	appender, err := duckdb.NewAppender(conn, database, "main", t.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, appender.Close()) }()
	line := make([]driver.Value, max(1, len(t.rows.Columns)))
	for _, row := range t.rows.Data {
		if len(row) != len(t.rows.Columns) {
			return sandbox.ErrBroken
		}
		for k, v := range row {
			if line[k], err = store(t.rows.Columns[k].Type, v); err != nil {
				return err
			}
		}
		if err := appender.AppendRow(line...); err != nil {
			return err
		}
	}
	return nil
}
