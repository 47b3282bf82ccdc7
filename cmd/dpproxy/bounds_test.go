package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/bounds"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/test/kit"
)

// unboundedTables are the database of TestBounds: skewed values, and what would fail a function that is not total, or
// move more than one unit may.
var unboundedTables = []string{
	`CREATE TABLE people (person_id integer PRIMARY KEY, salary numeric(14,2), height double precision, hired date, seen timestamptz, age smallint, loose numeric, note text)`,
	`SELECT setseed(0.13)`,
	`INSERT INTO people SELECT i, round(exp(8 + sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))::numeric, 2), 1.7 + 0.1 * (random() + random() - 1), date '2015-02-01' + (random() * 3000)::int,
	   timestamptz '2021-01-05' + random() * interval '2 years', 18 + (random() * 60)::int, (random() * random() * 400)::numeric, 'x' FROM generate_series(1, 20000) i`,
	`INSERT INTO people VALUES (20001, 999999999999.99, 'Infinity', 'infinity', '-infinity', 32767, '1e400', 'y'), (20002, 'NaN', 'NaN', '-infinity', 'infinity', -32768, 'NaN', 'y'),
	   (20003, NULL, 1.7e308, '4713-01-01 BC', '4713-01-01 BC', NULL, 'Infinity', NULL), (20004, -999999999999.99, 5e-324, '5874897-12-31', '294276-12-31', 0, '1e-400', NULL)`,
	`CREATE TABLE visits (person_id integer, cost bigint)`,
	`INSERT INTO visits SELECT i, (random() * 300)::int FROM generate_series(1, 20000) i, generate_series(1, 1 + i % 7) k`,
	`INSERT INTO visits SELECT 20001, 9000000000000000000 FROM generate_series(1, 50000)`,
}

const unboundedPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend:
  url: %s
users: []
datasets:
  - id: firm
    unit: {name: person, key: people.person_id}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 50, delta: 1e-6}
    budgets:
      "*": {epsilon: 20, delta: 1e-7}
    tables:
      - name: people
        source: public.people
        expected_rows: 20000
        max_rows_per_unit: 1
        columns:
          - {name: salary, type: "numeric(14,2)", domain: private, comment: "a month"}
          - {name: height, type: double precision, domain: private}
          - {name: hired, type: date, domain: private}
          - {name: seen_at, source: seen, type: timestamptz, domain: private}
          - {name: age, type: smallint, domain: private}
          - {name: loose, type: numeric, domain: private}
          - {name: note, type: text, domain: {values: [x, y]}}
      - name: visits
        source: public.visits
        unit: visits.person_id = people.person_id
        max_rows_per_unit: 40
        columns:
          - {name: cost, type: bigint, domain: private}
`

var (
	nameOf    = regexp.MustCompile(`\{name: (\w+),`)
	numberIn  = regexp.MustCompile(`(min|max): (-?[\d.]+)`)
	rowsFound = regexp.MustCompile(`(?m)^ *max_rows_per_unit: (\d+)$`)
)

// pasted puts what dpproxy bounds printed into a policy file, as its owner would: each column's line in the place of
// the old one, and the bound of rows.
func pasted(t *testing.T, path, table, printed string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, own, ok := strings.Cut(string(text), "      - name: "+table+"\n")
	if !ok {
		t.Fatalf("no table %s", table)
	}
	rest := ""
	if at := strings.Index(own, "      - name: "); at >= 0 {
		own, rest = own[:at], own[at:]
	}
	for line := range strings.Lines(printed) {
		if m := nameOf.FindStringSubmatch(line); m != nil {
			old := regexp.MustCompile(`(?m)^ *- \{name: ` + m[1] + `,.*\n`)
			if !old.MatchString(own) {
				t.Fatalf("no column %s in\n%s", m[1], own)
			}
			own = old.ReplaceAllLiteralString(own, line)
		}
	}
	if m := rowsFound.FindString(printed); m != "" {
		own = rowsFound.ReplaceAllLiteralString(own, m)
	}
	if err := os.WriteFile(path, []byte(before+"      - name: "+table+"\n"+own+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

// endsOf are the numbers that were printed for a column.
func endsOf(t *testing.T, printed, column string) (least, most float64) {
	t.Helper()
	for line := range strings.Lines(printed) {
		if m := nameOf.FindStringSubmatch(line); m != nil && m[1] == column {
			for _, n := range numberIn.FindAllStringSubmatch(line, -1) {
				v, err := strconv.ParseFloat(n[2], 64)
				if err != nil {
					t.Fatal(err)
				}
				if n[1] == "min" {
					least = v
				} else {
					most = v
				}
			}
			return least, most
		}
	}
	t.Fatalf("no column %s in\n%s", column, printed)
	return
}

// TestBounds: over a real PostgreSQL, live and by a snapshot, columns without bounds are refused and not shown; dpproxy
// bounds finds bounds at its price, whatever the rows hold, and says the same again for nothing; what it prints is
// accepted by check at once, and questions are answered.
func TestBounds(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, unboundedTables...)
	server.Exec(t, database, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	for name, snapshot := range map[string]string{"live": "", "snapshot": "\n  snapshot: {dir: snapshots, every: 6h, at: \"02:00\"}"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(path, fmt.Appendf(nil, unboundedPolicy, `"`+server.URLFor(role, database)+`"`+snapshot), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, user := range []string{"alice", "bob"} {
				if out := kit.Run(t, user+"\n", "user", "add", user, "--policy", path); out.Code != 0 {
					t.Fatalf("user add: %s", out.Stderr)
				}
			}
			asked := func(want int, args ...string) kit.Ran {
				t.Helper()
				// What is asserted of ends below is not to fail in one run of twenty.
				out := kit.Run(t, "", append([]string{"bounds", "--policy", path, "--user", "alice", "--confidence", "0.999999"}, args...)...)
				if out.Code != want {
					t.Fatalf("bounds %v: exit %d, want %d\n%s%s", args, out.Code, want, out.Stdout, out.Stderr)
				}
				return out
			}
			spent := func() string {
				t.Helper()
				for line := range strings.Lines(kit.Run(t, "", "budget", "--policy", path).Stdout) {
					if f := strings.Fields(line); len(f) > 3 && f[1] == "(cap)" {
						return f[3]
					}
				}
				return ""
			}
			// What cannot be asked costs nothing.
			for _, c := range []struct {
				code int
				says string
				args []string
			}{
				{2, "--table is missing", []string{"--epsilon", "1"}}, {2, "there is no table nobody", []string{"--table", "nobody", "--epsilon", "1"}}, {2, "--epsilon is missing", []string{"--table", "people"}},
				{2, "adds up ε", []string{"--table", "people", "--rho", "0.1"}}, {2, "has bounds", []string{"--table", "people", "--epsilon", "1", "--column", "note"}}, {2, "no column none", []string{"--table", "people", "--epsilon", "1", "--column", "none"}},
				{3, "does not hold", []string{"--table", "people", "--epsilon", "21"}}, {2, "too little", []string{"--table", "people", "--epsilon", "0.000001"}}, {2, "--epsilon", []string{"--table", "people", "--epsilon", "0"}},
				{2, "--confidence", []string{"--table", "people", "--epsilon", "1", "--confidence", "1"}},
			} {
				if out := asked(c.code, c.args...); !strings.Contains(out.Stderr, c.says) || out.Stdout != "" {
					t.Errorf("%v: %s%s", c.args, out.Stdout, out.Stderr)
				}
			}
			if out := asked(0, "--table", "people", "--epsilon", "6", "--dry-run"); strings.Count(out.Stdout, "\n") != 6 || !strings.Contains(out.Stdout, "people.salary: ε 1, histogram of") {
				t.Errorf("dry run: %s", out.Stdout)
			}
			if got := spent(); got != "0" {
				t.Fatalf("spent %s before anything was bought", got)
			}
			// Nothing is answered over them, and catalogs show the other columns and the unit's alone.
			p := kit.Serve(t, path)
			w := p.Connect("bob", "firm")
			if r := w.Ask(`SELECT avg(salary) FROM people`); r.Err == nil || !strings.Contains(r.Err.Error(), "has no bounds yet") || !strings.Contains(fmt.Sprint(r.Err), "DP002") {
				t.Errorf("avg of a column without bounds: %v", r.Err)
			}
			for _, sql := range []string{`SELECT column_name FROM dp.columns WHERE table_name = 'people'`, `SELECT column_name FROM information_schema.columns WHERE table_name = 'people'`,
				`SELECT attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE relname = 'people' AND attnum > 0`} {
				if r := w.Ask(sql); r.Err != nil || !slices.EqualFunc(r.Rows, [][]string{{"note"}, {"person_id"}}, slices.Equal) {
					t.Errorf("%s: %v %v", sql, r.Rows, r.Err)
				}
			}
			if r := w.Ask(`SELECT note, count(*) FROM people GROUP BY 1`); r.Err != nil || len(r.Rows) == 0 {
				t.Errorf("the other columns are not answered: %v", r.Err)
			}
			p.Stop(syscall.SIGTERM)
			// Bounds.
			people := asked(0, "--table", "people", "--epsilon", "6")
			again := asked(0, "--table", "people", "--epsilon", "6")
			if head, rest, _ := strings.Cut(again.Stdout, "\n"); !strings.Contains(head, "has paid for it already") || !strings.HasSuffix(people.Stdout, rest) || rest == "" {
				t.Errorf("again:\n%s", again.Stdout)
			}
			visits := asked(0, "--table", "visits", "--epsilon", "2")
			for _, out := range []kit.Ran{people, visits} {
				if strings.Contains(out.Stderr, "failed") || strings.Contains(out.Stderr, "ERROR") {
					t.Errorf("the log says\n%s", out.Stderr)
				}
			}
			for column, want := range map[string][4]float64{ // least and most that the ends may be
				"salary": {0, 400, 20000, 300000}, "height": {1.5, 1.7, 1.7, 2}, "age": {15, 20, 78, 80}, "loose": {0, 1, 300, 400},
			} {
				if least, most := endsOf(t, people.Stdout, column); least < want[0] || least > want[1] || most < want[2] || most > want[3] {
					t.Errorf("%s: from %g to %g, want within %v\n%s", column, least, most, want, people.Stdout)
				}
			}
			if _, most := endsOf(t, visits.Stdout, "cost"); most != 300 {
				t.Errorf("cost to %g\n%s", most, visits.Stdout)
			}
			if m := rowsFound.FindStringSubmatch(visits.Stdout); m == nil || m[1] != "8" { // 7, between 6 and 8
				t.Errorf("rows of a person: %v\n%s", m, visits.Stdout)
			}
			for _, part := range []string{"{name: hired, type: date, domain: {min: 2015-01-01, below: 2024-01-01, step: 1 day}}", `comment: "a month"}`, "{name: seen_at, source: seen, type: timestamp with time zone, domain: {min: 2021-01-01, below: 2024-01-01, step: 1 hour}}"} {
				if !strings.Contains(people.Stdout, part) && !strings.Contains(people.Stdout, strings.Replace(part, "below: 2024", "below: 2023", 1)) {
					t.Errorf("%s is not in\n%s", part, people.Stdout)
				}
			}
			pasted(t, path, "people", people.Stdout)
			pasted(t, path, "visits", visits.Stdout)
			if out := kit.Run(t, "", "check", "--policy", path); out.Code != 0 || strings.Contains(out.Stdout, "domain is private") {
				text, _ := os.ReadFile(path)
				t.Fatalf("check: exit %d\n%s%s\n%s", out.Code, out.Stdout, out.Stderr, text)
			}
			w = kit.Serve(t, path).Connect("bob", "firm")
			w.Ask(`SET dp.epsilon = 1`)
			for sql, want := range map[string][2]float64{`SELECT avg(salary) FROM people`: {4000, 6000}, `SELECT avg(age) FROM people`: {46, 50}, `SELECT avg(height) FROM people`: {1.65, 1.75}, `SELECT count(*) FROM visits`: {78000, 81000}} {
				r := w.Ask(sql)
				if r.Err != nil || len(r.Rows) != 1 {
					t.Errorf("%s: %v", sql, r.Err)
					continue
				}
				if v, err := strconv.ParseFloat(r.Rows[0][0], 64); err != nil || v < want[0] || v > want[1] {
					t.Errorf("%s: %s, want within %v", sql, r.Rows[0][0], want)
				}
			}
		})
	}
}

// TestBoundsRefusedForFree: where one of several columns cannot be asked over the engine, nothing of any is charged.
func TestBoundsRefusedForFree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	text := fmt.Sprintf(unboundedPolicy, `"duckdb:"`+"\n  files: {people: people.csv, visits: visits.csv}")
	text = strings.NewReplacer("public.", "", "numeric(14,2)", "numeric(60,2)", "users: []\n", "users: [{name: alice, password: \"SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}]\n").Replace(text)
	for name, content := range map[string]string{path: text, filepath.Join(dir, "people.csv"): "person_id,salary,height,hired,seen,age,loose,note\n1,2,3,2020-01-01,2020-01-01,4,5,x\n", filepath.Join(dir, "visits.csv"): "person_id,cost\n1,2\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := kit.Run(t, "", "bounds", "--policy", path, "--user", "alice", "--table", "people", "--epsilon", "1")
	if out.Code == 0 || !strings.Contains(out.Stderr, "38 digits") {
		t.Errorf("exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	if budget := kit.Run(t, "", "budget", "--policy", path); !strings.Contains(budget.Stderr, "no dataset firm") { // which it has only once the database was found to be as the policy says
		t.Errorf("spent: %s%s", budget.Stdout, budget.Stderr)
	}
}

// TestBoundsPrintsWhatWasPaid: of two questions that were paid for one was not drawn; the other's answer is printed.
func TestBoundsPrintsWhatWasPaid(t *testing.T) {
	p, err := policy.Parse(fmt.Appendf(nil, unboundedPolicy, `"postgres://127.0.0.1/x"`), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := p.Datasets[0]
	table := d.Table("", "people")
	r, err := bounds.Ask(table, []*policy.Column{table.Column("age"), table.Column("salary")}, false, false, privacy.Cost{Epsilon: privacy.MicroEpsilon(2_000_000)})
	if err != nil {
		t.Fatal(err)
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Questions[1].Measure
	noisy, err := mechanisms.Release(m.Spec, m.Place, privacy.Seal([]privacy.Group{{Cells: []int32{int32(m.Spec.Cells / 2)}, Counts: []int64{5000}}}), bytes.NewReader(bytes.Repeat([]byte{7, 201, 33, 90}, 1<<16)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	found, failed := bounding{user: "alice"}.write(&out, r, []pipeline.Drawn{{}, {Spec: m.Spec, Noisy: noisy}}, r.Cost, confidence)
	if found != 1 || failed == nil || !strings.Contains(failed.Error(), "people.age was paid for, and not drawn") || !strings.Contains(out.String(), "{name: salary, ") || !strings.Contains(out.String(), "charged ε 2 to alice") {
		t.Errorf("%d found, %v:\n%s", found, failed, out.String())
	}
}
