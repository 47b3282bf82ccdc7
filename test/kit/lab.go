package kit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// Lab is the fixture of the procedures: a thousand people, each with up to 40 events, and the same without number 7,
// whose cells are the canaries. There is one proxy on each, with one policy and equal fresh ledgers.
type Lab struct {
	Engine  string // duckdb, postgres, or snapshot, of a PostgreSQL
	Budgets Budgets
	Users   int    // probe users u0, u1, … beside alice, bob and the admin
	People  int    // 1000 if 0
	Events  int    // of number 7; 7 if 0
	Keyed   bool   // people has a primary key on DuckDB too, as it always has on PostgreSQL: rows that need no bounding take half of the time
	Timing  string // server.timing, if not empty
	Change  []string
	With    []string // SQL that only the side with number 7 runs, before it is served
}

// Side is one proxy of the pair, its policy, and the PostgreSQL server behind it, if any.
type Side struct {
	*Program
	Server   *pgtest.Server
	Database string
	seen     int // statements of the server's log before the first question
}

// SQL makes the tables of a side.
func (l Lab) SQL(without int) []string {
	people, events := cmp.Or(l.People, 1000), cmp.Or(l.Events, 7)
	return []string{
		fmt.Sprintf(`CREATE TABLE people AS SELECT i::BIGINT AS uid, (18 + i %% 60)::INTEGER AS age, (CASE WHEN i = 7 THEN 99500 ELSE 1000.0 * (i %% 90) END)::FLOAT8 AS income,
  CASE WHEN i = 7 THEN 'xyz' ELSE 'n' || (i %% 5) END AS note, CASE WHEN i = 7 THEN 'Zzyzx' ELSE 'c' || (i %% 4) END AS city, i = 7 AS hiv
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

// Pair starts both sides.
func (l Lab) Pair(t *testing.T) (with, without Side) {
	t.Helper()
	return l.Serve(t, 0), l.Serve(t, 7)
}

// Serve starts one side: the number that is left out, 0 for none.
func (l Lab) Serve(t *testing.T, without int, args ...string) Side {
	t.Helper()
	s, err := l.Try(t, without, args...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Try does it where the policy may be refused.
func (l Lab) Try(t *testing.T, without int, args ...string) (Side, error) {
	t.Helper()
	s, path := l.Lay(t, without)
	s.Program = &Program{T: t, Policy: path, Args: append([]string{"serve", "--policy", path}, args...)}
	t.Cleanup(func() { s.Program.Stop(syscall.SIGKILL) })
	if s.Server != nil {
		s.seen = len(Statements(t, s.Server))
	}
	if err := s.Program.TryStart(); err != nil {
		return s, err
	}
	if l.Engine == "postgres" { // what makes a snapshot is among what it hears
		s.seen = len(Statements(t, s.Server))
	}
	return s, nil
}

// Lay makes the database of a side and writes its policy.
func (l Lab) Lay(t *testing.T, without int) (s Side, path string) {
	t.Helper()
	l.Budgets = cmp.Or(l.Budgets, Budgets{"100000", "900000"})
	script := l.SQL(without)
	if without == 0 {
		script = append(script, l.With...)
	}
	if l.Engine != "duckdb" && l.Engine != "" {
		s.Server = pgtest.Start(t, Logged...)
		role := s.Server.Role(t, "")
		s.Database = s.Server.Database(t)
		s.Server.Exec(t, s.Database, append(script, `ALTER TABLE people ADD PRIMARY KEY (uid)`, `ANALYZE`, `GRANT SELECT ON people, events TO `+role)...)
		path = WritePolicy(t, memory.Dir(t), s.Server.URLFor(role, s.Database), "public", l.Budgets)
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
		if l.Keyed {
			keyed(t, db)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		path = WritePolicy(t, dir, "duckdb:lab.duckdb", "main", l.Budgets)
	}
	l.policy(t, path)
	return s, path
}

// policy turns the fixture's policy into the lab's.
func (l Lab) policy(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := map[bool]string{true: "public", false: "main"}[l.Engine != "duckdb" && l.Engine != ""]
	var users strings.Builder
	for i := range l.Users {
		fmt.Fprintf(&users, "  - {name: u%d, password: %q}\n", i, Verifier(t, "probe"))
	}
	out := string(text) + fmt.Sprintf(labTables, schema)
	out = strings.Replace(out, "datasets:\n", users.String()+"datasets:\n", 1)
	out = strings.Replace(out, "        columns:\n", "        columns:\n          - {name: uid, type: bigint, keys: join}\n", 1)
	if l.Engine == "snapshot" {
		// One connection: several would be heard in any order, each by the name of a snapshot of its own.
		out = strings.Replace(out, "backend: {", "backend: {snapshot: {dir: snapshots, every: 1d, connections: 1}, ", 1)
	}
	if l.Timing != "" {
		out = strings.Replace(out, "server: {", "server: {timing: "+l.Timing+", ", 1)
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(l.Change...).Replace(out)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Heard are the statements that the private database of this side has seen since the proxy stood; none of DuckDB, which
// keeps no log.
func (s Side) Heard(t *testing.T) []string {
	t.Helper()
	if s.Server == nil {
		return nil
	}
	return Statements(t, s.Server)[s.seen:]
}

// Undeclared takes the declared releases out of the policy: they are drawn once for all users, and would be one answer.
var Undeclared = []string{"        releases:\n          - {kind: range, columns: [age], epsilon: 0.5, insist: true}\n          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}\n", ""}

// OneByOne gives PostgreSQL one connection for paid queries: on several the scans of a statement are heard in any
// order.
var OneByOne = []string{"sslmode=disable", "sslmode=disable&pool_max_conns=2"}

// SameHeard is procedure P1's look at the databases, which answer OneByOne: both saw the same statements, with the same
// arguments, and none failed. It returns how many did.
func SameHeard(t *testing.T, with, without Side) (errors int) {
	t.Helper()
	one, other := with.Heard(t), without.Heard(t)
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

// Query asks this side's database itself, as its superuser.
func (s Side) Query(t *testing.T, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Server.URLFor("postgres", s.Database))
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

// Plan is how this side's database would run a statement if it had to use an index, and no bitmaps, as dpproxy has it.
func (s Side) Plan(t *testing.T, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Server.URLFor("postgres", s.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET enable_bitmapscan = off"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// Probe is a question whose answers on neighbours are compared: what it costs by the policy, and which number of its
// answer tells most.
type Probe struct {
	Name    string
	SQL     string
	Epsilon float64
	Number  func(rows [][]string) float64 // nil: the first cell
}

// Cell reads a number of an answer.
func Cell(row, column int) func(rows [][]string) float64 {
	return func(rows [][]string) float64 {
		if row >= len(rows) || column >= len(rows[row]) {
			return math.NaN()
		}
		n, err := strconv.ParseFloat(rows[row][column], 64)
		if err != nil {
			return math.NaN()
		}
		return n
	}
}

// DrawnBy asks each probe once as each of n users, so that every answer is drawn for itself, and returns the numbers by
// probe.
func DrawnBy(p *Program, n int, probes []Probe) ([][]float64, error) {
	const clients = 4
	numbers := make([][]float64, len(probes))
	for i := range numbers {
		numbers[i] = make([]float64, n)
	}
	var all sync.WaitGroup
	failed := make(chan error, clients)
	for c := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for u := c; u < n; u += clients {
				if err := AskedBy(p, u, probes, numbers); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	all.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
		return numbers, nil
	}
}

// AskedBy asks them as one user.
func AskedBy(p *Program, u int, probes []Probe, numbers [][]float64) error {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, p.ProbeURL(u))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i, q := range probes {
		results, err := conn.Exec(ctx, fmt.Sprintf("SET dp.epsilon = %g; %s", q.Epsilon, q.SQL)).ReadAll()
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		var rows [][]string
		for _, r := range results[len(results)-1].Rows {
			var row []string
			for _, v := range r {
				row = append(row, string(v))
			}
			rows = append(rows, row)
		}
		number := q.Number
		if number == nil {
			number = Cell(0, 0)
		}
		numbers[i][u] = number(rows)
	}
	return nil
}

// DrawnByBoth asks both sides at once.
func DrawnByBoth(with, without *Program, n int, probes []Probe) (sides [2][][]float64, err error) {
	errs := [2]error{}
	var both sync.WaitGroup
	for i, p := range []*Program{with, without} {
		both.Add(1)
		go func() {
			defer both.Done()
			sides[i], errs[i] = DrawnBy(p, n, probes)
		}()
	}
	both.Wait()
	return sides, errors.Join(errs[:]...)
}

// LowerBounds is procedure P2: from n answers a side to each probe, a lower bound of the ε by which the two sides
// differ. One of them is above the truth with probability at most the alarm. The judge is stattest.Audit: it chooses
// the event on one part of the answers and bounds its probabilities by Clopper and Pearson on the other.
func LowerBounds(sides [2][][]float64, probes []Probe, a stattest.Alarm) ([]float64, error) {
	bounds := make([]float64, len(probes))
	for i := range probes {
		var err error
		if bounds[i], err = (stattest.Audit{One: sides[0][i], Other: sides[1][i]}).Epsilon(a); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// BoundsAlarm is the false alarm of one bound.
const BoundsAlarm stattest.Alarm = 1e-5
