package answers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// reportPolicy is what the policies of all reports begin with; %[3]s is the unit.
const reportPolicy = `version: 1
server: {listen: "127.0.0.1:0", limits: {statement_cpu: 30s}}
backend: {url: %q}
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: %q}]
datasets:
  - id: lab
    unit: %s
    accountant: pure
    cap: {epsilon: 1000000, delta: 0.1}
    budgets: {"*": {epsilon: 1000000, delta: 0.1}}
    defaults: {epsilon: 20000, max_epsilon: 100000, confidence: 0.95}
    tables:
`

// TestReportsOfProjects: reports in the style of those that come with well-known programs, over tables with such
// columns. Each is answered as PostgreSQL answers it where noise vanishes, or is refused as the line above it says: "--
// refused: SQLSTATE message".
func TestReportsOfProjects(t *testing.T) {
	kit.Beside(t)
	files, err := filepath.Glob("testdata/reports/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) { reportsOf(t, file) })
	}
}

func reportsOf(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, rest, _ := strings.Cut(string(text), "-- policy: ")
	unit, rest, _ := strings.Cut(rest, "\n")
	tables, reports, found := strings.Cut(rest, "-- reports\n")
	if !found {
		t.Fatal("no reports")
	}
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, schema, `ANALYZE`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	t.Cleanup(func() { server.Exec(t, database, `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM `+role) })
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(reportPolicy, server.URLFor(role, database), kit.Verifier(t, "alice"), unit)+tables), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(ctx)
	w := kit.Serve(t, path).Connect("alice", "lab")
	plain := strings.NewReplacer()
	if strings.Contains(schema, "dp.dialect = mysql") {
		w.Ask("SET dp.dialect = mysql")
		plain = mysqlWords
	}
	for _, report := range strings.Split(strings.TrimSpace(reports), ";\n") {
		refused, sql := "", report
		if line, after, ok := strings.Cut(report, "\n"); ok && strings.HasPrefix(line, "-- refused: ") {
			refused, sql = strings.TrimPrefix(line, "-- refused: "), after
		}
		a := w.Ask(sql)
		got := ""
		if a.Err != nil {
			got = a.Err.Code + " " + a.Err.Message
		}
		switch {
		case got != refused:
			t.Errorf("%s\n  %q, not %q\n  hint: %v", sql, got, refused, a.Err)
		case a.Err != nil && a.Err.Hint == "":
			t.Errorf("%s\n  %s has no hint", sql, got)
		case a.Err == nil:
			if text := differs(a.Rows, plainRows(t, direct, plain.Replace(sql))); text != "" {
				t.Errorf("%s\n  %s\n  notes %q", sql, text, a.Notes)
			}
		}
	}
}

// mysqlWords are MySQL's functions in the reports, as PostgreSQL has them.
var mysqlWords = strings.NewReplacer("DATE_FORMAT(date_created, '%Y-%m')", "to_char(date_created, 'YYYY-MM')", "YEAR(date_created)", "extract(year FROM date_created)::int", "MONTH(date_created)", "extract(month FROM date_created)::int",
	"HOUR(date_created)", "extract(hour FROM date_created)::int", "IF(returning_customer = 1, 'returning', 'new')", "CASE WHEN returning_customer = 1 THEN 'returning' ELSE 'new' END", "DATE_ADD('2024-03-01', INTERVAL 1 MONTH)", "timestamp '2024-04-01'",
	"IFNULL(", "coalesce(", "BINARY ", "", "DATEDIFF('2024-12-31', date_registered)", "(date '2024-12-31' - date_registered::date)")
