package spark

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// canary is in every row of people, in one column or another, and in the files' directory; nothing that anybody is
// shown may hold it.
const canary = "Zyxomma-4711"

// shopSQL is a shop in DuckDB, which writes it as Parquet files: people, what they did, and cities.
var shopSQL = []string{
	`CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, (i * 7 % 100)::INTEGER AS age, (i * 37 % 5000 + 0.25)::DECIMAL(12,2) AS income,
  DATE '2015-01-01' + (i * 13 % 3000)::INTEGER AS hired, CASE WHEN i % 50 = 1 THEN '` + canary + `' ELSE ['Bern', 'Basel', 'Zürich', 'O''Hara'][i % 4 + 1] END AS city, i % 5 = 0 AS vip, (i % 10 + 0.5)::REAL AS score, (i % 3 + 1)::INTEGER AS place, '` + canary + `' AS note
FROM range(1, 2001) AS s(i)`,
	`CREATE TABLE visits AS SELECT p.id AS who, ['A', 'B', 'C'][k % 3 + 1] AS ward, ((p.id + k) % 60)::INTEGER AS minutes, TIMESTAMPTZ '2024-01-01 00:00:00+00' + INTERVAL 1 hour * ((p.age * 100 + k) % 8000) AS at
FROM people AS p, range(0, 3) AS s(k) WHERE p.age % 4 > k`,
	`CREATE TABLE cities AS SELECT * FROM (VALUES (1, 'Bern', 52), (2, 'Basel', 23), (3, 'Zürich', 88)) AS v(no, name, area)`,
}

// sparkSQL are the tables as Spark reads them.
var sparkSQL = map[string]string{
	"people": "id BIGINT, sex STRING, age INT, income DECIMAL(12,2), hired DATE, city STRING, vip BOOLEAN, score FLOAT, place INT, note STRING",
	"visits": "who BIGINT, ward STRING, minutes INT, at TIMESTAMP",
	"cities": "no INT, name STRING, area INT",
}

const shopPolicy = `version: 1
server: {listen: "127.0.0.1:0", admin: %q}
backend: {url: %q%s}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
datasets:
  - id: shop
    unit: {name: person, key: people.id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000000}
    budgets: {"*": {epsilon: 1000000}}
    defaults: {epsilon: 10000, max_epsilon: 20000}
    tables:
      - name: people
        static: true
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 99, step: 1}}
          - {name: income, type: "numeric(12,2)", domain: {min: 0, max: 5000, step: 0.25}}
          - {name: hired, type: date, domain: {min: 2015-01-01, max: 2024-12-31, step: 1 day}}
          - {name: city, type: text, domain: {values: [Bern, Basel, Zürich, "O'Hara"]}}
          - {name: vip, type: boolean, domain: {values: [false, true]}}
          - {name: score, type: real, domain: {min: 0, max: 10, step: 0.5}}
          - {name: place, type: integer, domain: {min: 1, max: 3, step: 1}}
          - {name: note, type: text, domain: any}
      - name: visits
        static: true
        unit: visits.who = people.id
        max_rows_per_unit: 2
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: at, type: timestamptz, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}
      - name: cities
        public: true
        columns: [{name: no, type: integer}, {name: name, type: text}, {name: area, type: integer}]
`

// questions are what is asked of both: each kind of leaf.
var questions = []string{
	"SELECT count(*) FROM people",
	"SELECT count(*) FROM people WHERE age >= 30 AND sex = 'f' AND city <> 'O''Hara'",
	"SELECT sex, city, count(*), sum(age), avg(age) FROM people GROUP BY sex, city ORDER BY sex, city",
	"SELECT extract(year FROM hired) AS y, count(*) FROM people WHERE hired < '2023-01-01' GROUP BY y ORDER BY y",
	"SELECT count(*), round(avg(score) + 0.2), round(avg(income) / 10) FROM people WHERE vip AND score > 5",
	"SELECT age / 10 * 10 AS decade, count(*), round(stddev(income) / 100) FROM people GROUP BY 1 HAVING count(*) > 0 ORDER BY 1",
	"SELECT ward, sum(minutes), avg(minutes), count(*) FROM visits GROUP BY ward ORDER BY ward",
	"SELECT date_trunc('month', at) AS month, count(*) FROM visits WHERE ward IN ('A', 'C') GROUP BY 1 ORDER BY 1",
	"SELECT count(DISTINCT who) FROM visits WHERE minutes > 50",
	"SELECT p.sex, count(*), sum(v.minutes) FROM visits AS v JOIN people AS p ON p.id = v.who GROUP BY p.sex ORDER BY p.sex",
	"SELECT count(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.who = p.id AND v.minutes > 50)",
	"SELECT c.area, count(*) FROM people AS p JOIN cities AS c ON c.no = p.place GROUP BY c.area ORDER BY c.area",
	"SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) AS t GROUP BY n ORDER BY n",
	"SELECT count(*) FROM (SELECT who, minutes - lag(minutes) OVER (PARTITION BY who ORDER BY at) AS gap FROM visits) AS t WHERE gap > 0",
	"SELECT percentile_cont(0.505) WITHIN GROUP (ORDER BY age) FROM people",
	"SELECT count(*) FROM people WHERE note LIKE 'Z%omm_-%' AND length(note) = 12 AND left(note, 1) = 'Z'",
}

// site is the shop over one server.
type site struct {
	server          *sparktest.Server
	database, dir   string // of the files
	onSpark, onDuck string // policies
	admin           string // the operator's page of what serves the first
}

// shop writes the files, has a server read them, and writes two policies: over Spark, and over DuckDB.
func shop(t *testing.T, server *sparktest.Server) *site {
	t.Helper()
	s := &site{server: server, database: server.Database(t), dir: filepath.Join(t.TempDir(), canary), admin: kit.FreeAddress(t)}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	statements := shopSQL
	var files []string
	for _, name := range []string{"people", "visits", "cities"} {
		statements = append(slices.Clip(statements), fmt.Sprintf("COPY %s TO '%s' (FORMAT parquet)", name, s.file(name)))
		files = append(files, fmt.Sprintf("%s: %q", name, s.file(name)))
	}
	for _, text := range statements {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	s.name(t)
	write := func(admin, url, more string) string {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, fmt.Appendf(nil, shopPolicy, admin, url, more, kit.Verifier(t, "alice")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s.onSpark, s.onDuck = write(s.admin, server.URL(s.database), ""), write(kit.FreeAddress(t), "duckdb:", ", files: {"+strings.Join(files, ", ")+"}")
	return s
}

func (s *site) file(table string) string { return filepath.Join(s.dir, table+".parquet") }

// name tells the server's metastore of the files.
func (s *site) name(t *testing.T) {
	t.Helper()
	statements := []string{"CREATE DATABASE IF NOT EXISTS " + s.database}
	for name, columns := range sparkSQL {
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s.%s (%s) USING PARQUET LOCATION 'file:%s'", s.database, name, columns, s.file(name)))
	}
	s.server.Exec(t, statements...)
}

// TestSparkAnswersAsDuckDB: at an ε where noise vanishes a real psql sees the same rows over Spark as over DuckDB, both
// of which read one set of Parquet files; check accepts the policy, and price has the same prices.
func TestSparkAnswersAsDuckDB(t *testing.T) {
	s := shop(t, sparktest.Shared(t))
	onSpark, onDuck := s.onSpark, s.onDuck
	c := kit.Run(t, "", "check", "--policy", onSpark)
	if c.Code != 0 || strings.Contains(c.Stdout, "error:") {
		t.Fatalf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	for _, said := range []string{"none proves one row per person", "that its files never change is assumed"} {
		if !strings.Contains(c.Stdout, said) {
			t.Errorf("check does not say %q:\n%s", said, c.Stdout)
		}
	}
	report := filepath.Join(t.TempDir(), "report.sql")
	if err := os.WriteFile(report, []byte(strings.Join(questions[:3], ";\n")+";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, b := kit.Run(t, "", "price", "--policy", onSpark, "--user", "alice", report), kit.Run(t, "", "price", "--policy", onDuck, "--user", "alice", report); a.Stdout != b.Stdout || a.Code != 0 {
		t.Errorf("prices differ:\n%s%s\n%s", a.Stdout, a.Stderr, b.Stdout)
	}
	p := kit.Serve(t, onSpark)
	spark, duck := kit.StartPsql(t, p.Address, "alice", "shop"), kit.StartPsql(t, kit.Serve(t, onDuck).Address, "alice", "shop")
	list := questions
	if !asked { // every third of them, so that this takes half a minute
		list = nil
		for i := 0; i < len(questions); i += 3 {
			list = append(list, questions[i])
		}
	}
	for _, q := range list {
		got, want := spark.Run(q+";"), duck.Run(q+";")
		if got != want || strings.Contains(got, "ERROR") {
			t.Errorf("%s:\nSpark  %s\nDuckDB %s", q, got, want)
		}
	}
	said := p.LogText()
	if strings.Contains(said, canary) || strings.Contains(said, "privacy rule 5") {
		t.Errorf("the log:\n%s", said)
	}
}

// TestSparkGone: over a server that hangs, or is gone, a new question is a plain error that charges nothing, and what
// she holds is answered. (One that dies within a paid query: TestSparkKilled.)
func TestSparkGone(t *testing.T) {
	whole(t)
	server := sparktest.Start(t, true) // one that wants a log-in, by the way
	p := kit.Serve(t, shop(t, server).onSpark)
	w := p.Connect("alice", "shop")
	if a := w.Ask("SELECT count(*) FROM people"); a.Err != nil || fmt.Sprint(a.Rows) != "[[2000]]" {
		t.Fatal(a.Rows, a.Err)
	}
	if err := server.Stall(); err != nil { // it takes connections and says nothing, from the next moment on
		t.Fatal(err)
	}
	begun := time.Now()
	a := w.Ask("SELECT sex, count(*) FROM people GROUP BY sex ORDER BY sex")
	t.Logf("%v after %v: %v", a.Rows, time.Since(begun).Round(time.Second), a.Err)
	if a.Err == nil || !strings.Contains(a.Err.Error(), "the database cannot be reached; nothing was charged") {
		t.Errorf("a server that says nothing: %v %v", a.Rows, a.Err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if a := w.Ask("SELECT city, count(*) FROM people GROUP BY city"); a.Err == nil || !strings.Contains(a.Err.Error(), "the database cannot be reached; nothing was charged") {
		t.Errorf("a server that is gone: %v %v", a.Rows, a.Err)
	}
	if a := w.Ask("SELECT count(*) FROM people"); a.Err != nil || fmt.Sprint(a.Rows) != "[[2000]]" {
		t.Errorf("what she holds: %v %v", a.Rows, a.Err)
	}
	if said := p.LogText(); strings.Contains(said, canary) {
		t.Errorf("the log:\n%s", said)
	}
}
