package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// released are the tables of the differential test: leaves, the SQL that makes them in PostgreSQL, and their rows.
func released() ([]*plans.Leaf, []sandbox.Table, string) {
	key := func(name string, t policy.Type, mod int32, values ...policy.Value) plans.KeyColumn {
		return plans.KeyColumn{Name: name, Type: t, Typmod: mod, Values: values}
	}
	counts := func(n int) []plans.CountColumn { return []plans.CountColumn{{Name: "n"}} }
	dec := func(n int64) policy.Value { return policy.NewNumeric(n, 2) }
	leaves := []*plans.Leaf{
		{Name: "leaf_1", Rows: 6, Counts: counts(6), Keys: []plans.KeyColumn{key("k", policy.Text, -1, "a", "a", "b", "b", "Ä", nil),
			key("g", policy.Int4, -1, int64(1), int64(2), int64(1), int64(2), int64(3), nil)}},
		{Name: "leaf_2", Rows: 4, Counts: counts(4), Keys: []plans.KeyColumn{key("d", policy.DateType, -1, policy.Date(19723), policy.Date(19724),
			policy.Date(19753), policy.Date(19782))}},
		{Name: "leaf_3", Rows: 5, Counts: counts(5), Keys: []plans.KeyColumn{key("p", policy.NumericType, (8<<16|2)+4, dec(150), dec(-225), dec(0), dec(100000), nil),
			key("f", policy.Float8, -1, 0.1, 1e20, -2.5, 1.0/3, nil), key("b", policy.Bool, -1, true, false, true, nil, false)}},
		// Chars, whose values are without their blanks until an engine has them, and what they are compared with.
		{Name: "leaf_4", Rows: 6, Counts: counts(6), Keys: []plans.KeyColumn{key("c", policy.Bpchar, 3+4, "ab", "abc", "x", "ü", "", nil), key("c5", policy.Bpchar, 5+4, "ab", "x", "abcde", "ab", nil, "ü"),
			key("v", policy.Varchar, 8+4, "ab", "abc ", "x  ", "ab ", "", nil), key("t", policy.Text, -1, "ab ", "abc", "x", nil, " ", "ab")}},
		{Name: "leaf_5", Rows: 4, Counts: counts(4), Keys: []plans.KeyColumn{key("h", policy.TimeT, -1, policy.Time(0), policy.Time(34_200_500_000), policy.Time(86_400_000_000), nil)}},
	}
	numbers := [][]int64{{12, 40, 0, -3, 25, 7}, {12, 0, 31, 7}, {12, 40, -3, 25, 7}, {12, 40, 3, 25, 7, 1}, {12, 40, 3, 1}}
	env := scalar.Env{Zone: time.UTC}
	var tables []sandbox.Table
	sql := ""
	for i, l := range leaves {
		rows := sandbox.Rows{Data: make([][]policy.Value, l.Rows)}
		var columns []string
		for _, k := range l.Keys {
			rows.Columns = append(rows.Columns, sandbox.Column{Name: k.Name, Type: k.Type, Typmod: k.Typmod})
			columns = append(columns, k.Name+" "+k.Type.Format(k.Typmod))
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
// equal SQLSTATE of an error, or, above the line that begins with "-- answered", a refusal.
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
	equal, refused, failing, answered := 0, 0, 0, false
	for line := range strings.Lines(string(text)) {
		query := strings.TrimSpace(line)
		answered = answered || strings.HasPrefix(query, "-- answered")
		if query == "" || strings.HasPrefix(query, "--") {
			continue
		}
		want := sandboxtest.OnPostgreSQL(conn, query)
		got, refusal := sandboxtest.Answered(t, sandboxtest.Embedded(t), query, leaves, tables)
		if told := outer.Failing(sandboxtest.Parse(t, query, leaves...), scalar.Env{Zone: time.UTC, Now: time.Now()}, true); told != nil {
			failing++
			if !strings.HasPrefix(want, "error "+told.SQLState) {
				t.Errorf("%s\n    is told to fail by its constants, %s %s, and PostgreSQL has %s", query, told.SQLState, told.Message, want)
			}
		}
		switch {
		case refusal != "" && !strings.HasPrefix(want, "error"):
			refused++
			t.Logf("refused: %s\n    %s", query, refusal)
			if answered {
				t.Errorf("refused: %s\n    %s", query, refusal)
			}
		case refusal == "" && got != want:
			t.Errorf("%s\n    got  %s\n    want %s", query, got, want)
		default:
			equal++
		}
	}
	t.Logf("%d equal, %d refused, %d told to fail by their constants", equal, refused, failing)
	if refused*10 > equal {
		t.Errorf("%d of %d queries are refused", refused, equal+refused)
	}
}

// TestTwinIsPostgreSQL: over the same released tables the twin gives what a table of PostgreSQL's own gives, byte for byte,
// with nothing refused.
func TestTwinIsPostgreSQL(t *testing.T) {
	leaves, tables, sql := released()
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, sql)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	e, start, n := sandboxtest.Twin(t), time.Now(), 0
	for _, query := range queriesOf(t, "testdata/outer.sql") {
		n++
		want := sandboxtest.OnPostgreSQL(conn, query)
		got, refusal := sandboxtest.Answered(t, e, query, leaves, tables)
		if refusal != "" || got != want {
			t.Errorf("%s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
	}
	t.Logf("%d queries, %v each on both", n, time.Since(start)/time.Duration(n))
}

// TestTwinAgainstEmbedded runs each query in both sandboxes over the same released tables, and on a plain server over
// tables of the same rows. The twin equals the server; the embedded engine equals the twin, or refuses.
func TestTwinAgainstEmbedded(t *testing.T) {
	leaves, tables, sql := released()
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, sql)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	twin, embedded := sandboxtest.Twin(t), sandboxtest.Embedded(t)
	equal, refused := 0, 0
	for _, query := range split(t, append(queriesOf(t, "testdata/twin.sql"), queriesOf(t, "testdata/outer.sql")...)) {
		want := sandboxtest.OnPostgreSQL(conn, query)
		got, refusal := sandboxtest.Answered(t, twin, query, leaves, tables)
		if refusal != "" && want != "error 0A000" || refusal == "" && got != want {
			t.Errorf("twin: %.300s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
		switch small, refusal := sandboxtest.Answered(t, embedded, query, leaves, tables); {
		case refusal != "" || strings.HasPrefix(small, "error") && small != want: // nothing is answered that PostgreSQL answers otherwise
			refused++
			if os.Getenv("DPPROXY_VERBOSE") != "" {
				t.Logf("embedded refuses: %.200s\n    %s%s", query, refusal, small)
			}
		case small != want:
			t.Errorf("embedded: %.300s\n    got  %s\n    want %s", query, small, want)
		default:
			equal++
		}
	}
	t.Logf("embedded: %d equal, %d refused, of %d", equal, refused, equal+refused)
}
