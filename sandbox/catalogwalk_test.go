package sandbox_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// plainRole is a role that nothing was granted to.
const plainRole = "plain"

// asPlainRole connects to the server that the tests share as a role that nothing was granted to.
func asPlainRole(t *testing.T) *pgx.Conn {
	t.Helper()
	server := pgtest.Shared(t)
	server.Exec(t, "postgres", `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+plainRole+`') THEN CREATE ROLE `+plainRole+` LOGIN; END IF; END $$`)
	conn, err := pgx.Connect(context.Background(), server.URLFor(plainRole, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var version string
	if err := conn.QueryRow(context.Background(), "SHOW server_version").Scan(&version); err != nil || !strings.HasPrefix(version, "15") {
		t.Skipf("the server is version %s, the catalogs are those of 15 (%v)", version, err)
	}
	return conn
}

// column reads a column of texts.
func column(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return list
}

// described are the columns of a statement on the server: their names and types.
func described(t *testing.T, conn *pgx.Conn, sql string) (string, error) {
	t.Helper()
	d, err := conn.PgConn().Prepare(context.Background(), "", sql, nil)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range d.Fields {
		fmt.Fprintf(&out, "%s:%d ", f.Name, f.DataTypeOID)
	}
	return out.String(), nil
}

// walked are the sandboxes, by name.
func walked(t *testing.T) map[string]sandbox.Engine {
	return map[string]sandbox.Engine{"own": sandboxtest.Own(t), "twin": sandboxtest.Twin(t)}
}

// TestEveryRelationOfPostgreSQL: each relation of pg_catalog and information_schema that a role without any grant may
// read on PostgreSQL has the same columns in the sandbox, and can be read whole.
func TestEveryRelationOfPostgreSQL(t *testing.T) {
	conn := asPlainRole(t)
	relations := column(t, conn, `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1`)
	for name, e := range walked(t) {
		answered := 0
		for _, rel := range relations {
			want, err := described(t, conn, "SELECT * FROM "+rel)
			if err != nil {
				t.Fatal(err)
			}
			failed := false
			for _, sql := range []string{"SELECT * FROM " + rel + " LIMIT 0", "SELECT * FROM " + rel} {
				rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), sql)
				rows.Data = nil
				if got := sandboxtest.Written(rows); err != nil || got != want {
					failed = true
					t.Errorf("%s: %s: %v\n    got  %s\n    want %s", name, sql, err, got, want)
				}
			}
			if !failed {
				answered++
			}
		}
		t.Logf("%s: %d of %d relations answered", name, answered, len(relations))
	}
}

// calledSQL are the functions that the views of pg_catalog and information_schema call, as their stored rules name
// them: an explicit call each, no cast and no operator.
const calledSQL = `SELECT DISTINCT (regexp_matches(w.ev_action::text, ':(?:funcid (\d+) :funcresulttype \d+ :funcretset \w+ :funcvariadic \w+ :funcformat [03]|aggfnoid (\d+)|winfnoid (\d+))', 'g')) AS found
	FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname IN ('pg_catalog', 'information_schema')`

// callsSQL writes a call of each function with NULLs; $which is a condition on pg_proc as p.
const callsSQL = `SELECT n.nspname || '.' || p.proname || '(' || coalesce((SELECT string_agg('NULL::' || CASE format_type(t, NULL) WHEN 'anyelement' THEN 'text' WHEN 'anynonarray' THEN 'text'
	WHEN 'anyarray' THEN 'text[]' WHEN '"any"' THEN 'text' WHEN 'anycompatible' THEN 'text' WHEN 'anycompatiblearray' THEN 'text[]' ELSE format_type(t, NULL) END, ', ' ORDER BY k)
	FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a(t, k)), '') || ')'
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE $which ORDER BY 1`

// TestEveryFunctionOfTheViews: each function that the catalogs' own views call has the same columns as on
// PostgreSQL, and answers where PostgreSQL does.
func TestEveryFunctionOfTheViews(t *testing.T) {
	conn := asPlainRole(t)
	calls := column(t, conn, strings.ReplaceAll(callsSQL, "$which", `p.oid IN (SELECT x::oid FROM (`+calledSQL+`) f, unnest(f.found) AS x WHERE x IS NOT NULL)`))
	for name, e := range walked(t) {
		answered, own := 0, 0
		var missing []string
		for _, call := range calls {
			sql := "SELECT * FROM " + call + " AS f"
			want, err := described(t, conn, sql)
			if err != nil {
				sql = "SELECT " + call + " AS f"
				want, err = described(t, conn, sql)
			}
			if strings.HasPrefix(sandboxtest.OnPostgreSQL(conn, sql), "error 2") || err != nil { // NULL is no argument of it, or a window must be
				own++
				continue
			}
			rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), sql)
			rows.Data = nil
			if got := sandboxtest.Written(rows); err != nil || got != want {
				missing = append(missing, fmt.Sprintf("%s: %v: got %s, want %s", call, err, got, want))
				continue
			}
			answered++
		}
		sort.Strings(missing)
		for _, m := range missing {
			t.Errorf("%s: %s", name, m)
		}
		t.Logf("%s: %d of %d functions answered, of which PostgreSQL itself refuses %d more", name, answered, len(calls)-own, own)
	}
}
