package snapshots

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

// rowsSQL is a clinic of ROWS visits of a tenth as many people, made by DuckDB, with each person's visits numbered as
// `dpproxy prepare` would.
const rowsSQL = `CREATE TABLE people AS SELECT i AS person_id, CASE WHEN hash(i) % 2 = 0 THEN 'f' ELSE 'm' END AS sex, (hash(i + 7) % 100)::INTEGER AS age FROM range(1, ROWS // 10 + 1) AS s(i);
CREATE TABLE visits AS SELECT i AS visit, (1 + hash(i) % (ROWS // 10))::BIGINT AS who, substr('ABCD', (1 + hash(i + 2) % 4)::INTEGER, 1) AS ward, (hash(i + 3) % 60)::INTEGER AS minutes FROM range(1, ROWS + 1) AS s(i)`

const rankedSQL = `CREATE TABLE ranked AS SELECT who, ward, minutes, (row_number() OVER (PARTITION BY who ORDER BY visit))::INTEGER AS rank FROM visits;
DROP TABLE visits;
CREATE TABLE visits (who BIGINT NOT NULL, ward VARCHAR, minutes INTEGER, rank INTEGER NOT NULL, UNIQUE (who, rank));
INSERT INTO visits SELECT * FROM ranked ORDER BY who, rank;
DROP TABLE ranked;
ALTER TABLE people ADD PRIMARY KEY (person_id);
CHECKPOINT`

const rowsPolicy = `version: 1
server: {listen: "127.0.0.1:0", spans: true}
backend: {url: %q, deadline: 10m%s}
ledger: {url: "sqlite:ledger.db"}
users:
%s
datasets:
  - id: clinic
    unit: {name: person, key: people.person_id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {"*": {epsilon: 100}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}}
      - name: visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 10%s
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C, D]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
`

// rowsLeaves are one of each kind of leaf, each for a person of her own, so that none is read from another's answer.
var rowsLeaves = []string{
	`SELECT count(*) FROM visits`,
	`SELECT count(*) FROM visits WHERE minutes > 20`,
	`SELECT ward, count(*) FROM visits GROUP BY ward`,
	`SELECT ward, sum(minutes) FROM visits GROUP BY ward`,
	`SELECT p.sex, count(*) FROM visits v JOIN people p ON p.person_id = v.who GROUP BY p.sex`,
	`SELECT count(DISTINCT who) FROM visits WHERE minutes > 50`,
}

// TestBenchRows prints what a leaf of each kind takes by the number of rows, on PostgreSQL live, DuckDB live and over a
// snapshot, beside her own SQL on the same rows, and by which power of the number of rows it grows. DPPROXY_BENCH_SIZES
// names the numbers. It asserts nothing of time.
func TestBenchRows(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip(`a benchmark: make bench ONLY=rows; DPPROXY_BENCH_SIZES="1000000 10000000 100000000"`)
	}
	engine := newStages(t)
	g := &growth{took: map[string][]leafTime{}}
	for _, text := range strings.Fields(cmp.Or(os.Getenv("DPPROXY_BENCH_SIZES"), "1000000 10000000")) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1000 {
			t.Fatalf("DPPROXY_BENCH_SIZES: %q", text)
		}
		g.sizes = append(g.sizes, n)
		t.Run(text, func(t *testing.T) { benchSize(t, g, engine, n) })
	}
	g.print()
}

// leafTime is what a leaf took, and her own SQL, in milliseconds of the engine's processor time and of the clock.
type leafTime struct {
	rows                int64
	ours, own           float64
	oursClock, ownClock float64
}

// growth is what was measured, by engine and statement.
type growth struct {
	sizes   []int64
	engines []string
	took    map[string][]leafTime
}

func (g *growth) add(engine, text string, of leafTime) {
	if len(g.engines) == 0 || g.engines[len(g.engines)-1] != engine && !strings.Contains(strings.Join(g.engines, "\n")+"\n", engine+"\n") {
		g.engines = append(g.engines, engine)
	}
	g.took[engine+text] = append(g.took[engine+text], of)
}

// print writes the table of each engine: times at each size, and the exponents between the two largest.
func (g *growth) print() {
	for _, engine := range g.engines {
		for _, text := range rowsLeaves {
			list := g.took[engine+text]
			var cells []string
			for _, one := range list {
				cells = append(cells, figures.Number(float64(one.rows))+" rows", fmt.Sprintf("%s, %s ms (%s, %s)", figures.Number(one.ours), figures.Number(one.own), figures.Number(one.oursClock), figures.Number(one.ownClock)))
			}
			if len(list) > 1 {
				a, b := list[len(list)-2], list[len(list)-1]
				power := func(from, to float64) float64 { return math.Log(to/from) / math.Log(float64(b.rows)/float64(a.rows)) }
				cells = append(cells, "grows by the power", fmt.Sprintf("%.2f, %.2f", power(a.ours, b.ours), power(a.own, b.own)), "ns a row", fmt.Sprintf("%.2f, %.2f", b.ours*1e6/float64(b.rows), b.own*1e6/float64(b.rows)))
			}
			if len(cells) > 0 {
				figures.Row(engine+", processor time (clock): the leaf, her own SQL"+map[string]string{"a snapshot": " on DuckDB"}[engine], "`"+text+"`", cells...)
			}
		}
	}
}

// benchSize measures every engine at one number of rows.
func benchSize(t *testing.T, g *growth, engine *stages, n int64) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lab.duckdb")
	begun := time.Now()
	execDuckDB(t, file, strings.Split(strings.ReplaceAll(rowsSQL, "ROWS", fmt.Sprint(n))+";\n"+rankedSQL, ";\n")...)
	t.Logf("%d rows are made in %s", n, time.Since(begun).Round(time.Second))
	url, plain, postmaster := rowsPostgres(t, file, n)
	duck := rowsDuckDB(t, file)
	const ranked = "\n        row_rank: rank"
	for _, live := range []bool{true, false} {
		name, more, rank, own := "PostgreSQL", "", ranked, func(text string) { ask(t, plain, text) }
		if !live {
			name, more, rank, own = "a snapshot", ", snapshot: {dir: snapshots, every: 1d}", "", duck
		}
		p := rowsServe(t, url, more, rank)
		ours, owns := func() time.Duration { return worked(postmaster) }, func() time.Duration { return worked(postmaster) }
		if !live {
			ours, owns = func() time.Duration { return threads(p.Cmd.Process.Pid) }, here
		}
		if !live {
			rowsMade(t, p, n)
		}
		for _, text := range rowsLeaves {
			rowsLeaf(t, g, engine, p, name, text, n, own, ours, owns)
		}
		p.Stop(9)
	}
	p := rowsServe(t, "duckdb:"+file, "", ranked)
	for _, text := range rowsLeaves {
		rowsLeaf(t, g, engine, p, "DuckDB", text, n, duck, func() time.Duration { return threads(p.Cmd.Process.Pid) }, here)
	}
}

// rowsServe serves a policy over the clinic.
func rowsServe(t *testing.T, url, more, rank string) *kit.Program {
	t.Helper()
	var users []string
	for i := range benchUsers {
		name := fmt.Sprint("u", i)
		users = append(users, fmt.Sprintf("  - {name: %s, password: %q}", name, kit.Verifier(t, name)))
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, rowsPolicy, url, more, strings.Join(users, "\n"), rank), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

// rowsPostgres has the rows of a DuckDB file in a PostgreSQL, with its constraints.
func rowsPostgres(t *testing.T, file string, n int64) (url string, plain *pgconn.PgConn, postmaster int) {
	t.Helper()
	server := pgtest.Start(t, "max_wal_size=2GB", "shared_buffers=1GB", "maintenance_work_mem=512MB", "synchronous_commit=off")
	database := server.Database(t)
	role := server.Role(t, "")
	server.Exec(t, database, "CREATE TABLE people (person_id bigint, sex text, age integer)", "CREATE TABLE visits (who bigint NOT NULL, ward text, minutes integer, rank integer NOT NULL)")
	plain = connect(t, server.URLFor("postgres", database))
	begun := time.Now()
	for _, table := range []string{"people", "visits"} {
		text := filepath.Join(t.TempDir(), table+".csv")
		execDuckDB(t, file, "COPY "+table+" TO '"+text+"' (FORMAT csv, HEADER false)")
		f, err := os.Open(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = plain.CopyFrom(context.Background(), io.Reader(bufio.NewReaderSize(f, 1<<20)), "COPY "+table+" FROM STDIN (FORMAT csv)")
		f.Close()
		os.Remove(text)
		if err != nil {
			t.Fatal(err)
		}
	}
	server.Exec(t, database, "ALTER TABLE people ADD PRIMARY KEY (person_id)", "ALTER TABLE visits ADD UNIQUE (who, rank), ADD CHECK (rank > 0)", "VACUUM ANALYZE", "GRANT SELECT ON people, visits TO "+role)
	t.Cleanup(func() { server.Exec(t, database, "REVOKE ALL ON people, visits FROM "+role) })
	t.Logf("%d rows are in PostgreSQL in %s", n, time.Since(begun).Round(time.Second))
	text, err := os.ReadFile(filepath.Join(server.Dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Sscan(string(text), &postmaster)
	return server.URLFor(role, database), plain, postmaster
}

// execDuckDB fills a file, with so much memory as the UNIQUE of a hundred million rows takes.
func execDuckDB(t *testing.T, file string, statements ...string) {
	t.Helper()
	kit.ExecDuckDB(t, file, append([]string{"SET memory_limit = '10GB'", "SET preserve_insertion_order = false"}, statements...)...)
}

// rowsDuckDB asks a DuckDB file.
func rowsDuckDB(t *testing.T, file string) func(text string) {
	t.Helper()
	db, err := sql.Open("duckdb", file+"?access_mode=read_only")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(text string) {
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		rows.Close()
	}
}

// rowsLeaf asks one question as several analysts, each of whom pays, and as her own SQL. Of what ours and own say is
// the processor time that their engines have worked.
func rowsLeaf(t *testing.T, g *growth, engine *stages, p *kit.Program, name, text string, n int64, own func(text string), ours, owns func() time.Duration) {
	t.Helper()
	of := leafTime{rows: n}
	begun := ours()
	for i := range benchUsers {
		conn := connect(t, p.URL(fmt.Sprint("u", i), "clinic"))
		ask(t, conn, text)
		conn.Close(context.Background())
	}
	of.ours, of.oursClock = (ours()-begun).Seconds()*1000/benchUsers, engine.median(t, benchUsers)
	const times = 3
	begun = owns()
	of.ownClock = timed(times, func(int) { own(text) })
	of.own = (owns() - begun).Seconds() * 1000 / times
	g.add(name, text, of)
}

// worked is the processor time of a process and of what it has started, those that have ended among them: so
// PostgreSQL's. Its unit is a hundredth of a second.
func worked(pid int) time.Duration {
	ticks := func(pid int, fields ...int) (n int64) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // nothing where it has ended
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		for _, at := range fields {
			if at < len(f) {
				own, _ := strconv.ParseInt(f[at], 10, 64)
				n += own
			}
		}
		return n
	}
	all := ticks(pid, 11, 12, 13, 14)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	for _, word := range strings.Fields(string(children)) {
		child, _ := strconv.Atoi(word)
		all += ticks(child, 11, 12)
	}
	return time.Duration(all) * 10 * time.Millisecond
}

// threads is the processor time of a process's threads, to the nanosecond.
func threads(pid int) (all time.Duration) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		var n int64
		fmt.Sscan(string(text), &n)
		all += time.Duration(n)
	}
	return all
}

// here is the processor time of this process, whose DuckDB runs her own SQL.
func here() time.Duration { return threads(os.Getpid()) }

// rowsMade prints what making a snapshot took.
func rowsMade(t *testing.T, p *kit.Program, n int64) {
	t.Helper()
	seconds, size := making(t, p)
	rows := float64(n + n/10)
	figures.Row("making a snapshot", figures.Number(float64(n))+" visits", "seconds", fmt.Sprintf("%.1f", seconds), "rows a second", figures.Number(rows/seconds), "bytes a row", fmt.Sprintf("%.1f", float64(size)/rows), "most memory of the process", fmt.Sprintf("%.0f MiB", peakMemory(p)))
}
