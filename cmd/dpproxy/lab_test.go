package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// lab is the fixture of the procedures: a thousand people, each with up to 40 events, and the same without number 7, whose
// cells are the canaries. There is one proxy on each, with one policy and equal fresh ledgers.
type lab struct {
	engine  string // duckdb or postgres
	budgets budgets
	users   int    // probe users u0, u1, … beside alice, bob and the admin
	people  int    // 1000 if 0
	events  int    // of number 7; 7 if 0
	timing  string // server.timing, if not empty
	change  []string
	with    []string // SQL that only the side with number 7 runs, before it is served
}

// side is one proxy of the pair, its policy, and the PostgreSQL server behind it, if any.
type side struct {
	*program
	server   *pgtest.Server
	database string
	seen     int // statements of the server's log before the first question
}

func (l lab) sql(without int) []string {
	people, events := cmp.Or(l.people, 1000), cmp.Or(l.events, 7)
	return []string{
		fmt.Sprintf(`CREATE TABLE people AS SELECT i::BIGINT AS uid, (18 + i %% 60)::INTEGER AS age, (CASE WHEN i = 7 THEN 99500 ELSE 1000.0 * (i %% 90) END)::FLOAT8 AS income,
  CASE WHEN i = 7 THEN 'abc' ELSE 'n' || (i %% 5) END AS note, CASE WHEN i = 7 THEN 'Zzyzx' ELSE 'c' || (i %% 4) END AS city, i = 7 AS hiv
FROM generate_series(1, %d) AS s(i) WHERE i <> %d`, people, without),
		fmt.Sprintf(`CREATE TABLE events AS SELECT i::BIGINT AS uid, (DATE '2024-01-01' + (j %% 100)::INTEGER)::DATE AS day,
  (CASE WHEN i = 7 THEN 1.234567 ELSE (i * j %% 400) * 0.25 END)::NUMERIC(18, 6) AS amount
FROM generate_series(1, %d) AS s(i), generate_series(1, 40) AS r(j) WHERE j <= i %% 41 AND i NOT IN (7, %d)`, people, without),
		fmt.Sprintf(`INSERT INTO events SELECT 7, DATE '2024-01-01' + (j %% 100)::INTEGER, 1.234567 FROM generate_series(1, %d) AS r(j) WHERE %d <> 7`, events, without),
	}
}

// labTables is what the lab's policy has beyond the fixture's.
const labTables = `      - name: events
        source: %s.events
        unit: events.uid = people.uid
        max_rows_per_unit: 5
        expected_rows: 20000
        columns:
          - {name: uid, type: bigint, keys: join}
          - {name: day, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}
          - {name: amount, type: "numeric(18,6)", domain: {min: 0, max: 100, step: 0.25}}
`

// pair starts both sides.
func (l lab) pair(t *testing.T) (with, without side) {
	t.Helper()
	return l.serve(t, 0), l.serve(t, 7)
}

// serve starts one side: the number that is left out, 0 for none.
func (l lab) serve(t *testing.T, without int, args ...string) side {
	t.Helper()
	s, err := l.try(t, without, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// try does it where the policy may be refused.
func (l lab) try(t *testing.T, without int, args ...string) (side, error) {
	t.Helper()
	s, path := l.lay(t, without)
	s.program = &program{t: t, as: "1", policy: path, args: append([]string{"serve", "--policy", path}, args...)}
	t.Cleanup(func() { s.program.stop(syscall.SIGKILL) })
	if err := s.program.tryStart(); err != nil {
		return s, err
	}
	if s.server != nil {
		s.seen = len(statements(t, s.server))
	}
	return s, nil
}

// lay makes the database of a side and writes its policy.
func (l lab) lay(t *testing.T, without int) (s side, path string) {
	t.Helper()
	l.budgets = cmp.Or(l.budgets, budgets{"100000", "900000"})
	script := l.sql(without)
	if without == 0 {
		script = append(script, l.with...)
	}
	if l.engine == "postgres" {
		s.server = pgtest.Start(t, logged...)
		role := s.server.Role(t, "")
		s.database = s.server.Database(t)
		s.server.Exec(t, s.database, append(script, `ALTER TABLE people ADD PRIMARY KEY (uid)`, `ANALYZE`, `GRANT SELECT ON people, events TO `+role)...)
		path = writePolicy(t, memory.Dir(t), s.server.URLFor(role, s.database), "public", l.budgets)
	} else {
		dir := memory.Dir(t)
		db, err := sql.Open("duckdb", filepath.Join(dir, "lab.duckdb"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range script {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		path = writePolicy(t, dir, "duckdb:lab.duckdb", "main", l.budgets)
	}
	l.policy(t, path)
	return s, path
}

// policy turns the fixture's policy into the lab's.
func (l lab) policy(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := map[bool]string{true: "public", false: "main"}[l.engine == "postgres"]
	var users strings.Builder
	for i := range l.users {
		fmt.Fprintf(&users, "  - {name: u%d, password: %q}\n", i, verifier(t, "probe"))
	}
	out := string(text) + fmt.Sprintf(labTables, schema)
	out = strings.Replace(out, "datasets:\n", users.String()+"datasets:\n", 1)
	out = strings.Replace(out, "        columns:\n", "        columns:\n          - {name: uid, type: bigint, keys: join}\n", 1)
	if l.timing != "" {
		out = strings.Replace(out, "server: {", "server: {timing: "+l.timing+", ", 1)
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(l.change...).Replace(out)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// heard are the statements that the private database of this side has seen since the proxy stood; none of DuckDB, which keeps
// no log.
func (s side) heard(t *testing.T) []string {
	t.Helper()
	if s.server == nil {
		return nil
	}
	return statements(t, s.server)[s.seen:]
}

// length is how much a test does: little in `make test`, and where a planted fault is to be found; what fits CI in `make safety`; all of it
// in `make safety-full`.
func length(little, ci, full int) int {
	if os.Getenv("DPPROXY_SAFETY") == "" {
		ci = little
	}
	return threats.Length(ci, full)
}

// beside has a test run at the same time as others that call it, after all that do not: those measure times, count what this
// process has open, or hang on what was drawn in it before. At full length each test runs alone.
func beside(t *testing.T) {
	t.Helper()
	if !threats.Full() {
		t.Parallel()
	}
}

// undeclared takes the declared releases out of the policy: they are drawn once for all users, and would be one answer.
var undeclared = []string{"        releases:\n          - {kind: range, columns: [age], epsilon: 0.5}\n          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}\n", ""}

// probeURL is the connection string of a probe user.
func (p *program) probeURL(i int) string {
	return fmt.Sprintf("postgres://u%d:probe@%s/lab?sslmode=disable&connect_timeout=20", i, p.address)
}

// sameHeard is procedure P1's look at the databases: both saw the same statements, with the same arguments, and none failed. It
// returns how many did.
func sameHeard(t *testing.T, with, without side) (errors int) {
	t.Helper()
	one, other := with.heard(t), without.heard(t)
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			t.Errorf("the databases saw different statements:\n%s\n%s", one[i], other[i])
			break
		}
	}
	if len(one) != len(other) {
		t.Errorf("the databases saw %d statements and %d", len(one), len(other))
	}
	for _, line := range one {
		if strings.Contains(line, "ERROR") {
			errors++
			t.Error("the database saw a statement that failed: ", line)
		}
	}
	return errors
}

// query asks this side's database itself, as its superuser.
func (s side) query(t *testing.T, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.server.URLFor("postgres", s.database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var out string
	if err := conn.QueryRow(t.Context(), "SELECT ("+sql+")::text").Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}
