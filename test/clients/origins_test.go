package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// originStatements have columns of tables, seen through what can be between, and computed ones.
var originStatements = []string{
	"SELECT city, count(*) FROM people GROUP BY city",
	"SELECT p.city AS town, count(*) AS city FROM public.people AS p GROUP BY p.city",
	"SELECT upper(city), city || '', age / 10, age FROM people GROUP BY city, age LIMIT 1",
	"SELECT * FROM (SELECT hiv, city, count(*) AS n FROM people GROUP BY hiv, city) t",
	"SELECT t.* , t.n + 1 FROM (SELECT city, count(*) FROM people GROUP BY city) AS t (town, n)",
	"WITH t (town, n) AS (SELECT city, count(*) FROM people GROUP BY city), u AS (SELECT * FROM t) SELECT u.town, t.n FROM t JOIN u ON t.town = u.town",
	"SELECT city, a.n, b.n FROM (SELECT city, count(*) AS n FROM people GROUP BY city) a JOIN (SELECT city, count(*) AS n FROM people WHERE hiv GROUP BY city) b USING (city)",
	"SELECT * FROM (SELECT city, count(*) AS n FROM people GROUP BY city) a NATURAL JOIN (SELECT city FROM people GROUP BY city) b",
	"SELECT city FROM (SELECT city FROM people GROUP BY city) a FULL JOIN (SELECT city FROM people GROUP BY city) b USING (city)",
	"SELECT city FROM people GROUP BY city UNION ALL SELECT 'all'",
	"SELECT x.city FROM (SELECT city FROM people GROUP BY city UNION SELECT 'all') x",
	"SELECT DISTINCT city FROM people",
	"SELECT city, count(*) FROM people GROUP BY ROLLUP (city)",
	"SELECT (SELECT count(*) FROM people) AS n, relname, c.oid FROM pg_class c WHERE relname = 'people'",
	"SELECT n.*, c.relkind FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid LIMIT 1",
	"SELECT table_name, column_name, ordinal_position FROM information_schema.columns WHERE table_name = 'people'",
	"SELECT column1, column2 FROM (VALUES (1, 'a')) v",
	"SELECT g FROM generate_series(1, 2) g",
	"SELECT 1 AS city, NULL AS age",
}

// TestColumnsOfTables: a column of an answer that is a table's says so in RowDescription as PostgreSQL does, by numbers
// under which the catalogs have it, whether the statement is described or run.
func TestColumnsOfTables(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	p := kit.Serve(t, path)
	ours, plain := pgxTo(t, p.URL("alice", "lab")), pgxTo(t, server.URLFor("postgres", database))
	tables := 0
	for _, text := range originStatements {
		want, err := originsOf(plain, text)
		if err != nil {
			t.Fatalf("PostgreSQL: %s: %v", text, err)
		}
		got, err := originsOf(ours, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: columns of %q, PostgreSQL says %q", text, got, want)
		}
		for _, o := range got {
			if o != "" {
				tables++
			}
		}
	}
	if _, err := ours.Exec(context.Background(), "SET dp.error_columns = on"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"SELECT count(*), city FROM people GROUP BY city":                                       {"", "", "", "people.city"},
		"SELECT * FROM (SELECT city, count(*) AS n, sum(age) AS s FROM people GROUP BY city) t": {"people.city", "", "", "", "", "", ""},
	} {
		if got, err := originsOf(ours, text); err != nil || !slices.Equal(got, want) {
			t.Errorf("with columns of errors: %s: columns of %q, must be %q (%v)", text, got, want, err)
		}
	}
	if tables < 20 {
		t.Errorf("only %d columns are a table's", tables)
	}
}

func pgxTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// originsOf names the column of a table that each column of a statement is, by the server's own catalogs; "" is none.
func originsOf(conn *pgx.Conn, text string) (origins []string, err error) {
	ctx := context.Background()
	described, err := conn.PgConn().Prepare(ctx, "", text, nil)
	if err != nil {
		return nil, err
	}
	read := conn.PgConn().ExecParams(ctx, text, nil, nil, nil, nil).Read()
	if read.Err != nil {
		return nil, read.Err
	}
	simple, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		return nil, err
	}
	numbers := func(fields []pgconn.FieldDescription) (list []string) {
		for _, f := range fields {
			list = append(list, fmt.Sprint(f.TableOID, ".", f.TableAttributeNumber))
		}
		return list
	}
	want := numbers(described.Fields)
	for _, again := range [][]pgconn.FieldDescription{read.FieldDescriptions, simple[0].FieldDescriptions} {
		if got := numbers(again); !slices.Equal(got, want) {
			return nil, fmt.Errorf("described with columns %v, run with %v", want, got)
		}
	}
	for _, f := range described.Fields {
		name := ""
		if f.TableOID != 0 {
			err := conn.QueryRow(ctx, `SELECT c.relname::text || '.' || a.attname::text FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
				WHERE a.attrelid = `+fmt.Sprint(f.TableOID)+` AND a.attnum = `+fmt.Sprint(f.TableAttributeNumber)).Scan(&name)
			if err != nil {
				return nil, fmt.Errorf("column %d.%d is in no catalog: %w", f.TableOID, f.TableAttributeNumber, err)
			}
		}
		origins = append(origins, name)
	}
	return origins, nil
}
