package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

const traitsPG = `CREATE TABLE traits AS SELECT i AS uid, (i % 50)::int4 AS a, (i % 50)::int8 AS b, (i % 50)::int2 AS s, (i % 50)::float8 AS f,
  (i % 50)::float4 AS r, (i % 50)::numeric(10,2) AS n, (i % 50)::numeric AS m, DATE '2020-01-01' + i AS d, TIMESTAMP '2020-01-01' + i * INTERVAL '1 day' AS ts,
  TIMESTAMPTZ '2020-01-01' + i * INTERVAL '1 day' AS tz, 'v' || i % 3 AS x, ('v' || i % 3)::varchar AS v, i % 2 = 0 AS k FROM generate_series(1, 100) AS g(i)`

const traitsPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: %q}]
datasets:
  - id: lab
    unit: {name: person, key: traits.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 10000, delta: 0}
    budgets: {"*": {epsilon: 10000, delta: 0}}
    tables:
      - name: traits
        source: %s.traits
        expected_rows: 100
        max_rows_per_unit: 2
        columns:
          - {name: a, type: integer, domain: {min: 0, max: 49, step: 1}, outside: clamp}
          - {name: b, type: bigint, domain: {min: 0, max: 49, step: 1}}
          - {name: s, type: smallint, domain: {min: 0, max: 49, step: 7}, outside: exclude}
          - {name: f, type: double precision, domain: {min: 0, max: 50, step: 0.5}, outside: clamp}
          - {name: r, type: real, domain: {min: 0, max: 50, step: 1}}
          - {name: n, type: "numeric(10,2)", domain: {min: 0, max: 50, step: 0.25}, outside: clamp}
          - {name: m, type: numeric, domain: {min: 0, max: 50, step: 0.25}}
          - {name: d, type: date, domain: {min: 2020-01-01, max: 2020-12-31, step: 1 day}, outside: clamp}
          - {name: ts, type: timestamp, domain: {min: 2020-01-01, max: 2020-12-31, step: 1 hour}}
          - {name: tz, type: timestamptz, domain: {min: 2020-01-01, max: 2020-12-31, step: 1 day}, outside: clamp}
          - {name: x, type: text, domain: {values: [v0, v1, v2]}}
          - {name: v, type: varchar, domain: {values: [v0, v1, v2]}, nulls: exclude}
          - {name: k, type: boolean}
`

// extremes are what one person may have put into her own row, by engine.
var extremes = map[string][]string{
	"PostgreSQL": {
		`a = 2147483647, b = 9223372036854775807, s = 32767, f = 1.7976931348623157e308, r = 3.4e38, n = 99999999.99, m = 1e1000, d = 'infinity', ts = 'infinity', tz = 'infinity', x = repeat('x', 1000000), v = ''`,
		`a = -2147483648, b = -9223372036854775808, s = -32768, f = '-Infinity', r = '-Infinity', n = -99999999.99, m = '-Infinity', d = '-infinity', ts = '-infinity', tz = '-infinity', x = '', v = repeat('ü', 1000)`,
		`a = NULL, b = NULL, s = NULL, f = 'NaN', r = 'NaN', n = 'NaN', m = 'NaN', d = '4713-01-01 BC', ts = '4713-01-01 BC', tz = '4713-01-02 BC', x = NULL, v = NULL, k = NULL`,
		`f = '-0', r = '-0', n = 0.01, m = 0.0000000000000000000000001, d = '5874897-12-31', ts = '294276-12-31', tz = '294276-12-31', x = 'v0 ', v = 'V0'`,
		`f = 4.9e-324, r = 1.4e-45, n = NULL, m = -1e-1000, d = '2020-12-31', ts = '2020-12-31 00:00:00.000001', tz = '2020-12-31 23:59:59.999999', x = E'v0\n', v = E'\uFEFFv0'`,
		`f = 'Infinity', r = 'Infinity', m = 'Infinity', x = 'xyz', v = $$';DROP TABLE traits;--$$`,
	},
	"DuckDB": {
		`a = 2147483647, b = 9223372036854775807, s = 32767, f = 1.7976931348623157e308, r = 3.4e38, n = 99999999.99, d = 'infinity', ts = 'infinity', tz = 'infinity', x = repeat('x', 1000000), v = ''`,
		`a = -2147483648, b = -9223372036854775808, s = -32768, f = '-Infinity', r = '-Infinity', n = -99999999.99, d = '-infinity', ts = '-infinity', tz = '-infinity', x = '', v = repeat('ü', 1000)`,
		`a = NULL, b = NULL, s = NULL, f = 'NaN', r = 'NaN', n = NULL, d = '4713-01-01 (BC)', ts = '4713-01-01 (BC)', tz = '4713-01-02 (BC)', x = NULL, v = NULL, k = NULL`,
		`f = '-0', r = '-0', n = 0.01, d = '5877642-06-25 (BC)', ts = '290309-12-22 (BC) 00:00:00', tz = '294246-01-10', x = 'v0 ', v = 'V0'`,
		`f = 'Infinity', r = 'Infinity', d = '5881580-07-10', ts = '294247-01-10 04:00:54.775806', x = 'xyz', v = ''';DROP TABLE traits;--'`,
	},
}

// extremeQueries touch every column in a condition and as a key; %d makes each fresh.
var extremeQueries = []string{
	`SELECT count(*) FROM traits WHERE a >= %d`, `SELECT count(*) FROM traits WHERE b < %d`, `SELECT count(*) FROM traits WHERE s >= %d`, `SELECT count(*) FROM traits WHERE f > %d.25`,
	`SELECT count(*) FROM traits WHERE r <= %d`, `SELECT count(*) FROM traits WHERE n <> %d.5`, `SELECT count(*) FROM traits WHERE f = 0 AND a < %d`,
	`SELECT count(*) FROM traits WHERE d > DATE '2020-02-01' + %d`, `SELECT count(*) FROM traits WHERE ts >= '2020-03-01 00:%d:17.5'`, `SELECT count(*) FROM traits WHERE tz < '2020-04-%d'`,
	`SELECT x, v, k, count(*) FROM traits WHERE a <> %d GROUP BY x, v, k`, `SELECT width_bucket(f, 0, 50, 5), count(*) FROM traits WHERE a <> %d GROUP BY 1`,
	`SELECT date_trunc('month', ts), count(*) FROM traits WHERE b <> %d GROUP BY 1`, `SELECT date_trunc('month', tz), k, count(*) FROM traits WHERE b <> %d GROUP BY 1, 2`,
	`SELECT d - DATE '2020-01-01' > 30, count(*) FROM traits WHERE a <> %d GROUP BY 1`, `SELECT s / 7, count(*) FROM traits WHERE a <> %d GROUP BY 1`,
	`SELECT count(*) FROM traits WHERE x LIKE 'v%%' AND a <> %d`, `SELECT count(n), count(f), count(x) FROM traits WHERE a <> %d`, `SELECT count(*) FROM traits WHERE x || v = 'v0v0' AND a <> %d`,
	`SELECT count(*) FROM traits WHERE m >= %d.3`, `SELECT m >= 25, count(*) FROM traits WHERE a <> %d GROUP BY 1`, `SELECT round(n), count(*) FROM traits WHERE a <> %d GROUP BY 1`, `SELECT extract(year from d), count(*) FROM traits WHERE a <> %d GROUP BY 1`, `SELECT count(*) FROM traits WHERE a + b * s > %d`,
}

// TestExtremePerson: whatever one person writes into her row, nothing but noised cells changes, the database never
// fails, and no paid query does: procedure P1 between a database with her and one without.
func TestExtremePerson(t *testing.T) {
	kit.Beside(t)
	t.Run("PostgreSQL", func(t *testing.T) {
		server := pgtest.Start(t, kit.Logged...)
		var sides [2]*kit.Program
		var databases [2]string
		for i, without := range []int{0, 7} {
			role := server.Role(t, "")
			databases[i] = server.Database(t)
			server.Exec(t, databases[i], traitsPG, fmt.Sprintf(`DELETE FROM traits WHERE uid = %d`, without), `GRANT SELECT ON traits TO `+role)
			sides[i] = kit.Serve(t, traitsFile(t, memory.Dir(t), server.URLFor(role, databases[i]), "public"))
		}
		for i, change := range extremes["PostgreSQL"] {
			server.Exec(t, databases[0], `UPDATE traits SET `+change+` WHERE uid = 7`)
			alikeWith(t, sides[0], sides[1], i)
		}
		for _, line := range kit.Statements(t, server) {
			if strings.HasPrefix(line, "ERROR:") {
				t.Error("the database failed: ", line)
			}
		}
	})
	t.Run("DuckDB", func(t *testing.T) {
		// The file is open in the proxy while it runs, so each change has a pair of its own.
		for i, change := range extremes["DuckDB"] {
			var sides [2]*kit.Program
			for k, statements := range [][]string{{traitsDuck, `UPDATE traits SET ` + change + ` WHERE uid = 7`}, {traitsDuck, `DELETE FROM traits WHERE uid = 7`}} {
				path := traitsFile(t, memory.Dir(t), "duckdb:lab.duckdb", "main")
				kit.ExecDuckDB(t, path, statements...)
				sides[k] = kit.Serve(t, path)
			}
			alikeWith(t, sides[0], sides[1], i)
		}
	})
}

var traitsDuck = strings.NewReplacer("::numeric AS m", "::DECIMAL(18,3) AS m", "DATE '2020-01-01' + i AS", "(DATE '2020-01-01' + i::INTEGER)::DATE AS", "TIMESTAMPTZ '2020-01-01' + i *", "TIMESTAMPTZ '2020-01-01 00:00:00+00' + i *",
	"i AS uid", "i::INTEGER AS uid").Replace(traitsPG)

func traitsFile(t *testing.T, dir, backend, schema string) string {
	t.Helper()
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, traitsPolicy, backend, kit.Verifier(t, "alice"), schema), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func alikeWith(t *testing.T, with, without *kit.Program, round int) {
	t.Helper()
	p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
	answered := 0
	for _, query := range extremeQueries {
		sql := fmt.Sprintf(query, round+10)
		if d := p.sameShape(sql); d != "" {
			t.Errorf("round %d: %s", round, d)
		}
		if a := p.with.Ask(sql); a.Err == nil {
			answered++
		} else if round == 0 {
			t.Logf("refused: %s: %s", sql, a.Err.Message)
		}
	}
	if answered < len(extremeQueries)/2 {
		t.Errorf("only %d of %d were answered", answered, len(extremeQueries))
	}
	for _, side := range []*kit.Program{with, without} {
		if strings.Contains(side.LogText(), "a paid query failed") {
			t.Errorf("round %d: a paid query failed:\n%s", round, side.LogText())
		}
	}
}
