package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// asProgram makes the test binary behave as dpproxy itself, so that tests start, kill and restart a real process.
const asProgram = "DPPROXY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	sandbox.ChildMain()
	parserChild()
	if os.Getenv(asProgram) == "1" {
		os.Exit(run(context.Background(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program is a dpproxy process under test.
type program struct {
	t       *testing.T
	policy  string
	address string
	cmd     *exec.Cmd
	mu      sync.Mutex
	log     strings.Builder
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+)`)

// serveProcess starts `dpproxy serve` on a policy and waits until it listens.
func serveProcess(t *testing.T, policyPath string, args ...string) *program {
	t.Helper()
	p := &program{t: t, policy: policyPath}
	p.start(append([]string{"serve", "--policy", policyPath}, args...))
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

func (p *program) start(args []string) {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		close(listening)
	}()
	select {
	case address, ok := <-listening:
		if !ok {
			p.t.Fatalf("dpproxy did not start:\n%s", p.logText())
		}
		p.address = address
	case <-time.After(60 * time.Second):
		p.t.Fatalf("dpproxy does not listen:\n%s", p.logText())
	}
}

func (p *program) logText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// stop ends the process by its own id and waits for it.
func (p *program) stop(signal syscall.Signal) {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	_ = p.cmd.Wait()
	p.cmd = nil
}

// restart starts the same policy again.
func (p *program) restart() {
	p.t.Helper()
	p.start([]string{"serve", "--policy", p.policy})
}

// url is the connection string of a user whose password is her name.
func (p *program) url(user, dataset string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&connect_timeout=20", user, user, p.address, dataset)
}

// wire is a logged-in connection of which every frame is seen.
type wire struct {
	t    *testing.T
	conn net.Conn
	*pgproto3.Frontend
}

func (p *program) connect(user, dataset string) *wire {
	p.t.Helper()
	w, err := p.dial(user, dataset)
	if err != nil {
		p.t.Fatalf("connect as %s: %v\n%s", user, err, p.logText())
	}
	return w
}

func (p *program) dial(user, dataset string) (*wire, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.url(user, dataset))
	if err != nil {
		return nil, err
	}
	raw, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	w := &wire{t: p.t, conn: raw.Conn, Frontend: raw.Frontend}
	p.t.Cleanup(func() { w.conn.Close() })
	return w, nil
}

// answer is what one simple query brought.
type answer struct {
	frames []string   // every frame in order, noised cells masked
	rows   [][]string // text rows
	err    *pgconn.PgError
	notes  []string
}

// ask sends one simple query and reads to ReadyForQuery.
func (w *wire) ask(sql string) answer {
	w.t.Helper()
	a, err := w.tryAsk(sql)
	if err != nil {
		w.t.Fatalf("%.200s: %v", sql, err)
	}
	return a
}

func (w *wire) tryAsk(sql string) (answer, error) {
	var a answer
	_ = w.conn.SetDeadline(time.Now().Add(60 * time.Second))
	w.Send(&pgproto3.Query{String: sql})
	if err := w.Flush(); err != nil {
		return a, err
	}
	for {
		m, err := w.Receive()
		if err != nil {
			return a, err
		}
		a.frames = append(a.frames, frameText(m))
		switch m := m.(type) {
		case *pgproto3.DataRow:
			row := make([]string, len(m.Values))
			for i, v := range m.Values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			a.rows = append(a.rows, row)
		case *pgproto3.ErrorResponse:
			a.err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.NoticeResponse:
			a.notes = append(a.notes, m.Message+"\n"+m.Detail)
		case *pgproto3.ReadyForQuery:
			return a, nil
		}
	}
}

// frameText writes a frame for comparison: all of it, but the cells of data rows.
func frameText(m pgproto3.BackendMessage) string {
	if row, ok := m.(*pgproto3.DataRow); ok {
		return fmt.Sprintf("DataRow of %d", len(row.Values))
	}
	return fmt.Sprintf("%T %+v", m, m)
}

// fixture is the neighbouring pair of security.md: 1,000 people, of whom number 7 is the only hiv, the only note 'abc', the
// only city Zzyzx; and the same without number 7.
const fixtureSQL = `CREATE TABLE people AS SELECT i AS uid, (18 + i %% 60)::INTEGER AS age, (1000.0 * (i %% 90))::DOUBLE AS income,
  CASE WHEN i = 7 THEN 'abc' ELSE 'n' || (i %% 5) END AS note, CASE WHEN i = 7 THEN 'Zzyzx' ELSE 'c' || (i %% 4) END AS city, i = 7 AS hiv
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
          - {kind: range, columns: [age], epsilon: 0.5}
          - {kind: histogram, columns: [city, hiv], epsilon: 0.5}
`

// budgets of a fixture, as decimals.
type budgets struct{ user, cap string }

// duckFixture writes a fixture's database and policy into a directory of its own; without names the uid that is absent, 0
// for none.
func duckFixture(t *testing.T, b budgets, without int) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.duckdb")
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(fixtureSQL, without)); err != nil {
		t.Fatal(err)
	}
	return writePolicy(t, dir, "duckdb:lab.duckdb", "main", b)
}

func writePolicy(t *testing.T, dir, backend, schema string, b budgets) string {
	t.Helper()
	text := fmt.Sprintf(fixturePolicy, backend, verifier(t, "alice"), verifier(t, "bob"), verifier(t, "dba"), b.cap, b.user, schema)
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// verifier is the SCRAM verifier of a password, the same one in each call, so that two policies are byte-equal.
var verifier = func() func(t *testing.T, password string) string {
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
