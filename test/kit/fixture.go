package kit

import (
	"context"
	"database/sql"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/policy"
)

// fixture is the neighbouring pair of security.md: 1,000 people, of whom number 7 is the only hiv, the only note 'xyz',
// the only city Zzyzx; and the same without number 7.
const fixtureSQL = `CREATE TABLE people AS SELECT i AS uid, (18 + i %% 60)::INTEGER AS age, (1000.0 * (i %% 90))::FLOAT8 AS income,
  CASE WHEN i = 7 THEN 'xyz' ELSE 'n' || (i %% 5) END AS note, CASE WHEN i = 7 THEN 'Zzyzx' ELSE 'c' || (i %% 4) END AS city, i = 7 AS hiv
FROM generate_series(1, 1000) AS s(i) WHERE i <> %d`

// fixturePolicy is the policy over the fixture; %[1]s is the backend, %[2]s the source schema.
const fixturePolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
  - {name: bob, password: %q}
  - {name: dba, password: %q, admin: true}
datasets:
  - id: lab
    unit: {name: person, key: people.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: %s, delta: 0}
    budgets: {"*": {epsilon: %s, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: %s.people
        expected_rows: 1000
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}, outside: clamp}
          - {name: income, type: double precision, domain: {min: 0, max: 100000, step: 1000}}
          - {name: city, type: text, domain: {values: [c0, c1, c2, c3]}}
          - {name: note, type: text, domain: {values: [n0, n1, n2, n3, n4]}}
          - {name: hiv, type: boolean, domain: {values: [false, true]}}
        releases:
          - {kind: range, columns: [age], epsilon: 0.5, insist: true}
          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
`

// Budgets of a fixture, as decimals.
type Budgets struct{ User, Cap string }

// DuckDB writes a fixture's database and policy into a directory of its own, in memory; without names the uid that is
// absent, 0 for none.
func DuckDB(t *testing.T, b Budgets, without int) string {
	t.Helper()
	return DuckDBIn(t, memory.Dir(t), b, without)
}

// DuckDBIn writes it into a directory: t.TempDir, which is on a disk, where a test is about durability.
func DuckDBIn(t *testing.T, dir string, b Budgets, without int) string {
	t.Helper()
	file := filepath.Join(dir, "lab.duckdb")
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(fixtureSQL, without)); err != nil {
		t.Fatal(err)
	}
	return WritePolicy(t, dir, "duckdb:lab.duckdb", "main", b)
}

// Keyed gives people of a DuckDB fixture a primary key, and returns the path of its policy: whoever asks thousands of
// times for the noise, and not for how rows are bounded, takes half of the time.
func Keyed(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keyed(t, db)
	return path
}

func keyed(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec("ALTER TABLE people ADD PRIMARY KEY (uid)"); err != nil {
		t.Fatal(err)
	}
}

// DuckDBReleasing is the fixture with more releases.
func DuckDBReleasing(t *testing.T, without int, releases string) string {
	t.Helper()
	path := DuckDB(t, Budgets{"10", "20"}, without)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(string(data)+releases), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// WritePolicy writes the fixture's policy over a backend whose tables are in a schema, and returns its path.
func WritePolicy(t *testing.T, dir, backend, schema string, b Budgets) string {
	t.Helper()
	text := fmt.Sprintf(fixturePolicy, backend, Verifier(t, "alice"), Verifier(t, "bob"), Verifier(t, "dba"), b.Cap, b.User, schema)
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Verifier is the SCRAM verifier of a password, the same one in each call, so that two policies are byte-equal.
var Verifier = func() func(t *testing.T, password string) string {
	var mu sync.Mutex
	made := map[string]string{}
	return func(t *testing.T, password string) string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if made[password] == "" {
			v, err := policy.Verifier(password, strings.NewReader(strings.Repeat(password+"-salt", 20)))
			if err != nil {
				t.Fatal(err)
			}
			made[password] = v
		}
		return made[password]
	}
}()

// Postgres writes the fixture into a database of its own on a server, with so many times 1,000 people, and a policy
// over it whose role may only read.
func Postgres(t *testing.T, server *pgtest.Server, b Budgets, without int) (path, database string) {
	t.Helper()
	return PostgresIn(t, memory.Dir(t), server, b, without)
}

// PostgresIn writes the policy into a directory.
func PostgresIn(t *testing.T, dir string, server *pgtest.Server, b Budgets, without int) (path, database string) {
	t.Helper()
	role := server.Role(t, "")
	database = server.Database(t)
	server.Exec(t, database, fmt.Sprintf(fixtureSQL, without), `ALTER TABLE public.people ADD PRIMARY KEY (uid)`, `ANALYZE public.people`,
		`GRANT SELECT ON public.people TO `+role)
	return WritePolicy(t, dir, server.URLFor(role, database), "public", b), database
}

// Logged is what a server logs when statements are compared: each statement and its arguments, and nothing of time.
var Logged = []string{"log_statement=all", "log_line_prefix=", "log_checkpoints=off", "autovacuum=off"}

// ExecDuckDB changes the database of a fixture that is not served yet.
func ExecDuckDB(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

// NamedUsers adds so many users to a policy, each with her name for a password.
func NamedUsers(t *testing.T, path string, n int) (names []string) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		names = append(names, fmt.Sprintf("n%02d", i))
		fmt.Fprintf(&lines, "  - {name: %s, password: %q}\n", names[i], Verifier(t, names[i]))
	}
	Edit(t, path, "users:\n", "users:\n"+lines.String())
	return names
}

// Edit replaces texts in a file, pairwise.
func Edit(t *testing.T, path string, oldNew ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldNew...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Edited is the policy that a file would be after such an edit; the file stays.
func Edited(t *testing.T, path string, oldNew ...string) *policy.Policy {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse([]byte(strings.NewReplacer(oldNew...).Replace(string(text))), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AdultRows are its header and rows.
func AdultRows(t *testing.T, file string) (header []string, rows [][]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1:]
}

// ExamplePolicy copies an example into a directory of its own, listening on a free port.
func ExamplePolicy(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/adult", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memory.Dir(t), "policy.yaml")
	oldNew = append(oldNew, "127.0.0.1:6432", "127.0.0.1:0")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldNew...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// RowsInPostgres loads the rows into a table of that name of a throw-away server and returns a URL for a role that may
// only read them.
func RowsInPostgres(t *testing.T, table string, header []string, rows [][]string) (server *pgtest.Server, url string) {
	t.Helper()
	server = pgtest.Start(t, "log_statement=all")
	role, database := server.Role(t, ""), server.Database(t)
	columns := make([]string, len(header))
	for i, name := range header {
		columns[i] = name + " text"
		if _, err := strconv.Atoi(rows[0][i]); err == nil {
			columns[i] = name + " integer"
		}
	}
	server.Exec(t, database, "CREATE TABLE public."+table+" ("+strings.Join(columns, ", ")+")", "GRANT SELECT ON public."+table+" TO "+role)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.CopyFrom(t.Context(), pgx.Identifier{"public", table}, header, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		values := make([]any, len(header))
		for c, v := range rows[i] {
			values[c] = v
			if strings.HasSuffix(columns[c], "integer") {
				n, err := strconv.Atoi(v)
				if err != nil {
					return nil, err
				}
				values[c] = int32(n)
			}
		}
		return values, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return server, server.URLFor(role, database)
}

// Update has the documents that hold what the program prints written anew, and golden files.
var Update = flag.Bool("update", false, "write the documents and golden files that hold what the program prints anew: the tour (README.md, docs/tour.md) and docs/mechanisms.md from a million people")

// Demo starts `dpproxy demo` on a free port.
func Demo(t *testing.T, dir, rows string) *Program {
	t.Helper()
	p := &Program{T: t}
	p.Start([]string{"demo", "--dir", dir, "--rows", rows, "--listen", "127.0.0.1:0"})
	t.Cleanup(func() { p.Stop(syscall.SIGKILL) })
	return p
}
