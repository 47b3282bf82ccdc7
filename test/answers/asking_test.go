package answers

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestHints: with dp.hints = message an error's detail and hint are behind its message too, and in their own fields
// what they are without it; a user's settings may say so, as they may say dp.error_columns. Neighbours get the same
// bytes.
func TestHints(t *testing.T) {
	kit.Beside(t)
	var heard [2]string
	for i, without := range []int{0, 7} {
		s, path := kit.Lab{Engine: "duckdb", Change: []string{
			"name: bob, ", "name: bob, settings: {hints: message, error_columns: true, digits: significant}, ",
		}}.Lay(t, without)
		s.Program = kit.Serve(t, path)
		alice, bob := s.Connect("alice", "lab"), s.Connect("bob", "lab")
		for _, sql := range []string{
			`SELECT * FROM people`, `SELECT age FROM people WHERE age > 30 LIMIT 5`, `SELECT nope FROM people`,
		} {
			plain, whole := alice.Ask(sql), bob.Ask(sql)
			if plain.Err == nil || whole.Err == nil ||
				plain.Err.Hint != whole.Err.Hint || plain.Err.Code != whole.Err.Code {
				t.Fatalf("%s: %v, %v", sql, plain.Err, whole.Err)
			}
			want := plain.Err.Message
			if plain.Err.Detail != "" {
				want += "\nDETAIL:  " + plain.Err.Detail
			}
			if plain.Err.Hint != "" {
				want += "\nHINT:  " + plain.Err.Hint
			}
			if whole.Err.Message != want {
				t.Errorf("%s: %q, want %q", sql, whole.Err.Message, want)
			}
			heard[i] += strings.Join(whole.Frames, "\n")
		}
		if rows := bob.Ask(`SELECT count(*) AS n FROM people`).Rows; len(rows) != 1 || len(rows[0]) != 3 {
			t.Errorf("a user's error_columns: %q", rows)
		}
		if rows := bob.Ask(`SHOW dp.digits`).Rows; len(rows) != 1 || rows[0][0] != "significant" {
			t.Errorf("a user's digits: %q", rows)
		}
		bob.Ask(`SET dp.hints = separate`)
		if got := bob.Ask(`SELECT * FROM people`); got.Err == nil || strings.Contains(got.Err.Message, got.Err.Hint) {
			t.Errorf("separate: %v", got.Err)
		}
	}
	if heard[0] != heard[1] {
		t.Errorf("neighbours differ:\n%s\n%s", heard[0], heard[1])
	}
}

// TestAskingIsInCatalogs: whatever a client looks at first says how one asks here: databases, schemas, private tables
// and the views of schema dp; public tables say that they are free. Neighbours have the same comments.
func TestAskingIsInCatalogs(t *testing.T) {
	kit.Beside(t)
	var heard [2]string
	for i, without := range []int{0, 7} {
		s, path := kit.Lab{Engine: "duckdb"}.Lay(t, without)
		s.Program = kit.Serve(t, path)
		alice := s.Connect("alice", "lab")
		for _, c := range []struct{ what, sql string }{
			{"databases", `SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database`},
			{"databases of pg_shdescription", `SELECT d.datname, s.description FROM pg_database d
				LEFT JOIN pg_shdescription s ON s.objoid = d.oid AND s.classoid = 'pg_database'::regclass`},
			{"schemas", `SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace
				WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'`},
			{"relations", `SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c
				JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname IN ('public', 'dp') AND c.relkind IN ('r', 'v')`},
		} {
			got := alice.Ask(c.sql)
			if got.Err != nil || len(got.Rows) == 0 {
				t.Fatalf("%s: %v, %q", c.what, got.Err, got.Rows)
			}
			for _, row := range got.Rows {
				free := strings.HasPrefix(row[1], catalog.PublicComment)
				if free == strings.HasSuffix(row[1], catalog.Asking) {
					t.Errorf("%s: %q", c.what, row)
				}
			}
			heard[i] += strings.Join(got.Frames, "\n")
		}
	}
	if heard[0] != heard[1] {
		t.Errorf("neighbours differ:\n%s\n%s", heard[0], heard[1])
	}
}

// TestFetchersAreHelped: a client that fetches rows is refused in words that name how it would send the aggregate, by
// its application_name or by what its statements look like, and nobody else is.
func TestFetchersAreHelped(t *testing.T) {
	kit.Beside(t)
	s, path := kit.Lab{Engine: "duckdb"}.Lay(t, 0)
	s.Program = kit.Serve(t, path)
	alice := s.Connect("alice", "lab")
	const jdbc = "PostgreSQL JDBC Driver"
	for _, c := range []struct{ application, sql, words string }{
		{"postgres_fdw", `SELECT age FROM public.people`, "fdw_tuple_cost"},
		{"postgres_fdw", `EXPLAIN SELECT age FROM public.people`, "fdw_tuple_cost"},
		{"postgres_fdw", `BEGIN; DECLARE c1 CURSOR FOR SELECT age FROM public.people; COMMIT`, "fdw_tuple_cost"},
		{"", `COPY (SELECT NULL FROM "public"."people" ) TO STDOUT (FORMAT "binary")`, "postgres_query"},
		{"", `COPY (SELECT "age", "city" FROM "public"."people" WHERE "age" > '3' LIMIT 3) TO STDOUT (FORMAT "binary")`,
			"postgres_query"},
		{jdbc, `SELECT "age","city" FROM people     `, "pushDownAggregate"},
		{jdbc, `SELECT 1 FROM people     `, "pushDownAggregate"},
		{"", "SELECT people.age, people.city \nFROM people", "read_sql"},
		{"", `SELECT * FROM people`, ""},
		{"", `SELECT "age", "city" FROM "public"."people"`, ""},
		{"psql", `SELECT "age","city" FROM people`, ""},
		{jdbc, `SELECT * FROM people`, ""},
	} {
		alice.Ask(`ROLLBACK`)
		alice.Ask(`SET application_name = '` + c.application + `'`)
		got := alice.Ask(c.sql)
		if got.Err == nil || got.Err.Code != "42501" {
			t.Errorf("%s: %v", c.sql, got.Err)
			continue
		}
		for _, words := range []string{"fdw_tuple_cost", "postgres_query", "pushDownAggregate", "read_sql"} {
			if strings.Contains(got.Err.Hint, words) != (words == c.words) {
				t.Errorf("%s of %q: %s", c.sql, c.application, got.Err.Hint)
			}
		}
	}
	if charges := alice.Ask(`SELECT * FROM dp.charges`); len(charges.Rows) != 0 {
		t.Errorf("charged: %q", charges.Rows)
	}
	// A driver that has its statements described, as JDBC's does, is refused there.
	driver, err := pgx.Connect(t.Context(), s.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close(t.Context())
	var refused *pgconn.PgError
	_, _ = driver.Exec(t.Context(), `SET application_name = '`+jdbc+`'`)
	_, err = driver.Prepare(t.Context(), "rows", `SELECT "age","city" FROM people   LIMIT 3 `)
	if !errors.As(err, &refused) || !strings.Contains(refused.Hint, "pushDownAggregate") {
		t.Errorf("described: %v", err)
	}
}
