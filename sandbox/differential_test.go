package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
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

// TestTwinIsPostgreSQL: over the same released tables the sandbox gives what a table of PostgreSQL's own gives, byte
// for byte, with nothing refused that PostgreSQL answers.
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
	e, start, n := sandboxtest.Own(t), time.Now(), 0
	for _, query := range split(t, append(queriesOf(t, "testdata/twin.sql"), queriesOf(t, "testdata/outer.sql")...)) {
		n++
		want := sandboxtest.OnPostgreSQL(conn, query)
		got, refusal := sandboxtest.Answered(t, e, query, leaves, tables)
		if refusal != "" && want != "error 0A000" || refusal == "" && got != want {
			t.Errorf("%s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
	}
	t.Logf("%d queries, %v each on both", n, time.Since(start)/time.Duration(n))
}
