package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/big"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/policy"
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
	var beside []outer.DecimalColumn
	if !temporary || strings.Contains(t.name, ".") { // a public table that is given with a query is read as the engine's own is
		beside = outer.DecimalsOf(named(t.rows.Columns))
	}
	for _, d := range beside {
		ddl.WriteString(", " + dialect.QuoteName(d.Name) + " " + d.Type)
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
	return conn.Raw(func(raw any) error { return fill(raw.(driver.Conn), t, temporary, beside) })
}

func named(columns []sandbox.Column) []outer.Column {
	out := make([]outer.Column, len(columns))
	for i, c := range columns {
		out[i] = outer.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
	}
	return out
}

func fill(conn driver.Conn, t table, temporary bool, beside []outer.DecimalColumn) (err error) {
	database := "memory"
	if temporary {
		database = "temp"
	}
	appender, err := duckdb.NewAppender(conn, database, "main", t.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, appender.Close()) }()
	line := make([]driver.Value, max(1, len(t.rows.Columns)+len(beside)))
	for _, row := range t.rows.Data {
		if len(row) != len(t.rows.Columns) {
			return sandbox.ErrBroken
		}
		for k, v := range row {
			c := t.rows.Columns[k]
			if line[k], err = store(c.Type, policy.Filled(c.Type, c.Typmod, v)); err != nil {
				return err
			}
		}
		for k, d := range beside {
			if line[len(row)+k], err = units(row[d.Of], d); err != nil {
				return err
			}
		}
		if err := appender.AppendRow(line...); err != nil {
			return err
		}
	}
	return nil
}

// units is a numeric as a decimal of its column. One that the column's type does not hold is a fault of whoever copied it.
func units(v policy.Value, d outer.DecimalColumn) (driver.Value, error) {
	n, ok := v.(policy.Numeric)
	if v == nil {
		return nil, nil
	}
	if !ok || n.Scale > d.Scale {
		return nil, sandbox.ErrBroken
	}
	units := n.At(d.Scale)
	if digits := len(new(big.Int).Abs(units).String()); digits > int(d.Digits) {
		return nil, sandbox.ErrBroken
	}
	if d.Digits <= 18 {
		return units.Int64(), nil
	}
	return units, nil
}
