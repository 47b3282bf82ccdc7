package clients

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// twinPolicy gives a fixture's policy a PostgreSQL twin on a server.
func twinPolicy(t *testing.T, path string, server *pgtest.Server, database string) {
	t.Helper()
	server.Exec(t, "postgres", `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'twin_owner') THEN
		CREATE ROLE twin_owner LOGIN CREATEDB CREATEROLE; END IF; END $$`)
	rewritePolicy(t, path, "\nledger:", "\nsandbox: {url: \""+server.URLFor("twin_owner", database)+"\"}\nledger:")
}

func rewritePolicy(t *testing.T, path, old, now string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("the policy has no %q", old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// twinStatements go to the sandbox: catalogs, PostgreSQL's own functions over released counts, dp.* tables, prepared
// ones.
var twinStatements = []string{
	"SELECT c.*, c.tableoid FROM pg_catalog.pg_class c WHERE relname IN ('people', 'pg_class') ORDER BY relname",
	"SELECT table_catalog, table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' ORDER BY ordinal_position",
	"SELECT city, to_char(count(*), 'FM999G999'), rank() OVER (ORDER BY count(*) DESC) FROM people GROUP BY city ORDER BY 3, 1",
	"WITH t AS (SELECT age / 10 AS decade, count(*) AS n FROM people GROUP BY 1) SELECT decade, n, n - lag(n) OVER (ORDER BY decade), regexp_replace(decade::text, '^', 'd') FROM t ORDER BY 1",
	"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), stddev(n)::numeric(10, 2) FROM (SELECT city, count(*) AS n FROM people GROUP BY city) t",
	"SELECT json_agg(t) FROM (SELECT hiv, count(*) AS n FROM people GROUP BY hiv ORDER BY hiv) t",
	"SELECT name, kind, cells, paid FROM dp.releases ORDER BY name",
	"SELECT current_user, current_database(), current_schema(), obj_description('people'::regclass), col_description('people'::regclass, 1)",
	"SELECT * FROM pg_roles", "SELECT * FROM pg_database", "SELECT nope FROM (SELECT count(*) AS n FROM people) t",
	"SELECT n / (n - n) FROM (SELECT count(*) AS n FROM people) t", "SELECT pg_read_file('/etc/passwd')",
}

// TestTwinServes: a proxy whose outer queries run in a twin answers, and what a client
// learns without having paid is the same over two neighbouring private databases.
func TestTwinServes(t *testing.T) {
	kit.Beside(t)
	private, sandbox := pgtest.Shared(t), pgtest.Start(t)
	var free [2][]string
	for i, without := range []int{0, 7} {
		path, _ := kit.Postgres(t, private, kit.Budgets{User: "1000", Cap: "1000"}, without)
		// Each has the same name on a server of its own kind of history: the twin's server never saw the private one.
		server := sandbox
		if i == 1 {
			server = pgtest.Start(t)
		}
		twinPolicy(t, path, server, "lab_twin")
		p := kit.Serve(t, path)
		w := p.Connect("alice", "lab")
		for _, text := range twinStatements {
			a := w.Ask(text)
			if a.Err == nil && strings.Contains(text, "FROM people") && len(a.Rows) == 0 {
				t.Errorf("%s: no rows", text)
			}
			if !strings.Contains(text, "FROM people") {
				free[i] = append(free[i], text+"\n"+fmt.Sprint(a.Rows, a.Frames))
			}
			if a.Err != nil && !strings.Contains(text, "nope") && !strings.Contains(text, "n - n") && !strings.Contains(text, "pg_read") {
				t.Errorf("%s: %v", text, a.Err)
			}
			if b := w.Extended(text); (b.Err == nil) != (a.Err == nil) || b.Err != nil && b.Err.Code != a.Err.Code {
				t.Errorf("%s in binary: %v, in text %v", text, b.Err, a.Err)
			}
		}
		if i == 0 {
			reloaded(t, p, path)
		}
	}
	for k := range free[0] {
		if free[0][k] != free[1][k] {
			t.Errorf("neighbours differ:\n%s\n%s", free[0][k], free[1][k])
		}
	}
}

// reloaded takes a column out of the policy: the twin's catalogs follow.
func reloaded(t *testing.T, p *kit.Program, path string) {
	t.Helper()
	rewritePolicy(t, path, "          - {name: note, type: text, domain: {values: [n0, n1, n2, n3, n4]}}\n", "")
	w := p.Connect("alice", "lab")
	const columns = "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'people'::regclass AND attnum > 0 AND NOT attisdropped"
	deadline, got := time.Now().Add(30*time.Second), ""
	for time.Now().Before(deadline) {
		if a := w.Ask(columns); a.Err == nil {
			if got = fmt.Sprint(a.Rows); strings.Contains(got, "age,income,city,hiv") {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("after the reload the columns are %s", got)
}
