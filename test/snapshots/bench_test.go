package snapshots

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

// benchSQL is a clinic of ROWS visits, about ten a person, of people whose keys are texts in one of the two schemas.
const benchSQL = `CREATE FUNCTION h(x bigint) RETURNS bigint LANGUAGE sql AS 'SELECT (hashint8extended(x, 0) >> 33) + 2147483648';
CREATE TABLE people AS SELECT i::KEY AS person_id, CASE WHEN h(i) % 2 = 0 THEN 'f' ELSE 'm' END AS sex, (h(i + 7) % 100)::integer AS age, ((h(i + 8) % 10000000) / 100.0)::numeric(12,2) AS income
  FROM generate_series(1::bigint, ROWS / 10) AS s(i);
ALTER TABLE people ADD PRIMARY KEY (person_id);
CREATE TABLE visits AS SELECT i AS visit, (1 + (h(i) * (h(i + 1) % 1000) / 1000) % (ROWS / 10))::KEY AS who, substr('ABCD', (1 + h(i + 2) % 4)::int, 1) AS ward, (h(i + 3) % 60)::integer AS minutes,
    DATE '2024-01-01' + (h(i + 4) % 730)::int AS day, ((h(i + 5) % 100000) / 100.0)::numeric(10,2) AS fee
  FROM generate_series(1::bigint, ROWS) AS s(i);
VACUUM ANALYZE`

const benchPolicy = `version: 1
server: {listen: "127.0.0.1:0", spans: true}
backend: {url: %q, deadline: 10m, snapshot: {dir: snapshots, every: 1d, connections: %d}}
ledger: {url: "sqlite:ledger.db"}
users:
%s
datasets:
  - id: clinic
    unit: {name: person, key: people.person_id, type: %s}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {"*": {epsilon: 100}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}}
          - {name: income, type: "numeric(12,2)", domain: {min: 0, max: 100000, step: 1000}}
      - name: visits
        unit: visits.who = people.person_id
        max_rows_per_unit: %d
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: day, type: date, domain: {min: 2024-01-01, max: 2025-12-31, step: 1 day}}
          - {name: fee, type: "numeric(10,2)", domain: {min: 0, max: 1000, step: 10}}
`

// benchStatements are what an analyst asks of a large table.
var benchStatements = []string{
	`SELECT count(*) FROM visits`,
	`SELECT count(*) FROM visits WHERE minutes > 20`,
	`SELECT count(*) FROM visits WHERE ward IN ('A', 'C') AND day >= '2024-06-01' AND minutes BETWEEN 10 AND 39`,
	`SELECT ward, count(*) FROM visits GROUP BY ward`,
	`SELECT ward, minutes, count(*) FROM visits GROUP BY ward, minutes`,
	`SELECT ward, sum(minutes) FROM visits GROUP BY ward`,
	`SELECT sum(fee) FROM visits WHERE day < '2025-01-01'`,
	`SELECT count(DISTINCT who) FROM visits WHERE minutes > 50`,
	`SELECT p.sex, count(*) FROM visits v JOIN people p ON p.person_id = v.who GROUP BY p.sex`,
	`SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND v.minutes > 50)`,
	`SELECT count(*) FROM people WHERE age > 40`,
	`SELECT sex, avg(income) FROM people GROUP BY sex`,
}

// TestBenchSnapshot prints what a question costs over a snapshot, beside the analyst's own SQL on the PostgreSQL behind
// it and on DuckDB over the raw columns, and what making one costs beside COPY, of ten and of fifty million rows. It
// asserts nothing of time.
func TestBenchSnapshot(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("a benchmark: make bench-snapshot")
	}
	rows := cmp.Or(os.Getenv("DPPROXY_BENCH_ROWS"), "10000000")
	for _, key := range strings.Fields(cmp.Or(os.Getenv("DPPROXY_BENCH_KEYS"), "bigint text")) {
		t.Run(key, func(t *testing.T) {
			url, plain := benchClinic(t, key, rows)
			benchCopy(t, plain)
			for _, connections := range []int{1, 2} {
				p := benchServe(t, url, key, 1, connections)
				benchMaking(t, p, plain, rows, key, connections)
				p.Stop(9)
			}
			if os.Getenv("DPPROXY_BENCH_MAKING") != "" {
				return
			}
			duck := raw(t, plain, key)
			engine := newStages(t)
			for _, bound := range []int{1, 2, 10} {
				p := benchServe(t, url, key, bound, 2)
				for _, text := range benchStatements {
					benchStatement(t, p, plain, duck, engine, rows, key, bound, text)
				}
				p.Stop(9)
			}
		})
	}
	if more := cmp.Or(os.Getenv("DPPROXY_BENCH_MORE"), "50000000"); more != "0" {
		t.Run(more, func(t *testing.T) {
			url, plain := benchClinic(t, "bigint", more)
			p := benchServe(t, url, "bigint", 1, 2)
			benchMaking(t, p, plain, more, "bigint", 2)
			p.Stop(9)
		})
	}
}

// benchClinic is a server with the clinic, and a connection of its owner's.
func benchClinic(t *testing.T, key, rows string) (url string, plain *pgconn.PgConn) {
	t.Helper()
	server := pgtest.Start(t, "max_wal_size=8GB", "shared_buffers=2GB", "synchronous_commit=off")
	database := server.Database(t)
	role := server.Role(t, "")
	fill := strings.NewReplacer("ROWS", rows, "::KEY", "::"+key).Replace(benchSQL)
	server.Exec(t, database, append(strings.Split(fill, ";\n"), "GRANT SELECT ON people, visits TO "+role)...)
	t.Cleanup(func() { server.Exec(t, database, "REVOKE ALL ON people, visits FROM "+role) })
	return server.URLFor(role, database), connect(t, server.URLFor("postgres", database))
}

const benchUsers = 3

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprint(n, " ", of, "s")
}

func benchServe(t *testing.T, url, key string, bound, connections int) *kit.Program {
	t.Helper()
	var users []string
	for i := range benchUsers {
		name := fmt.Sprint("u", i)
		users = append(users, fmt.Sprintf("  - {name: %s, password: %q}", name, kit.Verifier(t, name)))
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, benchPolicy, url, connections, strings.Join(users, "\n"), key, bound), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

func connect(t *testing.T, url string) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// raw is a DuckDB with the tables as they are.
func raw(t *testing.T, plain *pgconn.PgConn, key string) *sql.DB {
	t.Helper()
	dir := t.TempDir()
	db, err := sql.Open("duckdb", filepath.Join(dir, "raw.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for table, unit := range map[string]string{"people": "person_id", "visits": "who"} {
		file := filepath.Join(dir, table+".csv")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plain.CopyTo(context.Background(), f, "COPY "+table+" TO STDOUT (FORMAT csv, HEADER)"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, err := db.Exec("CREATE TABLE " + table + " AS SELECT * FROM read_csv('" + file + "', types = {'" + unit + "': '" + strings.NewReplacer("text", "VARCHAR").Replace(key) + "'})"); err != nil {
			t.Fatal(err)
		}
		os.Remove(file)
	}
	return db
}

// timed is the median of n runs, in milliseconds.
func timed(n int, run func(i int)) float64 {
	var list []float64
	for i := range n {
		begun := time.Now()
		run(i)
		list = append(list, float64(time.Since(begun).Microseconds())/1000)
	}
	slices.Sort(list)
	return list[n/2]
}

func ask(t *testing.T, conn *pgconn.PgConn, text string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), text).ReadAll(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// stages is a collector of what statements took in the engine.
type stages struct {
	*httptest.Server
	mu    sync.Mutex
	spent map[string]time.Duration // by statement
}

func newStages(t *testing.T) *stages {
	s := &stages{spent: map[string]time.Duration{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						TraceID string `json:"traceId"`
						Name    string
						Begun   int64 `json:"startTimeUnixNano,string"`
						Ended   int64 `json:"endTimeUnixNano,string"`
					}
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, resource := range m.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					if span.Name == "execute" {
						s.spent[span.TraceID] += time.Duration(span.Ended - span.Begun)
					}
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	return s
}

// median is that of n statements, in milliseconds, which it forgets.
func (s *stages) median(t *testing.T, n int) float64 {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		if len(s.spent) >= n {
			break
		}
		s.mu.Unlock()
		if time.Since(begun) > time.Minute {
			t.Fatal("no spans come")
		}
	}
	defer s.mu.Unlock()
	list := slices.Sorted(maps.Values(s.spent))
	clear(s.spent)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// benchStatement asks a question as so many analysts, each of whom pays for an answer of her own. The engine's part of
// what that takes is beside the same question on DuckDB; the rest is planning, the charge's flush, noise and the
// wire.
func benchStatement(t *testing.T, p *kit.Program, plain *pgconn.PgConn, duck *sql.DB, engine *stages, rows, key string, bound int, text string) {
	t.Helper()
	var conns []*pgconn.PgConn
	for i := range benchUsers {
		conns = append(conns, connect(t, p.URL(fmt.Sprint("u", i), "clinic")))
	}
	ours := timed(benchUsers, func(i int) { ask(t, conns[i], text) })
	within := engine.median(t, benchUsers)
	own := timed(5, func(int) { ask(t, plain, text) })
	native := timed(5, func(int) {
		rows, err := duck.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		rows.Close()
	})
	figures.Row(rows+" rows, "+key+" keys: ms, × PostgreSQL; of that the engine's ms, × DuckDB", "`"+text+"`", fmt.Sprintf("at most %d of a person", bound), fmt.Sprintf("%.0f, %.2f ×; %.1f, %.2f ×", ours, ours/own, within, within/native),
		"own SQL on PostgreSQL", fmt.Sprintf("%.0f", own), "DuckDB over raw columns", fmt.Sprintf("%.1f", native))
	for _, c := range conns {
		c.Close(context.Background())
	}
}

func benchCopy(t *testing.T, plain *pgconn.PgConn) {
	t.Helper()
	for _, text := range []string{"COPY (SELECT person_id, sex, age, income FROM people) TO STDOUT", "COPY (SELECT who, ward, minutes, day, fee FROM visits) TO STDOUT"} {
		if _, err := plain.CopyTo(context.Background(), io.Discard, text); err != nil {
			t.Fatal(err)
		}
	}
}

var loggedTime = regexp.MustCompile(`time=(\S+) .*msg="(the private tables are copied|snapshot in force)`)

// benchMaking prints what making the snapshot took, from the program's log.
func benchMaking(t *testing.T, p *kit.Program, plain *pgconn.PgConn, rows, key string, connections int) {
	t.Helper()
	copied := timed(3, func(int) { benchCopy(t, plain) }) / 1000
	n, _ := strconv.ParseFloat(rows, 64)
	n *= 1.1
	seconds, size := making(t, p)
	result, err := plain.Exec(context.Background(), "SELECT pg_total_relation_size('people') + pg_total_relation_size('visits')").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	table, _ := strconv.ParseFloat(string(result[0].Rows[0][0]), 64)
	figures.Row("making it", fmt.Sprintf("%s visits, %s keys, %s", rows, key, plural(connections, "connection")), "rows a second", figures.Number(n/seconds), "`COPY … TO` of the same columns", fmt.Sprintf("%s (%.2f ×, aim 0.5)", figures.Number(n/copied), copied/seconds),
		"file, table", fmt.Sprintf("%.0f MiB, %.0f MiB (%.2f ×)", float64(size)/(1<<20), table/(1<<20), float64(size)/table), "most memory of the process", fmt.Sprintf("%.0f MiB", peakMemory(p)), "seconds", fmt.Sprintf("%.1f", seconds))
	fmt.Println(strings.Join(strings.Split(p.LogText(), "\n"), "\n"))
}

// making is what a snapshot took, from the program's log, and how large its files are.
func making(t *testing.T, p *kit.Program) (seconds float64, size int64) {
	t.Helper()
	var times []time.Time
	for _, m := range loggedTime.FindAllStringSubmatch(p.LogText(), -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at)
	}
	if len(times) != 2 {
		t.Fatal(p.LogText())
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Policy), "snapshots", "*.duckdb"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			size += info.Size()
		}
	}
	return times[1].Sub(times[0]).Seconds(), size
}

// peakMemory is the most that the process has had, in MiB.
func peakMemory(p *kit.Program) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		return 0
	}
	kib, _ := strconv.ParseFloat(string(peak[1]), 64)
	return kib / 1024
}
