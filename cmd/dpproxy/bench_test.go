package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/test/kit"
)

// The benchmarks of speed run both sides in one go, interleaved, and print ratios of medians; they assert nothing.

func benchOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("a benchmark: make bench")
	}
}

// TestBenchAnswersFromRelease prints answers a second from a saved range release over the wire beside pgbench -S on
// PostgreSQL on the same machine, prepared statements, 8 clients.
func TestBenchAnswersFromRelease(t *testing.T) {
	benchOnly(t)
	server := pgtest.Start(t)
	bench := pgbenchPath(t)
	direct := server.URL()
	if out, err := exec.Command(bench, "-i", "-q", "-s", "10", direct).CombinedOutput(); err != nil {
		t.Fatalf("pgbench -i: %v\n%s", err, out)
	}
	p := kit.Demo(t, t.TempDir(), "100000")
	w := p.Connect("analyst", "demo")
	w.Ask(`SET dp.epsilon = 0.5`)
	if a := w.Ask(`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`); a.Err != nil {
		t.Fatal(a.Err)
	}
	script := filepath.Join(t.TempDir(), "range.sql")
	text := "\\set a random(0, 100)\n\\set b random(:a, 109)\nSELECT count(*) FROM people WHERE age BETWEEN :a AND :b;\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const grid = "20ms"
	dir := t.TempDir()
	padded := kit.Demo(t, dir, "100000")
	padded.Stop(syscall.SIGTERM)
	kit.Edit(t, filepath.Join(dir, "policy.yaml"), "server:\n", "server:\n  timing: {grid: "+grid+"}\n")
	padded.Start([]string{"serve", "--policy", filepath.Join(dir, "policy.yaml")})
	w = padded.Connect("analyst", "demo")
	w.Ask(`SET dp.epsilon = 0.5`)
	w.Ask(`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30`)
	grown := tps(t, bench, "-n", "-f", script, "-M", "prepared", "-c", "8", "-j", "2", "-T", "4", padded.URL("analyst", "demo"))
	var ours, postgres []float64
	for range 5 {
		postgres = append(postgres, tps(t, bench, "-n", "-S", "-M", "prepared", "-c", "8", "-j", "2", "-T", "4", direct))
		ours = append(ours, tps(t, bench, "-n", "-f", script, "-M", "prepared", "-c", "8", "-j", "2", "-T", "4", p.URL("analyst", "demo")))
	}
	const table = "8 clients, prepared, a held range release of 110 cells"
	for _, side := range []struct {
		name string
		list []float64
	}{{"ranges drawn at random", ours}, {"the same with `server: {timing: {grid: " + grid + "}}`, which allows 400", []float64{grown}}, {"`pgbench -S` on PostgreSQL", postgres}} {
		figures.Row(table, side.name, "answers a second", figures.Number(median(side.list)), "× `pgbench -S`", fmt.Sprintf("%.2f", median(side.list)/median(postgres)))
	}
}

func pgbenchPath(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		t.Skip("no pgbench on this machine")
	}
	return found[len(found)-1]
}

var tpsLine = regexp.MustCompile(`tps = ([0-9.]+)`)

func tps(t *testing.T, bench string, args ...string) float64 {
	t.Helper()
	cmd := exec.Command(bench, args...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c client_min_messages=warning")
	out, err := cmd.CombinedOutput()
	m := tpsLine.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	n, _ := strconv.ParseFloat(string(m[1]), 64)
	return n
}

// TestBenchFreshLeaf prints the time of a fresh leaf over 10,000,000 rows beside the same regenerated SQL sent to the
// database directly, and beside the analyst's own SQL, in DuckDB.
func TestBenchFreshLeaf(t *testing.T) {
	benchOnly(t)
	dir := t.TempDir()
	p := kit.Demo(t, dir, "10000000")
	conn, err := pgconn.Connect(t.Context(), p.URL("analyst", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	copied := filepath.Join(t.TempDir(), "copy.duckdb")
	if out, err := exec.Command("cp", filepath.Join(dir, "warehouse.duckdb"), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	// As the proxy has it: the file under the catalog's name that the regenerated SQL uses.
	for _, set := range []string{fmt.Sprintf("ATTACH '%s' AS %s (READ_ONLY)", copied, dialect.Catalog), "USE " + dialect.Catalog} {
		if _, err := db.Exec(set); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := policy.Read(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range []string{
		`SELECT count(*) FROM people WHERE income >= %d AND sex = 'Female'`,
		`SELECT sex, education, count(*) FROM people WHERE income >= %d GROUP BY sex, education`,
	} {
		var through, direct, own []float64
		for i := range 15 {
			text := fmt.Sprintf(shape, 1000*(i+3))
			regenerated, args := measureSQL(t, loaded, text, dialect.DuckDB)
			own = append(own, timed(t, func() error { return drain(db, text) }))
			direct = append(direct, timed(t, func() error { return drain(db, regenerated, args...) }))
			through = append(through, timed(t, func() error {
				_, err := conn.Exec(t.Context(), text).ReadAll()
				return err
			}))
		}
		freshRow("DuckDB", shape, through, direct, own)
	}
}

// freshRow prints what a fresh leaf over 10,000,000 rows takes.
func freshRow(engine, shape string, through, direct, own []float64) {
	figures.Row("a fresh leaf over 10,000,000 rows", engine+": `"+fmt.Sprintf(shape, 0)+"`", "through dpproxy", figures.Number(median(through))+" ms", "the regenerated SQL directly (aim 1.05 and a durable write)",
		fmt.Sprintf("%s ms, %.2f ×", figures.Number(median(direct)), median(through)/median(direct)), "her own SQL directly", fmt.Sprintf("%s ms, %.2f ×", figures.Number(median(own)), median(through)/median(own)))
}

// measureSQL is the SQL of the one fresh measure of a statement.
func measureSQL(t *testing.T, p *policy.Policy, text string, in dialect.Dialect) (string, []any) {
	t.Helper()
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	d := p.Datasets[0]
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: d, User: "analyst", Holdings: nothing{}, Now: time.Now(),
		Settings: plans.Settings{Epsilon: d.Defaults.Epsilon, Confidence: d.Defaults.Confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatal(refusal)
	}
	q, err := rewrite.Render(plan.Measures[0], in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range q.Proven() { // the demo's primary key proves the bound, and the backend then runs this one
		return s.SQL(), s.Args()
	}
	return q.SQL(), q.Args()
}

// nothing holds nothing.
type nothing struct{}

func (nothing) Held(plans.Digest) []reuse.Holding { return nil }
func (nothing) Views(*policy.Table) *reuse.Views  { return nil }

func drain(db *sql.DB, text string, args ...any) error {
	rows, err := db.Query(text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}

func timed(t *testing.T, do func() error) float64 {
	t.Helper()
	start := time.Now()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return float64(time.Since(start).Microseconds()) / 1000
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
