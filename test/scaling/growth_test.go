package scaling

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	full    = flag.Bool("growth", false, "a thousand analysts and a hundred datasets; else a few of each")
	seconds = flag.Int("growth-seconds", 8, "how long free questions are asked at each size, with -growth")
)

// questions are what each analyst asks of her table, each of which is charged: none is answered by those before it.
var questions = []string{
	"SELECT count(*) FROM %s", "SELECT a, count(*) FROM %s GROUP BY a", "SELECT b, count(*) FROM %s GROUP BY b", "SELECT c, count(*) FROM %s GROUP BY c",
	"SELECT sum(v) FROM %s", "SELECT d, count(*) FROM %s GROUP BY d",
}

// size is one point of the growth.
type size struct{ analysts, datasets int }

// point is what was measured there.
type point struct {
	size
	start, restart    time.Duration // until it listens: with an empty ledger, with all charges
	session           float64       // KiB of the process for a session that has done nothing
	asked             float64       // KiB for one that has asked its questions, the releases among it
	charges           int
	chargesASecond    float64
	ledger            float64 // bytes of the ledger for a charge
	free              float64 // answers a second
	processor         float64 // microseconds of the proxy's processor time for one
	median, hundredth time.Duration
}

// TestGrowth serves more and more analysts and datasets by one proxy, with a ledger in PostgreSQL that commits durably,
// and holds what each of them takes against what it took of fewer: memory of a session, bytes of a charge, and the
// processor time of a free answer may not depend on the number of the others (docs/scaling.md).
func TestGrowth(t *testing.T) {
	sizes := []size{{20, 5}, {60, 5}, {60, 20}}
	if *full {
		sizes = []size{{250, 10}, {250, 100}, {1000, 100}}
	}
	if _, err := kit.Executable(); err != nil { // which is built now, and not while a start is timed
		t.Fatal(err)
	}
	var points []*point
	for _, s := range sizes {
		t.Run(fmt.Sprintf("%d analysts of %d datasets", s.analysts, s.datasets), func(t *testing.T) {
			points = append(points, measure(t, s))
		})
	}
	if t.Failed() {
		return
	}
	for _, p := range points {
		figures.Row("one proxy, a ledger on PostgreSQL", fmt.Sprintf("%d analysts, %d datasets", p.analysts, p.datasets),
			"KiB of a session", fmt.Sprintf("%.0f", p.session), "that has asked", fmt.Sprintf("%.0f", p.asked), "charges", strconv.Itoa(p.charges), "a second", figures.Number(p.chargesASecond),
			"bytes of the ledger for one", fmt.Sprintf("%.0f", p.ledger), "free answers a second", figures.Number(p.free), "processor time of one", fmt.Sprintf("%.0f µs", p.processor),
			"median, 99 in a hundred", fmt.Sprintf("%s, %s", p.median.Round(100*time.Microsecond), p.hundredth.Round(100*time.Microsecond)),
			"start, with all charges", fmt.Sprintf("%.2f s, %.2f s", p.start.Seconds(), p.restart.Seconds()))
	}
	first, last := points[0], points[len(points)-1]
	for what, of := range map[string]func(*point) float64{
		"memory of a session":                 func(p *point) float64 { return p.session },
		"memory of a session and its answers": func(p *point) float64 { return p.asked },
		"bytes of a charge":                   func(p *point) float64 { return p.ledger },
		"processor time of a free answer":     func(p *point) float64 { return p.processor },
	} {
		// Where it depended on the number of the others it would be four to forty times as much at the full length,
		// three to twelve at the short one; how busy the machine is moves processor time too.
		if a, b := of(first), of(last); b > 2.5*a {
			t.Errorf("%s: %.0f at %v, %.0f at %v: it grows with the number of others", what, a, first.size, b, last.size)
		}
	}
}

// measure serves one size.
func measure(t *testing.T, s size) *point {
	p := &point{size: s}
	server := pgtest.Start(t, "fsync=on", "full_page_writes=on", "synchronous_commit=on", "autovacuum=off")
	database := server.Database(t)
	ledger := server.URLFor("postgres", database)
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	fill := []string{}
	for i := range s.datasets {
		fill = append(fill, fmt.Sprintf("CREATE TABLE t%d AS SELECT i AS id, 'abcd'[1 + (i %% 4)::INTEGER] AS a, (i %% 10)::INTEGER AS b, (i %% 7)::INTEGER AS c, (i %% 12)::INTEGER AS d, (i %% 100)::INTEGER AS v FROM range(1000) AS s(i)", i), fmt.Sprintf("ALTER TABLE t%d ADD PRIMARY KEY (id)", i))
	}
	kit.ExecDuckDB(t, path, fill...)
	if err := os.WriteFile(path, policyOf(t, s, filepath.Join(dir, "lab.duckdb"), ledger), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	program := kit.Serve(t, path)
	p.start = time.Since(begun)
	empty, bytesBefore := resident(program), ledgerBytes(t, server, database)

	conns := make([]*pgconn.PgConn, s.analysts)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close(context.Background())
			}
		}
	}()
	each(t, s.analysts, 16, func(i int) (err error) {
		conns[i], err = pgconn.Connect(t.Context(), fmt.Sprintf("postgres://u%d:pass@%s/d%d?sslmode=disable&connect_timeout=60", i, program.Address, i%s.datasets))
		return err
	})
	p.session = (resident(program) - empty) / float64(s.analysts)

	ask := func(i int) error {
		for _, q := range questions {
			if _, err := conns[i].Exec(t.Context(), fmt.Sprintf(q, fmt.Sprintf("t%d", i%s.datasets))).ReadAll(); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	}
	each(t, s.datasets, 4, ask) // what each dataset takes once is not an analyst's
	warm := resident(program)
	others := s.analysts - s.datasets
	begun = time.Now()
	each(t, others, others, func(i int) error { return ask(s.datasets + i) })
	p.charges = s.analysts * len(questions)
	p.chargesASecond = float64(others*len(questions)) / time.Since(begun).Seconds()
	p.asked = p.session + (resident(program)-warm)/float64(others)
	p.ledger = (ledgerBytes(t, server, database) - bytesBefore) / float64(p.charges)

	long := 2 * time.Second
	if *full {
		long = time.Duration(*seconds) * time.Second
	}
	each(t, s.analysts, s.analysts, ask) // the first time each answer is planned anew, and kept

	var mu sync.Mutex
	var times []time.Duration
	worked, until := processor(t, program), time.Now().Add(long)
	begun = time.Now()
	each(t, s.analysts, s.analysts, func(i int) error {
		var own []time.Duration
		for n := 0; time.Now().Before(until); n++ {
			at := time.Now()
			if _, err := conns[i].Exec(t.Context(), fmt.Sprintf(questions[n%len(questions)], fmt.Sprintf("t%d", i%s.datasets))).ReadAll(); err != nil {
				return err
			}
			own = append(own, time.Since(at))
		}
		mu.Lock()
		times = append(times, own...)
		mu.Unlock()
		return nil
	})
	p.free = float64(len(times)) / time.Since(begun).Seconds()
	p.processor = float64((processor(t, program) - worked).Microseconds()) / float64(len(times))
	slices.Sort(times)
	p.median, p.hundredth = times[len(times)/2], times[len(times)*99/100]

	program.Stop(15)
	begun = time.Now()
	program.Restart()
	p.restart = time.Since(begun)
	if charged := chargesOf(t, server, database); charged != p.charges {
		t.Errorf("the ledger has %d charges, %d were made", charged, p.charges)
	}
	return p
}

// policyOf is a policy with a table in each dataset, in all of which each analyst has a budget.
func policyOf(t *testing.T, s size, file, ledger string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "version: 1\nserver: {listen: \"127.0.0.1:0\", limits: {connections: %d, memory: 8GiB}}\nbackend: {url: %q}\nledger: {url: %q}\nusers:\n", 2*s.analysts, "duckdb:"+file, ledger)
	verifier := kit.Verifier(t, "pass")
	for i := range s.analysts {
		fmt.Fprintf(&b, "  - {name: u%d, password: %q}\n", i, verifier)
	}
	b.WriteString("datasets:\n")
	for i := range s.datasets {
		fmt.Fprintf(&b, `  - id: d%[1]d
    unit: {name: person, key: t%[1]d.id}
    accountant: pure
    cap: {epsilon: 100000}
    budgets: {"*": {epsilon: 100}}
    tables:
      - name: t%[1]d
        max_rows_per_unit: 1
        columns:
          - {name: a, type: text, domain: {values: [a, b, c, d]}}
          - {name: b, type: integer, domain: {min: 0, max: 9}}
          - {name: c, type: integer, domain: {min: 0, max: 6}}
          - {name: d, type: integer, domain: {min: 0, max: 11}}
          - {name: v, type: integer, domain: {min: 0, max: 99}}
`, i)
	}
	return b.Bytes()
}

// each does something for each of n, so many at a time.
func each(t *testing.T, n, atOnce int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, atOnce)
	for range atOnce {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	if err := errors.Join(slices.Collect(func(yield func(error) bool) {
		for err := range failed {
			if !yield(err) {
				return
			}
		}
	})...); err != nil {
		t.Fatalf("%.2000s", err.Error())
	}
}

// resident is the memory of the process, in KiB.
func resident(p *kit.Program) float64 {
	runtime.GC()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	fmt.Sscan(rest, &kib)
	return kib
}

// processor is the time that the process has worked.
func processor(t *testing.T, p *kit.Program) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func number(t *testing.T, server *pgtest.Server, database, text string) float64 {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.Exec(context.Background(), text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseFloat(string(results[len(results)-1].Rows[0][0]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ledgerBytes(t *testing.T, server *pgtest.Server, database string) float64 {
	return number(t, server, database, "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')")
}

// chargesOf is how many charges the ledger holds.
func chargesOf(t *testing.T, server *pgtest.Server, database string) int {
	return int(number(t, server, database, "SELECT count(*) FROM dpproxy_ledger.chain WHERE kind = 6"))
}
