package spark

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// field is a table of generated rows, which Spark and DuckDB read from the same Parquet files: of a unit ten rows on
// average, more than one in five of which its bound leaves out.
type field struct {
	server          *sparktest.Server // nil: the rows are for DuckDB alone
	database        string
	file            string
	onSpark, onDuck string
}

const fieldColumns = "who BIGINT, ward STRING, minutes INT, cost DECIMAL(10,2), day DATE"

const fieldPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q, deadline: 60m%s}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
datasets:
  - id: field
    unit: {name: person, key: visits.who, type: bigint}
    accountant: pure
    cap: {epsilon: 1000000}
    budgets: {"*": {epsilon: 1000000}}
    defaults: {epsilon: 50000, max_epsilon: 50000}
    tables:
      - name: visits
        static: true
        max_rows_per_unit: 8
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: cost, type: "numeric(10,2)", domain: {min: 0, max: 100, step: 0.25}}
          - {name: day, type: date, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}}
`

// layField writes so many rows into a directory. They are pseudo-random, and the same in each run.
func layField(t *testing.T, dir string, rows int64) {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`COPY (SELECT (hash(i) %% %d)::BIGINT AS who, ['A', 'B', 'C', 'D', 'elsewhere'][(hash(i + 1000000007) %% 5)::INTEGER + 1] AS ward, (hash(i + 2000000011) %% 75)::INTEGER AS minutes,
  ((hash(i + 3000000019) %% 10000) / 100.0)::DECIMAL(10,2) AS cost, DATE '2024-01-01' + (hash(i + 4000000007) %% 366)::INTEGER AS day FROM range(%d) AS s(i)) TO '%s' (FORMAT parquet)`,
		max(rows/10, 1), rows, filepath.Join(dir, "visits.parquet"))
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// openField has a server read the rows that lie in a directory.
func openField(t *testing.T, server *sparktest.Server, dir string) *field {
	t.Helper()
	f := &field{server: server, database: "field", file: filepath.Join(dir, "visits.parquet")}
	write := func(url, more string) string {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, fmt.Appendf(nil, fieldPolicy, url, more, kit.Verifier(t, "alice")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if server != nil {
		f.name(t)
		f.onSpark = write(server.URL(f.database), "")
	}
	f.onDuck = write("duckdb:", fmt.Sprintf(", files: {visits: %q}", f.file))
	return f
}

// name tells the server's metastore of the files.
func (f *field) name(t *testing.T) {
	t.Helper()
	f.server.Exec(t, "CREATE DATABASE IF NOT EXISTS "+f.database, "DROP TABLE IF EXISTS "+f.database+".visits",
		fmt.Sprintf("CREATE TABLE %s.visits (%s) USING PARQUET LOCATION 'file:%s'", f.database, fieldColumns, f.file))
}

// TestSparkKilled: an executor that is killed within a paid query costs time and nothing else. The server, which is the
// driver too, that is stopped or killed within one gives an answer of noise alone, which is charged once, saved, and
// reported to the operator; until it is back a new question is a plain error before any charge; then questions are
// answered again.
func TestSparkKilled(t *testing.T) {
	whole(t)
	dir := t.TempDir()
	layField(t, dir, 3_000_000)
	server := sparktest.Cluster(t, 2)
	f := openField(t, server, dir)
	server.Exec(t, "SELECT ward, count(*) FROM field.visits WHERE minutes = 1 GROUP BY ward") // what has just started knows no code
	p := kit.Serve(t, f.onSpark)
	w, beside := p.Connect("alice", "field"), p.Connect("alice", "field")
	duck := kit.Serve(t, f.onDuck).Connect("alice", "field")
	w.Patience, duck.Patience = 5*time.Minute, 5*time.Minute
	questions, each := 0, 0
	// question is a new one each time, which takes some seconds: rows of each unit are numbered.
	question := func() string {
		questions++
		return fmt.Sprintf("SELECT ward, count(*), sum(minutes) FROM visits WHERE minutes < %d GROUP BY ward ORDER BY ward", 59-questions)
	}
	same := func(q string, got kit.Answer) {
		t.Helper()
		if want := duck.Ask(q); got.Err != nil || fmt.Sprint(got.Rows) != fmt.Sprint(want.Rows) || len(got.Rows) < 4 {
			t.Errorf("%s: %v %v, DuckDB says %v", q, got.Rows, got.Err, want.Rows)
		}
	}
	charges := func(want int) {
		t.Helper()
		if n := beside.Charges(); n != want*each {
			t.Errorf("%d charges, want those of %d questions, each of which has %d", n, want, each)
		}
	}
	faults := func() int { return strings.Count(p.LogText(), "privacy rule 5") }
	// during asks, and does something some time after the charge, while the query runs.
	during := func(q string, after time.Duration, do func()) kit.Answer {
		t.Helper()
		before, answer := beside.Charges(), make(chan kit.Answer, 1)
		go func() {
			a, err := w.TryAsk(q)
			if err != nil {
				t.Errorf("%s: %v", q, err)
			}
			answer <- a
		}()
		kit.Eventually(t, "a charge", func() bool { return beside.Charges() > before })
		time.Sleep(after)
		select {
		case <-answer:
			t.Fatalf("%s: its answer was there before anything happened", q)
		default:
		}
		do()
		return <-answer
	}

	q := question()
	same(q, w.Ask(q))
	each = beside.Charges() // a question's

	q = question()
	same(q, during(q, time.Second, func() {
		pids := server.Executors()
		if len(pids) != 2 {
			t.Fatalf("%d executors", len(pids))
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}))
	charges(2)
	if faults() != 0 {
		t.Errorf("a paid query failed:\n%s", p.LogText())
	}

	for i, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		lost := question()
		a := during(lost, time.Second/2, func() {
			if err := server.End(signal); err != nil {
				t.Error(err)
			}
		})
		if a.Err != nil || len(a.Rows) < 4 {
			t.Errorf("after %v: %v %v", signal, a.Rows, a.Err)
		}
		for _, row := range a.Rows {
			if row[1] != "0" {
				t.Errorf("after %v %s has %s rows", signal, row[0], row[1])
			}
		}
		charges(3 + 2*i)
		if faults() != 1+i {
			t.Errorf("after %v %d paid queries failed:\n%s", signal, faults(), p.LogText())
		}
		q := question()
		if a := w.Ask(q); a.Err == nil || !strings.Contains(a.Err.Error(), "the database cannot be reached; nothing was charged") {
			t.Errorf("after %v: %v %v", signal, a.Rows, a.Err)
		}
		charges(3 + 2*i)
		server.Again(t)
		f.name(t)
		server.Exec(t, "SELECT ward, count(*) FROM field.visits WHERE minutes = 1 GROUP BY ward")
		found := w.Ask(q)
		for try := 0; found.Err != nil && strings.Contains(found.Err.Error(), "nothing was charged") && try < 5; try++ { // its first plans may take longer than a look before a charge
			found = w.Ask(q)
		}
		same(q, found)
		if again := w.Ask(lost); again.Err != nil || fmt.Sprint(again.Rows) != fmt.Sprint(a.Rows) {
			t.Errorf("what was saved: %v %v", again.Rows, again.Err)
		}
		charges(4 + 2*i)
	}
}
