package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// released are the tables of the differential test: leaves, the SQL that makes them in PostgreSQL, and their rows.
func released() ([]*planner.Leaf, []sandbox.Table, string) {
	key := func(name string, t policy.Type, mod int32, values ...policy.Value) planner.KeyColumn {
		return planner.KeyColumn{Name: name, Type: t, Typmod: mod, Values: values}
	}
	counts := func(n int) []planner.CountColumn { return []planner.CountColumn{{Name: "n"}} }
	dec := func(n int64) policy.Value { return policy.NewNumeric(n, 2) }
	leaves := []*planner.Leaf{
		{Name: "leaf_1", Rows: 6, Counts: counts(6), Keys: []planner.KeyColumn{key("k", policy.Text, -1, "a", "a", "b", "b", "Ä", nil),
			key("g", policy.Int4, -1, int64(1), int64(2), int64(1), int64(2), int64(3), nil)}},
		{Name: "leaf_2", Rows: 4, Counts: counts(4), Keys: []planner.KeyColumn{key("d", policy.DateType, -1, policy.Date(19723), policy.Date(19724),
			policy.Date(19753), policy.Date(19782))}},
		{Name: "leaf_3", Rows: 5, Counts: counts(5), Keys: []planner.KeyColumn{key("p", policy.NumericType, (8<<16|2)+4, dec(150), dec(-225), dec(0), dec(100000), nil),
			key("f", policy.Float8, -1, 0.1, 1e20, -2.5, 1.0/3, nil), key("b", policy.Bool, -1, true, false, true, nil, false)}},
	}
	numbers := [][]int64{{12, 40, 0, -3, 25, 7}, {12, 0, 31, 7}, {12, 40, -3, 25, 7}}
	types := map[policy.Type]string{policy.Text: "text", policy.Int4: "int", policy.DateType: "date", policy.NumericType: "numeric(8,2)",
		policy.Float8: "float8", policy.Bool: "bool"}
	env := scalar.Env{Zone: time.UTC}
	var tables []sandbox.Table
	sql := ""
	for i, l := range leaves {
		rows := sandbox.Rows{Data: make([][]policy.Value, l.Rows)}
		var columns []string
		for _, k := range l.Keys {
			rows.Columns = append(rows.Columns, sandbox.Column{Name: k.Name, Type: k.Type, Typmod: k.Typmod})
			columns = append(columns, k.Name+" "+types[k.Type])
		}
		rows.Columns = append(rows.Columns, sandbox.Column{Name: "n", Type: policy.Int8, Typmod: -1})
		sql += "CREATE TABLE " + l.Name + " (" + strings.Join(columns, ", ") + ", n bigint);\n"
		for r := range rows.Data {
			var cells []string
			for _, k := range l.Keys {
				rows.Data[r] = append(rows.Data[r], k.Values[r])
				if k.Values[r] == nil {
					cells = append(cells, "NULL")
				} else {
					cells = append(cells, "'"+env.FormatText(k.Type, k.Values[r])+"'")
				}
			}
			rows.Data[r] = append(rows.Data[r], numbers[i][r])
			sql += fmt.Sprintf("INSERT INTO %s VALUES (%s, %d);\n", l.Name, strings.Join(cells, ", "), numbers[i][r])
		}
		tables = append(tables, sandbox.Table{Name: l.Name, Rows: privacy.Published(rows)})
	}
	return leaves, tables, sql
}

// TestOuterAgainstPostgreSQL runs each query on a real server and on the embedded engine: equal columns, types and text,
// equal SQLSTATE of an error, or a refusal.
func TestOuterAgainstPostgreSQL(t *testing.T) {
	leaves, tables, sql := released()
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, sql)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	text, err := os.ReadFile("testdata/outer.sql")
	if err != nil {
		t.Fatal(err)
	}
	equal, refused := 0, 0
	for line := range strings.Lines(string(text)) {
		query := strings.TrimSpace(line)
		if query == "" || strings.HasPrefix(query, "--") {
			continue
		}
		want := onPostgreSQL(conn, query)
		got, refusal := onEngine(t, query, leaves, tables)
		switch {
		case refusal != "" && !strings.HasPrefix(want, "error"):
			refused++
			t.Logf("refused: %s\n    %s", query, refusal)
		case refusal == "" && got != want:
			t.Errorf("%s\n    got  %s\n    want %s", query, got, want)
		default:
			equal++
		}
	}
	t.Logf("%d equal, %d refused", equal, refused)
	if refused*10 > equal {
		t.Errorf("%d of %d queries are refused", refused, equal+refused)
	}
}

// onPostgreSQL writes an answer, or the SQLSTATE of its error, as text.
func onPostgreSQL(conn *pgx.Conn, query string) string {
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

func onEngine(t *testing.T, query string, leaves []*planner.Leaf, tables []sandbox.Table) (answer, refusal string) {
	q, no := outer.Render(parse(t, query, leaves...), dialect.DuckDB)
	if no != nil && no.SQLState == "DP002" {
		return "", no.Message
	}
	if no != nil {
		return "error " + no.SQLState, ""
	}
	rows, err := engine(t).Query(context.Background(), session, q, tables)
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
	var out strings.Builder
	for _, c := range rows.Value().Columns {
		fmt.Fprintf(&out, "%s:%d ", c.Name, c.Type)
	}
	for _, row := range rows.Value().Data {
		out.WriteString("| ")
		for i, v := range row {
			out.WriteString(shown(rows.Value().Columns[i].Type, v) + " ")
		}
	}
	return out.String(), ""
}

// shown writes a value as PostgreSQL sends it.
func shown(t policy.Type, v policy.Value) string {
	switch v := v.(type) {
	case nil:
		return "∅"
	case []policy.Value:
		element, _ := outer.ArrayElement(t)
		var parts []string
		for _, one := range v {
			if one == nil {
				parts = append(parts, "NULL")
			} else if text := shown(element, one); text == "" || strings.ContainsAny(text, `{}", `) {
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
