package answers

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// stays has so many groups of 9 persons, one fewer than min_frequency asks for, each with three rows in one group; and
// mixed has groups of 1 to 24 persons.
const (
	fewGroups = 1000
	rareSQL   = `CREATE TABLE people AS SELECT i AS uid, i // 9 AS code FROM range(9 * %[1]d) AS s(i);
CREATE TABLE stays AS SELECT uid, code, (uid + j) %% 2 AS kind, j AS minutes FROM people, range(3) AS s(j);
CREATE TABLE mixed AS SELECT i AS uid, (floor((sqrt(8 * i + 1) - 1) / 2))::INTEGER AS code, 'k' || j AS kind,
  (j * 7 + i) %% 50 AS minutes
FROM range(300) AS s(i), range(4) AS r(j) WHERE (i + j) %% 3 > 0;
CREATE TABLE single AS SELECT DISTINCT uid, code FROM mixed;
CREATE TABLE codes AS SELECT i AS code FROM range(24) AS s(i);
CREATE TABLE labels AS SELECT 'k' || i AS kind, 'kind ' || i AS label FROM range(4) AS s(i)`
	rarePolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "duckdb:lab.duckdb"}
ledger: {url: "sqlite:ledger.db"}
users:
%[1]sdatasets:
  - id: lab
    unit: {name: person, key: people.uid}
    accountant: %[2]s
    min_frequency: {units: 10, beta: 0.05}
    cap: {epsilon: 900000, delta: 1e-6}
    budgets: {"*": {epsilon: %[3]s, delta: 1e-7}}
    defaults: {epsilon: %[4]s, max_epsilon: 90000}
    tables:
      - name: people
        source: main.people
        expected_rows: 9000
        max_rows_per_unit: 1
        columns: [{name: code, type: integer, domain: {min: 0, max: %[5]d}}]
      - name: stays
        source: main.stays
        unit: stays.uid = people.uid
        expected_rows: 27000
        max_rows_per_unit: 3
        columns:
          - {name: code, type: integer, domain: {min: 0, max: %[5]d}}
          - {name: kind, type: integer, domain: {min: 0, max: 1}}
      - name: loose
        source: main.stays
        unit: loose.uid = people.uid
        expected_rows: 27000
        columns: [{name: code, type: integer, domain: {min: 0, max: %[5]d}}]
      - name: mixed
        source: main.mixed
        unit: mixed.uid = people.uid
        expected_rows: 800
        max_rows_per_unit: 4
        columns:
          - {name: uid, type: bigint, keys: join}
          - {name: code, type: integer, domain: {min: 0, max: 30}}
          - {name: kind, type: text, domain: {values: [k0, k1, k2, k3, k9]}, min_frequency: {units: 12, beta: 0.01}}
          - {name: minutes, type: integer, domain: {min: 0, max: 49}}
      - name: single
        source: main.single
        unit: single.uid = people.uid
        expected_rows: 300
        max_rows_per_unit: 1
        columns: [{name: code, type: integer, domain: {min: 0, max: 30}}]
      - {name: codes, source: main.codes, public: true, columns: [{name: code, type: integer}]}
      - name: labels
        source: main.labels
        public: true
        columns: [{name: kind, type: text}, {name: label, type: text}]
`
)

// rareRows opens a database with these rows; file is empty where it is in memory.
func rareRows(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(fmt.Sprintf(rareSQL, fewGroups)); err != nil {
		t.Fatal(err)
	}
	return db
}

// serveRare serves them to so many probe users.
func serveRare(t *testing.T, users int, accountant, budget, epsilon string) *kit.Program {
	t.Helper()
	dir := memory.Dir(t)
	rareRows(t, filepath.Join(dir, "lab.duckdb")).Close()
	var names strings.Builder
	for i := range users {
		fmt.Fprintf(&names, "  - {name: u%d, password: %q}\n", i, kit.Verifier(t, "probe"))
	}
	fmt.Fprintf(&names, "  - {name: alice, password: %q}\n", kit.Verifier(t, "alice"))
	path := filepath.Join(dir, "policy.yaml")
	text := fmt.Sprintf(rarePolicy, names.String(), accountant, budget, epsilon, fewGroups-1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

// TestGroupsOfTooFewAreRarelyShown: of 100,000 groups of one unit fewer than min_frequency asks for, each drawn for
// itself, at most β are shown, and not many fewer, under both accountants: where a unit has one row, where it has
// several, of which all would be enough, and where no bound of its rows is declared. A share is above β by chance with
// a probability of 3e-7 (five standard deviations); a ladder's groups share the choice of a step, and are not judged so
// from below.
func TestGroupsOfTooFewAreRarelyShown(t *testing.T) {
	kit.Beside(t)
	const beta = 0.05
	users := kit.Length(5, 20, 100)
	for accountant, budget := range map[string]string{"pure": "10", "zcdp": "10"} {
		t.Run(accountant, func(t *testing.T) {
			p := serveRare(t, users, accountant, budget, "0.1")
			shown := func(rows [][]string) float64 { return float64(len(rows)) }
			probes := []kit.Probe{
				{Name: "people", SQL: "SELECT code FROM people GROUP BY code", Epsilon: 0.1, Number: shown},
				{Name: "stays", SQL: "SELECT code, count(*) FROM stays GROUP BY code", Epsilon: 0.1, Number: shown},
				{Name: "loose", SQL: "SELECT DISTINCT code FROM loose", Epsilon: 0.1, Number: shown},
			}
			numbers, err := kit.DrawnBy(p, users, probes)
			if err != nil {
				t.Fatal(err)
			}
			draws := float64(users * fewGroups)
			for i, probe := range probes {
				all := 0.
				for _, n := range numbers[i] {
					all += n
				}
				share, off := all/draws, 5*math.Sqrt(beta*(1-beta)/draws)
				t.Logf("%s: %.4f of %.0f groups of 9 are shown, at most %g may be", probe.Name, share, draws, beta)
				if share > beta+off || probe.Name != "loose" && share < 0.7*beta-off {
					t.Errorf("%s: %.4f are shown", probe.Name, share)
				}
			}
		})
	}
}

// TestGroupsOfEnough: where noise vanishes the groups that are shown are those of at least so many units, whatever a
// statement shows of them, and what is made of groups above is made of these.
func TestGroupsOfEnough(t *testing.T) {
	kit.Beside(t)
	w := serveRare(t, 0, "pure", "900000", "20000").Connect("alice", "lab")
	db := rareRows(t, "")
	asked := []struct{ sql, plain string }{
		{"SELECT code, count(*) FROM mixed GROUP BY code%s", ""},
		{"SELECT code FROM mixed GROUP BY code%s", ""},
		{"SELECT DISTINCT code FROM mixed", "SELECT code FROM mixed GROUP BY code%s"},
		{"SELECT code, sum(minutes) FROM mixed GROUP BY code%s AND count(*) > 20", ""},
		{"SELECT code, count(*) FROM mixed WHERE minutes > 10 GROUP BY code%s", ""},
		{"SELECT code, count(*), rank() OVER (ORDER BY count(*) DESC) FROM mixed GROUP BY code%s", ""},
		{
			"SELECT code / 8, count(DISTINCT uid), avg(minutes) FROM mixed GROUP BY code / 8%s",
			"SELECT code // 8, count(DISTINCT uid), avg(minutes) FROM mixed GROUP BY ALL%s",
		},
		{"SELECT count(*), sum(n) FROM (SELECT code, count(*) AS n FROM mixed GROUP BY code%s) t", ""},
		{"SELECT code, count(*) FROM mixed GROUP BY code%s ORDER BY count(*) DESC, 1 LIMIT 3", ""},
		{"SELECT code FROM mixed GROUP BY code%s ORDER BY count(*) DESC LIMIT 1", ""},
		{"SELECT count(*) FROM mixed WHERE code IN (SELECT code FROM mixed GROUP BY code%s)", ""},
		{
			"SELECT n, count(*) FROM (SELECT uid, count(*) AS n FROM mixed GROUP BY uid) t GROUP BY n",
			"SELECT n, count(*) FROM (SELECT uid, count(*) AS n FROM mixed GROUP BY uid) t GROUP BY n " +
				"HAVING count(*) >= 12",
		},
		{
			"SELECT code, count(*) FROM mixed WHERE code < 12 GROUP BY code%s UNION ALL SELECT 99, " +
				"count(*) FROM mixed WHERE code = 3",
			"",
		},
		{"SELECT code > 11 AS large, count(*) FROM mixed GROUP BY ROLLUP (code > 11)%s", ""},
		{
			"SELECT code, kind, count(*) FROM mixed GROUP BY code, kind",
			"SELECT code, kind, count(*) FROM mixed GROUP BY code, kind HAVING count(DISTINCT uid) >= 12",
		},
		{
			"SELECT label, count(*) FROM mixed JOIN labels USING (kind) GROUP BY label",
			"SELECT label, count(*) FROM mixed JOIN labels USING (kind) GROUP BY label HAVING " +
				"count(DISTINCT uid) >= 12",
		},
		{"SELECT count(*) FROM mixed WHERE code = 3", ""},
		{
			"SELECT code, count(*) FROM mixed GROUP BY code HAVING count(*) >= 0",
			"SELECT code, count(*) FROM mixed GROUP BY code%s",
		},
		{
			"SELECT g, count(*) FROM generate_series(0, 12) g JOIN single p ON p.code = g GROUP BY g",
			"SELECT code, count(*) FROM single WHERE code < 13 GROUP BY code%s",
		},
		{
			"SELECT v.n, count(*) FROM (VALUES (3), (9), (12)) v(n), single p WHERE p.code = v.n GROUP " +
				"BY 1",
			"SELECT code, count(*) FROM single WHERE code IN (3, 9, 12) GROUP BY code%s",
		},
		{
			"SELECT v.n FROM (VALUES (0), (1), (2), (3), (24)) v(n), single p WHERE p.code = v.n GROUP " +
				"BY 1 ORDER BY count(*) DESC LIMIT 2",
			"SELECT 1 WHERE false",
		},
		{
			"SELECT c.code, (SELECT count(*) FROM single p WHERE p.code = c.code) FROM codes c WHERE " +
				"code IN (3, 12)",
			"VALUES (3, NULL), (12, 13)",
		},
		{
			"SELECT f, count(*) FROM (SELECT uid, count(*) FILTER (WHERE kind = 'k1') AS f FROM mixed " +
				"WHERE code = 10 GROUP BY uid) t GROUP BY f",
			"SELECT 1 WHERE false",
		},
		{
			"SELECT g.code, v.what, count(*) FROM people g CROSS JOIN LATERAL (VALUES ('low', g.code < " +
				"9), ('all', true)) v(what, is_so) WHERE is_so GROUP BY 1, 2",
			"SELECT NULL, NULL, NULL WHERE false",
		},
	}
	for _, a := range asked {
		plain := a.plain
		if plain == "" {
			plain = a.sql
		}
		plain = strings.Replace(plain, "%s", " HAVING count(DISTINCT uid) >= 10", 1)
		got := w.Ask(strings.Replace(strings.Replace(a.sql, "%s AND", " HAVING", 1), "%s", "", 1))
		if got.Err != nil {
			t.Errorf("%s: %v", a.sql, got.Err)
			continue
		}
		want := duckRows(t, db, plain)
		slices.SortFunc(want, slices.Compare)
		slices.SortFunc(got.Rows, slices.Compare)
		if !slices.EqualFunc(got.Rows, want, func(a, b []string) bool { return slices.EqualFunc(a, b, sameText) }) {
			t.Errorf("%s\n  %q\n  must be %q\n  %q", a.sql, got.Rows, want, got.Notes)
		}
	}
	got := w.Ask("SELECT code, count(*) FROM mixed GROUP BY code")
	const said = "groups of fewer than 10 units (person) are not shown (min_frequency): " +
		"one is shown if more than 9 are counted in it"
	if !strings.Contains(strings.Join(got.Notes, "\n"), said) {
		t.Errorf("the notice does not say what is left out: %q", got.Notes)
	}
	tables := w.Ask("SELECT table_name, min_frequency FROM dp.tables WHERE min_frequency = 10 ORDER BY 1")
	if len(tables.Rows) != 5 {
		t.Errorf("dp.tables: %q", tables.Rows)
	}
}

// duckRows are DuckDB's own rows.
func duckRows(t *testing.T, db *sql.DB, text string) (list [][]string) {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
				row[i] = "NULL"
			case bool:
				row[i] = map[bool]string{true: "t", false: "f"}[v]
			default:
				row[i] = fmt.Sprint(v)
			}
		}
		list = append(list, row)
	}
	return list
}
