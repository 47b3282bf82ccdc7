package answers

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// viewTables are SELECTs as sources: one that is analysed, one that is trusted, for the schema of the private tables.
func viewTables(schema string) string {
	return `      - name: adults
        source: SELECT uid, age / 10 AS decade, city FROM people WHERE age >= 20
        columns: [{name: decade, type: integer}, {name: city, type: text}]
      - name: earners
        trusted: true
        source: SELECT uid, upper(city) AS place, income > 40000 AS rich FROM ` + schema + `.people -- the owner's own
        unit: earners.uid = people.uid
        max_rows_per_unit: 1
        columns:
          - {name: place, type: text, domain: {values: [C0, C1, C2, C3]}}
          - {name: rich, type: boolean}
`
}

func appendPolicy(t *testing.T, path, more string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// text is all that an answer shows.
func text(a kit.Answer) string {
	var lines []string
	for _, row := range a.Rows {
		lines = append(lines, strings.Join(row, " | "))
	}
	return strings.Join(lines, "\n")
}

// TestViewsThroughSQL: both kinds of SELECT are tables to clients, on both engines; check warns of the trusted one and
// says where another is wrong; the trusted text reaches the database as it was written.
func TestViewsThroughSQL(t *testing.T) {
	kit.Beside(t)
	duck := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	postgres, _ := kit.Postgres(t, pgtest.Shared(t), kit.Budgets{User: "10", Cap: "20"}, 0)
	for schema, path := range map[string]string{"private.main": duck, "public": postgres} {
		t.Run(schema, func(t *testing.T) {
			appendPolicy(t, path, viewTables(schema))
			if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 || !strings.Contains(out.Stdout, "table earners is a SELECT of the owner's, sent as it is written") {
				t.Fatalf("%+v", out)
			}
			w := kit.Serve(t, path).Connect("alice", "lab")
			if a := w.Ask(`SELECT decade, count(*) FROM adults GROUP BY 1 ORDER BY 1`); a.Err != nil || len(a.Rows) != 10 {
				t.Errorf("%v %v", a.Err, a.Rows)
			}
			a := w.Ask(`SELECT place, rich, count(*) FROM earners GROUP BY 1, 2 ORDER BY 1, 2`)
			if a.Err != nil || len(a.Rows) < 8 {
				t.Fatalf("%v %v", a.Err, a.Rows)
			}
			if n, err := strconv.Atoi(a.Rows[0][2]); err != nil || n < 30 || n > 250 {
				t.Errorf("%v", a.Rows)
			}
			a = w.Ask(`SELECT a.city, e.rich, count(*) FROM adults a JOIN earners e ON e.uid = a.uid GROUP BY 1, 2`)
			if a.Err != nil || len(a.Rows) == 0 {
				t.Errorf("%v %v", a.Err, a.Rows)
			}
			if a := w.Ask(`EXPLAIN VERBOSE SELECT count(*) FROM earners WHERE rich`); a.Err != nil || !strings.Contains(text(a), "-- the owner's own") {
				t.Errorf("%v %s", a.Err, text(a))
			}
			if a := w.Ask(`SELECT table_name, trusted, max_rows_per_unit FROM dp.tables ORDER BY 1`); a.Err != nil || !slices.Equal(a.Rows[0], []string{"adults", "f", "NULL"}) || !slices.Equal(a.Rows[1], []string{"earners", "t", "1"}) {
				t.Errorf("%v %v", a.Err, a.Rows)
			}
			if a := w.Ask(`SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'adults' ORDER BY ordinal_position`); a.Err != nil || len(a.Rows) != 2 || a.Rows[0][0] != "decade" {
				t.Errorf("%v %v", a.Err, a.Rows)
			}
			if a := w.Ask(`SELECT uid FROM adults`); a.Err == nil {
				t.Errorf("%v", a.Rows)
			}
		})
	}
}

// TestViewsThatDoNotHold: serve would not start over a SELECT that the planner or the database refuses.
func TestViewsThatDoNotHold(t *testing.T) {
	kit.Beside(t)
	duck := func(t *testing.T) string { return kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0) }
	postgres := func(t *testing.T) string {
		path, _ := kit.Postgres(t, pgtest.Shared(t), kit.Budgets{User: "10", Cap: "20"}, 0)
		return path
	}
	for _, c := range []struct {
		name, schema, old, new, want string
		open                         func(*testing.T) string
	}{
		{"a column that is not there", "public", "age / 10", "agee / 10", "character 13 of the SELECT: column \"agee\" does not exist", postgres},
		{"a type", "public", "income > 40000 AS rich", "income AS rich", "the policy says boolean, the database says double precision", postgres},
		{"a type in DuckDB", "private.main", "income > 40000 AS rich", "income AS rich", "the policy says boolean, the database says DOUBLE", duck},
		{"a table that is not there", "public", "public.people --", "public.persons --", "does not accept its SELECT", postgres},
		{"a function that is not there", "private.main", "upper(city)", "upperr(city)", "does not accept its SELECT", duck},
		{"a column that is not shown", "private.main", "AS place", "AS places", "column place (place) does not exist", duck},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.open(t)
			appendPolicy(t, path, strings.Replace(viewTables(c.schema), c.old, c.new, 1))
			if out := kit.Run(t, "", "check", "--policy", path); out.Code != 3 || !strings.Contains(out.Stdout+out.Stderr, c.want) {
				t.Errorf("%+v\nwant %s", out, c.want)
			}
		})
	}
}
