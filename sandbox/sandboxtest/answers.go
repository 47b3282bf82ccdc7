package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// OnPostgreSQL writes a PostgreSQL server's answer, or the SQLSTATE of its error, as text.
func OnPostgreSQL(conn *pgx.Conn, query string) string {
	result := conn.PgConn().ExecParams(context.Background(), query, nil, nil, nil, nil).Read()
	err := result.Err
	if err != nil {
		var fault *pgconn.PgError
		if errors.As(err, &fault) {
			return "error " + fault.Code
		}
		return "error " + err.Error()
	}
	var out strings.Builder
	fields := result.FieldDescriptions
	if fields == nil { // no row, and pgconn tells no columns
		if d, err := conn.PgConn().Prepare(context.Background(), "", query, nil); err == nil {
			fields = d.Fields
		}
	}
	for _, f := range fields {
		fmt.Fprintf(&out, "%s:%d ", f.Name, f.DataTypeOID)
	}
	for _, row := range result.Rows {
		out.WriteString("| ")
		for _, v := range row {
			if v == nil {
				out.WriteString("∅ ")
			} else {
				out.WriteString(string(v) + " ")
			}
		}
	}
	return out.String()
}

// Answered writes an engine's answer, or the SQLSTATE of its error, as OnPostgreSQL does.
func Answered(t testing.TB, e sandbox.Engine, query string, leaves []*plans.Leaf, tables []sandbox.Table) (answer, refusal string) {
	t.Helper()
	q, no := outer.Render(Parse(t, query, leaves...))
	if no != nil && no.SQLState == "DP002" {
		return "", no.Message
	}
	if no != nil {
		return "error " + no.SQLState, ""
	}
	rows, err := e.Query(context.Background(), Session, q, tables)
	var fault *scalar.Error
	if errors.As(err, &fault) {
		if fault.SQLState == "DP002" {
			return "", fault.Message
		}
		return "error " + fault.SQLState, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return Written(rows.Value()), ""
}

// Written writes rows with the names and types of their columns.
func Written(rows sandbox.Rows) string {
	var out strings.Builder
	for _, c := range rows.Columns {
		fmt.Fprintf(&out, "%s:%d ", c.Name, c.Type)
	}
	for _, row := range rows.Data {
		out.WriteString("| ")
		for i, v := range row {
			out.WriteString(Shown(rows.Columns[i].Type, v) + " ")
		}
	}
	return out.String()
}

// Shown writes a value as PostgreSQL sends it.
func Shown(t policy.Type, v policy.Value) string {
	switch v := v.(type) {
	case nil:
		return "∅"
	case []policy.Value:
		element, _ := catalog.Element(t)
		var parts []string
		for _, one := range v {
			if one == nil {
				parts = append(parts, "NULL")
			} else if text := Shown(element, one); text == "" || strings.ContainsAny(text, `{}", `) {
				parts = append(parts, `"`+strings.ReplaceAll(text, `"`, `\"`)+`"`)
			} else {
				parts = append(parts, text)
			}
		}
		if t == 22 || t == 30 { // int2vector, oidvector
			return strings.Join(parts, " ")
		}
		return "{" + strings.Join(parts, ",") + "}"
	case string:
		return v
	case bool:
		if v {
			return "t"
		}
		return "f"
	}
	return scalar.Env{Zone: time.UTC}.FormatText(t, v)
}
