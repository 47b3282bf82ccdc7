package answers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// plainSQL is a small database without a constraint: people of whom some have no unit, visits of which some are of
// nobody, of people who are not there or of NULL, and several items a visit; a public list in which towns repeat. Some
// of its types its owner made.
const plainSQL = `
CREATE TYPE sexes AS ENUM ('m', 'f', 'x');
CREATE TYPE wards_of AS ENUM ('D', 'C', 'B', 'A');
CREATE DOMAIN minutes AS integer CHECK (VALUE < 100);
CREATE DOMAIN town AS text CHECK (VALUE <> '');
CREATE DOMAIN euros AS numeric(6,1);
CREATE DOMAIN paid AS euros;
CREATE TABLE people AS SELECT CASE WHEN i % 40 = 0 THEN NULL ELSE i END AS person_id, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'f' ELSE 'm' END::sexes AS sex,
  CASE WHEN i % 11 = 0 THEN NULL ELSE i % 90 END AS age, (i % 5 = 0) AS active, DATE '2020-01-01' + i % 366 AS joined, CASE i % 3 WHEN 0 THEN 'Rome' WHEN 1 THEN 'Oslo' END::town AS town,
  (i * 37) % 1000 AS grams, DATE '2020-01-01' + i % 366 AS met
  FROM generate_series(1, 300) AS s(i);
CREATE TABLE visits AS SELECT i AS visit_id, CASE WHEN i % 13 = 0 THEN NULL WHEN i % 17 = 0 THEN 1000 + i ELSE 1 + (i * 7) % 250 END AS who,
  ((ARRAY['A', 'B', 'C', NULL])[1 + i % 4])::wards_of AS ward, ((i * 31) % 60 - 5)::minutes AS minutes, CASE WHEN i % 9 = 0 THEN NULL ELSE ((i * 7) % 1000) / 10.0 END::paid AS cost,
  TIMESTAMP '2024-01-01' + make_interval(hours => (i * 5) % 2000) AS at FROM generate_series(1, 900) AS s(i);
ALTER TABLE visits ADD PRIMARY KEY (visit_id);
CREATE TABLE items AS SELECT CASE WHEN i % 19 = 0 THEN NULL ELSE 1 + (i * 11) % 950 END AS visit, (i % 6) AS kind, (i * 3) % 10 AS n FROM generate_series(1, 1500) AS s(i);
CREATE TABLE towns (town text, country text, size int);
INSERT INTO towns VALUES ('Rome', 'it', 3), ('Oslo', 'no', 1), ('Rome', 'us', 2), ('Bern', 'ch', 1), (NULL, 'xx', 0);
CREATE TABLE wards (ward wards_of PRIMARY KEY, floor int, head text);
INSERT INTO wards VALUES ('A', 1, 'x'), ('B', 1, 'y'), ('D', 2, NULL)`

const plainPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: %q}]
datasets:
  - id: lab
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 1000000}
    budgets: {"*": {epsilon: 1000000}}
    defaults: {epsilon: 1, max_epsilon: 100000, confidence: 0.95}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: enum, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 99}}
          - {name: active, type: boolean}
          - {name: joined, type: date, domain: {min: 2020-01-01, max: 2020-12-31}}
          - {name: town, type: text, domain: {values: [Oslo, Rome]}}
          - {name: grams, type: integer, domain: {min: 0, max: 1000, step: 100}}
          - {name: met, type: date, domain: {min: 2020-01-01, max: 2020-12-31, step: 1 week}}
      - name: visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 5
        columns:
          - {name: ward, type: enum, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: -10, max: 60}}
          - {name: cost, type: "numeric(6,1)", domain: {min: 0, max: 100, step: 0.1}}
          - {name: at, type: timestamp, domain: {min: "2024-01-01 00:00:00", max: "2024-03-31 23:00:00", step: 1 hour}}
          - {name: visit_id, type: integer, keys: join}
      - name: items
        unit: items.visit = visits.visit_id
        max_rows_per_unit: 20
        columns:
          - {name: kind, type: integer, keys: join, domain: {min: 0, max: 5}}
          - {name: n, type: integer, domain: {min: 0, max: 9}}
      - name: towns
        public: true
        columns: [{name: town, type: text}, {name: country, type: text}, {name: size, type: integer}]
      - name: wards
        public: true
        columns: [{name: ward, type: text}, {name: floor, type: integer}, {name: head, type: text}]
`

// withoutUnits takes from the tables the rows that have no unit, and from their values the types that their owner made,
// as the policy does.
const withoutUnits = `CREATE SCHEMA plain;
CREATE VIEW plain.people AS SELECT person_id, sex::text, age, active, joined, town::text, grams, met FROM public.people WHERE person_id IS NOT NULL;
CREATE VIEW plain.visits AS SELECT visit_id, who, ward::text, minutes::int, cost::numeric(6,1), at FROM public.visits WHERE who IS NOT NULL;
CREATE VIEW plain.items AS SELECT i.*, v.who FROM public.items i JOIN public.visits v ON v.visit_id = i.visit WHERE v.who IS NOT NULL;
CREATE VIEW plain.towns AS SELECT * FROM public.towns;
CREATE VIEW plain.wards AS SELECT ward::text, floor, head FROM public.wards`

// plainFixture is the small database, and how to ask a proxy over it that has spent nothing, and the database itself.
func plainFixture(t *testing.T) (fresh func() *kit.Wire, direct *pgx.Conn) {
	t.Helper()
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, strings.Split(plainSQL+";\n"+withoutUnits, ";\n")...)
	server.Exec(t, database, `ANALYZE`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	t.Cleanup(func() { server.Exec(t, database, `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM `+role) })
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, server.URLFor("postgres", database)+"&options=-csearch_path%3Dplain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { direct.Close(ctx) })
	return func() *kit.Wire {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, fmt.Appendf(nil, plainPolicy, server.URLFor(role, database), kit.Verifier(t, "alice")), 0o600); err != nil {
			t.Fatal(err)
		}
		w := kit.Serve(t, path).Connect("alice", "lab")
		w.Ask(`SET dp.epsilon = 20000`)
		return w
	}, direct
}

// TestAnswersAreThoseOfPlainSQL: with hardly any noise each statement is answered as PostgreSQL answers it. Groups that
// plain SQL does not show because no row is in them are there with counts of 0.
func TestAnswersAreThoseOfPlainSQL(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	answersOf(t, fresh, direct, "testdata/plain.sql")
}

// answersOf holds the answers to a file's statements against the database's own.
func answersOf(t *testing.T, fresh func() *kit.Wire, direct *pgx.Conn, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var w *kit.Wire
	_, text, _ := strings.Cut(string(data), "\n")
	for i, sql := range strings.Split(strings.TrimSpace(text), ";\n") {
		if i%40 == 0 {
			w = fresh() // the budget holds so many
		}
		got := w.Ask(sql)
		if got.Err != nil {
			t.Errorf("%s\n  refused: %s\n  hint: %s", sql, got.Err.Message, got.Err.Hint)
			continue
		}
		want := plainRows(t, direct, sql)
		if text := differs(got.Rows, want); text != "" {
			t.Errorf("%s\n  %s\n  notes %q", sql, text, got.Notes)
		}
	}
}

// plainRows is the database's own answer.
func plainRows(t *testing.T, direct *pgx.Conn, sql string) (rows [][]string) {
	t.Helper()
	results, err := direct.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Errorf("%s\n  the database: %v", sql, err)
		return nil
	}
	for _, values := range results[len(results)-1].Rows {
		row := make([]string, len(values))
		for i, v := range values {
			if row[i] = string(v); v == nil {
				row[i] = "NULL"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// differs says what is wrong with an answer, row by row in any order: numbers may differ in the sixth digit. Rows that
// are not in the truth must count nothing.
func differs(got, want [][]string) string {
	left := slices.Clone(got)
	for _, row := range want {
		i := slices.IndexFunc(left, func(have []string) bool { return slices.EqualFunc(have, row, sameText) })
		if i < 0 {
			return fmt.Sprintf("lacks %q; has %q", row, left[:min(len(left), 6)])
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, row := range left {
		if !slices.ContainsFunc(row, func(s string) bool { return s == "0" || s == "NULL" }) {
			return fmt.Sprintf("has %q, which is not there", row)
		}
	}
	return ""
}

func sameText(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && x-y < 1e-6 && y-x < 1e-6
}

// TestDivisionByReleasedCounts: a group in which nobody is has a count of 0, and the error says what to write.
func TestDivisionByReleasedCounts(t *testing.T) {
	kit.Beside(t)
	fresh, _ := plainFixture(t)
	w := fresh()
	if a := w.Ask(`SELECT ward, sum(minutes) / count(*) FROM visits GROUP BY ward`); a.Err == nil || a.Err.Code != "22012" || !strings.Contains(a.Err.Hint, "NULLIF") {
		t.Errorf("%+v", a.Err)
	}
	spent := w.Spent()
	if a := w.Ask(`SELECT ward, sum(minutes) / NULLIF(count(*), 0) FROM visits GROUP BY ward`); a.Err != nil || len(a.Rows) != 5 || w.Spent() != spent {
		t.Errorf("%v, %v, spent %s after %s", a.Err, a.Rows, w.Spent(), spent)
	}
}
