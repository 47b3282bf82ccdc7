package attacks

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// effects are statements that would leave something behind in a database: locks, notifications, sequences, settings,
// tables, prepared transactions, files.
var effects = []string{
	`SELECT pg_advisory_lock(CASE WHEN hiv THEN 1 ELSE 2 END) FROM people`, `SELECT pg_advisory_lock(7)`, `SELECT pg_try_advisory_lock(7)`,
	`SELECT pg_notify('c', note) FROM people`, `SELECT pg_notify('c', 'x')`, `NOTIFY c, 'x'`, `LISTEN c`,
	`SELECT set_config('application_name', note, false) FROM people`, `SELECT set_config('work_mem', '1GB', false)`, `SET work_mem = '1GB'; SELECT 1 / 0`,
	`SELECT nextval('s')`, `SELECT lastval()`, `SELECT setval('s', 7)`, `SELECT setseed(0.5)`, `SELECT random() FROM people`,
	`CREATE TEMP TABLE t AS SELECT * FROM people`, `SELECT * INTO t FROM people`, `CREATE SEQUENCE s`, `CREATE VIEW v AS SELECT 1`,
	`DO $$ BEGIN RAISE NOTICE '%', (SELECT note FROM people LIMIT 1); END $$`, `INSERT INTO people VALUES (1)`, `UPDATE people SET age = 1`, `DELETE FROM people`,
	`TRUNCATE people`, `LOCK TABLE people`, `SELECT * FROM people FOR UPDATE`, `PREPARE TRANSACTION 'x'`, `VACUUM`, `ANALYZE people`, `CLUSTER`, `CHECKPOINT`,
	`COPY people TO '/tmp/x'`, `COPY people FROM '/etc/passwd'`, `COPY (SELECT 1) TO PROGRAM 'id'`, `SELECT lo_import('/etc/passwd')`, `SELECT pg_read_file('/etc/passwd')`,
	`SELECT pg_terminate_backend(1)`, `SELECT pg_reload_conf()`, `SELECT dblink('', 'select 1')`, `CALL f()`, `LOAD 'x'`, `ALTER SYSTEM SET work_mem = '1MB'`, `GRANT ALL ON people TO public`,
	`SELECT txid_current()`, `SELECT pg_export_snapshot()`, `SELECT pg_create_logical_replication_slot('a', 'b')`, `MERGE INTO people USING events ON true WHEN MATCHED THEN DELETE`,
}

// TestT10NothingIsLeftBehind: each is refused without a word to the database, alike on neighbours, and another session
// finds no lock, notification, sequence or setting.
func TestT10NothingIsLeftBehind(t *testing.T) {
	kit.Beside(t)
	with, without := kit.Lab{Engine: "postgres"}.Pair(t)
	p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
	other := with.Connect("bob", "lab")
	state := func() string {
		return fmt.Sprint(other.Ask(`SELECT count(*) FROM pg_catalog.pg_locks`).Rows, other.Ask(`SHOW work_mem`).Rows, other.Ask(`SHOW application_name`).Rows,
			other.Ask(`SELECT relname FROM pg_class WHERE relname IN ('s', 't', 'v')`).Rows, with.Query(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`),
			with.Query(t, `SELECT count(*) FROM pg_class WHERE relname IN ('s', 't', 'v')`))
	}
	before, refused := state(), 0
	seen := len(with.Heard(t))
	for _, sql := range effects {
		if d := p.sameShape(sql); d != "" {
			t.Error(d)
		}
		a := p.with.Ask(sql)
		switch {
		case a.Err != nil:
			refused++
		case strings.Contains(sql, "people") || !strings.HasPrefix(sql, "SELECT") && !strings.HasPrefix(sql, "LISTEN") && !strings.HasPrefix(sql, "NOTIFY"):
			t.Errorf("%s is not refused: %v", sql, a.Frames)
		}
		p.with.Ask("ROLLBACK")
		p.without.Ask("ROLLBACK")
	}
	if heard := with.Heard(t)[seen:]; len(heard) > 0 {
		t.Errorf("the database heard of it: %q", heard)
	}
	if after := state(); after != before {
		t.Errorf("another session sees %s, before %s", after, before)
	}
	if spent := p.with.Spent(); spent != "0" {
		t.Errorf("%s was spent", spent)
	}
	threats.Reached(t, "T10", "%d of %d refused, 0 statements at the database, 0 changes for another session", refused, len(effects))
}

// choosing is what only the proxy may do, to numbers that are noisy already.
var choosing = regexp.MustCompile(`(?i)\bHAVING\b|\bLIMIT\b|\bFETCH FIRST\b|\bOFFSET\b`)

// TestT12OrderIsOfNoisyNumbers: of two groups that are one apart, the larger comes first as often as the noise says;
// and no choice of groups is ever in the database's SQL.
func TestT12OrderIsOfNoisyNumbers(t *testing.T) {
	kit.Beside(t)
	n := kit.Length(150, 1500, 10_000)
	const epsilon = 0.1
	l := kit.Lab{Engine: "postgres", Users: n, People: 60, Change: kit.Undeclared}
	s := l.Serve(t, 0)
	// 15 people live in c1 and in c2, and in c3 one fewer, since number 7 would.
	q := kit.Probe{Name: "order", SQL: `SELECT city, count(*) AS n FROM people WHERE city IN ('c2', 'c3') GROUP BY city HAVING count(*) > -1000000 ORDER BY n DESC, city LIMIT 5`, Epsilon: epsilon,
		Number: func(rows [][]string) float64 {
			if len(rows) < 2 || kit.Cell(0, 1)(rows) < kit.Cell(1, 1)(rows) {
				return math.NaN()
			}
			return map[bool]float64{true: 1}[rows[0][0] == "c2"]
		}}
	numbers, err := kit.DrawnBy(s.Program, n, []kit.Probe{q})
	if err != nil {
		t.Fatal(err)
	}
	first := 0.0
	for _, x := range numbers[0] {
		if math.IsNaN(x) {
			t.Fatal("the rows are not in the order of what is shown")
		}
		first += x
	}
	want, share := ahead(epsilon), first/float64(n)
	if deviation := math.Sqrt(want * (1 - want) / float64(n)); math.Abs(share-want) > 5*deviation {
		t.Errorf("the larger group is first in %.3f of %d answers, must be in %.3f ± %.3f", share, n, want, 5*deviation)
	}
	for _, line := range s.Heard(t) {
		if strings.Contains(line, `"people"`) && choosing.MatchString(line) {
			t.Error("the database chose: ", line)
		}
	}
	threats.Reached(t, "T12", "of two groups one apart the larger is first in %.3f of %d answers, predicted %.3f; no choice in the database's SQL", share, n, want)
}

// ahead is the chance that 1 + X ≥ Y for two discrete Laplace numbers X and Y: a tie goes to the larger by name.
func ahead(epsilon float64) float64 {
	q := math.Exp(-epsilon)
	mass := func(k int) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(k))) }
	p := 0.0
	for x := -400; x <= 400; x++ {
		for y := -400; y <= x+1; y++ {
			p += mass(x) * mass(y)
		}
	}
	return p
}

// TestT13TrueAggregates: true sums, planted so that they are like no other number, are in nothing that leaves the proxy
// or that it writes: frames, notices, EXPLAIN, the log at its most talkative, the metrics, the ledger's files.
// Analysts' listener serves no page of the operator's.
func TestT13TrueAggregates(t *testing.T) {
	kit.Beside(t)
	const planted = 20
	admin := kit.FreeAddress(t)
	l := kit.Lab{Engine: "postgres", People: 30_000, Change: []string{`server: {`, fmt.Sprintf("server: {admin: %q, ", admin)}}
	s := l.Serve(t, 0, "--log-level", "debug")
	truths := strings.Fields(s.Query(t, `SELECT string_agg(x, ' ') FROM (SELECT sum(income)::bigint::text AS x FROM people WHERE age BETWEEN 18 AND 37 GROUP BY age) t`))
	if len(truths) != planted || len(truths[0]) < 7 {
		t.Fatalf("planted %q", truths)
	}
	w := s.Connect("alice", "lab")
	var out strings.Builder
	for age := range planted {
		for _, form := range []string{`SELECT sum(income) FROM people WHERE age = %d`, `EXPLAIN SELECT sum(income), count(*) FROM people WHERE age = %d`,
			`SELECT avg(income), sum(income) FROM people WHERE age = %d`, `SELECT sum(income) FROM people WHERE age = %d AND 1 / (uid - 7) > 0`} {
			a := w.Ask(fmt.Sprintf(form, 18+age))
			fmt.Fprintln(&out, a.Frames, a.Rows, a.Notes)
		}
	}
	for _, table := range []string{"dp.charges", "dp.releases", "dp.budget", "dp.tables"} {
		fmt.Fprintln(&out, w.Ask("SELECT * FROM "+table).Rows)
	}
	fmt.Fprintln(&out, s.LogText(), metricsOf(t, admin))
	ledgers, err := filepath.Glob(filepath.Join(filepath.Dir(s.Program.Policy), "ledger.db*"))
	if err != nil || len(ledgers) == 0 {
		t.Fatalf("no ledger: %v", err)
	}
	for _, name := range ledgers {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	hits := 0
	for _, truth := range truths {
		if strings.Contains(out.String(), truth) {
			hits++
			t.Errorf("the true sum %s has left", truth)
		}
	}
	routes := adminRoutes(t, s.Address)
	threats.Reached(t, "T13", "%d planted true aggregates: %d hits in %d bytes of output, log, metrics and ledger; %d admin pages on the analysts' listener", planted, hits, out.Len(), routes)
}

// adminRoutes counts the operator's pages that the analysts' listener serves.
func adminRoutes(t *testing.T, address string) (served int) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	for _, page := range []string{"/metrics", "/healthz", "/debug/pprof/", "/debug/vars", "/"} {
		if response, err := client.Get("http://" + address + page); err == nil {
			response.Body.Close()
			served++
			t.Errorf("%s is served to analysts: %s", page, response.Status)
		}
	}
	return served
}
