package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver of the demo's warehouse file
	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

// demo is what `dpproxy demo` was asked for.
type demo struct {
	dir, listen string
	console     string // empty: two thousand ports above listen
	rows        int
	fresh       bool
	quiet       bool // --log-level was left alone: warnings only
	out         io.Writer
}

func demoCommand() *cobra.Command {
	d := demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a proxy over a generated population, with everything it needs",
		Long: `Generates a population in an embedded DuckDB file, writes a policy with the users analyst/analyst and dba/dba, and
serves it. What analysts spend stays in the ledger under --dir; --fresh starts anew.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out, d.quiet = cmd.OutOrStdout(), !cmd.Flags().Changed("log-level")
			return d.run(cmd.Context(), logger(cmd))
		},
	}
	cmd.Flags().IntVar(&d.rows, "rows", 1_000_000, "people to generate")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:6432", "address to listen on")
	cmd.Flags().StringVar(&d.console, "console", "", "address of the console's pages (default: 2000 ports above --listen, 127.0.0.1:8432)")
	cmd.Flags().StringVar(&d.dir, "dir", "demo", "directory of the data, the policy and the ledger")
	cmd.Flags().BoolVar(&d.fresh, "fresh", false, "throw away what is in --dir first")
	return cmd
}

// demoFiles are what the demo writes under --dir, and so what --fresh may remove. The ledger's locks stay: a lock that
// is removed holds nobody off.
var demoFiles = []string{"policy.yaml", "warehouse.duckdb", "warehouse.duckdb.partial", "warehouse.duckdb.wal",
	"dpproxy.ledger", "dpproxy.ledger-secret", "dpproxy.ledger-shm", "dpproxy.ledger-wal", "dpproxy.ledger-witness"}

func (d *demo) run(ctx context.Context, log *slog.Logger) error {
	if d.rows < 1 || d.rows > 100_000_000 {
		return exitCode{2, fmt.Errorf("--rows is %d, must be between 1 and 100000000", d.rows)}
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	served := log
	if d.quiet {
		served = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return service.Run(ctx, filepath.Join(d.dir, "policy.yaml"), ledger.Options{}, served, func(address string) {
		log.Info("listening", "address", address)
		d.welcome(address)
	})
}

// prepare makes what is missing under --dir.
func (d *demo) prepare(ctx context.Context) error {
	if err := d.alone(ctx); err != nil {
		return err
	}
	if d.fresh {
		if err := d.clear(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if err := d.agree(); err != nil {
		return err
	}
	if err := d.reachable(); err != nil {
		return err
	}
	warehouse := filepath.Join(d.dir, "warehouse.duckdb")
	if _, err := os.Stat(warehouse); errors.Is(err, fs.ErrNotExist) {
		if err := generate(ctx, warehouse, d.rows, d.out); err != nil {
			return err
		}
	}
	path := filepath.Join(d.dir, "policy.yaml")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	analyst, err := policy.Verifier("analyst", rand.Reader)
	if err != nil {
		return err
	}
	dba, err := policy.Verifier("dba", rand.Reader)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(demoPolicy(d.listen, d.pages(), d.rows, analyst, dba)), 0o600)
}

// alone refuses a directory in which another demo is running.
func (d *demo) alone(ctx context.Context) error {
	path := filepath.Join(d.dir, "dpproxy.ledger")
	if _, err := os.Stat(path); err != nil {
		return nil // there is no ledger that anybody could have open
	}
	l, err := ledger.Open(ctx, "sqlite:"+path, ledger.Options{})
	if errors.Is(err, ledger.ErrLocked) {
		return fmt.Errorf("another demo runs in %s: stop it, or take another --dir and --listen", d.dir)
	}
	if err != nil {
		return nil // serve says what is wrong with it, and --fresh may throw it away
	}
	return l.Close()
}

// pages is the console's address.
func (d *demo) pages() string {
	if d.console != "" {
		return d.console
	}
	host, port, err := net.SplitHostPort(d.listen)
	if err != nil {
		return ""
	}
	if n, err := strconv.Atoi(port); err == nil && n > 0 && n+consoleAbove < 1<<16 {
		port = strconv.Itoa(n + consoleAbove)
	} else {
		port = "0"
	}
	return net.JoinHostPort(host, port)
}

// consoleAbove is how far the console's port lies above the wire's.
const consoleAbove = 2000

// reachable refuses an address that cannot be listened on, before anything is generated or kept under it.
func (d *demo) reachable() error {
	l, err := net.Listen("tcp", d.listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken by another program: stop it, or name another address, such as --listen 127.0.0.1:6433 --dir demo2", d.listen)
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	}
	return l.Close()
}

// agree refuses flags that contradict what an earlier run wrote.
func (d *demo) agree() error {
	p, err := policy.Read(filepath.Join(d.dir, "policy.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Server.Listen != d.listen {
		return fmt.Errorf("%s says listen: %s; edit it, or start anew with --fresh", p.Path, p.Server.Listen)
	}
	if d.console != "" && p.Server.Console != d.console {
		return fmt.Errorf("%s says console: %s; edit it, or start anew with --fresh", p.Path, p.Server.Console)
	}
	if t := p.Datasets[0].Table("", "people"); t == nil || t.ExpectedRows != int64(d.rows) {
		return fmt.Errorf("%s holds another number of people; start anew with --fresh", d.dir)
	}
	return nil
}

func (d *demo) clear() error {
	for _, pattern := range demoFiles {
		files, err := filepath.Glob(filepath.Join(d.dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// welcome prints how to connect and what to try.
func (d *demo) welcome(address string) {
	host, port, _ := net.SplitHostPort(address)
	fmt.Fprintf(d.out, `
dpproxy listens on %s. In another terminal:

  PGPASSWORD=analyst psql -h %s -p %s -U analyst demo

and try:

%s
%sThe policy is %s; psql -U dba (password dba) sees every budget. Ctrl-C stops.
`, address, host, port, "  "+strings.Join(demoQueries, "\n  ")+"\n", d.consoleLine(), filepath.Join(d.dir, "policy.yaml"))
}

// consoleLine names the console, where the policy that is served has one at a known port.
func (d *demo) consoleLine() string {
	p, err := policy.Read(filepath.Join(d.dir, "policy.yaml"))
	if err != nil || p.Server.Console == "" || strings.HasSuffix(p.Server.Console, ":0") {
		return ""
	}
	return "Or open http://" + p.Server.Console + " in a browser and log in as analyst; dba sees the owner's pages too.\n"
}

// demoQueries are the first things to try; the README's tour and a test run them.
var demoQueries = []string{
	`SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40;`,
	`SELECT sex, education, count(*) FROM people GROUP BY sex, education ORDER BY 3 DESC;`,
	`EXPLAIN SELECT count(*) FROM people WHERE income >= 100000;`,
	`SET dp.epsilon = 0.5;`,
	`SET dp.release = on;`,
	`SELECT age, sum(count(*)) OVER (ORDER BY age) AS at_most FROM people GROUP BY age ORDER BY age;`,
	`SELECT date_trunc('month', visited_at) AS month, count(*) FROM visits GROUP BY 1 ORDER BY 1;`,
	`SELECT * FROM dp.budget;`,
}

// demoStep is one statement of the demo's data generator. The data are a function of the number of rows alone: a hash
// of the row number replaces chance.
type demoStep struct{ name, sql string }

func demoSteps(rows int) []demoStep {
	return []demoStep{
		{"", `CREATE MACRO u(i, k) AS (hash(i * 1009 + k) % 1000000007) / 1000000007.0`},
		{"regions", `CREATE TABLE regions AS SELECT * FROM (VALUES ('north', 'Northern plain', 61000), ('south', 'Southern coast', 48000),
			('east', 'Eastern hills', 39500), ('west', 'Western lakes', 33200), ('islands', 'The islands', 9100)) AS r(code, name, area_km2)`},
		{"people", fmt.Sprintf(peopleSQL, rows)},
		{"", `ALTER TABLE people ADD PRIMARY KEY (person_id)`}, // proves one row a person, which saves the row bounding
		{"visits", visitsSQL},
		{"bids", bidsSQL},
		{"", `ALTER TABLE bids ADD PRIMARY KEY (person_id)`},
		{"prices", `CREATE TABLE prices AS SELECT 5 * i AS price FROM generate_series(1, 100) AS s(i)`},
		{"likes", likesSQL},
		{"", `ALTER TABLE likes ADD PRIMARY KEY (person_id)`},
		{"", `DROP MACRO u`},
	}
}

// peopleSQL: ages of a population that is neither young nor old, four levels of education that depend on age, incomes
// that depend on both, hiring dates that lean to the recent, some NULLs, a few values outside the declared domains.
const peopleSQL = `CREATE TABLE people AS
WITH base AS (
  SELECT i AS person_id,
    CASE WHEN u(i, 1) < 0.22 THEN floor(18 * u(i, 2))
         WHEN u(i, 1) < 0.80 THEN 18 + floor(47 * pow(u(i, 2), 1.05))
         ELSE 65 + floor(40 * pow(u(i, 2), 2.2)) END::INTEGER AS age,
    CASE WHEN u(i, 3) < 0.507 THEN 'Female' WHEN u(i, 3) < 0.997 THEN 'Male' WHEN u(i, 3) < 0.999 THEN 'X' END AS sex,
    u(i, 4) AS schooling, u(i, 5) AS luck, (u(i, 6) + u(i, 7) + u(i, 8) + u(i, 9) - 2) * 1.7 AS spread, u(i, 10) AS place
  FROM generate_series(1, %d) AS s(i)),
taught AS (
  SELECT *, CASE WHEN age < 16 OR schooling < 0.12 THEN 'none' WHEN schooling < 0.55 THEN 'school'
                 WHEN schooling < 0.80 THEN 'college' WHEN schooling < 0.94 OR age < 24 THEN 'bachelor' ELSE 'master' END AS education
  FROM base)
SELECT person_id, age, sex, education,
  CASE WHEN age < 16 OR luck < 0.05 THEN NULL WHEN luck < 0.18 THEN 0
       ELSE floor(exp(10.1 + 0.5 * spread + 0.012 * (least(age, 55) - 35)
            + CASE education WHEN 'master' THEN 0.7 WHEN 'bachelor' THEN 0.45 WHEN 'college' THEN 0.15 ELSE 0 END)) END::INTEGER AS income,
  CASE WHEN age >= 18 AND luck >= 0.2
       THEN DATE '2026-06-30' - floor(least((age - 17) * 365, 9600) * pow(u(person_id, 11), 1.8))::INTEGER END AS hired,
  CASE WHEN place < 0.31 THEN 'north' WHEN place < 0.55 THEN 'south' WHEN place < 0.75 THEN 'east'
       WHEN place < 0.92 THEN 'west' ELSE 'islands' END AS region
FROM taught`

// visitsSQL: none to a dozen visits a person, more with age.
const visitsSQL = `CREATE TABLE visits AS
SELECT p.person_id,
  (TIMESTAMP '2024-01-01 00:00:00' + to_seconds(floor(u(p.person_id * 16 + v, 21) * 912 * 86400)::BIGINT))::TIMESTAMPTZ AS visited_at,
  CASE WHEN u(p.person_id * 16 + v, 22) < 0.50 THEN 'checkup' WHEN u(p.person_id * 16 + v, 22) < 0.75 THEN 'lab'
       WHEN u(p.person_id * 16 + v, 22) < 0.90 THEN 'vaccination' ELSE 'emergency' END AS kind,
  5 + floor(-20 * ln(1 - u(p.person_id * 16 + v, 23)))::INTEGER AS minutes
FROM people p, generate_series(1, 12) AS s(v)
WHERE u(p.person_id, 20) * u(p.person_id, 24) * (4 + p.age / 10.0) > v - 0.6`

// bidsSQL: what each person would pay for a year's ferry ticket, more where income is more, and most by islanders.
const bidsSQL = `CREATE TABLE bids AS
SELECT person_id, floor(exp(4 + 0.6 * (u(person_id, 31) + u(person_id, 32) + u(person_id, 33) - 1.5))
  * CASE WHEN region = 'islands' THEN 2.2 WHEN income > 40000 THEN 1.4 ELSE 1 END)::INTEGER AS bid
FROM people`

// likesSQL: fruit that a person likes: none, or several.
const likesSQL = `CREATE TABLE likes AS
SELECT person_id, u(person_id, 41) < 0.46 AS apple, u(person_id, 42) < 0.47 AS banana, u(person_id, 43) < 0.31 + 0.002 * age AS cherry,
  u(person_id, 44) < 0.12 AS fig
FROM people`

// generate writes the demo's warehouse file, showing progress.
func generate(ctx context.Context, path string, rows int, out io.Writer) error {
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	db, err := sql.Open("duckdb", partial)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, step := range demoSteps(rows) {
		if step.name != "" {
			fmt.Fprintf(out, "generating %-8s ", step.name)
		}
		start := time.Now()
		if _, err := db.ExecContext(ctx, "SET TimeZone = 'UTC'"); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, step.sql)
		if err != nil && ctx.Err() != nil {
			fmt.Fprintln(out)
			return errors.New("interrupted; the next start generates anew")
		}
		if err != nil {
			return fmt.Errorf("generate %s: %w", step.name, err)
		}
		if step.name == "" {
			continue
		}
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+step.name).Scan(&n); err != nil {
			return err
		}
		fmt.Fprintf(out, "%9d rows  %.1f s\n", n, time.Since(start).Seconds())
	}
	if err := db.Close(); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// demoPolicy is the policy file that the demo writes: small, and commented as a DBA would like to read it.
func demoPolicy(listen, console string, rows int, analyst, dba string) string {
	return fmt.Sprintf(`# The demo's policy: what analysts may learn of the people in warehouse.duckdb.
version: 1
server:
  listen: %s
  console: %s                      # pages for a browser: log in as analyst, or as dba for the owner's pages
backend:
  url: duckdb:warehouse.duckdb
ledger:
  url: sqlite:dpproxy.ledger
users:
  - {name: analyst, password: "%s"}
  - {name: dba, password: "%s", admin: true}     # sees every budget, no more of the data
owners: [dba]                                     # sees in the console who spent what, and may revoke releases
datasets:
  - id: demo
    unit: {name: person, key: people.person_id, type: bigint}   # whom the budget protects
    neighbors: add-remove
    accountant: pure                              # ε adds up
    cap: {epsilon: 100, delta: 0}                 # everybody together, for life
    budgets:
      "*": {epsilon: 10, delta: 0}                # each user, for life
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: main.people
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: age,       type: integer, domain: {min: 0, max: 109, step: 1}, outside: clamp, extremes: declared, comment: "years"}
          - {name: sex,       type: text,    domain: {values: [Female, Male]}, nulls: exclude, other: hide}   # charts have no bars for nobody
          - {name: education, type: text,    domain: {values: [none, school, college, bachelor, master]}, nulls: exclude, other: hide}
          - {name: income,    type: integer, domain: {min: 0, max: 250000, step: 1000}, outside: clamp, extremes: true, comment: "a year"}
          - {name: hired,     type: date,    domain: {min: 2000-01-01, max: 2026-12-31, step: 1 day}, extremes: declared}   # NULL: never hired
          - {name: region,    type: text,    domain: {values: [north, south, east, west, islands]}, nulls: exclude, other: hide}
        releases:                                 # each user pays for one once; then it is free
          - {kind: range,     columns: [age],            epsilon: 0.5}
          - {kind: range,     columns: [income],         epsilon: 0.5}
          - {kind: histogram, columns: [sex, education, region], epsilon: 0.5}
          # made-up rows, in a table of their own: SELECT count(*) FROM dp.people_made_up pays, then SELECT * FROM dp.people_made_up shows them
          - {kind: synthetic, name: people_made_up, columns: [{column: age, step: 10}, sex, education, region], epsilon: 1, rows: 2000}
          # counts over any combination, one after the other: 20 answers come from the rows, the others from a public guess. A count by
          # itself is more exact, so that it is opened by SET dp.release = on alone
          - {kind: online, name: people_online, columns: [{column: age, step: 5}, {column: income, step: 10000}, sex, education, region], epsilon: 1, updates: 20}
      - name: visits                              # several rows a person
        source: main.visits
        unit: visits.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 8                      # enforced: the rest of a person's rows are left out
        columns:
          - {name: visited_at, type: timestamptz, domain: {min: 2024-01-01, below: 2026-07-01, step: 1 hour}, nulls: exclude, other: hide, extremes: declared}
          - {name: kind,       type: text,        domain: {values: [checkup, lab, vaccination, emergency]}, nulls: exclude, other: hide}
          - {name: minutes,    type: integer,     domain: {min: 0, max: 240, step: 1}, outside: clamp, extremes: declared}
      - name: bids                                # what people would pay for a year's ferry ticket
        source: main.bids
        unit: bids.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: bid, type: integer, domain: {min: 0, max: 500, step: 5}, outside: clamp}
      - name: likes                               # fruit that people like: none, or several
        source: main.likes
        unit: likes.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: apple,  type: boolean, nulls: exclude}
          - {name: banana, type: boolean, nulls: exclude}
          - {name: cherry, type: boolean, nulls: exclude}
          - {name: fig,    type: boolean, nulls: exclude}
        releases:                                 # insist: a plain histogram of so few cells would do better, as EXPLAIN says
          - {kind: online, name: fruit, columns: [apple, banana, cherry, fig], epsilon: 1, updates: 20, insist: true}
      - name: prices                              # no privacy: exact and free
        source: main.prices
        public: true
        max_rows: 1000
        columns:
          - {name: price, type: integer}
      - name: regions
        source: main.regions
        public: true
        max_rows: 100
        columns:
          - {name: code,     type: text}
          - {name: name,     type: text}
          - {name: area_km2, type: integer}
`, listen, console, analyst, dba, rows, 2*rows, rows, rows)
}
