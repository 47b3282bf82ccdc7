package answers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestProbes: with dp.probes = empty what tools send to look at a table has its columns and no rows, and a notice; what
// is made of rows is refused as ever, nothing is charged, and neighbours answer alike. With made-up rows that were paid
// for, these are shown.
func TestProbes(t *testing.T) {
	kit.Beside(t)
	var heard [2]string
	for i, without := range []int{0, 7} {
		s, path := kit.Lab{Engine: "duckdb", Change: []string{
			"name: bob, ", "name: bob, settings: {probes: empty}, ",
			"columns: [city, hiv], epsilon: 0.5}\n", "columns: [city, hiv], epsilon: 0.5}\n          - {kind: synthetic, name: made_up, columns: [city, hiv], epsilon: 1, rows: 20}\n",
		}}.Lay(t, without)
		s.Program = kit.Serve(t, path)
		alice, bob := s.Connect("alice", "lab"), s.Connect("bob", "lab")
		for _, sql := range []string{
			`SELECT * FROM people LIMIT 3`, `SELECT * FROM (SELECT age, city FROM people) AS virtual_table LIMIT 1000`,
			`SELECT p.age, e.day FROM people p JOIN events e USING (uid) ORDER BY 1 LIMIT 10`,
		} {
			if got := alice.Ask(sql); got.Err == nil || got.Err.Code != "42501" {
				t.Errorf("%s without the setting: %q", sql, got.Frames)
			}
			got := bob.Ask(sql)
			if got.Err != nil || len(got.Rows) != 0 || !strings.Contains(strings.Join(got.Notes, "\n"), "are shown, whether there are any or not") {
				t.Errorf("%s: %v, %q, %q", sql, got.Err, got.Rows, got.Notes)
			}
			heard[i] += strings.Join(got.Frames, "\n")
		}
		for _, sql := range []string{
			`SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t`, `SELECT EXISTS (SELECT 1 FROM people)`, `SELECT (SELECT age FROM people LIMIT 1)`,
			`SELECT age FROM people UNION ALL SELECT 1`, `SELECT array(SELECT age FROM people)`,
			`SELECT 1 AS a FROM people WHERE note = 'abc' LIMIT 1`, `SELECT 1 AS a FROM people LIMIT 1`, `SELECT age FROM people WHERE age >= 18 LIMIT 10`, `COPY (SELECT age FROM people LIMIT 10) TO STDOUT`,
		} {
			if got := bob.Ask(sql); got.Err == nil {
				t.Errorf("%s: %q", sql, got.Rows)
			}
		}
		for _, sql := range []string{
			`SELECT * FROM people LIMIT 0`, `SELECT age FROM people UNION ALL SELECT age FROM people LIMIT 0`, `SELECT * FROM (SELECT * FROM people) t LIMIT 0`,
			`WITH x AS (SELECT * FROM people) SELECT * FROM x LIMIT 0`, `SELECT p.*, e.* FROM people p JOIN events e USING (uid) LIMIT 0`,
		} {
			got := alice.Ask(sql)
			if got.Err != nil || len(got.Rows) != 0 || len(got.Frames) < 2 || !strings.Contains(got.Frames[0], fmt.Sprint([]byte("age"))) {
				t.Errorf("%s: %v, %q", sql, got.Err, got.Frames)
			}
		}
		if charges := bob.Ask(`SELECT * FROM dp.charges`); len(charges.Rows) != 0 {
			t.Errorf("charged: %q", charges.Rows)
		}
		p := kit.StartPsql(t, s.Address, "alice", "lab")
		p.Run(`SET dp.probes = empty;`)
		if text := p.Run(`TABLE people LIMIT 5;`); !strings.Contains(text, "NOTICE:  free: no rows of people are shown") || !strings.Contains(text, "(0 rows)") {
			t.Errorf("psql: %s", text)
		}
		if text := p.Run(`SET dp.probes = maybe;`); !strings.Contains(text, "Available values: off, empty, made_up.") {
			t.Errorf("psql: %s", text)
		}
		if text := kit.Words(p.Run(`EXPLAIN SELECT * FROM people;`)); !strings.Contains(text, "has none, by dp.probes = empty") {
			t.Errorf("psql: %s", text)
		}
		p.Run(`SET dp.epsilon = 1;`)
		p.Run(`SELECT count(*) FROM dp.made_up;`)
		if text := p.Run(`SELECT city, hiv FROM people LIMIT 5;`); !strings.Contains(text, "(0 rows)") {
			t.Errorf("with made-up rows: %s", text)
		}
		p.Run(`SET dp.probes = made_up;`)
		if text := p.Run(`SELECT city, hiv FROM people LIMIT 5;`); !strings.Contains(text, "(5 rows)") || !strings.Contains(text, "synthetic") {
			t.Errorf("with made-up rows: %s", text)
		}
	}
	if heard[0] != heard[1] {
		t.Errorf("neighbours differ:\n%s\n%s", heard[0], heard[1])
	}
}

// TestProbesOfADriver: the columns of a preview come described before it runs, and the setting is in a connection's
// options.
func TestProbesOfADriver(t *testing.T) {
	kit.Beside(t)
	s := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("alice", "lab")+"&options=-c%20dp.probes%3Dempty")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT age, city, hiv FROM people LIMIT $1`, 10)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	if rows.Next() || rows.Err() != nil || strings.Join(names, " ") != "age city hiv" {
		t.Errorf("%q, %v", names, rows.Err())
	}
}

// TestOffsetOfNothing: a count over rows from which OFFSET $1 takes none, as Prisma asks it, is the count; one that
// takes some is refused.
func TestOffsetOfNothing(t *testing.T) {
	kit.Beside(t)
	s := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var plain int64
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM people WHERE age >= $1`, 30).Scan(&plain); err != nil {
		t.Fatal(err)
	}
	const sql = `SELECT count(*) AS "_count" FROM (SELECT "public"."people"."age" FROM "public"."people" WHERE age >= $1 OFFSET $2) AS "sub"`
	for _, none := range []any{0, nil} {
		var n int64
		if err := conn.QueryRow(ctx, sql, 30, none).Scan(&n); err != nil || n != plain {
			t.Errorf("OFFSET %v: %d, %v, want %d", none, n, err, plain)
		}
	}
	var n int64
	for _, some := range []int{1, -1} {
		if err := conn.QueryRow(ctx, sql, 30, some).Scan(&n); err == nil || !strings.Contains(err.Error(), "OFFSET over private rows") {
			t.Errorf("OFFSET %d: %d, %v", some, n, err)
		}
	}
}
