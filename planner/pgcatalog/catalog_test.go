package pgcatalog

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

var update = flag.Bool("update", false, "write the files from what the server says")

// relationsSQL asks a server for the lines of catalog15.tsv. What initdb numbers (from 10000 on) differs between its
// builds. The relations of information_schema that are granted to nobody hold nothing that the others do not.
const relationsSQL = `SELECT concat_ws(E'\t', n.nspname, c.relname, c.relkind, CASE WHEN c.oid < 10000 THEN c.oid::int8 ELSE 0 END, a.attnum, a.attname,
		CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, a.attnotnull::int, (has_any_column_privilege('plain', c.oid, 'SELECT') OR n.nspname = 'information_schema')::int)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
	WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
	ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C", a.attnum`

// functionsSQL asks a server for the lines of functions15.tsv; $names are patterns.
const functionsSQL = `SELECT concat_ws(E'\t', p.proname, array_to_string(p.proargtypes::oid[], ' '), p.prorettype::oid, p.proretset::int, coalesce((SELECT string_agg(
		coalesce(nullif(p.proargnames[k], ''), 'column' || k) || '=' || p.proallargtypes[k], ' ' ORDER BY k)
		FROM generate_subscripts(p.proargmodes, 1) k WHERE p.proargmodes[k] IN ('o', 'b', 't')), ''))
	FROM pg_proc p WHERE p.pronamespace = 11 AND p.prokind = 'f' AND p.proname::text LIKE ANY (ARRAY[$names])
	ORDER BY p.proname COLLATE "C", array_to_string(p.proargtypes::oid[], ' ') COLLATE "C"`

// TestFilesAreTheServers holds the generated files against a server of the version that they are of; with -update it
// writes them.
func TestFilesAreTheServers(t *testing.T) {
	server := pgtest.Shared(t)
	server.Exec(t, "postgres", "CREATE ROLE plain")
	conn, err := pgx.Connect(context.Background(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var version string
	if err := conn.QueryRow(context.Background(), "SHOW server_version").Scan(&version); err != nil || !strings.HasPrefix(version, "15") {
		t.Skipf("the server is version %s, the files are of 15 (%v)", version, err)
	}
	for _, f := range []struct{ name, have, sql string }{
		{"catalog15.tsv", catalogText, relationsSQL},
		{"functions15.tsv", functionText, strings.ReplaceAll(functionsSQL, "$names", patterns())},
	} {
		rows, err := conn.Query(context.Background(), f.sql)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(lines, "\n") + "\n"
		if *update {
			if err := os.WriteFile(f.name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if f.have != want {
			t.Errorf("%s is not what the server says: %d bytes, the server %d; -update writes it", f.name, len(f.have), len(want))
		}
	}
}

// patterns are the names of the silent functions for LIKE.
func patterns() string {
	var list []string
	for _, name := range silentNames {
		list = append(list, "'"+strings.NewReplacer("_", `\_`, "*", "%").Replace(name)+"'")
	}
	return strings.Join(list, ", ")
}

// TestEverySilentNameIsAFunction: none is there for nothing.
func TestEverySilentNameIsAFunction(t *testing.T) {
	for _, name := range silentNames {
		if !strings.HasSuffix(name, "*") && Silent(name) == nil {
			t.Errorf("%s is no function of PostgreSQL 15", name)
		}
	}
}
