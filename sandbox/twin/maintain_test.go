package twin_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
	"github.com/dpproxy/dpproxy/sandbox/twin"
)

// codes is the public table of the policy Clinic.
func codes(rows ...[]policy.Value) sandbox.Table {
	return sandbox.Table{Schema: "lookup", Name: "codes", Rows: privacy.Published(sandboxtest.Codes(rows...))}
}

// inTwin reads one text from a database as superuser.
func inTwin(t testing.TB, s *pgtest.Server, database, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var text *string
	if err := conn.QueryRow(context.Background(), sql).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	if text == nil {
		return "NULL"
	}
	return *text
}

const shape = `SELECT string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || coalesce(col_description(c.oid, a.attnum), '-'), ', '
	ORDER BY c.relname, a.attnum) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname IN ('public', 'lookup') AND a.attnum > 0 AND NOT a.attisdropped`

// TestTwinStaysInStep: the database is made when it is absent, altered in place when the policy changes, and shows what
// a newly made one would show.
func TestTwinStaysInStep(t *testing.T) {
	ctx, server := context.Background(), sandboxtest.NewServer(t)
	e := sandboxtest.OpenTwin(t, server, "step_twin")
	oid := ""
	for i, columns := range [][]string{
		{"kind varchar(10)", "cost numeric(8,2)", "day date"},
		{"kind varchar(10)", "cost numeric(8,2)", "day date", "note text"},
		{"kind varchar(20)", "day date", "note text", "n int"},
		{"n int", "kind text"},
		{"n bigint", "kind text"},
		{"n bigint", "kind text"},
	} {
		p := sandboxtest.Clinic(columns...)
		if err := e.Catalog(ctx, p); err != nil {
			t.Fatal(err)
		}
		fresh := sandboxtest.OpenTwin(t, server, fmt.Sprintf("fresh_twin_%d", i))
		if err := fresh.Catalog(ctx, p); err != nil {
			t.Fatal(err)
		}
		got, want := inTwin(t, server, "step_twin", shape), inTwin(t, server, fmt.Sprintf("fresh_twin_%d", i), shape)
		if got != want {
			t.Errorf("step %d:\n    got  %s\n    want %s", i, got, want)
		}
		now := inTwin(t, server, "step_twin", "SELECT 'visits'::regclass::oid::text")
		if i != 3 && oid != "" && now != oid { // only another order of columns makes the table anew
			t.Errorf("step %d: the table has another object id", i)
		}
		oid = now
	}
	if got := inTwin(t, server, "step_twin", "SELECT obj_description('visits'::regclass)"); !strings.HasPrefix(got, "private table") {
		t.Errorf("comment %q", got)
	}
	p := sandboxtest.Clinic("n int")
	p.Datasets[0].Tables = p.Datasets[0].Tables[:1]
	if err := e.Catalog(ctx, p); err != nil {
		t.Fatal(err)
	}
	if got := inTwin(t, server, "step_twin", "SELECT to_regnamespace('lookup')::text"); got != "NULL" {
		t.Errorf("a schema without tables stays: %s", got)
	}
}

const keys = `SELECT string_agg(k.conrelid::regclass || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid), E'\n' ORDER BY k.conrelid::regclass::text, k.conname)
	FROM pg_constraint k WHERE k.conrelid >= 16384`

// TestTwinKeysStayInStep: keys come, go and change with the policy, whatever they lead to, and are then those of a
// newly made twin.
func TestTwinKeysStayInStep(t *testing.T) {
	ctx, server := context.Background(), sandboxtest.NewServer(t)
	e := sandboxtest.OpenTwin(t, server, "keys_twin")
	numbers := ""
	for i, changes := range [][]string{
		nil, nil,
		{"name: users\n        max_rows_per_unit: 1", "name: users\n        max_rows_per_unit: 3"}, // no key of users that others could lead to
		{"type: bigint", "type: integer"},
		{"unique: [[order_no, line_no]]\n", "\n"},
		{"{name: id, type: integer, keys: join}\n          - ", "", "key: users.id}", "key: users.id, type: bigint}"}, // no longer listed, and of another type
		{"name: cards", "name: badges", "cards.holder", "badges.holder"},
		nil,
	} {
		p := sandboxtest.Keyed(t, changes...)
		if err := e.Catalog(ctx, p); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		anew := fmt.Sprintf("keys_anew_%d", i)
		if err := sandboxtest.OpenTwin(t, server, anew).Catalog(ctx, p); err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{keys, shape} {
			if got, want := inTwin(t, server, "keys_twin", sql), inTwin(t, server, anew, sql); got != want || !strings.Contains(got, "order_no") {
				t.Errorf("step %d:\n    got  %s\n    want %s", i, got, want)
			}
		}
		now := inTwin(t, server, "keys_twin", "SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_constraint WHERE conrelid >= 16384")
		if i == 1 && now != numbers {
			t.Errorf("keys that are in step were made anew: %s, %s", numbers, now)
		}
		numbers = now
	}
}

// TestTwinPublicTables: rows are replaced as a whole, and gone when the table is no longer public.
func TestTwinPublicTables(t *testing.T) {
	ctx, server := context.Background(), sandboxtest.NewServer(t)
	e, p := sandboxtest.OpenTwin(t, server, "public_twin"), sandboxtest.Clinic("n int")
	s := sandboxtest.Session
	s.Database = "clinic"
	if err := e.Catalog(ctx, p); err != nil {
		t.Fatal(err)
	}
	count := func() string {
		return inTwin(t, server, "public_twin", "SELECT string_agg(code || weight, ' ' ORDER BY code) FROM lookup.codes")
	}
	for _, step := range []struct {
		rows [][]policy.Value
		want string
	}{
		{[][]policy.Value{{"a\"b\\c", policy.NewNumeric(150, 2)}, {"ü{},", policy.NewNumeric(-1, 0)}, {"z", nil}}, `a"b\c1.50 ü{},-1`},
		{[][]policy.Value{{"b", policy.NewNumeric(2, 0)}}, "b2"}, {nil, "NULL"},
		{[][]policy.Value{{"c", policy.NewNumeric(3, 0)}}, "c3"},
	} {
		if err := e.Load(ctx, "clinic", codes(step.rows...)); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != step.want {
			t.Errorf("rows %q, want %q", got, step.want)
		}
	}
	if err := e.Catalog(ctx, p); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != "c3" {
		t.Errorf("after a reload: %q", got)
	}
	p.Datasets[0].Tables[1].Public = false
	if err := e.Catalog(ctx, p); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != "NULL" {
		t.Errorf("rows of a table that is private now: %q", got)
	}
}

// TestTwinPerDataset: with several datasets each has a database of its own, so that no analyst sees another dataset's
// tables.
func TestTwinPerDataset(t *testing.T) {
	ctx, server := context.Background(), sandboxtest.NewServer(t)
	e := sandboxtest.OpenTwin(t, server, "many_twin")
	if err := e.Catalog(ctx, sandboxtest.Census()); err != nil {
		t.Fatal(err)
	}
	for database, want := range map[string]string{"many_twin_census": "people", "many_twin_payroll": "salaries"} {
		if got := inTwin(t, server, database, "SELECT string_agg(relname, ',') FROM pg_class WHERE relnamespace = 'public'::regnamespace"); got != want {
			t.Errorf("%s holds %s, want %s", database, got, want)
		}
	}
	rows, err := sandboxtest.Planned(t, e, sandboxtest.Census(), "SELECT relname FROM pg_class WHERE relname IN ('people', 'salaries')")
	if err != nil || len(rows.Data) != 1 {
		t.Errorf("alice sees %v, %v", rows.Data, err)
	}
	var wait sync.WaitGroup
	for range 4 { // proxies that share a twin
		wait.Go(func() {
			other := sandboxtest.OpenTwin(t, server, "shared")
			if err := other.Catalog(ctx, sandboxtest.Clinic("n int")); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// TestTwinRefusesDatabases: a twin is not made in a database that could hold private rows, nor by a role that could
// reach them.
func TestTwinRefusesDatabases(t *testing.T) {
	server := sandboxtest.NewServer(t)
	server.Exec(t, "postgres", "CREATE DATABASE prod", "CREATE DATABASE taken OWNER "+sandboxtest.Owner, "CREATE DATABASE strange", "CREATE DATABASE filled OWNER "+sandboxtest.Owner,
		"CREATE DATABASE latin OWNER "+sandboxtest.Owner+" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
		"CREATE ROLE weak LOGIN", "CREATE ROLE reader LOGIN CREATEDB CREATEROLE", "GRANT pg_read_all_data TO reader", "CREATE ROLE half LOGIN CREATEDB")
	server.Exec(t, "prod", "CREATE TABLE visits (n int)", "INSERT INTO visits VALUES (1)", "ALTER DATABASE prod OWNER TO "+sandboxtest.Owner)
	server.Exec(t, "taken", "CREATE TABLE other (n int)")
	server.Exec(t, "strange", "ALTER DATABASE strange OWNER TO "+sandboxtest.Owner, "CREATE EXTENSION pg_trgm")
	for _, c := range []struct{ role, database, want string }{
		{"postgres", "any_twin", "is a superuser"}, {"reader", "read_twin", "is a member of pg_read_all_data"},
		{sandboxtest.Owner, "prod", "holds tables that dpproxy did not make"}, {sandboxtest.Owner, "taken", "holds tables that dpproxy did not make"},
		{sandboxtest.Owner, "strange", "extensions (pg_trgm)"}, {sandboxtest.Owner, "latin", "must be UTF8"},
		{"weak", "weak_twin", "CREATE DATABASE"}, {"half", "half_twin", "CREATE ROLE"}, {"nobody", "x_twin", "nobody"},
	} {
		e, err := twin.Open(server.URLFor(c.role, c.database), sandbox.Options{})
		if err == nil {
			err = e.Catalog(context.Background(), sandboxtest.Clinic("n int"))
			_ = e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v, want %q", c.database, c.role, err, c.want)
		}
	}
	if got := inTwin(t, server, "prod", "SELECT count(*)::text FROM visits"); got != "1" {
		t.Errorf("the private table was touched: %s", got)
	}
	for _, bad := range []string{"postgres://127.0.0.1/", "postgres://127.0.0.1/postgres", "postgres://%zz"} {
		if _, err := twin.Open(bad, sandbox.Options{}); err == nil || strings.Contains(err.Error(), "127") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestTwinRefusesRows: a table of the twin that holds rows, and a role that can do more than read, are refused.
func TestTwinRefusesRows(t *testing.T) {
	ctx, server := context.Background(), sandboxtest.NewServer(t)
	for name, c := range map[string]struct{ sql, want string }{
		"rows":   {"INSERT INTO visits VALUES (1)", "holds rows"},
		"writes": {"GRANT INSERT ON visits TO %s_session", "may change table visits"},
		"temp":   {"GRANT TEMP ON DATABASE %s TO pg_database_owner", ""},
		"create": {"GRANT CREATE ON SCHEMA public TO %s_session", "may create objects in schema public"},
		"super":  {"ALTER ROLE %s_session SUPERUSER", "is a superuser"},
		"group":  {"GRANT pg_read_all_stats TO %s_session", "is a member of pg_read_all_stats"},
		"view":   {"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "functions"},
	} {
		database := "refuse_" + name
		e := sandboxtest.OpenTwin(t, server, database)
		if err := e.Catalog(ctx, sandboxtest.Clinic("n int")); err != nil {
			t.Fatal(err)
		}
		server.Exec(t, database, strings.ReplaceAll(c.sql, "%s", database))
		err := e.Catalog(ctx, sandboxtest.Clinic("n int"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		server.Exec(t, database, "DROP OWNED BY "+database+"_session", "DROP ROLE "+database+"_session")
	}
}
