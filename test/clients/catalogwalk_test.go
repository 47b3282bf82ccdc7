package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// ofTheSession are the relations of the catalogs that say when the session began, which number it has, and when it
// opened a cursor.
var ofTheSession = map[string]bool{"pg_catalog.pg_stat_activity": true, "pg_catalog.pg_cursors": true}

// shape returns what a client is sent of the columns of a statement.
func shape(t *testing.T, conn *pgconn.PgConn, sql string) string {
	t.Helper()
	d, err := conn.Prepare(context.Background(), "", sql, nil)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, f := range d.Fields {
		fmt.Fprintf(&out, "%s %d %d %d, ", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier)
	}
	return out.String()
}

// TestCatalogsAreWhole: every relation of pg_catalog and information_schema that PostgreSQL shows to a role without any
// grant is described to a client as PostgreSQL describes it, answered whole, the same over two neighbouring databases,
// and not by asking them.
func TestCatalogsAreWhole(t *testing.T) {
	kit.Beside(t)
	private := pgtest.Start(t, kit.Logged...)
	private.Exec(t, "postgres", "CREATE ROLE plain LOGIN")
	conn, err := pgx.Connect(t.Context(), private.URLFor("plain", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	relations, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var sides []*pgconn.PgConn
	for _, without := range []int{0, 7} {
		path, _ := kit.Postgres(t, private, kit.Budgets{User: "1000", Cap: "1000"}, without)
		sides = append(sides, kit.Bare(t, kit.Serve(t, path)))
	}
	_, before := kit.StatementsSince(t, private, 0)
	alike := 0
	for _, rel := range relations {
		sql := "SELECT * FROM " + rel
		want, got := shape(t, conn.PgConn(), sql+" LIMIT 0"), shape(t, sides[0], sql+" LIMIT 0")
		if got != want {
			t.Errorf("%s\n    got  %s\n    want %s", rel, got, want)
			continue
		}
		var texts [2]string
		for i, side := range sides {
			result := side.ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
			if result.Err != nil {
				t.Errorf("%s: %v", rel, result.Err)
			}
			texts[i] = fmt.Sprintf("%q", result.Rows)
		}
		if texts[0] != texts[1] && !ofTheSession[rel] {
			t.Errorf("%s differs between neighbours:\n%.500s\n%.500s", rel, texts[0], texts[1])
			continue
		}
		alike++
	}
	if asked, _ := kit.StatementsSince(t, private, before); strings.Contains(strings.Join(asked, " "), "people") {
		t.Errorf("the private database was asked: %s", asked)
	}
	t.Logf("%d of %d relations as PostgreSQL describes them, byte for byte the same over neighbours", alike, len(relations))
}
