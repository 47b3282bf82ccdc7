package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// recordedRates are the shares of recorded client statements (SELECTs without parameters that read catalogs alone) that
// the embedded engine must at least answer.
var recordedRates = map[string]float64{"psql": 0.9}

func TestRecordedStatements(t *testing.T) {
	for _, client := range []string{"psql", "pgjdbc", "sqlalchemy", "psycopg2", "psycopg3", "asyncpg", "pgx", "dbeaver", "metabase", "pandas", "psqlodbc", "superset", "grafana", "redash"} {
		t.Run(client, func(t *testing.T) {
			asked, answered := 0, 0
			for _, text := range blocks(t, client) {
				if !catalogOnly(text) {
					continue
				}
				asked++
				_, err := ask(t, engine(t), text)
				if err == nil {
					answered++
				} else if os.Getenv("DPPROXY_VERBOSE") != "" {
					fmt.Printf("--- %s: %v\n%s\n", client, err, text)
				}
			}
			t.Logf("%s: %d of %d recorded statements answered", client, answered, asked)
			if rate := recordedRates[client]; asked > 0 && float64(answered) < rate*float64(asked) {
				t.Errorf("%s: %d of %d, want at least %.0f %%", client, answered, asked, 100*rate)
			}
		})
	}
}

// catalogOnly tells whether a text is one SELECT without parameters that names no table of the recording's own.
func catalogOnly(text string) bool {
	tree, err := pg.Parse(text)
	if err != nil || len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil || strings.Contains(text, "$1") {
		return false
	}
	for _, name := range []string{"orders", "users", "paid", "public.", "tt"} {
		for _, node := range tree.Stmts[0].Stmt.GetSelectStmt().GetFromClause() {
			if node.GetRangeVar().GetRelname() == name {
				return false
			}
		}
	}
	return true
}
