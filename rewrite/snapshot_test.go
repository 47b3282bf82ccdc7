package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// rowsOf reads what an extraction asks for.
type rowsOf func(t *testing.T, text string, args []any) [][]any

// snapshotOf is a database with the tables as a snapshot holds them, read from another engine.
func snapshotOf(t *testing.T, from dialect.Dialect, read rowsOf, tables ...*policy.Table) *sql.DB {
	t.Helper()
	db := duckDB(t, []string{"CREATE SCHEMA stage"})
	var extractions []rewrite.Extraction
	var texts []rewrite.Staged
	for i, table := range tables {
		e, err := rewrite.Extract(table, from)
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, f := range e.Fields {
			fields = append(fields, f.Name+" "+map[rewrite.FieldKind]string{rewrite.Whole: "BIGINT", rewrite.Real: "DOUBLE", rewrite.Words: "VARCHAR", rewrite.Fixed: "BIGINT", rewrite.Long: "VARCHAR"}[f.Kind])
		}
		name := fmt.Sprintf("private.stage.t%d", i)
		exec(t, db, "CREATE TABLE "+name+" ("+strings.Join(fields, ", ")+")")
		for _, row := range read(t, e.SQL(), e.Args()) {
			for at, f := range e.Fields {
				n, ok := row[at].(pgtype.Numeric)
				switch {
				case ok && f.Kind == rewrite.Fixed && n.Valid:
					row[at] = floored(n, f.Scale).Int64()
				case ok && f.Kind == rewrite.Long && n.Valid:
					row[at] = new(big.Rat).SetFrac(floored(n, f.Scale), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(f.Scale)), nil)).FloatString(int(f.Scale))
				case ok:
					row[at] = nil
				}
			}
			exec(t, db, "INSERT INTO "+name+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", row...)
		}
		extractions = append(extractions, e)
		for _, f := range e.Fields {
			if f.OfUnit {
				texts = append(texts, rewrite.Staged{Table: name, Field: f.Name})
			}
		}
	}
	numbers := "private.stage.units"
	if len(texts) > 0 {
		number, err := rewrite.Number(tables[0], texts, numbers)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, db, number)
	}
	for i, e := range extractions {
		arrange, err := e.Arrange(fmt.Sprintf("private.stage.t%d", i), numbers, false)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, db, arrange)
	}
	return db
}

// floored is floor(n · 10^scale).
func floored(n pgtype.Numeric, scale int32) *big.Int {
	x := new(big.Rat).SetInt(n.Int)
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.Exp+scale, -n.Exp-scale))), nil))
	if n.Exp+scale < 0 {
		power.Inv(power)
	}
	x.Mul(x, power)
	return new(big.Int).Div(x.Num(), x.Denom()) // Euclid's: the denominator is positive
}

func exec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%v\n%.600s", err, text)
	}
}

func duckRows(db *sql.DB) rowsOf {
	return func(t *testing.T, text string, args []any) (list [][]any) {
		rows, err := db.Query(text, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		defer rows.Close()
		names, _ := rows.Columns()
		for rows.Next() {
			row, into := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			list = append(list, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
}

func postgresRows(conn *pgx.Conn) rowsOf {
	return func(t *testing.T, text string, args []any) [][]any {
		rows, err := conn.Query(context.Background(), text, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return slices.Clone(list)
	}
}
